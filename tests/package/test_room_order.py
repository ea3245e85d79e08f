"""A room imports only rooms before it, so that each can be read without those that come later."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyterrier_mathamr

PACKAGE = Path(pyterrier_mathamr.__file__).parent
ORDER = [
    "_common",
    "store",
    "posts",
    "formula",
    "amr",
    "graph",
    "explain",
    "model",
    "index",
    "sparse",
    "fusion",
    "arqmath",
    "engine",
    "cli",
]


def imported_rooms(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line and room of each import, also of those inside functions and for types only."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            whole = node.module == "pyterrier_mathamr"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if whole else [str(node.module)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from ((node.lineno, name.split(".")[1]) for name in names if name.startswith("pyterrier_mathamr."))


def test_the_order_names_every_room() -> None:
    rooms = {file.parent.name for file in PACKAGE.glob("*/__init__.py")} - {"data", "pt_docs"}
    assert rooms == set(ORDER)


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_no_later_room(room: str) -> None:
    later = ORDER[ORDER.index(room) + 1 :]
    found = [
        f"{file.relative_to(PACKAGE)}:{line} imports {other}"
        for file in sorted((PACKAGE / room).rglob("*.py"))
        for line, other in imported_rooms(file)
        if other in later
    ]
    assert found == []

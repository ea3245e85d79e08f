"""Rules of the code: what may import what, and who may change files in one step or settings of the process."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import mathamr_systems
import pyterrier_mathamr
from pyterrier_mathamr import extending

PACKAGE, SYSTEMS = Path(pyterrier_mathamr.__file__).parent, Path(mathamr_systems.__file__).parent
ORDER = (
    *("_common", "store", "posts", "formula", "amr", "graph", "explain", "model", "index", "sparse", "fusion"),
    *("arqmath", "engine", "cli"),
)
"""A layer imports only layers before it, so that each can be read without those that come later."""


def imported_layers(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line and layer of each import, also of those inside functions and for types only."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            whole = node.module == "pyterrier_mathamr"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if whole else [str(node.module)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from ((node.lineno, name.split(".")[1]) for name in names if name.startswith("pyterrier_mathamr."))


@pytest.mark.parametrize("layer", ORDER)
def test_a_layer_imports_no_later_layer(layer: str) -> None:
    assert {file.parent.name for file in PACKAGE.glob("*/__init__.py")} - {"data", "pt_docs"} == set(ORDER)
    later = ORDER[ORDER.index(layer) + 1 :]
    found = [
        f"{file.relative_to(PACKAGE)}:{line} imports {other}"
        for file in sorted((PACKAGE / layer).rglob("*.py"))
        for line, other in imported_layers(file)
        if other in later
    ]
    assert found == []


def imports_of_the_core(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, module and name of each import of the core."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "pyterrier_mathamr":
            yield from ((node.lineno, str(node.module), alias.name) for alias in node.names)


def test_systems_use_only_names_of_the_package_of_its_layers_and_those_for_systems() -> None:
    public = {
        "pyterrier_mathamr",
        "pyterrier_mathamr.extending",
        *(f"pyterrier_mathamr.{layer}" for layer in ORDER[1:]),
    }
    inner, used = [], set()
    for file in sorted(SYSTEMS.rglob("*.py")):
        for line, module, name in imports_of_the_core(file):
            used.add(name)
            if not (module in public and (name in dir(import_module(module)) or f"{module}.{name}" in public)):
                inner.append(f"{file.relative_to(SYSTEMS)}:{line} imports {name} of {module}")
    assert inner == []
    assert set(extending.__all__) <= used


SWAPS = re.compile(
    r"\bos\.(replace|rename|fsync)\b|\bfcntl\b|\bflock\b|\bfilelock\b|finalized_(directory|open)|shutil\.move"
)


def test_only_the_store_renames_syncs_or_locks_files() -> None:
    others = [file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] != "store"]
    others += SYSTEMS.rglob("*.py")
    assert [file for file in others if SWAPS.search(file.read_text(encoding="utf-8"))] == []
    assert len(SWAPS.findall((PACKAGE / "store" / "files.py").read_text(encoding="utf-8"))) > 2


CHANGES = {
    *("catch_warnings", "disable", "disable_progress_bar", "fork_rng", "rc_context", "set_default_dtype"),
    *("set_float32_matmul_precision", "set_num_threads", "setLevel", "setlocale", "setrecursionlimit"),
    "use_deterministic_algorithms",
}
"""Calls that change settings of the whole process."""
SAFE = {
    "_common/feedback.py": "one thread at a time",
    "_common/running/resources.py": "one thread at a time, or each thread has its own",
    "cli/group.py": "the whole program",
    "model/loop.py": "a whole training",
}


def changes(tree: ast.AST, inside_shared: bool = False) -> Iterator[str]:
    """Yield the names of calls that change a setting outside of a function that `shared` guards."""
    for node in ast.iter_child_nodes(tree):
        decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
        guarded = inside_shared or "shared" in decorators
        name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
        if name in CHANGES and not guarded:
            yield name
        yield from changes(node, guarded)


def test_a_setting_of_the_process_is_changed_only_where_several_threads_are_safe() -> None:
    found = {}
    for package in (PACKAGE, SYSTEMS):
        for path in sorted(package.rglob("*.py")):
            if names := list(changes(ast.parse(path.read_text(encoding="utf-8")))):
                found[path.relative_to(package).as_posix()] = names
    assert {path: names for path, names in found.items() if path not in SAFE} == {}
    assert set(SAFE) <= set(found)

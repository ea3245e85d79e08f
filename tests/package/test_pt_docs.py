"""The pages for PyTerrier's site: the code of each runs by itself, in an empty folder.

Drawings (``.. schematic::``) are not part of it: the site runs each by itself, with only ``pt`` defined.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr

PAGES = Path(mathamr.__file__).parent / "pt_docs"
BLOCK = r"^(?P<indent> *)\.\. {}\n(?P<body>(?:(?P=indent) {{4}}.*\n|[ ]*\n)+)"
SUM = re.compile(r"``([0-9.,×/ +]+) = ([0-9.,]+)")


def contents() -> list[Path]:
    """The pages in the order of the table of contents."""
    index = PAGES / "index.rst"
    listed = index.read_text(encoding="utf-8").partition(":maxdepth: 1\n")[2]
    return [index, *(PAGES / f"{name}.rst" for name in re.findall(r"^    ([a-z-]+)$", listed, re.M))]


def blocks(page: str, directive: str = "code-block:: python") -> Iterator[str]:
    """The code of a page, on the same lines as there, but for blocks after a comment `.. not run: reason`."""
    for match in re.finditer(BLOCK.format(directive), page + "\n", re.MULTILINE):
        before = page[: match.start()].rstrip("\n").rpartition("\n")[2]
        if not before.strip().startswith(".. not run: "):
            lines = ["" if re.match(r" +:[a-z_]+:", line) else line for line in match["body"].splitlines()]
            yield "\n" * page[: match.start("body")].count("\n") + textwrap.dedent("\n".join(lines))


def test_every_page_is_in_the_table_of_contents() -> None:
    assert sorted(contents()) == sorted(PAGES.glob("*.rst"))


def test_blocks_are_found_at_any_depth_and_those_with_a_reason_are_left_out() -> None:
    page = (
        ".. how-to:: A?\n\n    .. code-block:: python\n\n        a = 1\n\n        b = 2\n\nText.\n\n"
        ".. not run: needs data\n.. code-block:: python\n\n    c = 3\n\n.. schematic::\n    :show_code:\n\n    d\n"
    )
    assert [block.strip() for block in blocks(page)] == ["a = 1\n\nb = 2"]
    assert [block.strip() for block in blocks(page, "schematic::")] == ["d"]


RUNNING = [page for page in contents() if any(blocks(page.read_text(encoding="utf-8")))]
WRITTEN = {"pictures": {".svg", ".png", ".mathamr", ".bm25"}, "graphs": {".mathamr", ".gz"}}


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.stem)
def test_a_page_runs_on_its_own(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, extra in (("Stemmer", "bm25"), ("matplotlib", "plots"), ("qdrant_client", "qdrant")):
        pytest.importorskip(package, reason=f"the extra {extra} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), names)
    assert {path.suffix for path in tmp_path.iterdir()} >= WRITTEN.get(page.stem, set())


DRAWINGS = [code for page in contents() for code in blocks(page.read_text(encoding="utf-8"), "schematic::")]


@pytest.mark.parametrize("code", DRAWINGS)
def test_a_drawing_needs_no_more_than_pyterrier_and_no_built_index(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pt.documentation, "url_for_class", lambda _: None)  # would ask PyTerrier's site
    *body, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    names = {"pt": pt}
    exec(compile(ast.Module(body, []), "<drawing>", "exec"), names)
    assert "MathAMR" in pt.schematic.draw(eval(compile(ast.Expression(last.value), "<drawing>", "eval"), names))


def test_the_api_page_names_the_whole_public_face() -> None:
    page = (PAGES / "api.rst").read_text(encoding="utf-8")
    documented = set(re.findall(r"auto\w+:: pyterrier_mathamr\.(\w+)$", page, re.M))
    rooms = {name for name in mathamr.__all__ if inspect.ismodule(getattr(mathamr, name))}
    assert set(mathamr.__all__) - rooms - {"__version__"} <= documented


@pytest.mark.parametrize(("formula", "result"), SUM.findall((PAGES / "full-release.rst").read_text(encoding="utf-8")))
def test_the_arithmetic_of_the_full_release_is_right(formula: str, result: str) -> None:
    value = eval(formula.replace(",", "").replace("×", "*"))
    last_place = 10.0 ** -len(result.partition(".")[2])
    assert value == pytest.approx(float(result.replace(",", "")), rel=0, abs=last_place / 2)

"""Quotations: the exact span of the source, found by its symbols, and the answer if there is none."""

import os
import time

import pytest

from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.citations import Citation, cited
from pyterrier_mathamr.posts import DocumentError
from pyterrier_mathamr.store import UnknownIdError
from tests.engine.conftest import built, written

FILES = {
    "root.md": "# Root\n\nThe number √2 is *irrational*:\np² = 2q²\nhas no solution.\n\nAgain: the number √2 is big.\n",
    "half.tex": "\\title{Half}\r\nLet $x_1^{2}\r\n + y = \\frac{1}{2}$ hold.\r\n"
    "Then $\\left(a\\right)<b$, and $X > x$.\r\n",
    "page.html": "<p>One &lt; two</p>",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> SearchEngine:
    folder = tmp_path_factory.mktemp("citations")
    return built(folder / "e", written(folder / "notes", FILES))


@pytest.mark.parametrize(
    ("docno", "quotation", "expected"),
    [
        ("root.md", "√2 is irrational", Citation("root.md", 3, 3, "√2 is *irrational*")),
        (
            "root.md",
            r"$\sqrt{2}$ is irrational: $p^{2} = 2q^{2}$ has",
            Citation("root.md", 3, 5, "√2 is *irrational*:\np² = 2q²\nhas"),
        ),
        ("root.md", "THE  number\n√2 is big.", Citation("root.md", 7, 7, "the number √2 is big.")),
        ("root.md", "the number √2", Citation("root.md", 3, 3, "The number √2")),
        ("half.tex", r"$x_1^2+y=\frac12$", Citation("half.tex", 2, 3, "x_1^{2}\r\n + y = \\frac{1}{2}")),
        ("half.tex", "(a)<b", Citation("half.tex", 4, 4, "(a\\right)<b")),
        ("half.tex", "X > x", Citation("half.tex", 4, 4, "X > x")),
    ],
)
def test_a_quotation_is_found_whatever_its_white_space_and_spelling(engine, docno, quotation, expected) -> None:
    found = cited(engine.snapshot().indexes.posts, docno, quotation)
    assert found == expected
    lines = FILES[found.file].split("\n")
    assert found.text in "\n".join(lines[found.first - 1 : found.last])


@pytest.mark.parametrize("quotation", ["x > X", "the number √3", "no solution has", "irrational √2", r"x_1^3"])
def test_a_quotation_that_is_not_in_the_post_is_an_error_with_the_closest_sentence(engine, quotation) -> None:
    for docno in ("root.md", "half.tex"):
        with pytest.raises(
            DocumentError, match=rf"{docno}: it does not contain the quotation; the closest sentence is “."
        ):
            cited(engine.snapshot().indexes.posts, docno, quotation)
    with pytest.raises(DocumentError, match="closest sentence is “Again: the number"):
        cited(engine.snapshot().indexes.posts, "root.md", "the number √2 is large")
    for blank in ("", " $ $ ", "**"):
        with pytest.raises(DocumentError, match="no words or symbols"):
            cited(engine.snapshot().indexes.posts, "root.md", blank)
    with pytest.raises(UnknownIdError, match="nothing"):
        cited(engine.snapshot().indexes.posts, "nothing", "x")


def test_a_post_without_its_file_is_cited_as_it_was_indexed(tmp_path) -> None:
    folder = written(tmp_path / "notes", FILES)
    posts = built(tmp_path / "e", folder).snapshot().indexes.posts
    quotation = r"number $\sqrt{2}$ is irrational"
    assert cited(posts, "page.html", "One < two").note.startswith("page.html does not contain these words any more")
    (folder / "root.md").write_text("# Root\n\nSomething else.\n")
    changed = cited(posts, "root.md", "number √2 is irrational")
    assert changed[:4] == ("root.md", 0, 0, quotation)
    assert changed.note.startswith("root.md does not contain these words any more")
    (folder / "root.md").write_text("\n\n\n" + FILES["root.md"])
    assert cited(posts, "root.md", quotation)[:3] == ("root.md", 6, 6)  # where it is now
    (folder / "root.md").unlink()
    assert cited(posts, "root.md", quotation).note.startswith("root.md can no longer be read")
    (tmp_path / "secret.md").write_text("The number √2 is irrational.")
    os.symlink(tmp_path / "secret.md", folder / "root.md")
    assert cited(posts, "root.md", quotation).note.startswith("root.md can no longer be read")
    records = built(tmp_path / "r", [{"id": "record", "text": "Records have no $x^2$ file."}]).snapshot()
    assert cited(records.indexes.posts, "record", "no x^2 file") == (
        "record", 0, 0, "no $x^2$ file", "the post did not come from a file; this is the post as it was indexed",
    )  # fmt: skip


def test_a_long_quotation_in_a_long_file_needs_linear_time(tmp_path) -> None:
    folder = written(tmp_path / "notes", {"long.txt": "a b " * 60_000 + "the end"})
    posts = built(tmp_path / "e", folder).snapshot().indexes.posts
    start = time.process_time()
    with pytest.raises(DocumentError, match="does not contain the quotation"):
        cited(posts, "long.txt", "a b " * 900 + "c")
    assert cited(posts, "long.txt", "b a b the end").first == 1
    assert time.process_time() - start < 10


def test_a_file_in_latin_1_and_one_that_a_single_file_includes_are_cited(tmp_path) -> None:
    main = "Größe\n\nFür jeden Ring gilt das.\n\\input{part}\n".encode("latin-1")
    part = "\\section{Teil}\nEin Körper ist ein Ring.\n"
    folder = written(tmp_path / "notes", {"main.tex": main, "part.tex": part})
    posts = built(tmp_path / "e", folder / "main.tex").snapshot().indexes.posts
    [part] = [docno for docno in posts.snapshot() if docno.startswith("part.tex")]
    assert cited(posts, "main.tex", "Für jeden Ring")[:3] == ("main.tex", 3, 3)
    assert cited(posts, part, "Körper ist ein Ring")[:3] == ("part.tex", 2, 2)

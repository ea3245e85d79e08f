"""Links from results to the files in which they were read, and where the page shows them."""

from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.engine.origins import LinkTemplate
from pyterrier_mathamr.posts import Document, Origin
from tests.engine.conftest import built, get


def document(file: str = "sub/a b.md", line: int = 7, root: str = "/notes", kind: str = "theorem") -> Document:
    return Document(f"{file}#^x", "", "", origin=Origin(root, file, line, "S", kind))


@pytest.mark.parametrize(
    ("template", "link"),
    [
        ("vscode://file/{path}:{line}", "vscode://file/notes/sub/a%20b.md:7"),
        ("file://{path}", "file:///notes/sub/a%20b.md"),
        ("file:///{path}", "file:///notes/sub/a%20b.md"),
        ("obsidian://open?path={path}", "obsidian://open?path=%2Fnotes%2Fsub%2Fa%20b.md"),
        ("https://x.org/{file}#L{line}", "https://x.org/sub/a%20b.md#L7"),
        ("HTTP://x.org?q={docno}&n={line}", "HTTP://x.org?q=sub%2Fa%20b.md%23%5Ex&n=7"),
        ("https://x.org/find/?pattern={name}#doc", "https://x.org/find/?pattern=%5Ex#doc"),
    ],
)
def test_a_link_has_the_values_of_the_post_percent_encoded(template, link) -> None:
    assert LinkTemplate(template).link(document()) == link


def test_a_whole_file_begins_at_its_first_line_and_a_record_has_a_link_only_by_its_docno(tmp_path) -> None:
    assert LinkTemplate("file:{path}:{line}").link(document(line=0)).endswith(":1")
    assert LinkTemplate("file:{path}").link(document(kind="")) == ""
    assert LinkTemplate("https://x.org/{name}").link(Document("a.md", "", "", origin=Origin("/n", "a.md"))) == ""
    assert LinkTemplate("https://x.org/{name}").link(document()._replace(docno="a.md")) == ""
    assert LinkTemplate("https://x.org/{docno}").link(document("q&a", kind="")) == "https://x.org/q%26a%23%5Ex"
    (tmp_path / "a.tex").write_text("x")  # a source that is one file
    found = LinkTemplate("file://{path}").link(document("part/b.tex", root=str(tmp_path / "a.tex")))
    assert found == f"file://{(tmp_path / 'part' / 'b.tex').as_posix()}"


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert('{line}')", "JavaScript:{path}", " javascript:{path}", "java\nscript:{path}",
        "vbscript:{line}",
        "data:text/html,{file}", "{path}", "{file}:x", "//x.org/{path}", "http://x.org/", "http://x.org/{title}",
        "http://x.org/{path", "http://x.org/{}", "http://x .org/{path}", "",
    ],
)  # fmt: skip
def test_other_schemes_fields_and_blanks_are_refused(template) -> None:
    with pytest.raises(ConfigError, match="link="):
        LinkTemplate(template)


def test_no_docno_leaves_its_place_in_a_link() -> None:
    hostile = document('javascript:alert(1)//"><script>/?#&{line}', root="/n")
    link = LinkTemplate("https://x.org/{file}?a={docno}").link(hostile)
    assert not set(link) & set('"<>{} ')
    assert link.startswith("https://x.org/javascript:alert%281%29//%22%3E%3Cscript%3E/%3F%23%26%7Bline%7D?a=")


NOTE = """# Limits

Words about limits.

**Theorem (Zorn).** Each chain $c$ has a bound.

*Proof.* By choice $p$.

**Lemma.** Another thing $q$.
"""


def test_the_frames_and_the_page_show_where_a_result_was_read(tmp_path: Path) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from pyterrier_mathamr.engine.page import Answers, make_app

    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text(NOTE)
    engine = built(tmp_path / "e", tmp_path / "notes")
    found = engine.search("each chain has a bound by choice", k=1)
    [row] = found.to_dict("records")
    assert (row["docno"], row["title"], row["kind"]) == ("a.md#theorem-zorn", "Theorem (Zorn)", "theorem")
    assert (row["file"], row["line"], row["section"]) == ("a.md", 5, "Limits")
    [row] = engine.search_formula("p", k=1).to_dict("records")
    assert (row["post_id"], row["file"], row["line"], row["section"]) == ("a.md#theorem-zorn", "a.md", 5, "Limits")
    place = {"file": "a.md", "line": 5, "section": "Limits", "kind": "theorem"}
    link = f"file://{tmp_path.as_posix()}/notes/a.md"
    for given, expected in ((None, ""), ("file://{path}", link)):
        with testclient.TestClient(make_app(Answers(engine, link=given)), base_url="http://localhost") as client:
            for mode, q in (("posts", "chain"), ("formulas", "p")):
                result = get(client, "/api/search", q=q, mode=mode)["systems"][0]["results"][0]
                assert {name: result[name] for name in (*place, "link")} == {**place, "link": expected}

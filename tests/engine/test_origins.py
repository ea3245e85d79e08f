"""Where posts were read: searches within a folder, type or time, and links from results to their files."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine import SearchEngine, reader
from pyterrier_mathamr.engine.origins import EVERYTHING, Filter, LinkTemplate, folders_of, kinds_of
from pyterrier_mathamr.posts import Document, Origin
from tests.engine.conftest import built, client_of, get, written

ORIGINS = {
    "analysis/limits.md#a": Origin("/n", "analysis/limits.md", 1, "", "theorem", "2026-03-31"),
    "analysis/limits.md#b": Origin("/n", "analysis/limits.md", 9, "", "proof", "2026-04-01"),
    "analysis/deep/sums.tex#c": Origin("/n", "analysis/deep/sums.tex", 1, "", "Theorem", "2025-12-31"),
    "analysis2/x.md": Origin("/n", "analysis2/x.md", 1, "", "file", ""),
    "analysis:1": Origin("", "analysis:1", date="2026-01-01"),
    "Order/Basic.lean#le": Origin("/n", "Order/Basic.lean", 3, "", "lemma", ""),
}
NOTES = {
    "analysis/limits.md": "# Limits\n\nThe limit of a series of rings $x^2$.",
    "analysis/deep/sums.md": "# Sums\n\nA series diverges, and a limit does not.",
    "algebra/rings.md": "# Rings\n\nA ring with a limit of ideals.",
    "algebra/groups.md": "# Groups\n\nEvery group has a series of subgroups.",
    "top.txt": "A limit at the top of all folders.",
}


@pytest.fixture(scope="module")
def notes(tmp_path_factory) -> SearchEngine:
    folder = tmp_path_factory.mktemp("filters")
    written(folder / "notes", NOTES)
    for name in NOTES:
        day = datetime(2025 if name.startswith("algebra") else 2026, 3, 1, 12, tzinfo=UTC).timestamp()
        os.utime(folder / "notes" / name, (day, day))
    return built(folder / "e", folder / "notes")


PASSING = [
    (EVERYTHING, "a b c d analysis:1 le"), (Filter("Order"), "le"), (Filter("Order.Basic"), "le"),
    (Filter("Order.Basic", kind="lemma"), "le"), (Filter("analysis/"), "a b c"), (Filter("./analysis"), "a b c"),
    (Filter("analysis/limits.md"), "a b"), (Filter("analysis/limits"), "a b"), (Filter("analysis/deep"), "c"),
    (Filter("analysis:"), "analysis:1"), (Filter(kind="theorem"), "a c"), (Filter("analysis/limits", "THEOREM"), "a"),
    (Filter("analysis2", "theorem"), ""), (Filter(since="2026"), "a b analysis:1"),
    (Filter(since="2026-03-31", until="2026-03"), "a"), (Filter(until="2025"), "c"), (Filter(since="2030"), ""),
]  # fmt: skip


def test_posts_pass_by_folder_type_and_date() -> None:
    short = {"analysis2/x.md": "d"}
    for chosen, expected in PASSING:
        passing = [short.get(docno, docno.partition("#")[2] or docno) for docno in chosen.chosen(ORIGINS)]
        assert " ".join(passing) == expected, chosen


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (Filter("anlysis/"), r"in='anlysis/' is not accepted; .* analysis/, .*analysis/deep/"),
        (Filter("analysis/lim"), "in='analysis/lim' is not accepted"),
        (Filter(kind="limit"), r"kind='limit' is not accepted; give one of the types: .*theorem"),
        (Filter(kind="theroem"), r"kind='theroem' is not accepted; give theorem, or another of the types: "),
        (Filter(since="March"), "since='March' is not accepted; give a day, month or year such as 2026-03-01"),
        (Filter(until="2026-02-30"), "until='2026-02-30'"),
        (Filter(until="2026-13"), "until='2026-13'"),
    ],
)
def test_an_unknown_value_is_an_error_that_lists_the_known_ones(chosen, message) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen.chosen(ORIGINS)


def test_folders_and_types_are_listed() -> None:
    assert folders_of(ORIGINS) == ["Order/", "analysis/", "analysis/deep/", "analysis2/"]
    assert kinds_of(ORIGINS) == ["Theorem", "file", "lemma", "proof", "theorem"]


@pytest.mark.parametrize("scored", [5_000, 0])
@pytest.mark.parametrize("system", ["blend", "bm25", "mathamr"])
def test_a_filter_gives_the_best_of_the_posts_that_pass(notes, system, scored, monkeypatch) -> None:
    monkeypatch.setattr(reader, "_SCORED", scored)
    query = notes.question("limit of a series")
    everything = notes.found(query, 10, system)
    for chosen in (Filter("algebra/"), Filter("analysis"), Filter("top.txt"), Filter(since="2026")):
        among = chosen.chosen(notes.snapshot().origins)
        expected = [place for place, docno in enumerate(everything.docnos) if docno in among]
        for k in (1, 2, 10):
            found = notes.found(query, k, system, chosen)
            assert found.docnos == [everything.docnos[place] for place in expected[:k]]
            assert found.scores == pytest.approx(everything.scores[expected[:k]])


def test_search_has_the_filters_and_a_filter_that_nothing_passes_finds_nothing(notes) -> None:
    assert notes.search("limit", within="analysis/", k=1)["docno"].iloc[0].startswith("analysis/")
    old = notes.search("limit series", weak=True, until="2025")["docno"]
    assert set(old) == {"algebra/rings.md", "algebra/groups.md"}
    assert notes.search("limit", within="algebra", since="2026").empty
    assert list(notes.search("limit", since="2030").columns) == list(notes.search("limit").columns)


def test_the_command_has_the_filters(notes, tmp_path) -> None:
    def run(*arguments: str):
        return CliRunner().invoke(main, ["search", str(notes.path), *arguments])

    assert run("limit", "--in", "algebra/").output.splitlines()[0].endswith("Rings — algebra/rings.md:1")
    assert "top" not in run("limit", "--in", "analysis/", "--weak", "--kind", "file", "--since", "2026").output
    wrong = run("limit", "--kind", "lemma")
    assert (wrong.exit_code, "--kind lemma is not accepted; give one of the types: file." in wrong.output) == (1, True)
    assert "analysis/limits.md:1" in run("x^2", "--formula", "--in", "analysis/").output
    nothing = "No formula like this one was found. To search by words, leave out --formula.\n"
    assert run("x^2", "--formula", "--in", "algebra/").output == nothing
    (tmp_path / "topics.tsv").write_text("1\tlimit\n")
    of_topics = run("--topics", str(tmp_path / "topics.tsv"), "-o", str(tmp_path / "run"), "--in", "algebra/")
    assert "--topics cannot be combined with" in of_topics.output


def test_the_page_has_the_filters_and_lists_folders_and_types(notes) -> None:
    with client_of(notes, "blend", "bm25") as client:
        settings = get(client, "/api/settings")
        assert settings["folders"] == ["algebra/", "analysis/", "analysis/deep/"]
        assert settings["kinds"] == ["file"]
        found = get(client, "/api/search", **{"q": "limit", "in": "algebra/", "weak": "1", "kind": "file"})
        for system, count in zip(found["systems"], (2, 1), strict=True):
            assert [result["docno"].partition("/")[0] for result in system["results"]] == ["algebra"] * count
        wrong = client.get("/api/search", params={"q": "limit", "in": "nowhere/"})
        assert (wrong.status_code, "analysis/deep/" in wrong.json()["error"]) == (400, True)
        for folder, count in (("analysis/", 1), ("algebra/", 0)):
            formulas = get(client, "/api/search", **{"q": "x^2", "mode": "formulas", "in": folder})
            assert len(formulas["systems"][0]["results"]) == count


# ---- links


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
    engine = built(tmp_path / "e", written(tmp_path / "notes", {"a.md": NOTE}))
    found = engine.search("each chain has a bound by choice", k=1)
    [row] = found.to_dict("records")
    assert (row["docno"], row["title"], row["kind"]) == ("a.md#theorem-zorn", "Theorem (Zorn)", "theorem")
    assert (row["file"], row["line"], row["section"]) == ("a.md", 5, "Limits")
    [row] = engine.search_formula("p", k=1).to_dict("records")
    assert (row["post_id"], row["file"], row["line"], row["section"]) == ("a.md#theorem-zorn", "a.md", 5, "Limits")
    place = {"file": "a.md", "line": 5, "section": "Limits", "kind": "theorem"}
    link = f"file://{tmp_path.as_posix()}/notes/a.md"
    for given, expected in ((None, ""), ("file://{path}", link)):
        with client_of(engine, link=given) as client:
            for mode, q in (("posts", "chain"), ("formulas", "p")):
                result = get(client, "/api/search", q=q, mode=mode)["systems"][0]["results"][0]
                assert {name: result[name] for name in (*place, "link")} == {**place, "link": expected}

"""Filters by folder, type and date: exactly the best of the posts that pass, and errors that list what there is."""

import os
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine import SearchEngine, reader
from pyterrier_mathamr.engine.origins import EVERYTHING, Filter, folders_of, kinds_of
from pyterrier_mathamr.posts import Origin
from tests.engine.conftest import built

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
    for name, text in NOTES.items():
        file = folder / "notes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        day = datetime(2025 if name.startswith("algebra") else 2026, 3, 1, 12, tzinfo=UTC).timestamp()
        os.utime(file, (day, day))
    return built(folder / "e", folder / "notes")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (EVERYTHING, ["a", "b", "c", "d", "analysis:1", "le"]),
        (Filter("Order"), ["le"]),
        (Filter("Order.Basic"), ["le"]),
        (Filter("Order.Basic", kind="lemma"), ["le"]),
        (Filter("analysis/"), ["a", "b", "c"]),
        (Filter("./analysis"), ["a", "b", "c"]),
        (Filter("analysis/limits.md"), ["a", "b"]),
        (Filter("analysis/limits"), ["a", "b"]),
        (Filter("analysis/deep"), ["c"]),
        (Filter("analysis:"), ["analysis:1"]),
        (Filter(kind="theorem"), ["a", "c"]),
        (Filter("analysis/limits", kind="THEOREM"), ["a"]),
        (Filter("analysis2", kind="theorem"), []),
        (Filter(since="2026"), ["a", "b", "analysis:1"]),
        (Filter(since="2026-03-31", until="2026-03"), ["a"]),
        (Filter(until="2025"), ["c"]),
        (Filter(since="2030"), []),
    ],
)
def test_posts_pass_by_folder_type_and_date(chosen, expected) -> None:
    short = {"analysis2/x.md": "d"}
    assert [short.get(docno, docno.partition("#")[2] or docno) for docno in chosen.chosen(ORIGINS)] == expected


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
    for chosen in (
        Filter("algebra/"),
        Filter("analysis"),
        Filter("top.txt"),
        Filter(since="2026"),
        Filter(until="2025"),
    ):
        among = chosen.chosen(notes.snapshot().origins)
        expected = [place for place, docno in enumerate(everything.docnos) if docno in among]
        for k in (1, 2, 10):
            found = notes.found(query, k, system, chosen)
            assert found.docnos == [everything.docnos[place] for place in expected[:k]]
            assert found.scores == pytest.approx(everything.scores[expected[:k]])


def test_search_has_the_filters_and_a_filter_that_nothing_passes_finds_nothing(notes) -> None:
    assert notes.search("limit", within="analysis/", k=1)["docno"].iloc[0].startswith("analysis/")
    assert set(notes.search("limit series", weak=True, until="2025")["docno"]) == {
        "algebra/rings.md",
        "algebra/groups.md",
    }
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
    assert (
        run("x^2", "--formula", "--in", "algebra/").output
        == "No formula like this one was found. To search by words, leave out --formula.\n"
    )
    (tmp_path / "topics.tsv").write_text("1\tlimit\n")
    of_topics = run("--topics", str(tmp_path / "topics.tsv"), "-o", str(tmp_path / "run"), "--in", "algebra/")
    assert "--topics cannot be combined with" in of_topics.output


def test_the_page_has_the_filters_and_lists_folders_and_types(notes) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from pyterrier_mathamr.engine.page import Answers, make_app

    with testclient.TestClient(make_app(Answers(notes, ["blend", "bm25"])), base_url="http://localhost") as client:
        settings = client.get("/api/settings").json()
        assert settings["folders"] == ["algebra/", "analysis/", "analysis/deep/"]
        assert settings["kinds"] == ["file"]
        found = client.get("/api/search", params={"q": "limit", "in": "algebra/", "weak": "1", "kind": "file"}).json()
        for system, count in zip(found["systems"], (2, 1), strict=True):
            assert [result["docno"].partition("/")[0] for result in system["results"]] == ["algebra"] * count
        wrong = client.get("/api/search", params={"q": "limit", "in": "nowhere/"})
        assert (wrong.status_code, "analysis/deep/" in wrong.json()["error"]) == (400, True)
        for folder, count in (("analysis/", 1), ("algebra/", 0)):
            formulas = client.get("/api/search", params={"q": "x^2", "mode": "formulas", "in": folder}).json()
            assert len(formulas["systems"][0]["results"]) == count

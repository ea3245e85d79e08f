"""Good matches: nothing is found where nothing answers, and a match means the same for every question."""

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.ranking import (
    FEWEST,
    GOOD,
    LEVELS,
    OF_ARQMATH,
    UnrelatedScores,
    percent,
    share_known,
    unrelated_scores,
)
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.posts import post_from_any, post_from_html
from pyterrier_mathamr.store import META, DamagedError
from pyterrier_mathamr.store.manifest import signed
from tests.engine.conftest import POSTS, QUERY, built, get, written

SUBJECTS = ("prime", "limit", "matrix", "group", "integral", "graph", "lattice", "tensor", "measure", "sheaf")
MANY = [
    {"id": f"p{i}", "title": f"The {a} of each {b}", "text": f"Let $x_{i}$ be a {a}. Then every {b} has a {a}, too."}
    for i, (a, b) in enumerate((a, b) for a in SUBJECTS for b in SUBJECTS[:6])
]


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> SearchEngine:
    return built(tmp_path_factory.mktemp("matches") / "e", MANY)


def test_nonsense_and_other_subjects_find_nothing_and_a_blank_file_is_not_a_post(tmp_path) -> None:
    root = "The number √2 is irrational: p² = 2q² has no solution."
    files = {"blank.md": "", "root.txt": root, "ring.md": "# Rings\n\nEvery field is a ring."}
    notes = written(tmp_path / "notes", files)
    with pytest.warns(MathAMRWarning, match=r"1 of 3 posts were left out: .*blank\.md: the file is empty"):
        engine = built(tmp_path / "e", notes)
    assert sorted(engine.docnos()) == ["ring.md", "root.txt"]
    for nothing in ("zzz qqq", "How long does sourdough bread bake?", "$$", "the"):
        assert engine.search(nothing).empty
    assert engine.search("zzz qqq", weak=True)["match"].tolist() == [0.0, 0.0]
    assert engine.search("is √2 irrational?")["docno"].tolist() == ["root.txt"]
    assert engine.search("field")["docno"].tolist() == ["ring.md"]


def test_good_matches_beat_nine_tenths_and_weak_ones_are_shown_on_request(engine) -> None:
    everything = engine.search(QUERY, weak=True)
    assert len(everything) == len(POSTS)
    good = everything[everything["match"] >= GOOD]
    assert 0 < len(good) < len(everything)
    assert engine.search(QUERY).equals(good)
    assert everything["match"].is_monotonic_decreasing


def test_a_match_is_the_share_of_unrelated_scores_below() -> None:
    levels = LEVELS.tolist()
    unrelated = UnrelatedScores(tuple(100 * level for level in levels), tuple(200 * level for level in levels), 100)
    scores = np.array([-5.0, 0.0, 50.0, 95.0, 99.9, 200.0])
    for asked in ("a sentence", "what is the square of $x$?"):
        found = unrelated.match(post_from_any(asked), scores)
        assert found.tolist() == pytest.approx([0.0, 0.0, 0.5, 0.95, 0.999, 0.999])
    for asked in ("$x^2$", "the square of $x^2$"):
        found = unrelated.match(post_from_any(asked), scores)
        assert found.tolist() == pytest.approx([0.0, 0.0, 0.25, 0.475, 0.4995, 0.999])
    shares = {0.0: "0.0 %", 0.8999: "89.9 %", 0.9: "90.0 %", 0.99: "99.0 %", 0.999: "99.9 %"}
    assert list(map(percent, shares)) == list(shares.values())


def test_a_match_does_not_depend_on_what_found_the_post(engine) -> None:
    shown = engine.search(QUERY, weak=True).set_index("docno")["match"]
    for system in ("bm25", "mathamr"):
        found = engine.found(engine.question(QUERY), 10, system)
        assert found.matches == pytest.approx(shown[found.docnos].to_numpy())


def test_a_word_that_no_post_has_lowers_the_known_share_by_its_rarity(engine) -> None:
    tokens = engine.question("harmonic sourdough").tokens  # and the pair of both, which no post has either
    n, one = len(POSTS), math.log(1 + (len(POSTS) - 0.5) / 1.5)
    assert tokens.greatest() == pytest.approx(one)
    assert tokens.unknown() == pytest.approx(2 * one)
    assert share_known(engine.question("harmonic sourdough"), n) == pytest.approx(1 / (1 + 2 * n / (n + 50)))
    assert share_known(engine.question("harmonic"), n) == 1.0
    assert share_known(engine.question("sourdough"), n) == 0.0


def test_the_threshold_is_the_quantile_of_random_questions_and_random_other_posts(many, monkeypatch) -> None:
    at = many.snapshot()
    assert at.record.unrelated == unrelated_scores(at.indexes.posts, at.retriever(), at.options.model)
    monkeypatch.setitem(OF_ARQMATH, at.options.model, 2 * ((math.inf,) * len(LEVELS),))  # which bound nothing
    estimated = unrelated_scores(at.indexes.posts, at.retriever(), at.options.model)
    sentences = [(post.docno, text_of(post_from_html(html))) for post in at.indexes.posts
                 for html in (post.title, post.html)]  # fmt: skip
    retriever, every = at.blend(), []
    queries = retriever.read({str(i): post_from_any(sentence) for i, (_, sentence) in enumerate(sentences)})
    for (docno, _), query in zip(sentences, queries, strict=True):
        documents, scores = retriever.best(query, len(many))
        others = np.array(retriever.docnos(documents)) != docno
        every += (share_known(query, len(many)) * scores[others]).tolist()
    by_hand = np.quantile(every, LEVELS)  # whole bodies instead of sentences, and all pairs instead of a sample
    assert np.interp(GOOD, LEVELS, estimated.sentences) == pytest.approx(np.interp(GOOD, LEVELS, by_hand), rel=0.15)


def test_it_is_estimated_again_once_a_tenth_of_the_posts_have_changed(tmp_path, many) -> None:
    path = tmp_path / "e"
    shutil.copytree(many.path, path)
    engine = SearchEngine(path)
    before = engine.snapshot().record.unrelated
    engine.delete(["p0", "p1"])
    engine.add([{"id": "new", "text": "Every sheaf is a prime of some limit."}])
    assert engine.snapshot().record.unrelated == dataclasses.replace(before, changed=3)
    engine.delete([f"p{i}" for i in range(2, 6)])
    after = engine.snapshot().record.unrelated
    assert (after.posts, after.changed) == (55, 0)
    assert after.sentences != before.sentences
    engine.delete([f"p{i}" for i in range(6, 15)])
    few = engine.snapshot().record.unrelated
    assert (few.sentences, few.formulas) == OF_ARQMATH["mathamr-plus-mini"]


@pytest.mark.parametrize(
    "wrong", [{"sentences": [1.0]}, {"formulas": ["x"] * len(LEVELS)}, {"posts": "60"}, {"changed": None}]
)
def test_scores_in_a_manifest_that_are_none_are_a_named_error(tmp_path, many, wrong) -> None:
    path = tmp_path / "e"
    shutil.copytree(many.path, path)
    content = json.loads((path / META).read_text())
    content.pop("checksum")
    content["details"]["unrelated"] |= wrong
    (path / META).write_bytes(signed(content))
    with pytest.raises(DamagedError, match="its scores of unrelated posts"):
        SearchEngine(path).search("x")
    assert [type(fault) for fault in SearchEngine(path).faults()] == [DamagedError]


def test_the_command_reports_that_nothing_matches_and_the_closest_posts(engine) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["search", str(engine.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    assert run("zzz qqq") == "No good match. The closest: basel  Basel problem  (--weak shows it)\n"
    assert run("zzz qqq", "--json") == ""
    assert run("zzz qqq", "--weak").startswith("  1   0.0 %  basel  Basel problem\n")
    assert run(QUERY).startswith("  1  99.9 %  basel  Basel problem\n")
    assert "gauss" not in run(QUERY)
    assert run("zzz qqq", "--system", "mathamr").startswith("No good match.")
    assert run("zzz qqq", "--system", "bm25") == "Nothing was found.\n"


def test_the_page_gives_good_matches_and_counts_weak_ones(client) -> None:
    for system in get(client, "/api/search", q=QUERY)["systems"]:
        assert {result["docno"] for result in system["results"]} == {"basel", "harmonic"}
        assert all(result["match"] >= GOOD for result in system["results"])
    nothing = get(client, "/api/search", q="zzz qqq")["systems"][1]
    assert (nothing["results"], nothing["weak"]) == ([], len(POSTS))
    weak = get(client, "/api/search", q="zzz qqq", weak="1")["systems"][1]
    assert ([result["match"] for result in weak["results"]], weak["weak"]) == ([0.0] * len(POSTS), 0)
    assert client.get("/api/search", params={"q": "x", "weak": "2"}).json() == {"error": "weak is one of 0, 1"}


def test_posts_that_are_nearly_the_same_hide_no_right_answer(tmp_path) -> None:
    logs = (f"# Log {i}\n\nThe sequence $a_{{{i}}}$ is bounded, and so it goes on for long." for i in range(FEWEST))
    notes = {f"log{i}.md": log for i, log in enumerate(logs)}
    notes["cs.md"] = "**Theorem (Cauchy–Schwarz).** $|x\\cdot y|\\le|x||y|$."
    engine = built(tmp_path / "e", written(tmp_path / "notes", notes))
    unrelated = engine.snapshot().record.unrelated
    for scores, bounds in zip((unrelated.sentences, unrelated.formulas), OF_ARQMATH["mathamr-plus-mini"], strict=True):
        assert (np.array(scores) <= bounds).all()
    assert engine.search("Cauchy–Schwarz inequality", k=1)["docno"].tolist() == ["cs.md"]
    assert engine.search("zzz qqq").empty

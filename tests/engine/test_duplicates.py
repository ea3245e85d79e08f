"""Pairs of duplicate posts, by their similarity, with what only one of both has."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.duplicates import (
    FITTED,
    NEIGHBORS,
    SamenessWeights,
    candidates,
    compared,
    numbered,
    similarities,
)
from tests.engine.conftest import built

PYTHAGORAS = r"In a right triangle with sides ${a}$, ${b}$ and ${c}$ the sum ${a}^2 + {b}^2$ of two squares is ${c}^2$."
POSTS = [
    {"id": "old", "title": "Pythagoras", "text": PYTHAGORAS.format(a="a", b="b", c="c")},
    {"id": "new", "title": "Pythagoras", "text": PYTHAGORAS.format(a="x", b="y", c="z")},
    {"id": "answer", "title": "Pythagoras", "text": PYTHAGORAS.format(a="a", b="b", c="c"), "parent": "old"},
    {"id": "euler", "title": "Euler", "text": r"The number $e^{i\pi} + 1$ is zero, as Euler has shown."},
    {"id": "groups", "text": "Each subgroup of a cyclic group is cyclic."},
    {"id": "fermat", "title": "Fermat", "text": r"No positive integers solve $a^n + b^n = c^n$ for $n > 2$."},
    {"id": "bare", "text": r"$\text{q}$"},
]


@pytest.fixture(scope="module")
def posts(tmp_path_factory) -> SearchEngine:
    return built(tmp_path_factory.mktemp("duplicates") / "e", POSTS)


def test_variables_are_numbered_as_they_come_and_nothing_else_is() -> None:
    assert (
        numbered("a^2+b^2=c^2")
        == numbered(r"\alpha^2+y^2=z^2")
        == ["v0", "^", "2", "+", "v1", "^", "2", "=", "v2", "^", "2"]
    )
    assert numbered("x^2+x") != numbered("x^2+y")
    assert numbered(r"\sin x") == numbered(r"\sin t") != numbered(r"\cos t")
    assert numbered("x^2") != numbered("x^3")
    assert numbered(r"\text{if}") == []


def test_a_copy_with_other_letters_is_found_and_a_question_is_not_a_copy_of_its_answer(posts) -> None:
    found = posts.duplicates()
    assert list(found.columns) == ["docno_a", "docno_b", "similarity", "title_a", "title_b", "only_a", "only_b"]
    assert {frozenset(pair) for pair in zip(found["docno_a"], found["docno_b"], strict=True)} == {
        frozenset({"old", "new"}), frozenset({"new", "answer"}),
    }  # fmt: skip
    assert found["similarity"].min() >= 0.9
    assert found["similarity"].is_monotonic_decreasing
    assert found["title_a"].tolist() == ["Pythagoras"] * 2
    everything = posts.duplicates(similarity=0.0)
    assert len(everything) == len(POSTS) * (len(POSTS) - 1) // 2 - 1  # without the answer and what it answers
    assert len(posts.duplicates(1, similarity=0.0)) == 1
    assert everything[everything["docno_b"].eq("groups")]["similarity"].max() < 0.1


def test_the_features_are_the_same_in_both_directions_and_one_for_a_post_and_itself(posts) -> None:
    at = posts.snapshot()
    there, back = compared(at.indexes, [("old", "fermat")]), compared(at.indexes, [("fermat", "old")])
    assert there[0].tolist() == pytest.approx(back[0].tolist())
    assert compared(at.indexes, [("old", "old"), ("groups", "groups")]) == pytest.approx(np.ones((2, 2)), abs=1e-5)
    assert compared(at.indexes, [("old", "groups")])[0, 1] == 0.0  # neither a common word nor a common formula


def test_the_similarity_is_that_of_a_logistic_regression() -> None:
    found = similarities(np.array([[1.0, 1.0], [0.5, 0.0]]), SamenessWeights(-3.0, 2.0, 4.0))
    assert found.tolist() == pytest.approx([1 / (1 + math.exp(-3.0)), 1 / (1 + math.exp(2.0))])
    for weights in FITTED.values():
        same, other = similarities(np.array([[1.0, 1.0], [0.4, 0.0]]), weights).tolist()
        assert same > 0.99 > 0.01 > other


def test_the_candidates_are_the_nearest_by_the_vectors_of_the_documents(posts, monkeypatch) -> None:
    at = posts.snapshot()
    docnos = at.docnos()
    vectors = at.indexes.vectors.snapshot()
    rows, _ = vectors.rows(vectors.find(docnos), "doc")
    monkeypatch.setattr("pyterrier_mathamr.engine.duplicates.NEIGHBORS", 2)
    expected = set()
    for i, docno in enumerate(docnos):
        others = [j for j in range(len(docnos)) if at.threads[docnos[j]] != at.threads[docno]]
        nearest = sorted(others, key=lambda j: -float(rows[i] @ rows[j]))[:2]
        expected.update(frozenset({docno, docnos[j]}) for j in nearest)
    found = candidates(at.indexes, at.threads, docnos)
    assert len(found) == len(expected)
    assert {frozenset(pair) for pair in found} == expected
    assert NEIGHBORS == 10


def test_a_filter_is_for_both_posts_and_few_posts_have_no_pair(posts, tmp_path) -> None:
    assert posts.duplicates(within="old").empty
    assert len(posts.duplicates(within="", similarity=0.0)) > 0
    with pytest.raises(ConfigError, match="beginning of an id"):
        posts.duplicates(within="nowhere")
    with pytest.raises(ConfigError, match="similarity"):
        posts.duplicates(similarity=2)
    assert built(tmp_path / "one", POSTS[:1]).duplicates(similarity=0.0).empty
    assert built(tmp_path / "thread", [POSTS[0], POSTS[2]]).duplicates(similarity=0.0).empty


def test_the_command_lists_pairs(posts) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["duplicates", str(posts.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    first, second, *_ = run().splitlines()
    assert (float(first.split()[0]) > 0.9, first.split()[-1], second.split()[-1]) == (True, "Pythagoras", "Pythagoras")
    [row] = [json.loads(line) for line in run("--json", "-k", "1").splitlines()]
    assert row["similarity"] >= 0.9
    assert run("--in", "old", "--similarity", "0.95") == "No two posts have a similarity of 0.95 or more.\n"


def test_opposite_words_and_other_formulas_are_shown(tmp_path) -> None:
    prime = {"id": "a", "text": r"In a ring, each **prime** ideal with $x^2 \in P$ and $a+b$ is proper."}
    maximal = {"id": "b", "text": r"In a ring, each maximal ideal with $y^2 \in Q$ and $a-b$ is proper."}
    engine = built(tmp_path / "e", [prime, maximal])
    [found] = engine.duplicates(similarity=0.0).to_dict("records")
    assert (found["only_a"], found["only_b"]) == ("prime $a+b$", "maximal $a-b$")
    output = CliRunner().invoke(main, ["duplicates", str(engine.path), "--similarity", "0"]).output
    assert "only here: prime $a+b$" in output
    assert "only here: maximal $a-b$" in output

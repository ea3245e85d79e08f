"""Pairs of duplicate posts, with the probability that they are not."""

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
    errors,
    numbered,
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
    assert list(found.columns) == ["docno_a", "docno_b", "error", "title_a", "title_b"]
    assert {frozenset(pair) for pair in zip(found["docno_a"], found["docno_b"], strict=True)} == {
        frozenset({"old", "new"}), frozenset({"new", "answer"}),
    }  # fmt: skip
    assert found["error"].max() <= 0.1
    assert found["error"].is_monotonic_increasing
    assert found["title_a"].tolist() == ["Pythagoras"] * 2
    everything = posts.duplicates(error=1.0)
    assert len(everything) == len(POSTS) * (len(POSTS) - 1) // 2 - 1  # without the answer and what it answers
    assert len(posts.duplicates(1, error=1.0)) == 1
    assert everything[everything["docno_b"].eq("groups")]["error"].min() > 0.9


def test_the_features_are_the_same_in_both_directions_and_one_for_a_post_and_itself(posts) -> None:
    at = posts.snapshot()
    there, back = compared(at, [("old", "fermat")]), compared(at, [("fermat", "old")])
    assert there[0].tolist() == pytest.approx(back[0].tolist())
    assert compared(at, [("old", "old"), ("groups", "groups")]) == pytest.approx(np.ones((2, 2)), abs=1e-5)
    assert compared(at, [("old", "groups")])[0, 1] == 0.0  # neither a common word nor a common formula


def test_the_error_is_that_of_a_logistic_regression() -> None:
    found = errors(np.array([[1.0, 1.0], [0.5, 0.0]]), SamenessWeights(-3.0, 2.0, 4.0))
    assert found.tolist() == pytest.approx([1 / (1 + math.exp(3.0)), 1 / (1 + math.exp(-2.0))])
    for weights in FITTED.values():
        same, other = errors(np.array([[1.0, 1.0], [0.4, 0.0]]), weights).tolist()
        assert same < 0.01 < 0.99 < other


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
    found = candidates(at, docnos)
    assert len(found) == len(expected)
    assert {frozenset(pair) for pair in found} == expected
    assert NEIGHBORS == 10


def test_a_filter_is_for_both_posts_and_few_posts_have_no_pair(posts, tmp_path) -> None:
    assert posts.duplicates(within="old").empty
    assert len(posts.duplicates(within="", error=1.0)) > 0
    with pytest.raises(ConfigError, match="beginning of an id"):
        posts.duplicates(within="nowhere")
    with pytest.raises(ConfigError, match="error"):
        posts.duplicates(error=2)
    assert built(tmp_path / "one", POSTS[:1]).duplicates(error=1.0).empty
    assert built(tmp_path / "thread", [POSTS[0], POSTS[2]]).duplicates(error=1.0).empty


def test_the_command_lists_pairs(posts) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["duplicates", str(posts.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    first, second, *_ = run().splitlines()
    assert (first.split()[0], first.split()[-1], second.split()[-1]) == ("error", "Pythagoras", "Pythagoras")
    [row] = [json.loads(line) for line in run("--json", "-k", "1").splitlines()]
    assert row["error"] <= 0.1
    assert run("--in", "old", "--error", "0.05") == "No two posts have the same content with an error of at most 5 %.\n"

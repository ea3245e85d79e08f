"""Tangent-S: alignments as published and as the rules say, and the search in three stages."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import trees
from tangent_s_plain import PlainAlignment

from mathamr_systems import FormulaTrees, SystemsError, TangentS
from mathamr_systems.tangent_s import TANGENT_S_WEIGHTS, TreeLabels, align, alignment_scores
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import FormulaTree, slt_from_latex, trees_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.sparse import PairOptions, TangentIndex
from pyterrier_mathamr.store import UnknownIdError

Nested = tuple[Any, ...]


def operators(tree: Nested | str, kind: Any = "opt") -> FormulaTree:
    """Build a tree of ``(label, child, …)``."""
    nodes, edges = list[str](), list[tuple[int, int, str]]()

    def add(tree: Nested | str) -> int:
        label, *children = (tree,) if isinstance(tree, str) else tree
        nodes.append(label)
        number = len(nodes) - 1
        for place, child in enumerate(children):
            at = len(edges)
            edges.insert(at, (number, len(nodes), "0" if label[:2] == "U!" else str(place)))
            add(child)
        return number

    add(tree)
    return FormulaTree(tuple(nodes), tuple(sorted(edges, key=lambda edge: edge[1])), kind=kind)


def plus(*operands: Nested | str) -> Nested:
    return "U!plus", *operands


X2, Y2 = ("O!SUP", "V!x", "N!2"), ("O!SUP", "V!y", "N!2")


@pytest.mark.parametrize(
    ("query", "candidate", "wanted"),
    [
        (plus(X2, "N!1"), X2, (0.545455, 1, 0.6)),
        (plus(X2, "N!1"), plus("N!1", X2), (1, 1, 1)),
        (("U!eq", X2, "N!1"), ("U!eq", ("O!SUB", "V!x", "N!2"), "N!1"), (0.380952, 0.8, 0.8)),
        (plus("V!x", "V!x", "V!y"), plus("V!a", "V!a", "V!a"), (0.705882, 0.75, 0.25)),
        ("V!x", "V!y", (1, 1, 0)),
        ("V!x", "V!sin", (0, 0, 0)),
    ],
)
def test_operator_trees_score_as_worked_by_hand(query: Any, candidate: Any, wanted: tuple[float, ...]) -> None:
    assert alignment_scores(operators(query), operators(candidate)) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("candidate", "wanted"), [("y^2+1", (1, 1, 0.75)), ("x^2", (0.4, 1, 0.5))])
def test_layout_trees_score_as_worked_by_hand(candidate: str, wanted: tuple[float, ...]) -> None:
    assert alignment_scores(slt_from_latex("x^2+1"), slt_from_latex(candidate)) == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_every_published_score_of_the_2020_judgments_is_reproduced(
    kind: Any, shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    rows, far = 0, []
    with gzip.open(shared_data / "tangent-s-scores" / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            trees = (row[side] for side in ("query", "candidate"))
            pair = [FormulaTree(tuple(t["nodes"]), tuple(map(tuple, t["edges"])), kind=kind) for t in trees]
            wanted = row["mss"], row["precision"], row["exact_recall"]
            if alignment_scores(*pair) != pytest.approx(wanted, abs=1e-9):
                far.append((row["topic"], row["formula"]))
            rows += 1
    record_property("rows", rows)
    assert rows == 491
    assert far == []


VARIABLES = ("V!x", "V!y", "V!z", "V!sin", "N!1", "N!2", "N!1e", "F!sin", "E!", "W!", "+")
OPERATORS = ("U!plus", "U!plus", "U!times", "O!SUP", "O!minus", "M!()1x1", "M!()1x1", "M![]2x2", "M![]1x3", "M!M!2x2")
LABELS = (*VARIABLES, *OPERATORS, "M!R!", "M!{")


@pytest.mark.parametrize("kind", ["slt", "opt"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_counting_and_pruning_change_nothing(kind: Any, data: st.DataObject) -> None:
    query, candidates = data.draw(trees(kind, LABELS)), data.draw(st.lists(trees(kind, LABELS), min_size=1, max_size=6))
    packed = PackedTrees.of_trees([*candidates, None], kind)
    found = align(query, packed, np.arange(len(packed)), TreeLabels(packed.names))
    wanted = [PlainAlignment(query, candidate).scores() for candidate in candidates]
    assert found.tolist() == pytest.approx(np.array([*wanted, (0, 0, 0)]), abs=1e-12)


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_a_chain_of_a_thousand_nodes_aligns_with_itself_and_with_its_half(kind: Any) -> None:
    label = "n" if kind == "slt" else "0"
    chains = [FormulaTree(("O!f",) * n, tuple((i, i + 1, label) for i in range(n - 1)), kind=kind) for n in (1000, 500)]
    assert alignment_scores(chains[0], chains[0]) == (1, 1, 1)
    assert alignment_scores(*chains).precision == 1


@pytest.mark.parametrize("kind", ["slt", "opt"])
@given(data=st.data())
def test_packing_keeps_any_tree(kind: Any, data: st.DataObject) -> None:
    given_trees = [data.draw(trees(kind, LABELS)), None, data.draw(trees(kind, LABELS))]
    packed = PackedTrees.of_trees(given_trees, kind)
    assert [packed.tree(row) for row in range(3)] == given_trees
    assert [packed.take(np.array([2, 0])).tree(row) for row in range(2)] == [given_trees[2], given_trees[0]]


LATEX = ["x^2+1", "y^2+1", "x^2", r"\frac{a}{b}", "y", r"\int_0^\infty e^{-x^2}\,dx", "x^2+y^2+1", "x^2+1", "f(x)=x+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
QUERIES = pd.DataFrame({"qid": ["1", "2"], "latex": ["x^2+1", r"\frac{x}{y}"]})


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("tangent-s")
    pairs = PairOptions(window=4, ends="small")
    tangent = TangentIndex(folder / "f.tangent").indexer(pairs=pairs).index(POSTS)
    return SimpleNamespace(tangent=tangent, trees=FormulaTrees(folder / "f.trees").index(POSTS))


def expected(query: str, latex: str, lists: tuple[bool, bool] = (True, True)) -> float:
    total = TANGENT_S_WEIGHTS[0]
    for place, (ours, theirs) in enumerate(zip(trees_from_latex(query), trees_from_latex(latex), strict=True)):
        if lists[place]:
            scores = alignment_scores(ours, theirs)
            total += float(np.dot(scores, TANGENT_S_WEIGHTS[1 + 3 * place : 4 + 3 * place]))
    return total


def test_scores_are_the_weighted_sum_of_both_alignments(parts: SimpleNamespace) -> None:
    found = TangentS(parts.tangent, parts.trees, complete=True)(QUERIES)
    assert set(found["qid"]) == {"1", "2"}
    for row in found.itertuples():
        latex = LATEX[int(row.post_id[1:])]
        assert row.score == pytest.approx(expected(row.latex, latex)), latex
    first = found[found["qid"] == "1"]
    assert first["docno"].tolist()[:2] == ["p0#0", "p7#0"]
    assert first["score"].is_monotonic_decreasing
    assert first["rank"].tolist() == list(range(len(first)))


def test_a_candidate_of_one_list_has_zeros_for_the_other_tree(parts: SimpleNamespace) -> None:
    queries = QUERIES[:1]
    by_tree = [parts.tangent.retriever(slt_weight=weight)(queries) for weight in (1.0, 0.0)]
    first = [set(found[found["score"] >= found["score"].iloc[2]]["docno"][:2]) for found in by_tree]
    found = TangentS(parts.tangent, parts.trees, candidates=1)(queries)
    assert set(found["post_id"]) == {"p0", "p7"}  # one expression, two formulas
    assert all("p0#0" in some for some in first)
    found = TangentS(parts.tangent, parts.trees, candidates=2)(queries).set_index("docno")
    for docno, row in found.iterrows():
        latex = LATEX[int(row.post_id[1:])]
        options = [expected("x^2+1", latex, lists) for lists in ((True, True), (True, False), (False, True))]
        assert min(abs(row.score - option) for option in options) < 1e-9, docno


def test_weights_are_fitted_to_grades_by_formula_or_visual_id(parts: SimpleNamespace) -> None:
    system = TangentS(parts.tangent, parts.trees, complete=True)
    ranking = system(QUERIES)
    labels = 3 * ranking["score"] + 1  # grades that a weighted sum can meet
    system.fit(QUERIES, ranking[["qid", "docno"]].assign(label=labels))
    assert system(QUERIES).set_index(["qid", "docno"])["score"].to_dict() == pytest.approx(
        ranking.assign(label=labels).set_index(["qid", "docno"])["label"].to_dict()
    )
    with pytest.raises(SystemsError, match="queries: 2"):
        system.fit(QUERIES, pd.DataFrame({"qid": ["1"], "docno": ["elsewhere"], "label": [1]}))


def test_only_candidates_are_explained_and_missing_trees_are_named(parts: SimpleNamespace, tmp_path: Path) -> None:
    few = TangentS(parts.tangent, parts.trees, candidates=1)
    with pytest.raises(AskedError, match="p3#0 is not among the candidates"):
        few.explain(QUERIES.iloc[0].to_dict(), "p3#0")

    system = TangentS(parts.tangent, parts.trees)
    with pytest.warns(MathAMRWarning, match="not formulas"):
        assert system(pd.DataFrame({"qid": ["1"], "latex": [" "]})).empty
    assert list(system(QUERIES[:0]).columns) == list(system(QUERIES).columns)
    others = FormulaTrees(tmp_path / "others.trees").index(POSTS[1:])
    with pytest.raises(UnknownIdError, match="p0#0"):
        TangentS(parts.tangent, others)(QUERIES)

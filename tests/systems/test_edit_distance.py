"""Tree edit distances equal worked pairs and apted's; the reranker fuses or weighs their similarities."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from apted import APTED, Config
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import trees

from mathamr_systems import FormulaTrees
from mathamr_systems.formula_trees import EDIT_COSTS, EditCosts, tree_edit_distance, tree_edit_distances
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import FormulaTree, trees_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees

SLT, OPT = EditCosts(0.85, 0.54, 0.15), EditCosts(0.28, 0.225, 0.185)
Node = tuple[str, list[Any]]


class Judge(Config):  # type: ignore[misc]
    def __init__(self, costs: EditCosts) -> None:
        self.costs = costs

    def delete(self, node: Node) -> float:
        return self.costs.delete

    def insert(self, node: Node) -> float:
        return self.costs.insert

    def rename(self, node1: Node, node2: Node) -> float:
        return 0.0 if node1[0] == node2[0] else self.costs.rename

    def children(self, node: Node) -> list[Any]:
        return node[1]


def judged(query: FormulaTree, candidate: FormulaTree, costs: EditCosts) -> float:
    roots = []
    for tree in (query, candidate):
        nodes: list[Node] = [(label, []) for label in tree.nodes]
        for parent, child, _ in tree.edges:
            nodes[parent][1].append(nodes[child])
        roots.append(nodes[0])
    return float(APTED(*roots, Judge(costs)).compute_edit_distance())


@pytest.mark.parametrize(
    ("query", "candidate", "wanted"),
    [
        ("x^2+1", "x^2+y", (1, 1, 0.15, 0.185)),
        ("x^2+1", "x^2", (2, 2, 1.70, 0.56)),
        ("x^2", "x^2+1", (2, 2, 1.08, 0.45)),
        ("x^2+1", "x^{2y}+1", (1, 2, 0.54, 0.45)),
    ],
)
def test_distances_are_those_worked_by_hand(query: str, candidate: str, wanted: tuple[float, ...]) -> None:
    (slt, opt), (other_slt, other_opt) = trees_from_latex(query), trees_from_latex(candidate)
    unit = tree_edit_distance(slt, other_slt), tree_edit_distance(opt, other_opt)
    priced = tree_edit_distance(slt, other_slt, SLT), tree_edit_distance(opt, other_opt, OPT)
    assert (*unit, *priced) == pytest.approx(wanted)


TREES = trees("opt", tuple("abc"), 20)


@settings(max_examples=30, deadline=None)
@given(query=TREES, candidates=st.lists(TREES, min_size=1, max_size=6), costs=st.sampled_from([SLT, OPT]))
def test_distances_of_any_trees_equal_apted_s(
    query: FormulaTree, candidates: list[FormulaTree], costs: EditCosts
) -> None:
    packed = PackedTrees.of_trees([*candidates, None], "opt")
    for price in (costs, EditCosts(), EditCosts(0.1, 0.1, 0.5)):  # in the last, renaming is never worth its cost
        found = tree_edit_distances(query, packed, np.arange(len(packed)), price)
        wanted = [judged(query, candidate, price) for candidate in candidates]
        assert found.tolist() == pytest.approx([*wanted, len(query.nodes) * price.delete])


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_distances_of_real_formulas_equal_apted_s(kind: Any, shared_data: Path) -> None:
    queries, candidates = dict[str, FormulaTree](), list[FormulaTree]()
    with gzip.open(shared_data / "tangent-s-scores" / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            read = (row[side] for side in ("query", "candidate"))
            query, candidate = (FormulaTree(tuple(t["nodes"]), tuple(map(tuple, t["edges"]))) for t in read)
            if len(candidate.nodes) < 40 and len(query.nodes) < 15:
                queries[row["topic"]] = query
                candidates.append(candidate)
    packed, pairs = PackedTrees.of_trees(candidates, kind), 0
    for query in list(queries.values())[:3]:
        found = tree_edit_distances(query, packed, np.arange(len(packed)), SLT)
        assert found.tolist() == pytest.approx([judged(query, candidate, SLT) for candidate in candidates])
        pairs += len(packed)
    assert pairs > 500


def chain(length: int, label: str = "a") -> FormulaTree:
    return FormulaTree((label,) * length, tuple((i, i + 1, "n") for i in range(length - 1)), kind="slt")


def test_long_chains_are_compared_without_recursion_and_longer_ones_by_their_labels() -> None:
    packed = PackedTrees.of_trees([chain(300), chain(1000), chain(400, "b")], "slt")
    found = tree_edit_distances(chain(250), packed, np.arange(3), SLT)
    assert found.tolist() == pytest.approx([50 * 0.54, 750 * 0.54, 250 * 0.15 + 150 * 0.54])


@given(query=TREES, candidate=TREES)
def test_a_bound_by_labels_is_never_above_the_distance(query: FormulaTree, candidate: FormulaTree) -> None:
    packed, row = PackedTrees.of_trees([candidate], "opt"), np.zeros(1, dtype=np.int64)
    bound = tree_edit_distances(query, packed, row, OPT, max_nodes=0)[0]
    assert bound <= tree_edit_distances(query, packed, row, OPT)[0]


LATEX = ["x^2+1", "y^2+1", "x^2", r"\frac{a}{b}", "x^2+1", "x^2+y^2+1", "f(x)=x+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
RANKING = pd.DataFrame(
    [
        {"qid": qid, "latex": query, "docno": f"p{i}#0", "score": -float(i), "rank": i, "kept": f"{qid}-{i}"}
        for qid, query in (("2", "x^2+1"), ("1", r"\frac{x}{y}"))
        for i in range(len(LATEX))
    ]
)


@pytest.fixture(scope="module")
def stored_trees(tmp_path_factory: pytest.TempPathFactory) -> FormulaTrees:
    return FormulaTrees(tmp_path_factory.mktemp("trees") / "f.trees").index(POSTS)


def similarities(query: str, costs: str) -> pd.DataFrame:
    rows = {}
    for i, latex in enumerate(LATEX):
        pairs = zip(EDIT_COSTS[costs].items(), trees_from_latex(query), trees_from_latex(latex), strict=True)
        rows[f"p{i}#0"] = {
            kind: 1 / (1 + tree_edit_distance(ours, theirs, cost)) for (kind, cost), ours, theirs in pairs
        }
    return pd.DataFrame.from_dict(rows, orient="index")


@pytest.mark.parametrize("costs", ["printed", "swapped", "unit"])
def test_a_weighted_sum_is_that_of_both_similarities(stored_trees: FormulaTrees, costs: str) -> None:
    found = stored_trees.edit_distance(combine="weighted", costs=costs)(RANKING)
    assert found["qid"].tolist() == ["2"] * 7 + ["1"] * 7  # queries in the order in which they came
    for qid, rows in found.groupby("qid"):
        wanted = similarities(rows["latex"].iloc[0], costs) @ [0.95, 0.05]
        assert rows.set_index("docno")["score"].to_dict() == pytest.approx(wanted.to_dict())
        assert rows["score"].is_monotonic_decreasing
        assert rows["rank"].tolist() == list(range(7))
        assert set(rows["kept"]) == {f"{qid}-{i}" for i in range(7)}
    assert found["docno"].tolist()[:2] == ["p0#0", "p4#0"]  # equal scores, by docno


def test_a_fusion_adds_similarity_by_rank(stored_trees: FormulaTrees) -> None:
    found = stored_trees.edit_distance()(RANKING[RANKING["qid"] == "2"]).set_index("docno")["score"]
    of_query = similarities("x^2+1", "swapped")
    total = dict.fromkeys(of_query.index, 0.0)
    for kind in of_query:
        order = sorted(of_query.index, key=lambda docno: (-of_query.loc[docno, kind], docno))
        for rank, docno in enumerate(order, 1):
            total[docno] += of_query.loc[docno, kind] / (60 + rank)
    assert found.to_dict() == pytest.approx(total)


@pytest.mark.parametrize("combine", ["rrf", "weighted"])
def test_the_parts_of_a_score_sum_to_it(stored_trees: FormulaTrees, combine: str) -> None:
    system = stored_trees.edit_distance(combine=combine)
    ranking = RANKING[RANKING["qid"] == "2"]
    for docno, score in system(ranking)[["docno", "score"]].itertuples(index=False):
        found = system.explain(ranking, docno)
        assert found.score == pytest.approx(score)
        assert found.parts["part"].tolist() in (["layout tree", "operator tree"], ["operator tree", "layout tree"])
    with pytest.raises(AskedError, match="is not in a ranking"):
        system.explain(ranking, "elsewhere")
    row = ranking.iloc[0]
    if combine == "weighted":  # no other formula changes the score
        assert system.explain(row).score == pytest.approx(system.explain(ranking, row["docno"]).score)
    else:
        with pytest.raises(AskedError, match="is not in a ranking"):
            system.explain(row)

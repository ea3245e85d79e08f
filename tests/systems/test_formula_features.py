"""Features of formulas: each group by its own definition, scaled within each query; common parts of trees."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import trees as random_trees

from mathamr_systems import (
    EditCosts,
    FormulaFeatures,
    FormulaTrees,
    PairwiseRanker,
    alignment_scores,
    tree_edit_distance,
)
from mathamr_systems.formula_ltr.features import Numbered, match_labels, match_pairs, scaled
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, slt_from_latex, trees_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.sparse.tangent import PairOptions, pair_terms


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_pairs_and_labels_are_matched_as_in_single_calls(kind: Any) -> None:
    some = random_trees(kind, ("V!x", "V!y", "N!1", "+"), 12)

    @given(query=some, candidates=st.lists(some, min_size=1, max_size=4))
    def check(query: FormulaTree, candidates: list[FormulaTree]) -> None:
        both = Numbered.both(query, PackedTrees.of_trees([*candidates, None], kind))
        pairs, placed, labels = match_pairs(*both), match_pairs(*both, places=True), match_labels(*both)
        for row, candidate in enumerate(candidates):
            ours, theirs = (Counter(pair_terms(tree, PairOptions())) for tree in (query, candidate))
            dice = 2 * (ours & theirs).total() / (ours + theirs).total()
            assert pairs.dice()[row] == pytest.approx(dice)
            ours, theirs = (Counter(tree.tuples(window=2, eob=True)) for tree in (query, candidate))
            found = sum(times for pair, times in ours.items() if pair in theirs)
            recall, precision = found / ours.total(), found / theirs.total()
            assert placed.as_run()[row] == pytest.approx(2 * recall * precision / (recall + precision + 1))
            ours, theirs = Counter(query.nodes), Counter(candidate.nodes)
            assert labels.shared()[row] == (ours & theirs).total()
            assert labels.sizes[row] == len(candidate.nodes)
        assert pairs.dice()[-1] == placed.as_run()[-1] == labels.dice()[-1] == 0  # no tree

    check()


def test_six_symbol_pairs_and_their_places_as_run_and_as_dice() -> None:
    tree = slt_from_latex("x^2+1")
    matches = match_pairs(*Numbered.both(tree, PackedTrees.of_trees([tree], "slt")), places=True)
    assert matches.times.sum() == 6
    assert matches.as_run().tolist() == pytest.approx([2 / 3])
    assert matches.dice().tolist() == [1.0]

    query, shifted = slt_from_latex("x^2"), slt_from_latex("yx^2")
    both = Numbered.both(query, PackedTrees.of_trees([shifted], "slt"))
    assert match_pairs(*both).shared().tolist() == [3]
    assert np.all(match_pairs(*both, places=True).as_run() == 0)


LATEX = ["x^2+1", "y^2+1", "x^2", r"\frac{a}{b}", "x^2+1", "x^2+y^2+1", "f(x)=x+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
IDS = [f"p{i}#0" for i in range(len(LATEX))]
RANKING = pd.DataFrame(
    [
        {"qid": qid, "latex": query, "docno": docno, "score": -float(i), "rank": i}
        for qid, query in (("2", "x^2+1"), ("1", r"\frac{x}{y}"))
        for i, docno in enumerate(IDS)
    ]
)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> FormulaTrees:
    return FormulaTrees(tmp_path_factory.mktemp("trees") / "f.trees").index(POSTS)


class Cosines:
    """Vectors as the features ask for them: a formula's cosines are its number, and a little more for each tree."""

    def cosines(self, pair: FormulaPair, formulas: Sequence[str]) -> np.ndarray:
        return np.array([[IDS.index(name) + more for more in (0.0, 0.1, 0.2, 0.3)] for name in formulas])


def test_values_match_the_parts_that_compare_trees(trees: FormulaTrees) -> None:
    features = FormulaFeatures(trees, nodes="as-run", costs="as-run")
    query = trees_from_latex("x^2+1")
    found = pd.DataFrame(features.values(query, IDS), index=LATEX, columns=features.names)
    costs = {"slt": EditCosts(0.4, 0.2, 0.4), "opt": EditCosts(0.3, 0.2, 0.2)}
    for latex, row in zip(LATEX, found.to_dict("records"), strict=True):
        for kind, ours, theirs in zip(("slt", "opt"), query, trees_from_latex(latex), strict=True):
            mss, precision, exact = alignment_scores(ours, theirs)
            name, nodes = kind.upper(), len(ours.nodes) + len(theirs.nodes)
            assert (row[f"{name} MSS"], row[f"{name}-type nodes"], row[f"{name} nodes"]) == (mss, precision, exact)
            for which, one, other in ((name, ours, theirs), (f"{name}-type", ours.unified(), theirs.unified())):
                unit = tree_edit_distance(one, other)
                assert row[f"{which} edit distance"] == pytest.approx(1 - unit / nodes)
                priced = tree_edit_distance(one, other, costs[kind])
                assert row[f"{which} weighted edit distance"] == pytest.approx(1 - priced / nodes)


def test_shares_differences_and_costs_are_as_worked_by_hand(trees: FormulaTrees) -> None:
    features = FormulaFeatures(trees)
    found = pd.DataFrame(features.values(trees_from_latex("x^2+1"), IDS), index=LATEX, columns=features.names)
    found = found.loc[["x^2", "x^2+y^2+1"]]  # trees of x^2+1: x, 2, +, 1 and plus(SUP(x, 2), 1)
    assert found["variables"].tolist() == [1, 1 / 2]
    assert found["numbers"].tolist() == [1 / 2, 2 / 3]
    assert found["operators"].tolist() == [1 / 2, 2 / 3]
    assert found["SLT size"].tolist() == pytest.approx([2 / 5, 3 / 5])
    assert found["OPT size"].tolist() == pytest.approx([2 / 6, 3 / 6])
    assert found["OPT depth"].tolist() == pytest.approx([1 / 3, 0])
    assert found["SLT baseline"].tolist() == [0, 0]
    assert found.loc["x^2", "SLT nodes"] == pytest.approx(2 * 2 / 6)
    assert found.loc["x^2", "SLT tuples"] == pytest.approx(2 * 2 / (6 + 3))  # (x, 2, a), (2, end) of six and three

    features = FormulaFeatures(trees)
    found = pd.DataFrame(features.values(trees_from_latex("x^2+1"), IDS), index=LATEX, columns=features.names)
    assert found.loc["y^2+1", "SLT weighted edit distance"].item() == pytest.approx(1 - 0.20 / 8)
    assert found.loc["x^2", "SLT weighted edit distance"].item() == pytest.approx(1 - 2 * 0.43 / 6)
    assert found.loc["x^2+y^2+1", "SLT weighted edit distance"].item() == pytest.approx(1 - 3 * 0.41 / 11)


def test_each_feature_is_scaled_within_its_query(trees: FormulaTrees) -> None:
    found = FormulaFeatures(trees)(RANKING)
    assert found.drop(columns="features").equals(RANKING)
    for _, rows in found.groupby("qid"):
        features = np.stack(rows["features"].tolist())
        assert features.shape == (7, 25)
        assert features.dtype == np.float64
        assert set(features.max(axis=0)) <= {0.0, 1.0}
        assert features.min() == 0
    same = found.iloc[[0, 4]]["features"].tolist()  # the same expression
    np.testing.assert_array_equal(*same)


def test_scaling_as_worked_by_hand() -> None:
    values = np.array([[0.2, 0.3, np.nan, 0.5], [0.5, 0.3, np.nan, np.nan], [0.8, 0.3, np.nan, 0.9]])
    assert scaled(values).T.tolist() == [pytest.approx([0, 0.5, 1]), [0, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_a_missing_tree_has_0_and_a_long_chain_has_features(trees: FormulaTrees) -> None:
    features = FormulaFeatures(trees, Cosines())
    of_layout = [name.startswith("SLT") for name in features.names]
    query = trees_from_latex("x^2+1")
    values = features.values(FormulaPair(None, query.opt), IDS)
    assert np.isnan(values[:, of_layout]).all()
    assert not np.isnan(values[:, np.invert(of_layout)]).any()
    assert not scaled(values)[:, of_layout].any()

    found = FormulaFeatures(trees)(RANKING[:3].assign(latex="+".join(["x"] * 600)))
    assert np.isfinite(np.stack(found["features"].tolist())).all()


def test_cosines_come_before_the_shapes_and_are_scaled_too(trees: FormulaTrees) -> None:
    features = FormulaFeatures(trees, Cosines())
    assert len(features.names) == len(set(features.names)) == 29
    assert features.names[18:22] == ("SLT cosine", "OPT cosine", "SLT-type cosine", "OPT-type cosine")
    found = np.stack(features(RANKING[:7])["features"].tolist())
    np.testing.assert_allclose(found[:, 18], np.arange(7) / 6)
    plain = np.stack(FormulaFeatures(trees)(RANKING[:7])["features"].tolist())
    np.testing.assert_array_equal(np.delete(found, range(18, 22), axis=1), plain)


def test_a_pipeline_is_learned_and_ranks_by_pt_ltr(trees: FormulaTrees, tmp_path: Path) -> None:
    tangent = TangentIndex(tmp_path / "t").index(POSTS)
    queries = pd.DataFrame({"qid": ["1", "2"], "latex": ["x^2+1", r"\frac{a}{b}"]})
    qrels = pd.DataFrame(
        {"qid": ["1", "1", "2"], "docno": ["p1#0", "p5#0", "p3#0"], "label": [3, 1, 2]}  # not the query's own
    )
    features = FormulaFeatures(trees)
    learned = pt.ltr.apply_learned_model(PairwiseRanker(10.0, names=features.names), form="ltr")
    pipeline = tangent.retriever() >> features >> learned
    pipeline.fit(queries, qrels, queries, qrels)
    found = pipeline(queries)
    assert found[(found["qid"] == "1") & (found["rank"] == 0)]["docno"].tolist() == ["p1#0"]
    assert "features" in pt.inspect.transformer_outputs(tangent.retriever() >> features, ["qid", "latex"])

"""Features of formulas: each group by its own definition, scaled within each query."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from mathamr_systems import (
    EditCosts,
    FormulaFeatures,
    FormulaTrees,
    PairwiseRanker,
    alignment_scores,
    tree_edit_distance,
)
from mathamr_systems.formula_ltr.features import scaled
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.formula import FormulaPair, trees_from_latex
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import UnknownIdError

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


@pytest.fixture
def trees(tmp_path: Path) -> FormulaTrees:
    return FormulaTrees(tmp_path / "f.trees").index(POSTS)


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


def test_shares_and_differences_are_as_worked_by_hand(trees: FormulaTrees) -> None:
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


def test_a_printed_cost_is_that_of_deletion_insertion_and_renaming(trees: FormulaTrees) -> None:
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


def test_a_missing_tree_has_0(trees: FormulaTrees) -> None:
    features = FormulaFeatures(trees, Cosines())
    of_layout = [name.startswith("SLT") for name in features.names]
    query = trees_from_latex("x^2+1")
    values = features.values(FormulaPair(None, query.opt), IDS)
    assert np.isnan(values[:, of_layout]).all()
    assert not np.isnan(values[:, np.invert(of_layout)]).any()
    assert not scaled(values)[:, of_layout].any()


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


def test_hostile_rankings(trees: FormulaTrees) -> None:
    features = FormulaFeatures(trees)
    assert list(features(RANKING[:0]).columns) == [*RANKING.columns, "features"]
    with pytest.raises(UnknownIdError, match="elsewhere"):
        features(RANKING.assign(docno="elsewhere"))
    for option in ({"tuples": "jaccard"}, {"nodes": "mean"}, {"costs": "unit"}, {"max_nodes": 0}):
        with pytest.raises(ConfigError, match=next(iter(option))):
            FormulaFeatures(trees, **option)
    with pytest.warns(MathAMRWarning, match="not formulas"):
        blank = features(RANKING[:3].assign(latex=" "))
    assert not np.stack(blank["features"].tolist()).any()
    chain = "+".join(["x"] * 600)
    assert np.isfinite(np.stack(features(RANKING[:3].assign(latex=chain))["features"].tolist())).all()

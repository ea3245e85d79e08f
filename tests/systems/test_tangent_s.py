"""Tangent-S is its three stages: candidates of both kinds of trees, their alignment, and a weighted sum."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from mathamr_systems import FormulaTrees, SystemsError, TangentS, alignment_scores
from mathamr_systems.tangent_s import TANGENT_S_WEIGHTS
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.sparse import PairOptions, TangentIndex
from pyterrier_mathamr.store import UnknownIdError

LATEX = ["x^2+1", "y^2+1", "x^2", r"\frac{a}{b}", "y", r"\int_0^\infty e^{-x^2}\,dx", "x^2+y^2+1", "x^2+1", "f(x)=x+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
QUERIES = pd.DataFrame({"qid": ["1", "2"], "latex": ["x^2+1", r"\frac{x}{y}"]})


@pytest.fixture
def parts(tmp_path: Path) -> SimpleNamespace:
    pairs = PairOptions(window=4, ends="small")
    tangent = TangentIndex(tmp_path / "f.tangent").indexer(pairs=pairs).index(POSTS)
    return SimpleNamespace(tangent=tangent, trees=FormulaTrees(tmp_path / "f.trees").index(POSTS))


def expected(query: str, latex: str, lists: tuple[bool, bool] = (True, True)) -> float:
    total = TANGENT_S_WEIGHTS[0]
    for place, (ours, theirs) in enumerate(zip(trees_from_latex(query), trees_from_latex(latex), strict=True)):
        assert ours is not None
        assert theirs is not None
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


def test_an_explanation_sums_to_the_score(parts: SimpleNamespace) -> None:
    system = TangentS(parts.tangent, parts.trees)
    for row in system(QUERIES).to_dict("records"):
        explained = system.explain(row)
        assert explained.score == pytest.approx(row["score"])
        assert explained.parts["contribution"].sum() == pytest.approx(row["score"])
    few = TangentS(parts.tangent, parts.trees, candidates=1)
    with pytest.raises(AskedError, match="p3#0 is not among the candidates"):
        few.explain(QUERIES.iloc[0].to_dict(), "p3#0")


def test_a_query_without_a_formula_finds_nothing_and_missing_trees_warn(parts: SimpleNamespace, tmp_path: Path) -> None:
    system = TangentS(parts.tangent, parts.trees)
    with pytest.warns(MathAMRWarning, match="not formulas"):
        assert system(pd.DataFrame({"qid": ["1"], "latex": [" "]})).empty
    assert list(system(QUERIES[:0]).columns) == list(system(QUERIES).columns)
    others = FormulaTrees(tmp_path / "others.trees").index(POSTS[1:])
    with pytest.raises(UnknownIdError, match="p0#0"):
        TangentS(parts.tangent, others)(QUERIES)
    with pytest.raises(ConfigError, match="weights"):
        TangentS(parts.tangent, parts.trees, weights=(1.0, 2.0))

"""The reranker gives similarities of trees, fused as CFT2TED or weighted as CFTED, by a plain computation."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mathamr_systems import EditDistanceReranker, FormulaTrees, tree_edit_distance
from mathamr_systems.edit_distance import EDIT_COSTS
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.store import UnknownIdError

LATEX = ["x^2+1", "y^2+1", "x^2", r"\frac{a}{b}", "x^2+1", "x^2+y^2+1", "f(x)=x+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
RANKING = pd.DataFrame(
    [
        {"qid": qid, "latex": query, "docno": f"p{i}#0", "score": -float(i), "rank": i, "kept": f"{qid}-{i}"}
        for qid, query in (("2", "x^2+1"), ("1", r"\frac{x}{y}"))
        for i in range(len(LATEX))
    ]
)


@pytest.fixture
def trees(tmp_path: Path) -> FormulaTrees:
    return FormulaTrees(tmp_path / "f.trees").index(POSTS)


def similarities(query: str, costs: str) -> pd.DataFrame:
    rows = {}
    for i, latex in enumerate(LATEX):
        pairs = zip(EDIT_COSTS[costs].items(), trees_from_latex(query), trees_from_latex(latex), strict=True)
        rows[f"p{i}#0"] = {
            kind: 1 / (1 + tree_edit_distance(ours, theirs, cost)) for (kind, cost), ours, theirs in pairs
        }
    return pd.DataFrame.from_dict(rows, orient="index")


@pytest.mark.parametrize("costs", ["printed", "swapped", "unit"])
def test_a_weighted_sum_is_that_of_both_similarities(trees: FormulaTrees, costs: str) -> None:
    found = trees.edit_distance(combine="weighted", costs=costs)(RANKING)
    assert found["qid"].tolist() == ["2"] * 7 + ["1"] * 7  # queries in the order in which they came
    for qid, rows in found.groupby("qid"):
        wanted = similarities(rows["latex"].iloc[0], costs) @ [0.95, 0.05]
        assert rows.set_index("docno")["score"].to_dict() == pytest.approx(wanted.to_dict())
        assert rows["score"].is_monotonic_decreasing
        assert rows["rank"].tolist() == list(range(7))
        assert set(rows["kept"]) == {f"{qid}-{i}" for i in range(7)}
    assert found["docno"].tolist()[:2] == ["p0#0", "p4#0"]  # equal scores, by docno


def test_a_fusion_adds_similarity_by_rank(trees: FormulaTrees) -> None:
    found = trees.edit_distance()(RANKING[RANKING["qid"] == "2"]).set_index("docno")["score"]
    of_query = similarities("x^2+1", "swapped")
    total = dict.fromkeys(of_query.index, 0.0)
    for kind in of_query:
        order = sorted(of_query.index, key=lambda docno: (-of_query.loc[docno, kind], docno))
        for rank, docno in enumerate(order, 1):
            total[docno] += of_query.loc[docno, kind] / (60 + rank)
    assert found.to_dict() == pytest.approx(total)


def test_hostile_rankings(trees: FormulaTrees) -> None:
    reranker = trees.edit_distance()
    assert list(reranker(RANKING[:0]).columns) == list(RANKING.columns)
    with pytest.raises(UnknownIdError, match="elsewhere"):
        reranker(RANKING.assign(docno="elsewhere"))
    with pytest.raises(ConfigError, match="combine"):
        EditDistanceReranker(trees, combine="sum")
    with pytest.warns(MathAMRWarning, match="not formulas"):
        blank = reranker(RANKING[:3].assign(latex=" "))
    assert np.all(blank["score"] == 0)
    assert len(blank) == 3


@pytest.mark.parametrize("combine", ["rrf", "weighted"])
def test_the_parts_of_a_score_sum_to_it(trees: FormulaTrees, combine: str) -> None:
    system = trees.edit_distance(combine=combine)
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

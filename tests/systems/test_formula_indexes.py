"""Common to all indexes of formulas: after any changes, an index ranks like one that is built at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from node_stand_in import HashedNodes

from mathamr_systems import ApproachZeroIndex, FormulaFeatures, FormulaTrees, InOutIndex, TangentCFT
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import UnknownIdError

LATEX = ["x^2+1", "y^2+1", "x^2+x", "y^3", "z", "x^2+1", r"\frac{a}{b}", r"\int_0^1 x^2\,dx"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
HOSTILE = [
    "+".join("a" * 600),
    "x" + "^{x" * 300 + "}" * 300,
    r"\sqrt{" * 150 + "x" + "}" * 150,
    "1" + "".join("+\\frac{1}{1" for _ in range(150)) + "}" * 150,
    "=".join("x" * 600),
    r"\unknown{x}",
]
TRAINED = TangentCFT(Path(__file__).parents[1] / "data" / "cft-format-1")
KINDS: dict[str, Callable[[Path], Any]] = {
    "Tangent": TangentIndex,
    "Approach Zero": ApproachZeroIndex,
    "In+Out": lambda path: InOutIndex(path, HashedNodes()),
    "Tangent-CFT": TangentCFT,
    "trees": FormulaTrees,
}


def built(kind: str, path: Path, posts: list[dict[str, str]] = POSTS) -> Any:
    index = KINDS[kind](path)
    return index.indexer(**({"model": TRAINED} if kind == "Tangent-CFT" else {})).index(posts)


def ranked(index: Any) -> Any:
    """Rank for each formula; of trees, which rank nothing, the trees themselves."""
    if isinstance(index, FormulaTrees):
        return {row["docno"]: index.get(row["docno"]) for row in index.get_corpus_iter()}
    return index(pd.DataFrame({"qid": list(map(str, range(len(LATEX)))), "latex": LATEX})).to_dict("records")


def contents(index: Any) -> list[bytes]:
    return [(index.path / part.meta.name / "arrays.safetensors").read_bytes() for part in index.snapshot().parts]


@pytest.mark.parametrize("kind", KINDS)
def test_after_any_changes_it_is_as_one_built_at_once_in_any_order(kind: str, tmp_path: Path) -> None:
    whole, grown = built(kind, tmp_path / "whole", POSTS[::-1]), built(kind, tmp_path / "grown", POSTS[:3])
    grown.indexer("append").index(POSTS[3:])
    assert ranked(grown) == ranked(whole)
    grown.compact()
    assert contents(grown) == contents(whole)
    grown.verify()
    grown.delete(["p1#0", "p4#0"])
    left = built(kind, tmp_path / "left", [post for post in POSTS if post["docno"] not in ("p1", "p4")])
    assert ranked(grown) == ranked(left)
    rest = built(kind, tmp_path / "rest", [POSTS[1], POSTS[4], POSTS[0]])
    assert ranked(type(grown).merge(tmp_path / "merged", grown, rest)) == ranked(whole)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "trees"])
def test_a_formula_finds_itself_first_with_all_formulas_of_its_expression(kind: str, tmp_path: Path) -> None:
    index = built(kind, tmp_path / "index")
    topics = pd.DataFrame({"qid": list(map(str, range(len(LATEX)))), "latex": LATEX})
    found = index(topics)
    assert list(found.columns) == ["qid", "latex", "query", "docno", "post_id", "visual_id", "score", "rank"]
    for qid, rows in found.groupby("qid"):
        own = [f"p{i}#0" for i, latex in enumerate(LATEX) if latex == LATEX[int(str(qid))]]
        best = rows[rows["score"] == rows["score"].iloc[0]]["docno"]  # vectors of a hash can tie
        assert set(own) <= set(best)
        assert rows["score"].is_monotonic_decreasing
        assert rows["rank"].tolist() == list(range(len(rows)))
    one_by_one = pd.concat([index(topics[topics["qid"] == qid]) for qid in topics["qid"]], ignore_index=True)
    pd.testing.assert_frame_equal(one_by_one, found)
    cut = found[found["rank"] < 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(index.retriever(2)(topics), cut)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "trees"])
def test_long_and_deep_formulas_are_found_and_explained(kind: str, tmp_path: Path) -> None:
    posts = [{"docno": f"h{i}", "text": f"${latex}$"} for i, latex in enumerate(HOSTILE)]
    with pytest.warns(MathAMRWarning):
        index = built(kind, tmp_path / "f", posts)
    for number, latex in enumerate(HOSTILE):
        found = index.search(latex).set_index("docno")["score"]
        assert found[f"h{number}#0"] == found.iloc[0]
        assert index.explain({"latex": latex}, f"h{number}#0").score == pytest.approx(found.iloc[0])


RERANKERS: dict[str, Callable[[Path], Any]] = {
    "Approach Zero": lambda path: ApproachZeroIndex(path).index(POSTS).scorer(),
    "edit distance": lambda path: FormulaTrees(path).index(POSTS).edit_distance(),
    "features": lambda path: FormulaFeatures(FormulaTrees(path).index(POSTS)),
}


@pytest.mark.parametrize("name", RERANKERS)
def test_a_reranker_names_unknown_formulas_and_finds_nothing_in_common_with_a_blank_query(
    name: str, tmp_path: Path
) -> None:
    rerank = RERANKERS[name](tmp_path / "index")
    ranking = pd.DataFrame({"qid": "1", "latex": "x^2+1", "docno": ["p0#0", "p3#0"], "score": [2.0, 1.0]})
    ranking = ranking.assign(rank=[0, 1])
    assert list(rerank(ranking[:0]).columns) == list(rerank(ranking).columns)
    with pytest.raises(UnknownIdError, match="elsewhere"):
        rerank(ranking.assign(docno="elsewhere"))
    with pytest.warns(MathAMRWarning, match="not formulas"):
        blank = rerank(ranking.assign(latex=" "))
    assert len(blank) == 2
    assert not np.any(np.stack(blank["features"].tolist()) if name == "features" else blank["score"])

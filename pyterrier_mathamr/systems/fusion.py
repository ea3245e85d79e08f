"""Two rankings in one, by the weighted sum of standardised scores."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output
from pyterrier_mathamr._common.listwise import fit_listwise
from pyterrier_mathamr._common.parameters import ByParameters

from .blend import grouped

_RESULTS = ("docno", "score", "rank")


class ZScoreFusion(ByParameters, pt.Transformer):  # type: ignore[misc]
    """Ranks by the weighted sum of two systems' scores, standardised for each query.

    The scores of BM25 and of MaxSim have no common scale; after the subtraction of their mean and the division by
    their standard deviation they have. A document that one system did not find gets that system's lowest score.

    Args:
        left: queries to a ranking.
        right: queries to a ranking.
        weight: 0 to 1; what ``right`` counts, ``left`` counting the rest.
        num_results: at most so many documents for each query.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ZScoreFusion(bm25, encode >> index.colbert(), weight=0.4)
    """

    schematic: ClassVar[dict[str, str]] = {
        "label": "z-score fusion",
        "help_url": "https://pyterrier.readthedocs.io/en/latest/operators.html",
    }

    def __init__(
        self, left: pt.Transformer, right: pt.Transformer, *, weight: float = 0.5, num_results: int = 1000
    ) -> None:
        if not 0 <= weight <= 1:
            raise ConfigError("weight", weight, "a number between 0 and 1")
        if num_results < 1:
            raise ConfigError("num_results", num_results, "a whole number of at least 1")
        super().__init__()
        self.left, self.right, self.weight, self.num_results = left, right, float(weight), num_results

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with both systems and merge.

        Args:
            inp: ``qid`` and what both systems need.

        Returns:
            The columns of ``inp`` with ``docno``, ``score`` and ``rank``.
        """
        pt.validate.query_frame(inp, extra_columns=self._query_columns(), context=self)
        queries = inp.drop(columns=[name for name in _RESULTS if name in inp.columns])
        if queries.empty:
            return empty_output(queries, _RESULTS)
        fused = fuse_rankings(self.left(inp), self.right(inp), self.weight, self.num_results)
        rows = queries.reset_index(drop=True).drop_duplicates(subset="qid")
        order = {qid: row for row, qid in enumerate(rows["qid"])}
        fused = fused.assign(_row=fused["qid"].map(order)).sort_values(["_row", "rank"])
        result: pd.DataFrame = rows.iloc[fused["_row"].to_numpy()].reset_index(drop=True)
        result = result.assign(**{name: fused[name].to_numpy() for name in _RESULTS})
        return result

    def _query_columns(self) -> list[str]:
        """Columns that both systems ask for, so that a wrong frame is refused before anything is searched."""
        needed: list[str] = []
        for system in (self.left, self.right):
            modes = pt.inspect.transformer_inputs(system, strict=False) or [[]]
            needed += [name for name in modes[0] if name != "qid"]
        return list(dict.fromkeys(needed))

    def fuse_rank_cutoff(self, k: int) -> ZScoreFusion:
        """Give at most ``k`` documents in place of cutting the ranking at ``k``.

        Args:
            k: the cutoff that follows this transformer.
        """
        if k >= self.num_results:
            return self
        return ZScoreFusion(self.left, self.right, weight=self.weight, num_results=k)


def fuse_rankings(left: pd.DataFrame, right: pd.DataFrame, weight: float, num_results: int = 1000) -> pd.DataFrame:
    """Merge two rankings by the weighted sum of their standardised scores.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        weight: 0 to 1; what ``right`` counts, ``left`` counting the rest.
        num_results: at most so many documents for each query.

    Returns:
        ``qid``, ``docno``, ``score``, ``rank``, best first for each query, equal scores by ``docno``; a document that
        one ranking lacks has that ranking's lowest standardised score of the query, 0 where it has no row.
    """
    both = _joined(left, right)
    both["score"] = (1 - weight) * both["z_left"] + weight * both["z_right"]
    both = both.sort_values(["qid", "score", "docno"], ascending=[True, False, True], kind="stable")
    both["rank"] = both.groupby("qid").cumcount()
    kept = both.loc[both["rank"] < num_results, ["qid", "docno", "score", "rank"]]
    result: pd.DataFrame = kept.reset_index(drop=True)
    return result


def fit_fusion_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Find the weight of a fusion under which right documents are most likely among all that either system found.

    All questions with a right document in one of the rankings count, not only those whose first ten change; so a system
    that helps some questions does not come out at 0 because a rough measure did not see it.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system; it should not have been trained on these questions.
        qrels: ``qid``, ``docno``, ``label``; right is what has a label above 0.

    Returns:
        0 to 1, what ``right`` counts in :class:`ZScoreFusion`; 0 where neither system helps.

    Raises:
        NothingToFitError: no question has both a right and a wrong document.

    Example::

        colbert = encode >> index.colbert()
        pipeline = ZScoreFusion(bm25, colbert, weight=fit_fusion_weight(bm25(topics), colbert(topics), qrels))
    """
    both = _joined(left, right)
    of_left, of_right = fit_listwise(grouped(both, both[["z_left", "z_right"]].to_numpy(), qrels)).tolist()
    return of_right / (of_left + of_right) if of_right else 0.0


def _joined(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Give ``qid``, ``docno``, ``z_left``, ``z_right`` of all documents of either ranking, without gaps."""
    both: pd.DataFrame = _standardised(left).merge(
        _standardised(right), on=["qid", "docno"], how="outer", suffixes=("_left", "_right")
    )
    for side in ("z_left", "z_right"):
        both[side] = both[side].fillna(both.groupby("qid")[side].transform("min")).fillna(0.0)
    return both


def _standardised(ranking: pd.DataFrame) -> pd.DataFrame:
    """Give ``qid``, ``docno`` and ``z``; scores that are all the same become 0."""
    by_query = ranking.groupby("qid")["score"]
    spread = by_query.transform(lambda scores: scores.std(ddof=0)).replace(0.0, 1.0)
    z = (ranking["score"] - by_query.transform("mean")) / spread
    result: pd.DataFrame = ranking[["qid", "docno"]].assign(z=z.astype("float64"))
    return result

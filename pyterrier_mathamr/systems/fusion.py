"""Several rankings in one, by a weighted sum over systems of a function of each system's scores.

::

    queries ──┬── system 0 ──▶ ranking ── part ── w₀ ─┐
              ├── system 1 ──▶ ranking ── part ── w₁ ─┼─▶ Σ ──▶ ranking of all documents that one of them found
              └── …                                   ┘

A fusion says what the part is (:class:`ZScoreFusion`: the standard score among the query's documents), the weights, and
what a document has that a system did not find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import distinct_queries, empty_output, first_values, with_objects
from pyterrier_mathamr._common.listwise import fit_listwise
from pyterrier_mathamr._common.parameters import FRACTION, Rule, between, list_of
from pyterrier_mathamr._common.transformers import Retriever, inputs_of_all, outputs_of_all
from pyterrier_mathamr.explanation import AskedError, Explanation, QueryRow, explained, read_asked

from .blend import grouped
from .standard_scores import distinct_names, explain_standard

_RESULTS = ("docno", "score", "rank")
_WEIGHTS = list_of(between(0))


class Fusion(Retriever):
    """Ranks all documents that one of several systems finds; subclasses say what they contribute.

    The ranking has the columns of the queries and those that the rankings of all systems have; what several systems say
    of a document is taken from the first.

    Args:
        systems: each takes queries and returns a ranking.
        num_results: the number of documents for each query.
    """

    help_url = "https://pyterrier.readthedocs.io/en/latest/operators.html"
    systems: tuple[pt.Transformer, ...]

    def __init__(self, systems: Sequence[pt.Transformer], num_results: int) -> None:
        super().__init__()
        if not systems:
            raise ConfigError("systems", systems, "at least one")
        self.systems, self.num_results = tuple(systems), num_results

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each system."""
        return (1.0,) * len(self.systems)

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0``, ``1``, …: what each system contributes, without gaps."""
        raise NotImplementedError

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns that all systems take."""
        return inputs_of_all(self.systems, "qid")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with all systems and merge.

        Args:
            inp: ``qid`` and what all systems need.

        Returns:
            The columns of ``inp``, ``docno``, the columns that all systems add, ``score`` and ``rank``.
        """
        pt.validate.query_frame(inp, context=self)
        outputs = outputs_of_all(self.systems, list(inp.columns))
        queries = distinct_queries(inp, _RESULTS)
        if queries.empty:
            added = _shared([columns for columns in outputs if columns is not None], queries.columns)
            return empty_output(queries, ["docno", *added, "score", "rank"])
        rankings = [system(distinct_queries(inp)) for system in self.systems]
        added = _shared([list(ranking.columns) for ranking in rankings], queries.columns)
        fused = ranked(self.joined(rankings), self.weights, self.num_results)
        found = pd.concat([ranking[["qid", "docno", *added]] for ranking in rankings], ignore_index=True)
        fused = _with_columns(fused, found, added)
        row_of = {qid: row for row, qid in enumerate(queries["qid"])}
        fused = fused.assign(_row=fused["qid"].map(row_of)).sort_values(["_row", "rank"])
        result: pd.DataFrame = queries.iloc[fused["_row"].to_numpy(np.int64)].reset_index(drop=True)
        names = ["docno", *added, "score", "rank"]
        return result.assign(**{name: fused[name].reset_index(drop=True) for name in names})


class ZScoreFusion(Fusion):
    """Ranks by the weighted sum of the systems' scores, standardised for each query.

    The scores of BM25 and of MaxSim have no common scale; after the subtraction of their mean and the division by
    their standard deviation they have. A document that a system did not find gets that system's lowest score.

    Args:
        systems: each takes queries and returns a ranking.
        weight: of two systems, the weight of the second, 0 to 1; the first has the rest. Of several, a list with the
            weight of each. By default all have the same.
        num_results: the number of documents for each query.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ZScoreFusion(bm25, encode >> index.colbert(), weight=0.4)
    """

    label = "z-score fusion"
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "weight": Rule(
            "a number between 0 and 1 for two systems, or a list of numbers, 0 or more, one for each system",
            lambda weight: weight is None or FRACTION.holds(weight) or _WEIGHTS.holds(weight),
        ),
    }

    def __init__(
        self, *systems: pt.Transformer, weight: float | Sequence[float] | None = None, num_results: int = 1000
    ) -> None:
        super().__init__(systems, num_results)
        self.weight = weight
        len(self.weights)  # refuses another number of weights

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each system.

        Raises:
            ConfigError: there are not as many as systems.
        """
        count = len(self.systems)
        if self.weight is None:
            return (1 / count,) * count
        given = self.weight
        weights = tuple(given) if isinstance(given, Sequence) else (1 - float(given), float(given))
        if len(weights) != count:
            raise ConfigError("weight", self.weight, f"a list of {count} numbers, one for each system")
        return weights

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0``, ``1``, …: the standard score of each system."""
        return standard_scores(rankings)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each system contributes to the score of a document, and what contributes to the system's score.

        Args:
            query: the row of a query, or of a result, or a frame of one query.
            docno: a document that one of the systems finds; by default that of the row.

        Raises:
            AskedError: no system finds the document, or no document is named.
        """
        asked = read_asked(query, docno, self.label)
        frame, texts = asked.query_frame(), asked.texts()
        found = [explained(system, frame, asked.docno, texts) for system in self.systems]
        if not any(ranked.explanation for ranked in found):
            raise AskedError(self.label, f"no system finds {asked.docno!r}", "Explain a document of its ranking.")
        result = Explanation.of(asked.docno, [], asked.query_reading(), asked.document_reading())
        for name, weight, ranked in zip(distinct_names(self.systems), self.weights, found, strict=True):
            scores = ranked.ranking["score"].to_numpy(np.float64)
            result += explain_standard(asked.docno, name, scores, ranked.explanation, weight)
        return result


def fuse_rankings(left: pd.DataFrame, right: pd.DataFrame, weight: float, num_results: int = 1000) -> pd.DataFrame:
    """Merge two rankings by the weighted sum of their standardised scores.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        weight: 0 to 1; the weight of ``right``, ``left`` has the rest.
        num_results: the number of documents for each query.

    Returns:
        ``qid``, ``docno``, ``score``, ``rank``, best first for each query, equal scores by ``docno``; a document that
        one ranking lacks has that ranking's lowest standardised score of the query, 0 where it has no row.
    """
    return ranked(standard_scores([left, right]), (1 - weight, weight), num_results)


def fit_fusion_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Find the weight of a fusion under which right documents are most likely among all that either system found.

    All questions with a right document in one of the rankings are used, not only those whose first ten change, so a
    system that helps some questions does not get the weight 0 because a coarse measure did not see it.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system; it should not have been trained on these questions.
        qrels: ``qid``, ``docno``, ``label``; right is what has a label above 0.

    Returns:
        0 to 1, the weight of ``right`` in :class:`ZScoreFusion`; 0 where neither system helps.

    Raises:
        NothingToFitError: no question has both a right and a wrong document.

    Example::

        colbert = encode >> index.colbert()
        pipeline = ZScoreFusion(bm25, colbert, weight=fit_fusion_weight(bm25(topics), colbert(topics), qrels))
    """
    both = standard_scores([left, right])
    of_left, of_right = fit_listwise(grouped(both, both[["0", "1"]].to_numpy(), qrels)).tolist()
    return of_right / (of_left + of_right) if of_right else 0.0


def ranked(joined: pd.DataFrame, weights: Sequence[float], num_results: int) -> pd.DataFrame:
    """Rank by the weighted sum of columns, equal scores by ``docno``.

    Args:
        joined: ``qid``, ``docno`` and for each weight a column ``0``, ``1``, ….
        weights: of the columns.
        num_results: the number of documents for each query.

    Returns:
        ``qid``, ``docno``, ``score``, ``rank``.
    """
    score = sum((weight * joined[str(system)] for system, weight in enumerate(weights)), start=0.0)
    fused = joined[["qid", "docno"]].assign(score=score)
    fused = fused.sort_values(["qid", "score", "docno"], ascending=[True, False, True], kind="stable")
    fused["rank"] = fused.groupby("qid").cumcount()
    result: pd.DataFrame = fused[fused["rank"] < num_results].reset_index(drop=True)
    return result


def standard_scores(rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Standardise the scores of rankings within each query, for all documents of any of them.

    Args:
        rankings: ``qid``, ``docno``, ``score``.

    Returns:
        ``qid``, ``docno`` and ``0``, ``1``, …: the standard score of each ranking, 0 where its scores are all the same,
        its lowest of the query where it lacks the document, 0 where it has no row.
    """
    parts = [_standardised(ranking, number) for number, ranking in enumerate(rankings)]
    joined: pd.DataFrame = reduce(lambda one, other: one.merge(other, on=["qid", "docno"], how="outer"), parts)
    for number in map(str, range(len(parts))):
        joined[number] = joined[number].fillna(joined.groupby("qid")[number].transform("min")).fillna(0.0)
    return joined


def _standardised(ranking: pd.DataFrame, number: int) -> pd.DataFrame:
    by_query = ranking.groupby("qid")["score"]
    spread = by_query.transform(lambda scores: scores.std(ddof=0)).replace(0.0, 1.0)
    z = (ranking["score"] - by_query.transform("mean")) / spread
    result: pd.DataFrame = ranking[["qid", "docno"]].assign(**{str(number): z.astype("float64")})
    return result


def _shared(columns: Sequence[Sequence[str]], of_queries: Iterable[str]) -> list[str]:
    """List the columns that all rankings have beside those of the queries and of any result."""
    known = {"qid", *_RESULTS, *of_queries}
    first, *others = columns or [[]]
    return [name for name in first if name not in known and all(name in other for other in others)]


def _with_columns(fused: pd.DataFrame, found: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Add columns of the rankings: the first value for a query (``query_…``), or for a document of it."""
    of_queries = [name for name in names if name in pt.model.query_columns(found)]
    of_documents = found.drop(columns=of_queries).drop_duplicates(subset=["qid", "docno"])
    values = {name: first_values(found, name) for name in of_queries}
    added = {name: [values[name].get(qid) for qid in fused["qid"]] for name in of_queries}
    return with_objects(fused, **added).merge(of_documents, on=["qid", "docno"], how="left", sort=False)

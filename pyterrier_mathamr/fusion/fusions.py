"""Fusions: run several systems and rank by a weighted sum of their transformed scores.

A fusion declares the contribution of a row, the weights, and the value for a document that a system did not find.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.frames import best_places, empty_output, first_values, with_objects
from pyterrier_mathamr._common.parameters import FLAG, FRACTION, Rule, between, list_of, one_of
from pyterrier_mathamr._common.transformers import Retriever, inputs_of_all, outputs_of_all
from pyterrier_mathamr.explain import (
    Asked,
    AskedError,
    Explanation,
    Part,
    QueryRow,
    Ranked,
    explained,
    name_of,
    read_asked,
)
from pyterrier_mathamr.posts.topics import distinct_queries, with_query

System: TypeAlias = pt.Transformer | pd.DataFrame
"""A system to fuse: a transformer of queries to a ranking, or an existing ranking."""

Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[np.int64]

_RESULTS = ("docno", "score", "rank")


class Fusion(Retriever):
    """Ranks all documents that one of several systems finds, by a weighted sum of contributions.

    They are standard scores here; some subclasses define others. The ranking has the columns of the queries and the
    columns that all rankings share; if systems disagree on a column of a document, the first one counts.
    """

    help_url = "https://pyterrier.readthedocs.io/en/latest/operators.html"
    lacking_is_lowest: ClassVar[bool] = True
    """Whether a document that a system did not find gets that system's lowest contribution, instead of 0."""
    systems: tuple[pt.Transformer, ...]

    def __init__(self, systems: Sequence[System], num_results: int) -> None:
        super().__init__()
        if not systems:
            raise ConfigError("systems", systems, "at least one")
        self.systems = tuple(
            pt.Transformer.from_df(with_text_docnos(one)) if isinstance(one, pd.DataFrame) else one for one in systems
        )
        self.num_results = num_results
        self._accepted = set[tuple[str, ...]]()

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each system."""
        return (1.0,) * len(self.systems)

    @property
    def part_names(self) -> list[str]:
        return distinct_names(self.systems)

    def rankings(self, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Ask each system."""
        return [with_text_docnos(system(queries)) for system in self.systems]

    def answers(self, asked: Asked) -> list[Ranked]:
        """Ask each system about one document: its ranking, and the explanation of the document's score."""
        frame, texts = asked.query_frame(), asked.texts()
        return [explained(system, frame, asked.docno, texts) for system in self.systems]

    def contributions(self, query: Numbers, ranking: pd.DataFrame) -> Floats:
        """Compute the contribution of each row of a ``ranking``, float64 ``[n]``; ``query`` is its query's number."""
        return _standard_contributions(query, ranking)

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        """Explain the contribution of one system to a document.

        Args:
            docno: the document.
            system: the name of the system.
            answer: the ranking of the system, and its explanation of the document's score.
            weight: of the system.
        """
        scores = answer.ranking["score"].to_numpy(np.float64)
        return explain_standard(docno, system, scores, answer.explanation, weight)

    def transform_inputs(self) -> list[list[str]]:
        return inputs_of_all(self.systems, "qid")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with all systems and merge.

        Args:
            inp: ``qid`` and what all systems need.

        Returns:
            The columns of ``inp``, ``docno``, the columns that all systems add, ``score`` and ``rank``.
        """
        pt.validate.query_frame(inp, context=self)
        columns, queries = tuple(inp.columns), with_query(distinct_queries(inp, _RESULTS))
        if queries.empty or columns not in self._accepted:  # checking all systems costs more than some searches
            outputs = outputs_of_all(self.systems, columns)
            self._accepted.add(columns)
        if queries.empty:
            added = _shared([columns for columns in outputs if columns is not None], queries.columns)
            return empty_output(queries, ["docno", *added, "score", "rank"])
        rankings = self.rankings(distinct_queries(inp))
        added = _shared([list(ranking.columns) for ranking in rankings], queries.columns)
        joined = contributed(rankings, self.contributions, lowest=self.lacking_is_lowest)
        fused = ranked(joined, self.weights, self.num_results)
        if added:  # of a query (`query_…`) or of a document, the first value counts
            every = pd.concat([ranking[["qid", "docno", *added]] for ranking in rankings], ignore_index=True)
            query_columns = [name for name in added if name in pt.model.query_columns(every)]
            first = {name: first_values(every, name) for name in query_columns}
            fused = with_objects(fused, **{name: list(map(first[name].get, fused["qid"])) for name in query_columns})
            documents = every.drop(columns=query_columns).drop_duplicates(subset=["qid", "docno"])
            fused = fused.merge(documents, on=["qid", "docno"], how="left", sort=False)
        row_of = {qid: row for row, qid in enumerate(queries["qid"])}
        fused = fused.assign(_row=fused["qid"].map(row_of)).sort_values(["_row", "rank"])
        result: pd.DataFrame = queries.iloc[fused["_row"].to_numpy(np.int64)].reset_index(drop=True)
        names = ["docno", *added, "score", "rank"]
        return result.assign(**{name: fused[name].reset_index(drop=True) for name in names})

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each system to a document's score, and the parts of the system's score.

        Args:
            query: the row of a query, or of a result, or a frame of one query.
            docno: a document that one of the systems finds; by default the one in the row.

        Raises:
            AskedError: no system finds the document, or no document is named.
        """
        asked = read_asked(query, docno, self.label)
        answers = self.answers(asked)
        if not any(answer.explanation for answer in answers):
            raise AskedError(self.label, f"no system finds {asked.docno!r}", "Explain a document of its ranking.")
        result = asked.explained([])
        for name, weight, answer in zip(self.part_names, self.weights, answers, strict=True):
            result += self.explained_part(asked.docno, name, answer, weight)
        return result


def ranked(joined: pd.DataFrame, weights: Sequence[float], num_results: int) -> pd.DataFrame:
    """Rank by the weighted sum of columns, equal scores by ``docno``.

    Args:
        joined: ``qid``, ``docno`` and for each weight a column ``0``, ``1``, …, such as :func:`standard_scores` makes.
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


def with_text_docnos(ranking: pd.DataFrame) -> pd.DataFrame:
    """Turn docnos that are numbers into text, as indexes have them: ``pd.read_csv`` reads ``198``, not ``"198"``."""
    if ranking.empty or not pd.api.types.is_integer_dtype(ranking["docno"]):
        return ranking
    return ranking.assign(docno=ranking["docno"].astype(str))


def contributed(
    rankings: Sequence[pd.DataFrame], contributions: Callable[[Numbers, pd.DataFrame], Floats], *, lowest: bool
) -> pd.DataFrame:
    """Compute each ranking's contributions to the documents of all rankings, as ``qid``, ``docno``, ``0``, ``1``, ….

    A contribution of NaN counts as a document that was not found; of two rows for a document the first counts.
    """
    every = pd.concat([with_text_docnos(ranking[["qid", "docno"]]) for ranking in rankings], ignore_index=True)
    queries, qids = pd.factorize(every["qid"], sort=True)
    documents, docnos = pd.factorize(every["docno"], sort=True)
    pairs, pair_of_row = np.unique(queries.astype(np.int64) * max(len(docnos), 1) + documents, return_inverse=True)
    query, document = np.divmod(pairs, max(len(docnos), 1))
    columns = {}
    ends = np.cumsum([len(ranking) for ranking in rankings])
    for number, (ranking, rows) in enumerate(zip(rankings, np.split(pair_of_row, ends[:-1]), strict=True)):
        parts = contributions(query[rows], ranking)
        column, lacking = np.full(len(pairs), np.nan), np.zeros(len(qids))
        column[rows[::-1]] = parts[::-1]
        if lowest:
            known = ~np.isnan(parts)
            np.minimum.at(lacking, query[rows[known]], parts[known])
        columns[str(number)] = np.where(np.isnan(column), lacking[query], column)
    return pd.DataFrame({"qid": qids[query], "docno": docnos[document], **columns})


def _shared(columns: Sequence[Sequence[str]], of_queries: Iterable[str]) -> list[str]:
    """List the columns that all rankings share, except columns of the queries and standard columns of results."""
    known = {"qid", *_RESULTS, *of_queries}
    first, *others = columns or [[]]
    return [name for name in first if name not in known and all(name in other for other in others)]


def distinct_names(systems: Sequence[pt.Transformer]) -> list[str]:
    """Name systems, and number systems of the same name."""
    names = [name_of(system) for system in systems]
    numbers = (f" {names[:place].count(name) + 1}" if names.count(name) > 1 else "" for place, name in enumerate(names))
    return [name + number for name, number in zip(names, numbers, strict=True)]


def _extremes(query: Numbers, scores: Floats) -> tuple[Floats, Floats]:
    """Find the lowest and the highest score of each query."""
    queries = int(query.max(initial=-1)) + 1
    lowest, highest = np.full(queries, np.inf), np.full(queries, -np.inf)
    np.minimum.at(lowest, query, scores)
    np.maximum.at(highest, query, scores)
    return lowest, highest


def standardized(query: Numbers, scores: Floats) -> Floats:
    """Standardize the scores of each query, 0 if they are all the same; NaN stays."""
    queries, known = int(query.max(initial=-1)) + 1, ~np.isnan(scores)
    asked, given = query[known], scores[known]
    count = np.maximum(np.bincount(asked, minlength=queries), 1)
    away = given - (np.bincount(asked, given, queries) / count)[asked]
    spread = np.sqrt(np.bincount(asked, away**2, queries) / count)
    least, most = _extremes(asked, given)
    differ = (least < most)[asked]  # else rounding might leave a distance to the mean, and the same as the spread
    standard = np.full(len(scores), np.nan)
    standard[known] = np.where(differ, away / np.where(differ, spread[asked], 1.0), 0.0)
    return standard


def standard_scores(rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Standardize the scores of rankings within each query, for all documents of any of them.

    Args:
        rankings: ``qid``, ``docno``, ``score``.

    Returns:
        ``qid``, ``docno`` and ``0``, ``1``, …: the standard score of each ranking, 0 if its scores are all the same,
        its lowest of the query if it lacks the document, 0 if it has no row.
    """
    return contributed(rankings, _standard_contributions, lowest=True)


def fused_standard(rankings: Sequence[tuple[Sequence[str], Floats]], count: int) -> tuple[list[str], Floats]:
    """Rank at most ``count`` documents of one query like :class:`ZScoreFusion`, by distinct docnos and scores."""
    every = list(dict.fromkeys(docno for docnos, _ in rankings for docno in docnos))
    row_of, fused = {docno: row for row, docno in enumerate(every)}, np.zeros(len(every))
    for docnos, scores in rankings:
        standard = standardized(np.zeros(len(scores), np.int64), scores)
        parts = np.full(len(every), standard.min(initial=0.0))
        parts[[row_of[docno] for docno in docnos]] = standard
        fused += parts / len(rankings)
    best = best_places(fused, count, lambda rows: [every[row] for row in rows.tolist()])
    return [every[row] for row in best.tolist()], fused[best]


def _standard_contributions(query: Numbers, ranking: pd.DataFrame) -> Floats:
    return standardized(query, ranking["score"].to_numpy(np.float64))


def _min_max(query: Numbers, ranking: pd.DataFrame, constant: float = 0.0) -> Floats:
    """Rescale the scores of each query to 0 … 1; if they are all equal, to ``constant``."""
    scores = ranking["score"].to_numpy(np.float64)
    lowest, highest = _extremes(query, scores)
    differ = lowest < highest
    factor = np.divide(1.0, highest - lowest, out=np.zeros(len(lowest)), where=differ)
    scaled: Floats = (scores - lowest[query]) * factor[query] + np.where(differ, 0.0, constant)[query]
    return scaled


def _sole_name(explanation: Explanation, system: str) -> str | None:
    """Return the name of a system for all parts of its score; ``None`` for a fusion, whose parts keep their names."""
    return system if len({part.system for part in explanation.rows}) == 1 else None


def explain_standard(
    docno: str, system: str, scores: Floats, explanation: Explanation | None, weight: float
) -> Explanation:
    """Explain the weighted standard score of a document among the scores of its query."""
    if not len(scores):
        return Explanation.of(docno, [])
    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    if explanation is None:
        lowest = weight * (float(scores.min()) - mean) / spread
        return Explanation.of(docno, [Part(system, "not found: lowest score", contribution=lowest)])
    shift = Part(system, f"mean of {len(scores)} scores", contribution=-weight * mean / spread)
    return explanation.scaled(weight / spread, _sole_name(explanation, system)).plus(shift)


def _explain_min_max(docno: str, system: str, answer: Ranked, weight: float, constant: float = 0.0) -> Explanation:
    """Explain the weighted score, brought to 0 … 1, of a document that the system found."""
    scores, explanation = answer.ranking["score"].to_numpy(np.float64), answer.explanation
    if explanation is None:
        return Explanation.of(docno, [])
    if not len(scores) or not scores.min() < scores.max():
        return Explanation.of(docno, [Part(system, "all scores are equal", contribution=weight * constant)])
    lowest = float(scores.min())
    factor = weight / (float(scores.max()) - lowest)
    shift = Part(system, "lowest score", contribution=-factor * lowest)
    return explanation.scaled(factor, _sole_name(explanation, system)).plus(shift)


_WEIGHTS = list_of(between(0))


class ZScoreFusion(Fusion):
    """Ranks by the weighted sum of the systems' scores, standardized for each query.

    The scores of BM25 and of MaxSim have different scales, which standardization makes comparable. A document that a
    system did not find gets that system's lowest score.

    Args:
        systems: each maps queries to a ranking.
        weight: for two systems, the weight of the second, 0 to 1; the first has the rest. For several, a list with
            the weight of each. By default all are equal.
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
            ConfigError: their number is not the number of systems.
        """
        count, given = len(self.systems), self.weight
        if given is None:
            return (1 / count,) * count
        weights = tuple(given) if isinstance(given, Sequence) else (1 - float(given), float(given))
        if len(weights) != count:
            raise ConfigError("weight", given, f"a list of {count} numbers, one for each system")
        return weights


class ConvexFusion(Fusion):
    r"""Ranks by α · ŝ of one system + (1 - α) · ŝ of another, ŝ the score rescaled to 0 … 1 over the query's documents.

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), equation
    7. A document that a system did not find gets 0, and so does each document of a system whose scores for the query
    are all equal; the paper leaves the latter open, and the published program does so.

    Args:
        dense: a transformer of queries to a ranking, or a ranking.
        other: another transformer or ranking, or a list of several.
        alpha: the weight of ``dense``, 0 to 1; the others share the rest equally. Or a list with the weight of each
            system, ``dense`` first, which sum to 1.
        num_results: the number of documents for each query.
        constant: the rescaled score if all scores of a system for a query are equal, 0 to 1.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ConvexFusion(encode >> index.colbert(), bm25, alpha=0.3)
    """

    label = "convex fusion"
    lacking_is_lowest = False
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "alpha": Rule(
            "a number between 0 and 1, or a list of numbers, 0 or more, one for each system, that sum to 1",
            lambda alpha: FRACTION.holds(alpha) or (_WEIGHTS.holds(alpha) and math.isclose(math.fsum(alpha), 1)),
        ),
        "constant": FRACTION,
    }

    def __init__(
        self,
        dense: System,
        other: System | Sequence[System],
        alpha: float | Sequence[float] = 0.5,
        num_results: int = 1000,
        constant: float = 0.0,
    ) -> None:
        others = tuple(other) if isinstance(other, (list, tuple)) else (other,)
        super().__init__((dense, *others), num_results)
        self.dense, self.other = self.systems[0], self.systems[1:] if len(others) != 1 else self.systems[1]
        self.alpha, self.constant = alpha, constant
        if isinstance(alpha, Sequence) and len(alpha) != len(self.systems):
            raise ConfigError("alpha", alpha, f"a list of {len(self.systems)} numbers, one for each system")

    @property
    def weights(self) -> tuple[float, ...]:
        """α and 1 - α, or the weights of several systems."""
        if isinstance(self.alpha, Sequence):
            return tuple(self.alpha)
        count = len(self.systems) - 1
        return (self.alpha, *[(1 - self.alpha) / count] * count)

    def contributions(self, query: Numbers, ranking: pd.DataFrame) -> Floats:
        return _min_max(query, ranking, self.constant)

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        return _explain_min_max(docno, system, answer, weight, self.constant)


Normalise = Literal["none", "min-max"]
RRF_K = 60
"""The constant added to ranks: the value of Cormack and others (2009), and of all papers here."""


def reciprocal_ranks(scores: Floats, names: npt.ArrayLike, k: float = RRF_K, queries: Numbers | None = None) -> Floats:
    """Compute 1 / (k + rank) of each document of a ranking, ranks from 1.

    Args:
        scores: float64 ``[n]``.
        names: ``[n]``, docnos or numbers, which order equal scores, ascending.
        k: the constant added to ranks.
        queries: int64 ``[n]``, the number of each document's query; by default there is one query.

    Returns:
        float64 ``[n]``.
    """
    query = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    _, by_name = np.unique(np.asarray(names), return_inverse=True)
    order = np.lexsort((by_name, -scores, query))
    before = np.searchsorted(query[order], query[order])  # rows of earlier queries
    reciprocal = np.empty(len(scores))
    reciprocal[order] = 1 / (k + np.arange(1, len(scores) + 1) - before)
    return reciprocal


class ModifiedRRF(Fusion):
    r"""Ranks by modified reciprocal rank fusion: Σ score / (k + rank) over the systems, ranks from 1.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), equation 4.2. A document
    that a system did not find gets nothing from it. A negative score would subtract less at a lower rank: a warning
    names the system, and ``normalise`` rescales its scores to 0 … 1.

    Args:
        systems: each is a transformer of queries to a ranking, or a ranking.
        k: the constant added to ranks.
        normalise: ``"min-max"`` first rescales the scores of each system to 0 … 1 for each query.
        num_results: the number of documents for each query.
        classic: 1 instead of the score, as in Cormack and others (2009).

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ModifiedRRF([bm25, encode >> index.colbert()], normalise="min-max")
    """

    label = "rank fusion"
    lacking_is_lowest = False
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "k": between(0),
        "normalise": one_of(*get_args(Normalise)),
        "classic": FLAG,
    }

    def __init__(
        self,
        systems: Sequence[System],
        k: float = RRF_K,
        normalise: Normalise = "none",
        num_results: int = 1000,
        classic: bool = False,
    ) -> None:
        super().__init__(systems, num_results)
        self.k, self.normalise, self.classic = k, normalise, classic
        self._told: set[str] = set()

    def rankings(self, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Ask each system, and warn of negative scores, once for each system."""
        rankings = super().rankings(queries)
        if self.normalise == "none" and not self.classic:
            named = zip(self.part_names, rankings, strict=True)
            negative = [name for name, ranking in named if name not in self._told and (ranking["score"] < 0).any()]
            if negative:
                self._told.update(negative)
                text = f"negative scores of {', '.join(negative)} take the less from a document, the lower it ranks"
                warnings.warn(MathAMRWarning(f"{text}. Give normalise='min-max'."), stacklevel=4)
        return rankings

    def contributions(self, query: Numbers, ranking: pd.DataFrame) -> Floats:
        scores, docnos = ranking["score"].to_numpy(np.float64), ranking["docno"].to_numpy(dtype=object)
        inverse = reciprocal_ranks(scores, docnos, self.k, query)
        if self.classic:
            return inverse
        return inverse * (_min_max(query, ranking) if self.normalise == "min-max" else scores)

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        if answer.explanation is None:
            return Explanation.of(docno, [])
        scores, docnos = answer.ranking["score"].to_numpy(np.float64), answer.ranking["docno"].to_numpy(dtype=object)
        weight *= float(reciprocal_ranks(scores, docnos, self.k)[docnos == docno][0])
        if self.classic:
            return Explanation.of(docno, [Part(system, "1 / (k + rank)", contribution=weight)])
        if self.normalise == "min-max":
            return _explain_min_max(docno, system, answer, weight)
        return answer.explanation.scaled(weight, _sole_name(answer.explanation, system))

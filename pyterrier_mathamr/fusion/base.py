"""What all fusions share: the systems are asked, their contributions added up, and the columns put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import distinct_queries, empty_output, first_values, with_objects
from pyterrier_mathamr._common.transformers import Retriever, inputs_of_all, outputs_of_all
from pyterrier_mathamr.explain import Asked, AskedError, Explanation, QueryRow, Ranked, explained, read_asked

from .explaining import distinct_names

System: TypeAlias = pt.Transformer | pd.DataFrame
"""What is fused: a transformer of queries to a ranking, or a ranking that exists."""

_RESULTS = ("docno", "score", "rank")


class Fusion(Retriever):
    """Ranks all documents that one of several systems finds; subclasses say what they contribute.

    The ranking has the columns of the queries and those that the rankings of all systems have; what several systems say
    of a document is taken from the first.

    Args:
        systems: each takes queries and returns a ranking, or is a ranking.
        num_results: the number of documents for each query.
    """

    help_url = "https://pyterrier.readthedocs.io/en/latest/operators.html"
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
        """The name of each system."""
        return distinct_names(self.systems)

    def rankings(self, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Ask each system."""
        return [with_text_docnos(system(queries)) for system in self.systems]

    def answers(self, asked: Asked) -> list[Ranked]:
        """Ask each system what it says of a document, and why."""
        frame, texts = asked.query_frame(), asked.texts()
        return [explained(system, frame, asked.docno, texts) for system in self.systems]

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0``, ``1``, …: what each system contributes, without gaps."""
        raise NotImplementedError

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        """Explain what one system contributes.

        Args:
            docno: the document.
            system: the system's name.
            answer: what it ranks, and its explanation of the document.
            weight: the system's.
        """
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
        columns, queries = tuple(inp.columns), distinct_queries(inp, _RESULTS)
        if queries.empty or columns not in self._accepted:  # to ask all systems takes longer than some of them search
            outputs = outputs_of_all(self.systems, columns)
            self._accepted.add(columns)
        if queries.empty:
            added = _shared([columns for columns in outputs if columns is not None], queries.columns)
            return empty_output(queries, ["docno", *added, "score", "rank"])
        rankings = self.rankings(distinct_queries(inp))
        added = _shared([list(ranking.columns) for ranking in rankings], queries.columns)
        fused = ranked(self.joined(rankings), self.weights, self.num_results)
        if added:
            found = pd.concat([ranking[["qid", "docno", *added]] for ranking in rankings], ignore_index=True)
            fused = _with_columns(fused, found, added)
        row_of = {qid: row for row, qid in enumerate(queries["qid"])}
        fused = fused.assign(_row=fused["qid"].map(row_of)).sort_values(["_row", "rank"])
        result: pd.DataFrame = queries.iloc[fused["_row"].to_numpy(np.int64)].reset_index(drop=True)
        names = ["docno", *added, "score", "rank"]
        return result.assign(**{name: fused[name].reset_index(drop=True) for name in names})

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each system contributes to the score of a document, and what contributes to the system's score.

        Args:
            query: the row of a query, or of a result, or a frame of one query.
            docno: a document that one of the systems finds; by default that of the row.

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


def with_text_docnos(ranking: pd.DataFrame) -> pd.DataFrame:
    """Make docnos that are numbers texts, as those of indexes are: ``pd.read_csv`` reads ``198``, not ``"198"``."""
    if ranking.empty or not pd.api.types.is_integer_dtype(ranking["docno"]):
        return ranking
    return ranking.assign(docno=ranking["docno"].astype(str))


class Aligned(NamedTuple):
    """The documents that several rankings have for queries, each once.

    Attributes:
        documents: ``qid`` and ``docno``, sorted by both.
        query: int ``[documents]``, the number of each document's query.
        rows: for each ranking the row in ``documents`` of each of its rows.
    """

    documents: pd.DataFrame
    query: npt.NDArray[np.int64]
    rows: list[npt.NDArray[np.int64]]

    def column(self, rows: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Lay the values of a ranking's rows out by document, NaN without one; of two for a document, the first."""
        found = np.full(len(self.documents), np.nan)
        found[rows[::-1]] = values[::-1]
        return found


def aligned(rankings: Sequence[pd.DataFrame]) -> Aligned:
    """Find the documents that any ranking has."""
    every = pd.concat([with_text_docnos(ranking[["qid", "docno"]]) for ranking in rankings], ignore_index=True)
    queries, qids = pd.factorize(every["qid"], sort=True)
    documents, docnos = pd.factorize(every["docno"], sort=True)
    keys, rows = np.unique(queries.astype(np.int64) * max(len(docnos), 1) + documents, return_inverse=True)
    query, document = np.divmod(keys, max(len(docnos), 1))
    frame = pd.DataFrame({"qid": qids[query], "docno": docnos[document]})
    ends = np.cumsum([len(ranking) for ranking in rankings])
    return Aligned(frame, query, np.split(rows, ends[:-1]))


def side_by_side(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join what systems contribute to documents."""
    known = aligned(parts)
    columns = {
        name: known.column(rows, part[name].to_numpy(np.float64))
        for part, rows in zip(parts, known.rows, strict=True)
        for name in part.columns.drop(["qid", "docno"])
    }
    return known.documents.assign(**columns)


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

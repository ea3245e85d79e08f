"""What all transformers of an index share: their options, checked once, and who they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, first_values, with_objects
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import Transformer

from .devices import check_device
from .search import Hits
from .searched import Searched, SearchedIndex

Search = Literal["exact", "approximate"]

_HIDDEN = {"search": "_search"}  # every transformer has a method of that name, which an attribute would hide


def search_of(exact: bool | None, search: str | None) -> Search:
    """Read the two ways to ask for exact or approximate search.

    Args:
        exact: ``True`` (as ``search='exact'``), ``False`` (as ``search='approximate'``) or ``None``.
        search: ``exact``, ``approximate``, its other name ``hnsw``, or ``None``.

    Returns:
        What is asked for; ``exact`` where neither is given.

    Raises:
        ConfigError: ``search`` is something else, or the two contradict.
    """
    given = {None: None, "exact": "exact", "approximate": "approximate", "hnsw": "approximate"}
    if search not in given:
        raise ConfigError("search", search, "'exact' or 'approximate'")
    asked: Search | None = given[search]  # type: ignore[assignment]
    if exact is not None:
        from_exact: Search = "exact" if exact else "approximate"
        if asked not in (None, from_exact):
            raise ConfigError("search", search, f"the same as exact={exact}, or give one of the two")
        return from_exact
    return asked or "exact"


def check_count(option: str, value: object) -> None:
    """Refuse a count that is not a whole number of at least 1.

    Raises:
        ConfigError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ConfigError(option, value, "a whole number of at least 1")


class IndexTransformer(Transformer):
    """A transformer over an index, with options that are checked once.

    Args:
        index: the index; it is opened when the first row comes.
        options: the constructor's keyword options, in its order; each becomes an attribute, ``search`` as ``_search``.
    """

    def __init__(self, index: SearchedIndex, **options: Any) -> None:
        super().__init__()
        self.index = index
        for name, value in options.items():
            setattr(self, _HIDDEN.get(name, name), value)
        for count in ("num_results", "batch_size", "candidates", "hits"):
            if options.get(count) is not None:
                check_count(count, options[count])
        self._card = check_device(options.get("device"))

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the index is a store, not a stage."""
        return {}

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """The same transformer cut at rank ``k``; itself where it already returns no more."""
        current = getattr(self, "num_results", None)
        if current is not None and current <= k:
            return self
        if k < 1:
            return None
        return pt.inspect.transformer_apply_attributes(self, num_results=k)


class IndexRetriever(IndexTransformer):
    """Queries in, a ranking out; subclasses say how some queries are searched.

    The ranking keeps the query's columns, drops the document's, and is ordered by query (as they come), then by score
    falling, then by docno rising; ``rank`` counts from 0 and ``score`` has the precision of float32.
    """

    needs: ClassVar[tuple[str, ...]] = ("query_embs",)
    gives: ClassVar[tuple[str, ...]] = ("docno",)
    """The texts of an entry that become columns."""

    num_results: int
    batch_size: int
    verbose: bool

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank documents for each distinct query.

        Args:
            inp: ``qid`` and what :attr:`needs` names.

        Returns:
            The query columns, then ``docno`` (and what else :attr:`gives` names), ``score`` and ``rank``.
        """
        pt.validate.query_frame(inp, extra_columns=list(self.needs), context=self)
        kept = set(pt.model.query_columns(inp))
        queries = inp[[column for column in inp.columns if column in kept]]
        if queries.empty:
            return empty_output(queries, [*self.gives, "score", "rank"])
        snapshot = self.index.snapshot()
        first = queries.drop_duplicates(subset="qid").reset_index(drop=True)
        gaps = {name: first_values(queries, name) for name in queries.columns if queries[name].isna().any()}
        filled = {name: [values.get(qid) for qid in first["qid"]] for name, values in gaps.items()}
        hits = list(self._in_batches(queries, snapshot))
        return ranking(with_objects(first, **filled), hits, snapshot, self.gives)

    def _in_batches(self, queries: pd.DataFrame, snapshot: Searched) -> Iterator[Hits]:
        qids = list(dict.fromkeys(queries["qid"]))
        parts: Sequence[list[str]] = [qids[at : at + self.batch_size] for at in range(0, len(qids), self.batch_size)]
        for part in progress(parts, self.label, "batch", verbose=self.verbose, total=len(parts)):
            some = queries if len(parts) == 1 else queries[queries["qid"].isin(part)]
            yield from self.find_hits(some, snapshot)

    def find_hits(self, queries: pd.DataFrame, snapshot: Any) -> list[Hits]:
        """The best documents of each distinct query of a frame, in order of appearance."""
        raise NotImplementedError


def ranking(queries: pd.DataFrame, hits: Sequence[Hits], snapshot: Searched, texts: Sequence[str]) -> pd.DataFrame:
    """Lay the hits of all queries out as one frame.

    Args:
        queries: one row for each query.
        hits: one for each row of ``queries``.
        snapshot: where the numbers were found.
        texts: the texts of each entry that become columns, ``docno`` first.
    """
    counts = [len(found.numbers) for found in hits]
    frame = queries.loc[np.repeat(np.arange(len(queries)), counts)].reset_index(drop=True)
    numbers = np.concatenate([found.numbers for found in hits])
    columns: dict[str, Any] = {name: snapshot.texts(name, numbers) for name in texts}
    columns["score"] = np.concatenate([found.scores for found in hits]).astype(np.float64)
    columns["rank"] = np.concatenate([np.arange(count, dtype=np.int64) for count in counts])
    result: pd.DataFrame = frame.drop(columns=[name for name in columns if name in frame]).assign(**columns)
    return result

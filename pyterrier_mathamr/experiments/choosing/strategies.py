"""BM25 and the ways to search with one model, each with what there is to choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.experiments.measuring.topics import TopicSet
from pyterrier_mathamr.experiments.search import BM25, DOC_VN, SCORER, SINGLE, TASK1, Search, Strategy
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import BM25Index

from .definition import Choice, Fitted
from .fused import DEPTH

K1 = (0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0)
B = (0.0, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
DEPTHS = (50, 100, 200, 500, 1000)
"""Candidates of a first stage."""
SHIPPED = "BM25 as shipped"
"""With the defaults of the package, which were chosen on validation questions that look for their own answers."""


class Keep(Protocol):
    """Makes a system of rankings by the names of sets of questions."""

    def __call__(
        self, find: Callable[[str], pd.DataFrame], chosen: Mapping[str, object] | None = None, *, keep: bool = True
    ) -> Fitted:
        """See :meth:`Material.fitted`."""


@dataclass(frozen=True, eq=False)
class ModelSystems:
    """Systems of a collection's indexes.

    Attributes:
        indexes: the model and the vectors; made when the first system that needs them searches.
        bm25: the terms.
        found: the topics of a set of questions.
        fitted: makes a system of its rankings.
    """

    indexes: Callable[[], tuple[MathAMR, MathAMRIndex]]
    bm25: Callable[[], BM25Index]
    found: Callable[[str], TopicSet]
    fitted: Keep
    _encoded: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)
    _rankings: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict, repr=False)

    def system(self, name: str) -> Choice:
        """Make a system."""
        if name == BM25:
            grid = [(k1, b) for k1 in K1 for b in B]
            find = self._by_words
            return Choice(
                name, tuple(self.fitted(partial(find, k1, b), {"k1": k1, "b": b}, keep=False) for k1, b in grid)
            )
        if name == SHIPPED:
            return Choice(name, (self.fitted(partial(self._by_words, None, None)),))
        strategy = TASK1[name]
        if name in (DOC_VN, SCORER):  # exact scores of candidates, which do not depend on the others
            depths = (self.fitted(partial(self._first, strategy, one), {"candidates": one}) for one in DEPTHS)
            return Choice(name, tuple(depths))
        return Choice(name, (self.fitted(partial(self._by_vectors, name)),))

    def _by_words(self, k1: float | None, b: float | None, of: str) -> pd.DataFrame:
        """Search by BM25."""
        return _columns(self.bm25().retriever(DEPTH, k1=k1, b=b)(self.found(of).topics))

    def _by_vectors(self, name: str, of: str) -> pd.DataFrame:
        """Search in one way with all topics, which are encoded once."""
        if of not in self._encoded:
            self._encoded[of] = self.search.encode(self.found(of))
        if (name, of) not in self._rankings:
            self._rankings[name, of] = _columns(self._systems[name](self._encoded[of]))
        return self._rankings[name, of]

    def _first(self, strategy: Strategy, depth: int, of: str) -> pd.DataFrame:
        """Rescore what the first stage has among its first."""
        stage = self._by_vectors(BM25 if strategy.name == SCORER else SINGLE, of)
        rows = pd.MultiIndex.from_frame(stage.loc[stage["rank"] < depth, ["qid", "docno"]])
        scored = self._by_vectors(strategy.name, of)
        kept = scored[pd.MultiIndex.from_frame(scored[["qid", "docno"]]).isin(rows)]
        return kept.assign(rank=kept.groupby("qid").cumcount())

    @cached_property
    def search(self) -> Search:
        """The ways to search with the model."""
        strategies = {name: strategy for name, strategy in TASK1.items() if strategy.way != "fusion"}
        return Search(*self.indexes(), self.bm25(), strategies)

    @cached_property
    def _systems(self) -> dict[str, pt.Transformer]:
        return self.search.systems()


def _columns(ranking: pd.DataFrame) -> pd.DataFrame:
    return ranking[["qid", "docno", "score", "rank"]]

"""Adaptive retrieval over a corpus graph: documents that a first stage missed, found near those that score well.

::

    GAR    ranking ──best b──┐                     turns of b documents, from the ranking and from the frontier, until
           frontier ─best b──┴─▶ score ─▶ frontier the budget is spent (MacAvaney et al., CIKM 2022)
    LADR   ranking, and neighbors of all of it     proactive: scored at once;
           neighbors of the best ``depth``         adaptive: until these have no new ones (Kulkarni et al., SIGIR 2023)

Queries are encoded before, and scores are the index's exact MaxSim. All queries of a batch advance together, so a round
is one request to the index. Documents of a ranking that will be taken in any case are scored ahead, in fewer requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest
from itertools import chain, islice
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score, ranking_frame
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr.posts.topics import distinct_queries, with_query
from pyterrier_mathamr.store import UnknownIdError

from .backend import NO_HITS, Backend, Field, Hits, QueryBatch, query_batch
from .corpus_graph import CorpusGraph
from .search.maxsim import best_of
from .transformers import IndexTransformer, Scoring


@dataclass(eq=False)
class Pool:
    """The candidates of one query, by docno: documents of its ranking that still wait, and documents already taken."""

    ranking: frozenset[str]
    waiting: dict[str, None]  # documents of the ranking that have not been taken yet, best first
    frontier: dict[str, float] = field(default_factory=dict)  # neighbors, by the negative score of the best one nearby
    taken: list[str] = field(default_factory=list)  # what counts against the budget
    seen: set[str] = field(default_factory=set)  # these, and documents that the index no longer has
    numbers: dict[str, int] = field(default_factory=dict)  # of the scored documents in the index
    scores: dict[str, float] = field(default_factory=dict)  # some of these documents may still be waiting
    sources: list[str] = field(default_factory=list)  # documents whose neighbors are not in the frontier yet
    near: bool = True  # whether the last round took documents of the frontier

    def unscored(self, docnos: Iterable[str]) -> list[str]:
        """Return the documents that have no score yet."""
        return [docno for docno in docnos if docno not in self.scores]

    def take(self, docnos: Iterable[str]) -> None:
        """Take documents that were scored, or that the index does not have."""
        for docno in docnos:
            self.waiting.pop(docno, None)
            self.frontier.pop(docno, None)
            self.seen.add(docno)
            if docno in self.scores:
                self.sources.append(docno)
                self.taken.append(docno)


class AdaptiveRetriever(Scoring):
    """A ranking in, a ranking out, with documents of the graph; subclasses choose what is scored in each round."""

    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexTransformer.checks,
        **dict.fromkeys(("num_results", "depth"), COUNT.or_none()),
        **dict.fromkeys(("budget", "turn"), COUNT),
    }
    field: ClassVar[Field] = "all"
    num_results: int | None = None

    def __init__(self, index: Any, graph: Any, verbose: bool, batch_size: int) -> None:
        super().__init__(index)
        self.graph, self.verbose, self.batch_size = graph, verbose, batch_size

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "graph" and not isinstance(value, CorpusGraph):
            value = CorpusGraph(getattr(value, "path", value))
        super().__setattr__(name, value)

    def choose(self, pool: Pool) -> list[str]:
        """Choose the documents of a query to take in the next round; none ends the query."""
        raise NotImplementedError

    def certain(self, pool: Pool, chosen: list[str]) -> list[str]:
        """Return documents of the ranking that are taken later in any case; they are scored with the chosen ones."""
        return []

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score documents of a ranking and their neighbors.

        Args:
            inp: ``qid``, ``docno``, ``score`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of
                a query.

        Returns:
            The columns of each query with ``docno``, ``score`` and ``rank``. A query without rows finds nothing.

        Raises:
            UnknownIdError: the index does not contain some documents of the ranking; the error names them. Neighbors
                that it does not contain are left out.
        """
        pt.validate.result_frame(inp, extra_columns=["score", "query_embs"], context=self)
        columns = ["docno", "score", "rank"]
        queries = with_query(distinct_queries(inp, columns))
        if inp.empty:
            return empty_output(queries, columns)
        backend: Backend = self.index.snapshot()
        ranked = ordered_by_score(inp[["qid", "docno"]], inp["score"])
        rankings = {qid: list(map(str, docnos)) for qid, docnos in ranked.groupby("qid", sort=False)["docno"]}
        hits: dict[str, Hits] = {}
        batches = query_batch(inp, backend).of_size(self.batch_size)
        for batch in progress(batches, self.label, "batches", verbose=self.verbose):
            pools = [Pool(frozenset(rankings[qid]), dict.fromkeys(rankings[qid])) for qid in batch.qids]
            while any(chosen := [self.choose(pool) for pool in pools]):
                if any(map(Pool.unscored, pools, chosen)):
                    ahead = map(self.certain, pools, chosen)
                    self._score(batch, pools, list(map(add, chosen, ahead)), backend)
                for pool, docnos in zip(pools, chosen, strict=True):
                    pool.take(docnos)
            for qid, pool in zip(batch.qids, pools, strict=True):
                numbers = np.array(list(pool.numbers.values()), dtype=np.int64)
                scores = np.array(list(pool.scores.values()), dtype=np.float64)
                hits[qid] = best_of(backend, numbers, scores, self.num_results or len(scores))
        in_order = [hits.get(qid, NO_HITS) for qid in queries["qid"]]
        return ranking_frame(queries, in_order, docno=partial(backend.texts, "docno"))

    def _score(self, batch: QueryBatch, pools: Sequence[Pool], wanted: Sequence[list[str]], backend: Backend) -> None:
        """Score those documents of each query that have no score yet."""
        unscored = list(map(Pool.unscored, pools, wanted))
        ends = np.cumsum([len(docnos) for docnos in unscored])[:-1]
        known: list[dict[str, int]] = []
        unknown: dict[str, None] = {}
        looked_up = np.split(backend.look_up(list(chain.from_iterable(unscored))), ends)
        for pool, docnos, numbers in zip(pools, unscored, looked_up, strict=True):
            pairs = sorted(zip(numbers.tolist(), docnos, strict=True))  # ascending numbers are read faster
            known.append({docno: number for number, docno in pairs if number >= 0})
            unknown |= dict.fromkeys(docno for number, docno in pairs if number < 0 and docno in pool.ranking)
        if unknown:
            raise UnknownIdError(backend.path, list(unknown))
        numbered = [np.array(list(numbers.values()), dtype=np.int64) for numbers in known]
        for pool, found, scores in zip(pools, known, backend.score(batch, numbered, self.field), strict=True):
            pool.numbers.update(found)
            pool.scores.update(zip(found, scores.tolist(), strict=True))


class GAR(AdaptiveRetriever):
    """Re-ranks adaptively (GAR): in turns, documents of the ranking and neighbors of those that score best.

    ``index.gar(graph)`` constructs one.

    Example::

        bm25 >> graphs >> model.query_encoder() >> index.gar(index.corpus_graph(16), budget=100)

    Args:
        index: the index.
        graph: the :class:`~pyterrier_mathamr.CorpusGraph`, its folder, or a graph of ``pyterrier_adaptive``.
        budget: the documents that are scored for each query, all of which are returned.
        turn: documents scored before it is the turn of the other source.
        verbose: show a progress bar over batches of queries.
        batch_size: queries searched together; the results are the same.
    """

    label = "MathAMR GAR"

    def __init__(
        self,
        index: Any,
        graph: CorpusGraph | str | Path,
        *,
        budget: int = 1000,
        turn: int = 16,
        verbose: bool = False,
        batch_size: int = 128,
    ) -> None:
        super().__init__(index, graph, verbose, batch_size)
        self.budget, self.turn = budget, turn

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return this transformer where it returns no more than ``k``; with less budget it finds other documents."""
        return self if self.budget <= k else None

    def certain(self, pool: Pool, chosen: list[str]) -> list[str]:
        """Return as many documents as the ranking still has turns for; with a small frontier, it has more."""
        pairs, rest = divmod(self.budget - len(pool.taken) - len(chosen), 2 * self.turn)
        count = pairs * self.turn + (min(rest, self.turn) if pool.near else max(rest - self.turn, 0))
        taken = set(chosen)
        return list(islice((docno for docno in pool.waiting if docno not in taken), count))

    def choose(self, pool: Pool) -> list[str]:
        """Take turns, the ranking first; where one source is empty, it is the turn of the other."""
        count = min(self.turn, self.budget - len(pool.taken))
        pool.near = not (pool.near and pool.waiting)
        if pool.near and count:
            self._extend_frontier(pool)
            pool.near = bool(pool.frontier)
        if not pool.near:
            return list(islice(pool.waiting, count))
        return [docno for _, docno in nsmallest(count, zip(pool.frontier.values(), pool.frontier, strict=True))]

    def _extend_frontier(self, pool: Pool) -> None:
        """Add the neighbors of documents that were taken since the last turn of the frontier."""
        sources, pool.sources = [docno for docno in pool.sources if docno in self.graph.numbers], []
        near, k, frontier = self.graph.near(sources), self.graph.k, pool.frontier
        for place, docno in enumerate(sources):
            value = -pool.scores[docno]
            for other in near[place * k : (place + 1) * k]:
                if other not in pool.seen and value < frontier.get(other, np.inf):
                    frontier[other] = value


class LADR(AdaptiveRetriever):
    """Re-ranks with neighbors (LADR): of all documents of the ranking, or of the best ones until there are no new ones.

    ``index.ladr(graph)`` constructs one.

    Example::

        bm25 % 100 >> graphs >> model.query_encoder() >> index.ladr(index.corpus_graph(16), depth=50)

    Args:
        index: the index.
        graph: the :class:`~pyterrier_mathamr.CorpusGraph`, its folder, or a graph of ``pyterrier_adaptive``.
        depth: score the ranking, and then the neighbors of the best ``depth`` documents, until all of these are scored
            (adaptive); ``None`` scores the ranking and the neighbors of all of it (proactive).
        num_results: the most documents kept for a query; ``None`` keeps all that are scored.
        verbose: show a progress bar over batches of queries.
        batch_size: queries searched together; the results are the same.
    """

    label = "MathAMR LADR"

    def __init__(
        self,
        index: Any,
        graph: CorpusGraph | str | Path,
        *,
        depth: int | None = None,
        num_results: int | None = 1000,
        verbose: bool = False,
        batch_size: int = 128,
    ) -> None:
        super().__init__(index, graph, verbose, batch_size)
        self.depth, self.num_results = depth, num_results

    def choose(self, pool: Pool) -> list[str]:
        """Choose the ranking first, and neighbors that were not seen."""
        first = list(pool.waiting)
        if self.depth is None:
            sources, chosen = first, dict.fromkeys(first)
        elif first:
            return first
        else:
            sources = nsmallest(self.depth, pool.scores, key=lambda docno: (-pool.scores[docno], docno))
            chosen = {}
        near = self.graph.near([docno for docno in sources if docno in self.graph.numbers])
        return list({**chosen, **dict.fromkeys(docno for docno in near if docno not in pool.seen)})

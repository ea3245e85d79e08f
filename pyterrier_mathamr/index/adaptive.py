"""The nearest documents of each document of an index, and adaptive retrieval along them.

::

    build   documents in order ──blocks──▶ workers: candidates, symmetric MaxSim ──▶ the folder of a CorpusGraph
    GAR     ranking ──best b──┐                     turns of b documents, from the ranking and from the frontier, until
            frontier ─best b──┴─▶ score ─▶ frontier the budget is spent (MacAvaney et al., CIKM 2022)
    LADR    ranking, and neighbors of all of it     proactive: scored at once;
            neighbors of the best ``depth``         adaptive: until these have no new ones (Kulkarni et al., SIGIR 2023)

The symmetric MaxSim of two documents is the mean of both directions, each for a row of its query side::

    s(A, B) = ½ (S(A, B) / |A| + S(B, A) / |B|)         in [-1, 1] for rows of unit length

Candidates are all documents, or those whose VIRTUAL_DOCUMENT is nearest. Either way they are scored in float64, ties
by docno. The folder has ``pt_meta.json``, ``docnos.npids`` (documents in order), ``edges.u32.np`` and
``weights.f16.np`` (uint32 and float16 ``[m, k]``), which ``pyterrier_adaptive`` reads, too; a document with fewer than
``k`` neighbors repeats itself. An interrupted build is resumed.

To search along a graph, queries are encoded before, and scores are the index's exact MaxSim. All queries of a batch
advance together, so a round is one request to the index. Documents of a ranking that will be taken in any case are
scored ahead, in fewer requests.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import nsmallest
from itertools import chain, islice, pairwise
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score, ranking_frame
from pyterrier_mathamr._common.parameters import COUNT, ByPath, Rule, artifact_name
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr.posts.topics import distinct_queries, with_query
from pyterrier_mathamr.store import (
    META,
    DamagedError,
    NotBuiltError,
    OtherArtifactError,
    UnknownIdError,
    differences,
    replace_file,
    sync_tree,
    write_id_file,
    writer_lock,
    writing,
)

from .backend import NO_HITS, Backend, ExactScores, Field, Hits, How, Numbers, QueryBatch, Rows, query_batch
from .errors import MathAMRIndexError
from .search.maxsim import best_of
from .transformers import IndexTransformer, Scoring, explained

TYPE, FORMAT = "corpus_graph", "np_topk"
DOCNOS, EDGES, WEIGHTS = "docnos.npids", "edges.u32.np", "weights.f16.np"
_JOB = "job.json"

BLOCK = 64  # documents whose neighbors are found at once, and that are computed again after an interruption
_READ = 1024  # documents whose rows are compared with a block at once


class CorpusGraph(ByPath, pt.Artifact):  # type: ignore[misc]
    """The ``k`` nearest documents of each document of an index, made by ``index.corpus_graph(k)``.

    It is an artifact of the format ``corpus_graph.np_topk``, which ``pyterrier_adaptive`` makes and reads, too::

        graph = index.corpus_graph(16)
        graph.neighbors("d7")                                        # docnos, the nearest first
        pyterrier_adaptive.NpTopKCorpusGraph(graph.path)             # the same files

    Args:
        path: the folder.

    Raises:
        NotBuiltError: there is no graph. OtherArtifactError: something else is there. DamagedError: a file is cut off.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = TYPE, FORMAT, "pyterrier-adaptive"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The description: ``k``, ``doc_count``, and of our graphs how they were made."""
        try:
            meta: dict[str, Any] = json.loads((self.path / META).read_bytes())
        except FileNotFoundError:
            raise NotBuiltError(self.path, "there is no corpus graph; index.corpus_graph(k) makes one") from None
        except ValueError as error:
            raise DamagedError(self.path / META, f"it is not JSON ({error})") from error
        if (meta.get("type"), meta.get("format")) != (TYPE, FORMAT):
            raise OtherArtifactError(self.path, f"it is a {meta.get('type')}.{meta.get('format')}, not a corpus graph")
        return meta

    @property
    def k(self) -> int:
        """The number of neighbors of each document."""
        return int(self.meta["k"])

    def __len__(self) -> int:
        """The number of documents."""
        return int(self.meta["doc_count"])

    def __bool__(self) -> bool:
        return True

    @cached_property
    def edges(self) -> npt.NDArray[np.uint32]:
        """The neighbors of each document, nearest first: uint32 ``[m, k]``."""
        return self._mapped(EDGES, np.uint32)  # type: ignore[no-any-return]

    @cached_property
    def weights(self) -> npt.NDArray[np.float16]:
        """Their similarities, float16 ``[m, k]``."""
        return self._mapped(WEIGHTS, np.float16)  # type: ignore[no-any-return]

    def _mapped(self, name: str, dtype: Any) -> Any:
        path, shape = self.path / name, (len(self), self.k)
        if path.stat().st_size != shape[0] * shape[1] * np.dtype(dtype).itemsize:
            raise DamagedError(path, f"its size is not that of {shape[0]} documents of {shape[1]} neighbors")
        return np.memmap(path, dtype, "r", shape=shape).view(np.ndarray)  # whose rows are faster to take

    @cached_property
    def docnos(self) -> list[str]:
        """The documents by number."""
        import npids

        return npids.Lookup(str(self.path / DOCNOS)).fwd[np.arange(len(self))].tolist()  # type: ignore[no-any-return]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    def neighbors(self, docno: str) -> list[str]:
        """Return the nearest documents of one, nearest first; none of a document that is not in the graph."""
        number = self.numbers.get(docno)
        near = [] if number is None else self.edges[number].tolist()
        return [self.docnos[other] for other in near if other != number]

    def near(self, docnos: Sequence[str]) -> list[str]:
        """Return the neighbors of some documents of the graph, ``k`` of each, end to end."""
        numbers = [self.numbers[docno] for docno in docnos]
        return [self.docnos[number] for number in self.edges[numbers].ravel().tolist()] if numbers else []

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Work of a block of documents: the docnos of the nearest ones of each, and their similarities."""

    index: Any
    k: int
    candidates: int | None
    docnos: Sequence[str] = field(default=(), repr=False)
    """All documents, where all are candidates."""

    def __call__(self, block: Sequence[str]) -> list[tuple[list[str], ExactScores]]:
        backend: Backend = self.index.snapshot()
        numbers = backend.find(block)
        rows, offsets = backend.rows(numbers)
        if self.candidates is None:
            candidates = _by_rows(backend, rows, offsets, backend.find(self.docnos), self.k + 1)
        else:
            batch = QueryBatch(rows[offsets[1:] - 1], np.arange(len(block) + 1), qids=tuple(block))
            candidates = [hits.numbers for hits in backend.select(batch, self.candidates + 1, "doc", How())]
        nearest = []
        for number, (first, last), near in zip(numbers.tolist(), pairwise(offsets.tolist()), candidates, strict=True):
            others = np.sort(near[near != number])
            best = best_of(backend, others, symmetric(rows[first:last], *backend.rows(others)), self.k)
            nearest.append((backend.texts("docno", best.numbers), best.scores))
        return nearest


def symmetric(rows: Rows, others: Rows, offsets: Numbers) -> ExactScores:
    """Compute the symmetric MaxSim of one document with others, float64 ``[m]``, rounded to float32 precision."""
    if len(offsets) < 2:
        return np.empty(0)
    products = rows.astype(np.float64) @ others.astype(np.float64).T  # [n, r]
    forth = np.maximum.reduceat(products, offsets[:-1], axis=1).mean(axis=0)
    back = np.add.reduceat(products.max(axis=0), offsets[:-1]) / np.diff(offsets)
    scores: ExactScores = ((forth + back) / 2).astype(np.float32).astype(np.float64)
    return scores


def _by_rows(backend: Backend, rows: Rows, offsets: Numbers, numbers: Numbers, k: int) -> list[Numbers]:
    """Select the documents among which the nearest ``k`` of each of a block are, by float32 products of all rows."""
    lengths, scores, greatest = np.diff(offsets), [], 1.0
    longest = int(lengths.max())
    for start in range(0, len(numbers), _READ):
        others, ends = backend.rows(numbers[start : start + _READ])
        products = rows @ others.T  # [r of the block, r of the others]
        forth = np.add.reduceat(np.maximum.reduceat(products, ends[:-1], axis=1), offsets[:-1], axis=0)
        back = np.add.reduceat(np.maximum.reduceat(products, offsets[:-1], axis=0), ends[:-1], axis=1)
        scores.append((forth / lengths[:, None] + back / np.diff(ends)) / 2)
        greatest = max(greatest, float(np.einsum("ij,ij->i", others, others).max()))
        longest = max(longest, int(np.diff(ends).max()))
    similarities = np.concatenate(scores, axis=1)
    error = (rows.shape[1] + longest + 4) * 2.0**-23 * greatest  # of a product and of a sum, in any order
    if similarities.shape[1] <= k:
        return [numbers] * len(lengths)
    floors = np.partition(similarities, -k, axis=1)[:, -k] - 2 * error
    return [numbers[row >= floor] for row, floor in zip(similarities, floors, strict=True)]


def build_corpus_graph(
    index: Any,
    k: int = 16,
    path: str | Path | None = None,
    *,
    candidates: int | None = None,
    executor: Executor | None = None,
    verbose: bool = False,
) -> CorpusGraph:
    """Find the nearest ``k`` documents of each document by symmetric MaxSim, and store them as a graph.

    A graph that is there is returned if it was made from the same state of the index in the same way. An interrupted
    build is resumed by the same call.

    Args:
        index: the index.
        k: neighbors of each document.
        path: the folder of the graph; by default beside the index, ``arqmath.k16.graph`` for ``arqmath.mathamr``.
        candidates: compare each document only with as many whose VIRTUAL_DOCUMENT is nearest, for large indexes;
            ``None`` compares it with all.
        executor: ``Processes(n)`` or ``RayCluster(address)``, by default this process; the graph is the same.
        verbose: show a progress bar.

    Returns:
        The graph.

    Raises:
        OtherArtifactError: a graph of another state of the index, or made otherwise, is at the path; the error names
            the differences.
    """
    COUNT.check("k", k)
    COUNT.or_none().check("candidates", candidates)
    if path is None and not isinstance(index.path, Path):
        raise ConfigError("path", path, "the folder of the graph: an index in Qdrant has none")
    if path is None:
        path = index.path.with_name(f"{artifact_name(index.path)}.k{k}.graph")
    path = Path(path).absolute()
    snapshot = index.snapshot()
    made = {"k": k, "candidates": candidates, "index": snapshot.identity}
    with writer_lock(path):
        if path.exists():
            different = differences(CorpusGraph(path).meta.get("made", {}), made)
            if different:
                listed = (f"{name}: {known!s:.20}, not {wanted!s:.20}" for name, (known, wanted) in different.items())
                raise OtherArtifactError(path, f"a graph that was made otherwise ({'; '.join(listed)})")
            return CorpusGraph(path)
        folder = path.with_name(f".{path.name}.job")
        docnos = [entry.docno for entry in snapshot.entries()]
        if len(docnos) < 2:
            raise MathAMRIndexError(f"{index.path}: a graph needs at least two documents.")
        with writing(path):
            done = _begin(folder, made, docnos)
        number_of = {docno: number for number, docno in enumerate(docnos)}
        work = Neighbors(index, k, candidates, docnos if candidates is None else ())
        blocks = [docnos[start : start + BLOCK] for start in range(done, len(docnos), BLOCK)]
        with closing((executor or Processes(1)).map(work, blocks)) as results:
            shown = progress(results, "nearest documents", "blocks", verbose=verbose, total=len(blocks))
            with writing(path), open(folder / EDGES, "ab") as edges, open(folder / WEIGHTS, "ab") as weights:
                for block, nearest in zip(blocks, shown, strict=True):
                    for docno, (names, scores) in zip(block, nearest, strict=True):
                        missing = k - len(names)
                        numbers = [number_of[name] for name in names] + [number_of[docno]] * missing
                        edges.write(np.array(numbers, dtype=np.uint32).tobytes())
                        weights.write(np.concatenate([scores, np.zeros(missing)]).astype(np.float16).tobytes())
                    edges.flush()
                    weights.flush()
        with writing(path):
            known = {"type": TYPE, "format": FORMAT, "package_hint": "pyterrier-adaptive"}
            replace_file(folder / META, json.dumps({**known, "doc_count": len(docnos), "k": k, "made": made}).encode())
            (folder / _JOB).unlink()
            sync_tree(folder)
            folder.rename(path)
    return CorpusGraph(path)


def _begin(folder: Path, made: dict[str, Any], docnos: Sequence[str]) -> int:
    """Begin a job, or continue the same one; return how many documents are done."""
    if (folder / _JOB).exists() and json.loads((folder / _JOB).read_bytes()) == made:
        row = {EDGES: 4 * made["k"], WEIGHTS: 2 * made["k"]}
        done: int = min((folder / name).stat().st_size // size for name, size in row.items()) // BLOCK * BLOCK
        for name, size in row.items():
            with open(folder / name, "rb+") as file:
                file.truncate(done * size)
        return done
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_id_file(folder / DOCNOS, docnos)
    for name in (EDGES, WEIGHTS):
        (folder / name).touch()
    replace_file(folder / _JOB, json.dumps(made).encode())
    return 0


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
    """A ranking in, a ranking out, with documents of the graph; subclasses choose what is scored in each round.

    Args:
        graph: the :class:`~pyterrier_mathamr.CorpusGraph`, its folder, or a graph of ``pyterrier_adaptive``.
        batch_size: queries searched together; the results are the same.
    """

    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexTransformer.checks,
        **dict.fromkeys(("num_results", "depth"), COUNT.or_none()),
        **dict.fromkeys(("budget", "turn"), COUNT),
    }
    field: ClassVar[Field] = "all"
    num_results: int | None = None

    def __init__(self, index: Any, graph: Any, verbose: bool, batch_size: int) -> None:
        super().__init__(index, verbose=verbose, batch_size=batch_size)
        self.graph = graph

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
        for pool, documents, scores in zip(pools, known, backend.score(batch, numbered, self.field), strict=True):
            pool.numbers.update(documents)
            pool.scores.update(zip(documents, scores.tolist(), strict=True))


@explained
class GAR(AdaptiveRetriever):
    """Re-ranks adaptively (GAR): in turns, documents of the ranking and neighbors of those that score best.

    ``index.gar(graph)`` constructs one.

    Example::

        bm25 >> graphs >> model.query_encoder() >> index.gar(index.corpus_graph(16), budget=100)

    Args:
        budget: the documents that are scored for each query, all of which are returned.
        turn: documents scored before it is the turn of the other source.
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


@explained
class LADR(AdaptiveRetriever):
    """Re-ranks with neighbors (LADR): of all documents of the ranking, or of the best ones until there are no new ones.

    ``index.ladr(graph)`` constructs one.

    Example::

        bm25 % 100 >> graphs >> model.query_encoder() >> index.ladr(index.corpus_graph(16), depth=50)

    Args:
        depth: score the ranking, and then the neighbors of the best ``depth`` documents, until all of these are scored
            (adaptive); ``None`` scores the ranking and the neighbors of all of it (proactive).
        num_results: the most documents kept for a query; ``None`` keeps all that are scored.
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

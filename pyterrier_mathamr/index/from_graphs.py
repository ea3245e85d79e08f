"""Graphs of stored posts to vectors on disk, by one process or spread over an executor, with the same bytes.

::

    few parts, or no shared storage     batches ──▶ workers encode ──vectors in order──▶ this process writes the parts
    twice as many parts as workers      planned parts ──▶ workers encode and write them ──▶ this process adopts them

Either way one job of the store holds the lock, checks duplicates and publishes; an index is replaced only when the new
one is complete. A killed job is resumed, also the other way or on another executor.

The planned parts are the parts that one process would write: documents in order, a part closed after
:data:`.indexing.PART_BYTES` of rows. Their boundaries follow from the numbers of rows, which are known without encoding
graphs. Batches are cut by position in the whole corpus, so a worker also encodes the rest of the first and last batch
of its part.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import COUNT, between
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr.graph import GraphError, GraphStore
from pyterrier_mathamr.store import (
    META,
    Content,
    DuplicateIdError,
    Mode,
    PartMeta,
    file_fingerprint,
    replace_file,
    row_fingerprint,
    write_planned,
)

from . import indexing
from .indexes import MathAMRFormulaIndex, MathAMRIndex
from .indexing import ArtifactIndexer, Build, Corpus, DocumentIndexer, Encode, document_posts
from .parts import DOCUMENTS, DType, part_content
from .sharded import ShardedIndex, filling

if TYPE_CHECKING:
    from pyterrier_mathamr.model import MathAMR  # loads torch

_BATCH = 100  # documents that PyTerrier's pipelines pass on at once, unless a stage wants more

Index = TypeVar("Index", MathAMRIndex, MathAMRFormulaIndex)


def index_graph_store(
    graph_store: Path,
    model: str,
    output: Path,
    *,
    docnos: Sequence[str] | None = None,
    sources: Mapping[str, Any] | None = None,
    parts: int | None = None,
    executor: Executor | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> MathAMRIndex | ShardedIndex:
    """Encode the graphs of a store and index their vectors.

    Args:
        graph_store: the graphs.
        model: name or folder of a model.
        output: the new index; a finished index is replaced once the new one is complete.
        docnos: the posts to index, such as the answers of a collection; by default all.
        sources: further inputs of the index; an unfinished job with other sources is refused.
        parts: the number of parts, with neighbors in one; ``None`` for one index without a folder of parts.
        executor: where to encode graphs, by default in this process; the index is the same.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.

    Returns:
        The index.

    Raises:
        GraphError: there is no graph to index. ConfigError: there are fewer than ``parts``.
        UnfinishedJobError: a job that was stopped had other graphs, another model or other answers.
    """
    graphs = GraphStore(graph_store)
    docnos = graphs.ids() if docnos is None else docnos
    if not docnos:
        raise GraphError(str(graph_store), "it holds nothing to index; `mathamr graphs` builds graphs of posts")
    from pyterrier_mathamr.model import MathAMR

    encoder = MathAMR.from_pretrained(model)
    options: dict[str, Any] = {"sources": sources, "executor": executor, "verbose": verbose}
    if parts is None:
        index = MathAMRIndex(output)
        if fresh:
            index.discard()
        mode: Mode = "overwrite" if index.built() else "create"
        return index_documents(docnos, graphs, encoder, index, mode=mode, **options)
    COUNT.check("parts", parts)
    between(1, len(docnos)).check("parts", parts)
    made_from = {**(sources or {}), "graphs": file_fingerprint(graphs.path / META), "model": encoder.vectors_by}
    batch = max(_BATCH, encoder.doc_encoder().batch_size)
    step = batch if len(docnos) >= batch * parts else 1
    cuts = [round(len(docnos) * part / parts / step) * step for part in range(parts)] + [len(docnos)]
    with filling(output, parts, made_from, fresh=fresh) as indexes:
        for part_index, (first, last) in zip(indexes, pairwise(cuts), strict=True):
            if not part_index.built():
                index_documents(docnos[first:last], graphs, encoder, part_index, mode="create", **options)
    return ShardedIndex(output)


def index_documents(
    docnos: Iterable[str],
    graphs: GraphStore,
    model: MathAMR,
    index: Index,
    *,
    mode: Mode = "overwrite",
    sources: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    verbose: bool = False,
    **options: Any,
) -> Index:
    """Encode the graphs of some documents and index their vectors.

    Args:
        docnos: the documents, each with a graph in the store.
        graphs: the store of the graphs.
        model: the model that encodes them.
        index: of documents or of formulas; it is filled in one step at the end.
        mode: ``create``, ``overwrite`` or ``append``, see ``index.indexer()``.
        sources: what the vectors depend on besides graphs and model; an interrupted job with other sources is refused.
        executor: where to encode graphs, by default in this process; the index is the same.
        verbose: show a progress bar.
        options: of ``index.indexer()``, such as ``visual_ids`` and ``dtype``.
    """
    options["sources"] = {**(sources or {}), "graphs": file_fingerprint(graphs.path / META)}
    options |= {"verbose": verbose, "total": len(docnos) if isinstance(docnos, Sized) else None}
    indexer = index.indexer(mode, model=model.vectors_by, resume=True, **options)
    docnos, executor = list(docnos), executor or Processes(1)
    load, encoder = graphs.loader(side="document"), model.doc_encoder()
    batch_size = max(_BATCH, encoder.batch_size)
    shared = bool(docnos) and executor.slots > 1 and executor.sees(graphs.path / META)
    if shared and isinstance(indexer, DocumentIndexer) and not indexer.kept():
        plan = _plan(executor, indexer, docnos, graphs, model)
        if plan:
            _write_planned(executor, indexer, docnos, plan, Encode(load >> encoder), batch_size)
            return index
    work: dict[str, Any] = {"encoder": load >> encoder} if shared else {"encoder": encoder, "load": load}
    documents = ({"docno": docno} for docno in docnos)
    indexer.index_encoded(documents, **work, executor=executor, batch_size=batch_size)
    return index


_COUNTED = 2048  # graphs whose rows are counted by one piece of work
_SAMPLE = 512  # graphs from which the number of parts is estimated


def _row_counts(graphs: GraphStore, model: MathAMR, docnos: Sequence[str]) -> list[int]:
    """Return the number of rows that ``model`` would give each of the documents' graphs."""
    config = model.config
    return [graph.n_vectors(config.formulas, config.virtual_nodes) for graph in graphs.get_many(docnos)]


def _plan(
    executor: Executor, indexer: ArtifactIndexer, docnos: Sequence[str], graphs: GraphStore, model: MathAMR
) -> list[range] | None:
    """Cut documents into the parts that one process would write, each by its places among ``docnos``.

    ``None`` where they are too few to keep the workers busy, or not on shared storage, or where unfinished work ends
    within one of them.
    """
    index = indexer._index
    count, row_bytes = partial(_row_counts, graphs, model), 4 * model.config.projection
    sample = count(docnos[:: max(1, len(docnos) // _SAMPLE)][:_SAMPLE])
    expected = row_bytes * sum(sample) / len(sample) * len(docnos)
    if expected < 2 * executor.slots * indexing.PART_BYTES:
        return None
    probe = index.path.absolute().with_name(f".{index.path.name}.probe")
    probe.parent.mkdir(parents=True, exist_ok=True)
    replace_file(probe, str(index.path).encode())
    try:
        if not executor.sees(probe):
            return None
    finally:
        probe.unlink(missing_ok=True)
    runs = (docnos[start : start + _COUNTED] for start in range(0, len(docnos), _COUNTED))
    cuts, held = [0], 0
    with closing(executor.map(count, runs)) as counted:
        for number, rows in enumerate(chain.from_iterable(counted), 1):
            held += row_bytes * rows
            if held >= indexing.PART_BYTES or number == len(docnos):
                cuts.append(number)
                held = 0
    done = index.unfinished_parts(indexer.mode, indexer.fingerprint())
    return [range(*bounds) for bounds in pairwise(cuts)] if int(done.bases[-1]) in cuts else None


class PlannedPart(NamedTuple):
    """A planned part: the docnos of its batches, whole, of which it owns the documents of a slice."""

    number: int
    own: slice
    batches: list[list[str]]


@dataclass(frozen=True, eq=False)
class PartWriter:
    """Work of a planned part: it is written to storage that the driver shares, into the ``folder`` of its job."""

    encode: Encode
    root: Path
    folder: Path
    dtype: DType | None
    model: str | None

    def __call__(self, part: PlannedPart) -> PartMeta:
        """Encode the documents and write the part, unless an earlier attempt has."""
        docnos = list(chain.from_iterable(part.batches))[part.own]

        def content() -> Content:
            batches = ([{"docno": name} for name in batch] for batch in part.batches)
            records = chain.from_iterable(self.encode(batch)[0] for batch in batches)
            entries = [entry for post in document_posts(records) for entry in post.entries][part.own]
            prints = [row_fingerprint({"docno": name}) for name in docnos]
            sources = np.array(list(zip(prints, prints, strict=True)), dtype=np.uint64).reshape(-1, 2)
            return part_content("documents", self.dtype, entries, sources, self.model)

        digest = hashlib.sha256("\n".join(docnos).encode("utf-8", "surrogatepass")).hexdigest()
        return write_planned(self.folder, part.number, digest, content, DOCUMENTS, root=self.root)


def _write_planned(
    executor: Executor,
    indexer: ArtifactIndexer,
    docnos: Sequence[str],
    plan: Sequence[range],
    encode: Encode,
    batch_size: int,
) -> None:
    index = indexer._index
    if len(set(docnos)) < len(docnos):
        raise DuplicateIdError(index.path, [name for name, times in Counter(docnos).items() if times > 1])
    with index.job(indexer.mode, indexer.fingerprint(), resume=True) as job:
        build = Build(job, index.LAYOUT, Corpus(index.path, ()), indexer.model, indexer.dtype)
        done = int(job.done.bases[-1])
        if strange := [docnos[row] for row, stored in enumerate(job.rows_done(docnos[:done])) if stored < 0]:
            raise job.changed(strange[0])
        planned = []
        for number, places in enumerate(plan):
            if places.start >= done:
                start = places.start - places.start % batch_size
                batches = [list(docnos[at : at + batch_size]) for at in range(start, places.stop, batch_size)]
                planned.append(PlannedPart(number, slice(places.start - start, places.stop - start), batches))
        job.plan()
        work = PartWriter(encode, index.path, job.folder, build.asked, build.model)
        with closing(executor.map(work, planned)) as written:
            bar: dict[str, Any] = {"verbose": indexer.verbose, "total": len(planned), "note": executor.doing}
            shown = progress(written, "writing parts", "parts", **bar)
            for part, meta in zip(planned, shown, strict=True):
                job.adopt(part.number, meta)
        build.dimensions = job.parts[0]["rows"].shape[1]
        job.commit(build.meta().details())

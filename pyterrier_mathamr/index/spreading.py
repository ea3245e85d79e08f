"""Encoding and indexing spread over an executor, with the same bytes as in one process.

::

    few parts, or no shared storage     batches ──▶ workers encode ──vectors in order──▶ this process writes the parts
    twice as many parts as workers      planned parts ──▶ workers encode and write them ──▶ this process adopts them

Either way one job of the store holds the lock, checks duplicates and publishes. A killed job is resumed, also the other
way or on another executor.

The planned parts are the parts that one process would write: documents in order, a part closed after
:data:`.indexing.PART_BYTES` of rows. Their boundaries follow from the numbers of rows, which are known without encoding
graphs. Batches are cut by position in the whole corpus, so a worker also encodes the rest of the first and last batch
of its part.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.index import indexing
from pyterrier_mathamr.index.indexing import ArtifactIndexer, Build, Corpus, DocumentIndexer, Encode, document_posts
from pyterrier_mathamr.index.parts import DOCUMENTS, DType, part_content
from pyterrier_mathamr.store import (
    META,
    Content,
    DuplicateIdError,
    PartMeta,
    replace_file,
    row_fingerprint,
    write_planned,
)

if TYPE_CHECKING:
    from pyterrier_mathamr.model import MathAMR


def index_on(
    executor: Executor, indexer: ArtifactIndexer, docnos: Sequence[str], graphs: GraphStore, model: MathAMR
) -> None:
    """Encode stored graphs and index their vectors, as ``(model.doc_encoder() >> indexer).index(…)`` does."""
    load, encoder = graphs.loader(side="document"), model.doc_encoder()
    batch_size = max(100, encoder.batch_size)  # that of PyTerrier's pipeline
    shared = bool(docnos) and executor.slots > 1 and executor.sees(graphs.path / META)
    if (
        shared
        and isinstance(indexer, DocumentIndexer)
        and not indexer.kept()
        and (plan := _plan(executor, indexer, docnos, graphs, model))
    ):
        _write_planned(executor, indexer, docnos, plan, Encode(load >> encoder), batch_size)
        return
    here, there = (None, load >> encoder) if shared else (load, encoder)
    documents = ({"docno": docno} for docno in docnos)
    indexer.index_encoded(documents, there, executor=executor, load=here, batch_size=batch_size)


_COUNTED = 2048  # graphs whose rows are counted by one piece of work
_SAMPLE = 512  # graphs from which the number of parts is estimated


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Work of a run of documents: the number of rows that ``model`` would give each of their graphs."""

    graphs: GraphStore
    model: MathAMR

    def __call__(self, docnos: Sequence[str]) -> list[int]:
        config = self.model.config
        graphs = self.graphs.get_many(docnos)
        return [graph.n_vectors(config.formulas, config.virtual_nodes) for graph in graphs]


def _plan(
    executor: Executor, indexer: ArtifactIndexer, docnos: Sequence[str], graphs: GraphStore, model: MathAMR
) -> list[range] | None:
    """Cut documents into the parts that one process would write, each by its places among ``docnos``.

    ``None`` where they are too few to keep the workers busy, or not on shared storage, or where unfinished work ends
    within one of them.
    """
    index = indexer._index
    count, row_bytes = RowCounts(graphs, model), 4 * model.config.projection
    sample = count(docnos[:: max(1, len(docnos) // _SAMPLE)][:_SAMPLE])
    expected = row_bytes * sum(sample) / len(sample) * len(docnos)
    if expected < 2 * executor.slots * indexing.PART_BYTES or not _sees_index(executor, index.path):
        return None
    runs = (docnos[start : start + _COUNTED] for start in range(0, len(docnos), _COUNTED))
    cuts, held = [0], 0
    with closing(executor.map(count, runs)) as counted:
        for number, rows in enumerate(chain.from_iterable(counted), 1):
            held += row_bytes * rows
            if held >= indexing.PART_BYTES or number == len(docnos):
                cuts.append(number)
                held = 0
    done = index.unfinished_parts(indexer.mode, indexer.fingerprint())
    return [range(*of) for of in pairwise(cuts)] if int(done.bases[-1]) in cuts else None


def _sees_index(executor: Executor, path: Path) -> bool:
    """Whether the workers see the folder that the index will be in."""
    probe = path.absolute().with_name(f".{path.name}.probe")
    probe.parent.mkdir(parents=True, exist_ok=True)
    replace_file(probe, str(path).encode())
    try:
        return executor.sees(probe)
    finally:
        probe.unlink(missing_ok=True)


class PlannedPart(NamedTuple):
    """A planned part: the docnos of its batches, whole; it owns ``size`` documents from ``first`` on."""

    number: int
    first: int
    size: int
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
        own = slice(part.first, part.first + part.size)
        docnos = list(chain.from_iterable(part.batches))[own]

        def content() -> Content:
            batches = ([{"docno": name} for name in batch] for batch in part.batches)
            records = chain.from_iterable(self.encode(batch).records for batch in batches)
            entries = [entry for post in document_posts(records) for entry in post.entries][own]
            prints = [row_fingerprint({"docno": name}) for name in docnos]
            sources = np.array(list(zip(prints, prints, strict=True)), dtype=np.uint64).reshape(-1, 2)
            return part_content("documents", self.dtype, entries, sources, self.model)

        of = hashlib.sha256("\n".join(docnos).encode("utf-8", "surrogatepass")).hexdigest()
        return write_planned(self.folder, part.number, of, content, DOCUMENTS, root=self.root)


def _write_planned(
    executor: Executor,
    indexer: ArtifactIndexer,
    docnos: Sequence[str],
    plan: Sequence[range],
    encode: Encode,
    batch_size: int,
) -> None:
    """Have workers write the planned parts that are not done, and publish them."""
    index = indexer._index
    if len(set(docnos)) < len(docnos):
        raise DuplicateIdError(index.path, [name for name, times in Counter(docnos).items() if times > 1])
    with index.job(indexer.mode, indexer.fingerprint(), resume=True) as job:
        build = Build(job, index.LAYOUT, Corpus(index.path, ()), indexer.model, indexer.dtype)
        done = int(job.done.bases[-1])
        if strange := [docnos[at] for at, row in enumerate(job.rows_done(docnos[:done])) if row < 0]:
            raise job.changed(strange[0])
        planned = []
        for number, of in enumerate(plan):
            if of.start >= done:
                start = of.start - of.start % batch_size
                batches = [list(docnos[at : at + batch_size]) for at in range(start, of.stop, batch_size)]
                planned.append(PlannedPart(number, of.start - start, len(of), batches))
        job.plan()
        work = PartWriter(encode, index.path, job.folder, build.asked, build.model)
        with closing(executor.map(work, planned)) as written:
            bar: dict[str, Any] = {"verbose": indexer.verbose, "total": len(planned), "note": executor.doing}
            shown = progress(written, "writing parts", "parts", **bar)
            for part, meta in zip(planned, shown, strict=True):
                job.adopt(part.number, meta)
        build.dimensions = job.parts[0]["rows"].shape[1]
        job.commit(build.meta().details())

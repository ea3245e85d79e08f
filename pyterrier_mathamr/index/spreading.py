"""Encoding and indexing spread over an executor: the bytes of one process.

::

    few parts, or no shared storage     batches ──▶ workers encode ──vectors in order──▶ this process writes the parts
    twice as many parts as workers      planned parts ──▶ workers encode and write them ──▶ this process adopts them

Either way one process holds the lock, checks duplicates and publishes, and a killed job is continued, also by the other
way or another executor.

The planned parts are those that one process would write: documents in order, a part closed after
:data:`.indexing.PART_BYTES` of rows. Their boundaries follow from the numbers of rows, which graphs tell without being
encoded. Batches are cut by position in the whole corpus, so a worker also encodes the rest of the first and last batch
of its part.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph, layout_of, row_count
from pyterrier_mathamr.index import indexing
from pyterrier_mathamr.index.indexing import ArtifactIndexer, Build, Corpus, DocumentIndexer, document_posts
from pyterrier_mathamr.index.parts import DOCUMENTS, DType, IndexMeta, part_content
from pyterrier_mathamr.store import (
    META,
    DuplicateIdError,
    PartMeta,
    replace_file,
    row_fingerprint,
    write_planned,
)

if TYPE_CHECKING:
    from pyterrier_mathamr.model import MathAMR


Records = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Encoding:
    """Work of a batch: documents to records with their vectors.

    Attributes:
        encoder: adds ``doc_embs`` to rows with ``graph``.
        graphs: those of the documents; ``None`` where the documents come with theirs.
    """

    encoder: pt.Transformer
    graphs: GraphStore | None

    def __call__(self, batch: Sequence[Any]) -> Records:
        """Encode documents, given by docno, or by their graphs where there is no store."""
        graphs: Sequence[MathAMRGraph] = batch if self.graphs is None else self.graphs.get_many(batch)
        frame = pd.DataFrame([{"docno": graph.id, "graph": graph} for graph in graphs])
        records: Records = self.encoder.transform(frame).drop(columns="graph").to_dict("records")
        return records


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Work of a run of documents: the number of rows of each.

    Attributes:
        graphs: of the documents.
        model: the model that would encode them.
    """

    graphs: GraphStore
    model: MathAMR

    def __call__(self, docnos: Sequence[str]) -> list[int]:
        """Count rows without encoding."""
        config = self.model.config
        layouts = (layout_of(graph.amr, graph.n_formulas, graph.id) for graph in self.graphs.get_many(docnos))
        return [row_count(layout, config.formulas, config.virtual_nodes) for layout in layouts]


def plan_shards(rows: Iterable[int], width: int, part_bytes: int) -> list[range]:
    """Cut documents into the parts that one process would write."""
    cuts, held, number = [0], 0, 0
    for number, count in enumerate(rows, 1):
        held += 4 * width * count
        if held >= part_bytes:
            cuts.append(number)
            held = 0
    if cuts[-1] < number:
        cuts.append(number)
    return [range(start, stop) for start, stop in pairwise(cuts)]


class ShardJob(NamedTuple):
    """A planned part.

    Attributes:
        number: among the planned ones.
        first: how many documents of the first batch belong to the part before.
        size: documents of the part.
        batches: the docnos of its batches, whole.
    """

    number: int
    first: int
    size: int
    batches: list[list[str]]

    @classmethod
    def cut(cls, number: int, members: range, docnos: Sequence[str], batch_size: int) -> ShardJob:
        """Return the shard of some documents, by their places among all ``docnos``."""
        start = members.start - members.start % batch_size
        starts = range(start, members.stop, batch_size)
        batches = [list(docnos[at : at + batch_size]) for at in starts]
        return cls(number, members.start - start, len(members), batches)

    @property
    def docnos(self) -> list[str]:
        """The documents of the part."""
        return [name for batch in self.batches for name in batch][self.first : self.first + self.size]


@dataclass(frozen=True, eq=False)
class ShardWriter:
    """Work of a shard: a part on storage that the driver sees, too.

    Attributes:
        encoding: of a batch.
        root: the index; ``folder`` of its job.
        dtype: how rows are stored.
        model: the identity of the model of the rows.
    """

    encoding: Encoding
    root: Path
    folder: Path
    dtype: DType
    model: str | None

    def __call__(self, shard: ShardJob) -> PartMeta:
        """Encode the documents and write the part, unless an earlier attempt has."""
        docnos = shard.docnos
        of = hashlib.sha256("\n".join(docnos).encode("utf-8", "surrogatepass")).hexdigest()

        def content() -> Any:
            records = (record for batch in shard.batches for record in self.encoding(batch))
            entries = [entry for post in document_posts(records) for entry in post.entries]
            entries = entries[shard.first : shard.first + shard.size]
            prints = [row_fingerprint({"docno": name}) for name in docnos]
            sources = np.array(list(zip(prints, prints, strict=True)), dtype=np.uint64).reshape(-1, 2)
            return part_content("documents", self.dtype, entries, sources, self.model)

        return write_planned(self.folder, shard.number, of, content, DOCUMENTS, root=self.root)


def runs(docnos: Sequence[str], size: int) -> Iterator[list[str]]:
    """Cut documents into runs of a size."""
    for start in range(0, len(docnos), size):
        yield list(docnos[start : start + size])


def boundaries(plan: Sequence[range]) -> list[int]:
    """Return after how many documents a part ends, 0 first."""
    return list(accumulate(map(len, plan), initial=0))


_COUNTED = 2048  # graphs whose rows are counted by one piece of work
_SAMPLE = 512  # graphs by which the number of parts is estimated


def index_on(
    executor: Executor, indexer: ArtifactIndexer, docnos: Sequence[str], graphs: GraphStore, model: MathAMR
) -> None:
    """Encode stored graphs and index their vectors, as ``(model.doc_encoder() >> indexer).index(…)`` does."""
    encoder = model.doc_encoder()
    batch_size = max(100, encoder.batch_size)  # that of PyTerrier's pipeline
    shared = bool(docnos) and executor.slots > 1 and executor.sees(graphs.path / META)
    if shared and isinstance(indexer, DocumentIndexer) and (plan := _plan(executor, indexer, docnos, graphs, model)):
        _write_planned(executor, indexer, docnos, plan, Encoding(encoder, graphs), batch_size)
        return
    pending = indexer.pending(({"docno": docno} for docno in docnos), batch_size)
    names = (str(record["docno"]) for record in pending)
    batches = iter(lambda: list(islice(names, batch_size)), [])
    work = Encoding(encoder, graphs if shared else None)
    items: Iterator[Any] = batches if shared else map(graphs.get_many, batches)
    indexer.beside = executor.doing
    with closing(executor.map(work, items)) as encoded:
        indexer.index(chain.from_iterable(encoded))


def _plan(
    executor: Executor, indexer: ArtifactIndexer, docnos: Sequence[str], graphs: GraphStore, model: MathAMR
) -> list[range] | None:
    """Plan the parts; ``None`` where they are too few to keep the workers busy, or not on shared storage."""
    index = indexer._index
    count, width = RowCounts(graphs, model), model.config.projection
    wanted, part_bytes = 2 * executor.slots, indexing.PART_BYTES
    sample = count(docnos[:: max(1, len(docnos) // _SAMPLE)][:_SAMPLE])
    if 4 * width * sum(sample) / len(sample) * len(docnos) < wanted * part_bytes or not _sees_index(
        executor, index.path
    ):
        return None
    with closing(executor.map(count, runs(docnos, _COUNTED))) as counted:
        plan = plan_shards(chain.from_iterable(counted), width, part_bytes)
    done = index.unfinished_parts(indexer.mode, indexer.fingerprint())
    return plan if int(done.bases[-1]) in boundaries(plan) else None


def _sees_index(executor: Executor, path: Path) -> bool:
    """Whether the workers see the folder that the index will be in."""
    probe = path.absolute().with_name(f".{path.name}.probe")
    probe.parent.mkdir(parents=True, exist_ok=True)
    replace_file(probe, str(path).encode())
    try:
        return executor.sees(probe)
    finally:
        probe.unlink(missing_ok=True)


def _write_planned(
    executor: Executor,
    indexer: ArtifactIndexer,
    docnos: Sequence[str],
    plan: Sequence[range],
    encoding: Encoding,
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
        cut = [ShardJob.cut(i, members, docnos, batch_size) for i, members in enumerate(plan) if members.start >= done]
        job.plan()
        work = ShardWriter(encoding, index.path, job.folder, build.dtype, build.model)
        with closing(executor.map(work, cut)) as written:
            bar: dict[str, Any] = {"verbose": indexer.verbose, "total": len(cut), "beside": executor.doing}
            shown = progress(written, "writing parts", "parts", **bar)
            for shard, meta in zip(cut, shown, strict=True):
                job.adopt(shard.number, meta)
        width = encoding.encoder.model.config.projection
        job.commit(asdict(IndexMeta(width, build.model, build.dtype)))

"""Encoding and indexing spread over an executor: the bytes of one process.

::

    few parts, or no shared storage     batches ──▶ workers encode ──vectors in order──▶ this process writes the parts
    twice as many parts as workers      planned parts ──▶ workers encode and write them ──▶ this process adopts them

Either way one process holds the lock, checks duplicates and publishes, and a killed job is continued, also by the other
way or another executor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.index.snapshot import IndexMeta
from pyterrier_mathamr.store import META, DuplicateIdError, begin_planned, planned_part, replace_file, unfinished_parts

from . import builder
from .builder import Build
from .indexers import ArtifactIndexer, DocumentIndexer
from .planned import Encoding, RowCounts, Shard, ShardWriter, boundaries, plan_shards, runs
from .resume import Corpus

if TYPE_CHECKING:
    from pyterrier_mathamr.model import MathAMR

_COUNTED = 2048  # graphs whose rows are counted by one piece of work
_SAMPLE = 512  # graphs by which the number of parts is estimated


def index_on(
    executor: Executor, indexer: ArtifactIndexer, docnos: Sequence[str], graphs: GraphStore, model: MathAMR
) -> None:
    """Encode stored graphs and index their vectors, as ``(model.doc_encoder() >> indexer).index(…)`` does.

    Args:
        executor: where graphs are encoded.
        indexer: made with ``resume=True``.
        docnos: the documents.
        graphs: their graphs.
        model: the encoder.

    Raises:
        UnfinishedJobError: a job that was stopped is of other documents.
        StoreError, ClusterError: finished parts are kept.
    """
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
    wanted, part_bytes = 2 * executor.slots, builder.PART_BYTES
    sample = count(docnos[:: max(1, len(docnos) // _SAMPLE)][:_SAMPLE])
    if 4 * width * sum(sample) / len(sample) * len(docnos) < wanted * part_bytes or not _sees_index(
        executor, index.path
    ):
        return None
    with closing(executor.map(count, runs(docnos, _COUNTED))) as counted:
        plan = plan_shards(chain.from_iterable(counted), width, part_bytes)
    done = unfinished_parts(index.path, index.KIND, indexer.mode, indexer.fingerprint())
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
        cut = [Shard.cut(i, members, docnos, batch_size) for i, members in enumerate(plan) if members.start >= done]
        begin_planned(job.folder)
        work = ShardWriter(encoding, index.path, job.folder, build.dtype, build.model)
        with closing(executor.map(work, cut)) as written:
            bar: dict[str, Any] = {"verbose": indexer.verbose, "total": len(cut), "beside": executor.doing}
            shown = progress(written, "writing parts", "parts", **bar)
            for shard, meta in zip(cut, shown, strict=True):
                job.adopt(planned_part(job.folder, shard.number, meta, index.KIND, root=index.path))
        width = encoding.encoder.model.config.projection
        job.commit(asdict(IndexMeta(width, build.model, build.dtype)))

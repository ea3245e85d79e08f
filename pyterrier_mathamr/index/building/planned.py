"""The parts of an index, planned before anything is encoded, and one of them made by a worker.

The parts are those that one process would write: documents in order, a part closed after :data:`.builder.PART_BYTES` of
rows. Their boundaries follow from the numbers of rows, which graphs tell without being encoded. Batches are cut by
position in the whole corpus, so a worker also encodes the rest of the first and last batch of its part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.graph import GraphStore, MathAMRGraph, layout_of, row_count
from pyterrier_mathamr.store import PartMeta, row_fingerprint, write_planned

from .content import part_content
from .entries import DType, document_posts
from .kinds import DOCUMENTS

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


class Shard(NamedTuple):
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
    def cut(cls, number: int, members: range, docnos: Sequence[str], batch_size: int) -> Shard:
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

    def __call__(self, shard: Shard) -> PartMeta:
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

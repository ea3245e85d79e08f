"""How graphs lie in a store: compressed records end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pyterrier_mathamr.store import Content, Field, Kind, Parts, Rows, merge_ragged

GRAPHS = Kind(
    type="graph_store",
    version=3,  # 1 kept Penman texts, 2 kept the records in shards of its own form
    fields=(
        Field("records", "uint8", "r"),
        Field("offsets", "int64", "m+1", cuts="r"),  # record i is records[offsets[i]:offsets[i + 1]]
        Field("sources", "uint64", "m"),  # fingerprint of the document that a graph was built from; 0: not known
    ),
    merge=merge_ragged,
    part_bytes=256 << 20,  # a graph is read from its part after the other parts were asked: few, large ones
    rebuild="mathamr graphs SOURCES -o {path}, or write its graphs with to_penman under the release that made it, and "
    "read that file: mathamr import-graphs FILE -o {path} --mode overwrite",
)


class Record(NamedTuple):
    """A graph as it is stored.

    Attributes:
        name: its id.
        data: what :func:`pack` made of it.
        source: fingerprint of the document that it was built from; 0: not known.
    """

    name: str
    data: bytes
    source: int = 0


def content_of(records: Sequence[Record]) -> Content:
    """Lay records end to end, as one part."""
    data = b"".join(record.data for record in records)
    return Content(
        [record.name for record in records],
        {
            "records": np.frombuffer(data, dtype=np.uint8),
            "offsets": np.cumsum([0, *(len(record.data) for record in records)], dtype=np.int64),
            "sources": np.asarray([record.source for record in records], dtype=np.uint64),
        },
    )


def packed_records(parts: Parts, rows: Rows) -> list[bytes]:
    """Read what :func:`pack` made of some rows' graphs, in the order of the rows."""
    found = [b""] * len(rows)
    for part, places, local in parts.by_part(rows):
        records, offsets = part["records"], part["offsets"]
        bounds = zip(places.tolist(), offsets[local].tolist(), offsets[local + 1].tolist(), strict=True)
        for place, start, end in bounds:
            found[place] = records[start:end].tobytes()
    return found

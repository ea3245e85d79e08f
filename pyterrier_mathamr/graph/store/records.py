"""The records of a store: each graph is one line of JSON, compressed, which is read ten times faster than Penman text.

The fields of ``MathAMRGraph`` and ``AmrGraph`` are stored by name, without those that have their default value. So a
new field with a default changes neither this file nor existing records. Large fields are stored in columns of small
numbers, which compress well::

    {"amr": {"labels": ["equal-01", "FORMULA_0", "-"],     (e / equal-01
             "variables": "e f ",                             :ARG1 (f / FORMULA_0)
             "edges": [[1, 2], [":ARG1", ":polarity"],        :polarity -)
                       [1, 1]]},
     "formula_ids": ["7"], "id": "154"}

Edge ``i`` is stored as its length (target − source), its role, and its target − ``i``, which is 1 throughout a tree
and decreases by one at each edge to a node that was written before.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr.amr import AmrEdge, AmrGraph
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.store import Content, Field, Kind, Parts, Rows, merge_ragged

_LEVEL = 6
_DEEPEST = 8  # lists in lists; a field has three


def pack(text: str) -> bytes:
    """Compress one graph's record; the same bytes each time."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def unpack(data: bytes) -> str:
    """Decompress a record: the inverse of :func:`pack`."""
    return decompressed(data).decode("utf-8", "surrogatepass")


def record_of(graph: MathAMRGraph) -> str:
    """Write a graph with all its fields."""
    amr = _changed(graph.amr)
    sources, roles, targets = zip(*graph.amr.edges, strict=True) if graph.amr.edges else ((), (), ())
    lengths = [target - source for source, target in zip(sources, targets, strict=True)]
    amr["variables"] = " ".join(graph.amr.variables)
    amr["edges"] = (lengths, roles, [target - i for i, target in enumerate(targets)])
    return json.dumps({**_changed(graph), "amr": amr}, ensure_ascii=False, separators=(",", ":"))


def graph_of(record: str) -> MathAMRGraph:
    """Read a graph: the inverse of :func:`record_of`."""
    content = parse_json(record)
    if not isinstance(content, dict):
        raise ValueError("no record")
    amr = content.pop("amr")
    variables = tuple(amr.pop("variables").split(" "))
    edges = _edges(*amr.pop("edges"))
    return MathAMRGraph(AmrGraph(variables=variables, edges=edges, **_frozen_fields(amr)), **_frozen_fields(content))


def _changed(values: MathAMRGraph | AmrGraph) -> dict[str, Any]:
    """List the fields without those that have their default value."""
    found = ((field.name, getattr(values, field.name), field.default) for field in fields(values))
    return {name: value for name, value, default in found if value != default}


def _edges(lengths: list[int], roles: list[str], offsets: list[int]) -> tuple[AmrEdge, ...]:
    targets = [offset + i for i, offset in enumerate(offsets)]
    sources = [target - length for target, length in zip(targets, lengths, strict=True)]
    return tuple(zip(sources, roles, targets, strict=True))


def _frozen_fields(content: dict[str, Any]) -> dict[str, Any]:
    return {name: _frozen(value) for name, value in content.items()}


def _frozen(value: Any, depth: int = 0) -> Any:
    """Convert JSON's lists to tuples; fields are nested a few levels deep, whatever the graph."""
    if not isinstance(value, list):
        return value
    if depth == _DEEPEST:
        raise ValueError("lists deeper than those of any record")
    if list in set(map(type, value)):
        return tuple(_frozen(part, depth + 1) for part in value)
    return tuple(value)


GRAPHS = Kind(
    type="graph_store",
    version=3,  # 1: Penman texts; 2: records in shards of another form
    fields=(
        Field("records", "uint8", "r"),
        Field("offsets", "int64", "m+1", cuts="r"),  # record i is records[offsets[i]:offsets[i + 1]]
        Field("sources", "uint64", "m"),  # fingerprint of the document that a graph was built from; 0: unknown
    ),
    merge=merge_ragged,
    part_bytes=256 << 20,  # few large parts, since an id is looked up in one after another
    rebuild="mathamr graphs SOURCES -o {path}, or write its graphs with to_penman under the release that made it, and "
    "read that file: mathamr import-graphs FILE -o {path} --mode overwrite",
)


class Record(NamedTuple):
    """A packed graph.

    Attributes:
        name: its id.
        data: the result of :func:`pack`.
        source: fingerprint of the document that it was built from; 0: unknown.
    """

    name: str
    data: bytes
    source: int = 0


def content_of(records: Sequence[Record]) -> Content:
    """Concatenate records to one part."""
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
    """Read the packed graphs of some rows, in the order of the rows."""
    found = [b""] * len(rows)
    for part, places, local in parts.by_part(rows):
        records, offsets = part["records"], part["offsets"]
        bounds = zip(places.tolist(), offsets[local].tolist(), offsets[local + 1].tolist(), strict=True)
        for place, start, end in bounds:
            found[place] = records[start:end].tobytes()
    return found

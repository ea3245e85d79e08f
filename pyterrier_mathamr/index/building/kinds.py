"""The arrays of a part of an index: a row is a document with all its virtual nodes, or one formula virtual node.

Inside a part documents are ordered by number of rows (then by arrival), so that the scan reads blocks of one shape
without copying. Parts are cut by the bytes of their rows in float32. ``m`` documents, ``r`` rows, ``d`` dimensions.
"""

from __future__ import annotations

from functools import partial

from pyterrier_mathamr.store import Field, Kind

from .content import merge
from .entries import TEXTS, Layout

VERSION = 3


def _texts(layout: Layout) -> tuple[Field, ...]:
    """Return the fields of an entry's texts: UTF-8 end to end, and offsets; the store keeps the ids."""
    names = TEXTS[layout][1:]
    bytes_of = (Field(name, "uint8", f"bytes_of_{name}") for name in names)
    offsets_of = (Field(f"{name}_offsets", "int64", "m+1", cuts=f"bytes_of_{name}") for name in names)
    return (*bytes_of, *offsets_of)


_SOURCES = Field("sources", "uint64", "s 2")
"""Of each document of the corpus in the part: a hash of its docno and its fingerprint (see :mod:`.resume`); empty where
one is unknown."""

DOCUMENTS = Kind(
    type="multi_vector_index",
    version=VERSION,
    rebuild="mathamr index GRAPHS MODEL --output {path}",
    fields=(
        # the vectors of all documents end to end; all other fields are computed from them as stored, rounded or not
        Field("rows", "float32 float16", "r d"),
        Field("offsets", "int64", "m+1", cuts="r"),
        # the rows as int8 codes, which the scan reads; the scale of each dimension; the greatest length of a row's
        # rounding error, in units of the scales, and of a row of codes
        Field("codes", "int8", "r d"),
        Field("scales", "float32", "d"),
        Field("code_bounds", "float64", "2"),
        # a copy of the last row of each document, its VIRTUAL_DOCUMENT, to be read alone
        Field("document_vectors", "float32", "m d"),
        # the place of each document in the order of indexing
        Field("arrival", "int32", "m", below="m"),
        *_texts("documents"),
        _SOURCES,
    ),
    merge=partial(merge, "documents"),
)

FORMULAS = Kind(
    type="formula_index",
    version=VERSION,
    rebuild="MathAMRFormulaIndex('{path}').indexer('overwrite').index(…)",
    fields=(Field("rows", "float32 float16", "m d"), *_texts("formulas"), _SOURCES),
    merge=partial(merge, "formulas"),
)

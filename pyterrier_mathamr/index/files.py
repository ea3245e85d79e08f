"""Every file of an index: its name, dtype, shape and meaning.

An index is a folder of immutable shards and one list of them; a reader takes the list once and keeps that snapshot::

    arqmath.mathamr/
        pt_meta.json          written last, swapped in one step: what counts is what it names
        shard-000000/         about half a million rows, never changed after it is named
            rows.npy  offsets.npy  …

Inside a shard the documents lie by number of rows (then in order of arrival), so that the scan sees blocks of one shape
without copying. All arrays are ``.npy`` without pickles; ``m`` documents, ``r`` rows, ``d`` dimensions, ``b`` bytes.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

DType = Literal["float32", "float16"]
"""How the rows are stored."""

FORMAT_VERSIONS: dict[DType, int] = {"float32": 1, "float16": 2}
"""The format that is written for rows of each kind: a release that knows no float16 refuses it, and reads the other."""

FORMAT_VERSION = max(FORMAT_VERSIONS.values())
"""The newest format of this release. It counts changes of the files below, not releases."""

OLDEST_READABLE_VERSION = 1
"""The oldest format this release still reads."""

READABLE_VERSIONS = range(OLDEST_READABLE_VERSION, FORMAT_VERSION + 1)

META_NAME = "pt_meta.json"
JOURNAL_NAME = "journal.json"

Layout = Literal["documents", "formulas"]
"""What one entry of the index is: a post with all its virtual nodes, or one formula virtual node."""


class IndexFile(Enum):
    """A file of a shard: (name, dtype, dimensions of its shape, the layouts that have it)."""

    ROWS = ("rows.npy", "float32", 2, ("documents", "formulas"))
    """``[r, d]``: the vectors of all documents end to end, as given; in an index of float16 rows rounded to that, and
    everything else is made from the rounded ones."""

    OFFSETS = ("offsets.npy", "int64", 1, ("documents",))
    """``[m + 1]``: document ``i`` owns ``rows[offsets[i]:offsets[i + 1]]``; lengths never fall. (Formulas own one.)"""

    CODES = ("codes.npy", "int8", 2, ("documents",))
    """``[r, d]``: the rows as bytes, which the scan reads first."""

    SCALES = ("scales.npy", "float32", 1, ("documents",))
    """``[d]``: what a code of each dimension is multiplied with."""

    CODE_BOUNDS = ("code_bounds.npy", "float64", 1, ("documents",))
    """``[2]``: the greatest length of a row's rounding error, in units of the scales, and of a row of codes."""

    DOCUMENT_VECTORS = ("document_vectors.npy", "float32", 2, ("documents",))
    """``[m, d]``: the last row of each document, its VIRTUAL_DOCUMENT, again, to be read alone; never in float16, from
    which a scan would have to convert it each time."""

    DOCNOS = ("docnos.npy", "uint8", 1, ("documents", "formulas"))
    """``[b]``: docnos (or formula ids) as UTF-8 end to end."""

    DOCNO_OFFSETS = ("docno_offsets.npy", "int64", 1, ("documents", "formulas"))
    """``[m + 1]``: docno ``i`` is ``docnos[docno_offsets[i]:docno_offsets[i + 1]]``."""

    DOCNO_HASHES = ("docno_hashes.npy", "uint64", 1, ("documents", "formulas"))
    """``[m]``: BLAKE2b-64 of the docnos (little endian), rising."""

    DOCNO_ORDER = ("docno_order.npy", "int32", 1, ("documents", "formulas"))
    """``[m]``: the document of each hash."""

    FORMULA_IDS = ("formula_ids.npy", "uint8", 1, ("documents",))
    """``[b]``: for each document the JSON list of its formulas' ids, which are its first rows; empty when not given."""

    FORMULA_ID_OFFSETS = ("formula_id_offsets.npy", "int64", 1, ("documents",))
    """``[m + 1]``: as ``docno_offsets``."""

    POST_IDS = ("post_ids.npy", "uint8", 1, ("formulas",))
    """``[b]``: the docno of the post that holds each formula."""

    POST_ID_OFFSETS = ("post_id_offsets.npy", "int64", 1, ("formulas",))
    """``[m + 1]``: as ``docno_offsets``."""

    VISUAL_IDS = ("visual_ids.npy", "uint8", 1, ("formulas",))
    """``[b]``: the visual id of each formula (formulas that look alike share one); empty when unknown."""

    VISUAL_ID_OFFSETS = ("visual_id_offsets.npy", "int64", 1, ("formulas",))
    """``[m + 1]``: as ``docno_offsets``."""

    def __init__(self, filename: str, dtype: str, ndim: int, layouts: tuple[Layout, ...]) -> None:
        self.filename, self.dtype, self.ndim, self.layouts = filename, dtype, ndim, layouts

    def dtype_in(self, dtype: DType) -> str:
        """The dtype of the file in an index whose rows are stored so."""
        return dtype if self is IndexFile.ROWS else self.dtype

    @classmethod
    def of(cls, layout: Layout) -> tuple[IndexFile, ...]:
        """The files of one layout, in the order they are written."""
        return tuple(file for file in cls if layout in file.layouts)


TEXTS: dict[str, tuple[IndexFile, IndexFile]] = {
    "docno": (IndexFile.DOCNOS, IndexFile.DOCNO_OFFSETS),
    "formula_ids": (IndexFile.FORMULA_IDS, IndexFile.FORMULA_ID_OFFSETS),
    "post_id": (IndexFile.POST_IDS, IndexFile.POST_ID_OFFSETS),
    "visual_id": (IndexFile.VISUAL_IDS, IndexFile.VISUAL_ID_OFFSETS),
}
"""Each text that an entry carries: the file of its bytes and that of their offsets."""


def texts_of(layout: Layout) -> tuple[str, ...]:
    """The texts that an entry of this layout carries, ``docno`` first."""
    return tuple(name for name, (file, _) in TEXTS.items() if layout in file.layouts)

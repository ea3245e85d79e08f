"""The requirements of retrievers and the scorer on an index, wherever it is: :class:`Backend`, and kinds of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import UnknownIdError

if TYPE_CHECKING:
    from .search.queries import QueryBatch

Array = npt.NDArray[Any]

Rows = npt.NDArray[np.float32]
"""Vectors, float32 ``[r, d]``."""

Codes = npt.NDArray[np.int8]
"""Vectors quantized to int8 ``[r, d]``."""

PackedCodes = npt.NDArray[np.uint8]
"""Vectors quantized to four bits, two numbers in a byte, uint8 ``[r, d / 2]``: see :func:`unpack_codes`."""

LEAST = -8
"""The number whose four bits are all 0."""

GROUP = 8
"""Numbers that are packed together: byte ``j`` of four has number ``j`` in its low bits and number ``4 + j`` above."""

_LOW = np.uint32(0x0F0F0F0F)


def pack_codes(codes: Codes) -> PackedCodes:
    """Pack codes from -8 to 7, as many in each row as a multiple of :data:`GROUP`, two in a byte."""
    rows, width = codes.shape
    halves = (codes - np.int8(LEAST)).view(np.uint8).reshape(rows, width // GROUP, 2, GROUP // 2)
    codes_of_two: PackedCodes = halves[:, :, 0] | halves[:, :, 1] << np.uint8(4)
    return codes_of_two.reshape(rows, width // 2)


def unpack_codes(codes: Codes | PackedCodes, out: Codes | None = None) -> Codes:
    """Return codes as int8 ``[r, d]``, by default in new memory; int8 codes as they are."""
    if codes.dtype == np.int8:
        return codes.view(np.int8)
    into = np.empty((len(codes), 2 * codes.shape[1]), dtype=np.int8) if out is None else out
    words = codes.view(np.uint32)
    pairs = into.view(np.uint32).reshape(*words.shape, 2)
    np.bitwise_and(words, _LOW, out=pairs[:, :, 0])
    np.right_shift(words, 4, out=pairs[:, :, 1])
    np.bitwise_and(pairs[:, :, 1], _LOW, out=pairs[:, :, 1])
    into += np.int8(LEAST)
    return into


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows:
    """Vectors as codes of 8 or 4 bits and a scale for each, float32 ``[r]``: row ``i`` is ``scales[i] codes[i]``.

    A scale has 17 significant bits, so that its product with a code is exact in float32, and rows that are read and
    stored again keep their bytes.
    """

    codes: Codes | PackedCodes
    scales: npt.NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dimensions."""
        return len(self.codes), self.codes.shape[1] * (1 if self.codes.dtype == np.int8 else 2)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, which: Any) -> ScaledRows:
        return ScaledRows(self.codes[which], self.scales[which])


StoredRows = npt.NDArray[np.float32] | npt.NDArray[np.float16] | ScaledRows
"""Vectors as a file stores them, ``[r, d]``; all computation is in float32 or float64."""

Scores = npt.NDArray[np.float32]
"""Scores of a scan, float32, within a known error of the exact scores."""

ExactScores = npt.NDArray[np.float64]
"""Exact scores, float64, rounded to float32 precision."""

Numbers = npt.NDArray[np.int64]
"""Documents by number, or offsets, int64."""

Sources = npt.NDArray[np.uint64]
"""Documents of a corpus, uint64 ``[s, 2]``: a hash of the docno, and a hash of the document."""

Weights = npt.NDArray[np.float64]
"""Weights of query rows, or error bounds, float64."""

Field = Literal["all", "doc"]
"""Which vectors are read: all of a document, or only its VIRTUAL_DOCUMENT (MathAMR+, section 3.5.1)."""


@dataclass(frozen=True)
class How:
    """How documents are selected: exactly, on a GPU or not, or by HNSW graphs of the given effort."""

    exact: bool = True
    hnsw_ef: int = 128
    hits: int = 128
    device: str | None = None
    scored: bool = True
    """Whether approximate hits need scores: not where they are scored by other vectors then."""
    where: str | None = None
    """A condition on kept columns (:mod:`.subsets`), which every document that is found must meet."""


class Hits(NamedTuple):
    """The best documents of one query: numbers and exact scores, best first, ties by docno."""

    numbers: Numbers
    scores: ExactScores


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0))


class IndexDescription(Protocol):
    """The description of an index."""

    @property
    def dimensions(self) -> int:
        """The width of its rows; 0 if it has none."""

    @property
    def model(self) -> str | None:
        """The identity of the model of its vectors, where known."""

    @property
    def keep(self) -> tuple[str, ...]:
        """The columns that are kept of each document."""


class Backend(Protocol):
    """The state of an index when it was opened. Documents have numbers, which are valid within it only.

    There are three: a folder (:mod:`.search.folder`), parts elsewhere (:mod:`.sharded.snapshot`) and a Qdrant
    collection (:mod:`.qdrant.snapshot`).
    """

    path: Path | str
    meta: IndexDescription

    @property
    def identity(self) -> str:
        """The identity of this state of the index, which changes with every document."""

    def __len__(self) -> int:
        """The number of documents (or formulas)."""

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents of each query by the vectors of one field: all of them if ``how.exact``.

        Only documents of ``queries.among``, where that is given, that meet ``how.where``.
        """

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field) -> list[ExactScores]:
        """Score some documents of each query exactly: float64 for each."""

    def look_up(self, docnos: Sequence[str]) -> Numbers:
        """Look up the number of each document: -1 for one that is not in the index."""

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of each document; ``kept`` are its columns as JSON."""

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some documents end to end, float32 ``[r, d]``, and their offsets, int64 ``[m + 1]``."""

    def stored(self, numbers: Numbers, field: Field = "all") -> tuple[StoredRows, Numbers]:
        """Return the same vectors as stored, which need not be float32."""
        return self.rows(numbers, field)

    def find(self, docnos: Sequence[str]) -> Numbers:
        """Return the number of each document; ``UnknownIdError`` names unknown ones."""
        numbers = self.look_up(docnos)
        if (unknown := np.flatnonzero(numbers < 0)).size:
            raise UnknownIdError(self.path, [docnos[place] for place in unknown.tolist()])
        return numbers

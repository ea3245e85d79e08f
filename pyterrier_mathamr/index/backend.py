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

GROUP = 8
"""The width of packed rows is a multiple of it, so that each half of a row has whole words of four bytes."""

STEP = 16
"""Codes of four bits are multiples of it, from -128 to 112."""


def pack_codes(codes: Codes) -> PackedCodes:
    """Pack codes of four bits: byte ``j`` of a row has code ``j`` in its low bits, and code ``d / 2 + j`` above."""
    low, high = np.split(codes.view(np.uint8), 2, axis=1)
    both: PackedCodes = low >> np.uint8(4) | high
    return both


def unpack_codes(codes: Codes | PackedCodes) -> Codes:
    """Return codes as int8 ``[r, d]``: in new memory, or int8 codes as they are."""
    if codes.dtype == np.int8:
        return codes.view(np.int8)
    rows, half = codes.shape
    both = np.empty((rows, 2 * half), dtype=np.uint8)
    np.multiply(codes, np.uint8(STEP), out=both[:, :half])  # the high bits are lost; numpy shifts ten times as slowly
    np.bitwise_and(codes, np.uint8(0xF0), out=both[:, half:])
    return both.view(np.int8)


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


def evenly(numbers: Numbers, count: int) -> Numbers:
    """Take at most so many numbers, evenly spread."""
    return numbers[np.linspace(0, len(numbers) - 1, min(count, len(numbers))).astype(np.int64)]


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

    def sample(self, count: int) -> Numbers:
        """Return so many documents, evenly spread, or all if there are no more; the same each time."""

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

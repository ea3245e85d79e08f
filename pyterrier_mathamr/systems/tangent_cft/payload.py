"""What a Tangent-CFT index keeps of an expression: five vectors. Its first part also keeps the encoder.

slt, opt, slt_type, opt_type, sum     int8 [x, d], see :mod:`.encoder`
squares                               int32 [x, 5], the squared lengths of these
slt_tokens, slt_words, …              the arrays of the encoder; without values in the other parts
opt_…, slt_type_…, opt_type_…         likewise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.sparse.expressions import expression_fields, merging
from pyterrier_mathamr.sparse.index import UNBOUNDED
from pyterrier_mathamr.sparse.texts import text_fields
from pyterrier_mathamr.store import Array, DamagedError, Field, Kind, Part, Rows

from .encoder import KEPT, FormulaEncoder, Kept, Quantized, quantized, squares
from .words import REPRESENTATIONS, Representation

_EXPRESSION_BYTES = 400  # of memory, beside its vectors


def _encoder_fields(name: Representation) -> tuple[Field, ...]:
    words, rows = f"{name}_v", f"{name}_r"
    return (
        *text_fields(f"{name}_tokens", f"{name}_t"),
        *text_fields(f"{name}_words", words),
        Field(f"{name}_word_vectors", "float32", f"{words} d"),
        Field(f"{name}_buckets", "int32", rows),
        Field(f"{name}_bucket_vectors", "float16", f"{rows} d"),
        Field(f"{name}_hashing", "int64", f"{name}_h"),
    )


_ENCODER = tuple(chain.from_iterable(map(_encoder_fields, REPRESENTATIONS)))


@dataclass(frozen=True, eq=False)
class FormulaVectors:
    """The vectors of ``x`` expressions, and what made them.

    Attributes:
        rows: int8 ``[x, d]`` for each of :data:`KEPT`; zeros where a formula lacks the tree.
        squares: int32 ``[x, 5]``.
        encoder: ``None`` in a part that does not keep it.
    """

    rows: Mapping[Kept, Quantized]
    squares: npt.NDArray[np.int32]
    encoder: FormulaEncoder | None

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Open what a part has."""
        if bool((part["squares"] < 0).any()):
            raise DamagedError(part.path, "its squares are negative")
        encoder = FormulaEncoder.of_part(part) if len(part["slt_hashing"]) else None
        return cls({name: part[name] for name in KEPT}, part["squares"], encoder)

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several; see :class:`~pyterrier_mathamr.sparse.expressions.Payload`."""
        width = pieces[0].rows["slt"].shape[1] if pieces else 0
        rows = {name: np.zeros((size, width), dtype=np.int8) for name in KEPT}
        lengths = np.zeros((size, len(KEPT)), dtype=np.int32)
        for piece, number in zip(pieces, numbers, strict=True):
            kept = np.flatnonzero(number >= 0)
            for name in KEPT:
                rows[name][number[kept]] = piece.rows[name][kept]
            lengths[number[kept]] = piece.squares[kept]
        return cls(rows, lengths, next((piece.encoder for piece in pieces if piece.encoder), None))

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""
        width = self.rows["slt"].shape[1]
        encoder = self.encoder.arrays() if self.encoder else FormulaEncoder.no_arrays(width)
        return {**{str(name): rows for name, rows in self.rows.items()}, "squares": self.squares, **encoder}


class FormulaVectorsBuilder:
    """Encodes expressions, one after another."""

    def __init__(self, encoder: FormulaEncoder, *, keep: bool) -> None:
        self._encoder, self._keep = encoder, keep
        self._rows: list[Quantized] = []
        self.nbytes = 0
        """The memory that is taken, about."""

    def add(self, pair: FormulaPair) -> None:
        """Take an expression; a formula without a layout tree has no sum, as Tangent-CFT does not index it."""
        rows = quantized(self._encoder.encode(pair))
        if pair.slt is None:
            rows[KEPT.index("sum")] = 0
        self._rows.append(rows)
        self.nbytes += rows.nbytes + _EXPRESSION_BYTES

    def payload(self) -> FormulaVectors:
        """Return the vectors of all."""
        shape = (len(self._rows), len(KEPT), self._encoder.dimensions)
        rows = np.stack(self._rows) if self._rows else np.zeros(shape, dtype=np.int8)
        each = {name: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(KEPT)}
        lengths = np.stack([squares(each[name]) for name in KEPT], axis=1)
        return FormulaVectors(each, lengths, self._encoder if self._keep else None)


CFT = Kind(
    type="cft_model",
    format="mathamr",
    version=1,
    fields=expression_fields(
        *(Field(name, "int8", "x d") for name in KEPT), Field("squares", "int32", f"x {len(KEPT)}"), *_ENCODER
    ),
    merge=merging(FormulaVectors),
    rebuild="TangentCFT('{path}').indexer(mode='overwrite').index(posts)",
    part_bytes=UNBOUNDED,
)

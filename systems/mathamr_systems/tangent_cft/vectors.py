"""The vectors of formulas, stored as int8 and compared by exact cosines.

A part has five vectors of each expression, and the first part of an index the encoder that made them::

    slt, opt, slt_type, opt_type, sum     int8 [x, d]
    squares                               int32 [x, 5], the squared lengths of these
    slt_tokens, slt_words, …              the arrays of the encoder; without values in the other parts
    opt_…, slt_type_…, opt_type_…         likewise
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.sparse.expressions import expression_kind
from pyterrier_mathamr.sparse.texts import text_fields
from pyterrier_mathamr.store import Array, DamagedError, Field, Rows, StoredPart

from .word_vectors import REPRESENTATIONS, Representation, WordVectors, sentences

Kept = Literal["slt", "opt", "slt_type", "opt_type", "sum"]
KEPT: tuple[Kept, ...] = get_args(Kept)
"""The vectors of a formula: one for each representation, and the sum of Tangent-CFT."""

Quantized = npt.NDArray[np.int8]

_SUMMED = [REPRESENTATIONS.index(name) for name in ("slt", "opt", "slt_type")]
_STEPS = 127
_EXPRESSION_BYTES = 400  # of memory, in addition to its vectors
_BLOCK = 8192  # rows that are compared at once


@dataclass(frozen=True, eq=False)
class FormulaEncoder:
    """Encodes formulas by the word vectors of each representation."""

    words: Mapping[Representation, WordVectors]

    def encode(self, pair: FormulaPair) -> npt.NDArray[np.float32]:
        """Compute the vectors of a formula."""
        written = sentences(pair)
        means = np.array([self.words[name].mean(written.get(name, [])) for name in REPRESENTATIONS])
        return np.concatenate([means, means[_SUMMED].sum(axis=0, keepdims=True)])

    def kept(self, pair: FormulaPair) -> Quantized:
        """Return the stored arrays; a formula without a layout tree has no sum, as Tangent-CFT does not index it."""
        rows = quantized(self.encode(pair))
        if pair.slt is None:
            rows[KEPT.index("sum")] = 0
        return rows

    @property
    def dimensions(self) -> int:
        return int(self.words["slt"].vectors.shape[1])

    def identity(self) -> str:
        """Compute 32 hexadecimal digits that identify the encoder."""
        state = hashlib.blake2b(digest_size=16)
        for name, array in self.arrays().items():
            state.update(f"{name} {array.dtype} {array.shape}".encode())
            state.update(np.ascontiguousarray(array).data)
        return state.hexdigest()

    def arrays(self) -> dict[str, Array]:
        return {f"{name}_{of}": array for name, words in self.words.items() for of, array in words.arrays().items()}

    @staticmethod
    def no_arrays(dimensions: int) -> dict[str, Array]:
        """Return the same arrays without values, for a part that keeps no encoder."""
        nothing = WordVectors.empty([], dimensions).arrays() | {"hashing": np.zeros(0, dtype=np.int64)}
        return {f"{name}_{of}": array for name in REPRESENTATIONS for of, array in nothing.items()}

    @classmethod
    def of_part(cls, part: StoredPart) -> FormulaEncoder:
        return cls({name: WordVectors.of_part(part, name) for name in REPRESENTATIONS})


def nbytes(rows: Quantized) -> int:
    """Estimate the memory of the vectors of an expression."""
    return rows.nbytes + _EXPRESSION_BYTES


def quantized(vectors: npt.NDArray[np.float32]) -> Quantized:
    """Round vectors to int8; their length is lost, their direction moves by less than half a degree."""
    greatest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    found: Quantized = np.rint(vectors * (_STEPS / np.where(greatest > 0, greatest, 1.0))).astype(np.int8)
    return found


def squares(rows: Quantized) -> npt.NDArray[np.int32]:
    found: npt.NDArray[np.int32] = np.einsum("nd,nd->n", rows, rows, dtype=np.int32)
    return found


def cosines(rows: Quantized, lengths: npt.NDArray[np.int32], query: Quantized) -> npt.NDArray[np.float64]:
    """Compare vectors with one."""
    wide, dots = query.astype(np.float32), np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        here = slice(start, start + _BLOCK)
        np.matmul(rows[here].astype(np.float32), wide, out=dots[here])
    product = lengths.astype(np.float64) * float(squares(query[None])[0])
    return np.divide(dots, np.sqrt(product), out=np.zeros(len(rows)), where=product > 0)


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
class CFTVectors:
    """The vectors of ``x`` expressions, and what made them."""

    rows: Mapping[Kept, Quantized]  # [x, d] each; zeros where a formula lacks the tree
    squares: npt.NDArray[np.int32]  # [x, 5]
    encoder: FormulaEncoder | None  # None in a part that does not keep it

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        if bool((part["squares"] < 0).any()):
            raise DamagedError(part.path, "its squares are negative")
        encoder = FormulaEncoder.of_part(part) if len(part["slt_hashing"]) else None
        return cls({name: part[name] for name in KEPT}, part["squares"], encoder)

    @classmethod
    def of_rows(cls, encoder: FormulaEncoder, keep: bool, vectors: Sequence[Quantized]) -> Self:
        """Make the payload from the result of :meth:`FormulaEncoder.kept` for each expression."""
        rows = np.stack(vectors) if len(vectors) else np.zeros((0, len(KEPT), encoder.dimensions), dtype=np.int8)
        each = {name: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(KEPT)}
        lengths = np.stack([squares(each[name]) for name in KEPT], axis=1)
        return cls(each, lengths, encoder if keep else None)

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
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
        width = self.rows["slt"].shape[1]
        encoder = self.encoder.arrays() if self.encoder else FormulaEncoder.no_arrays(width)
        return {**{str(name): rows for name, rows in self.rows.items()}, "squares": self.squares, **encoder}


CFT = expression_kind(
    CFTVectors,
    *(Field(name, "int8", "x d") for name in KEPT),
    Field("squares", "int32", f"x {len(KEPT)}"),
    *_ENCODER,
    type="cft_model",
    format="mathamr",
    version=1,
    index="TangentCFT('{path}')",
)

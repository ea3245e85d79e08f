"""From a formula to its vectors, one for each representation, and as they are kept: int8, compared by exact cosines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.store import Array, Part

from .word_vectors import WordVectors
from .words import REPRESENTATIONS, Representation, sentences

Kept = Literal["slt", "opt", "slt_type", "opt_type", "sum"]
KEPT: tuple[Kept, ...] = get_args(Kept)
"""The vectors of a formula: one for each representation, and the sum of Tangent-CFT."""

Quantized = npt.NDArray[np.int8]

_SUMMED = [REPRESENTATIONS.index(name) for name in ("slt", "opt", "slt_type")]
_STEPS = 127
_BLOCK = 8192  # rows that are compared at once


@dataclass(frozen=True, eq=False)
class FormulaEncoder:
    """What was trained.

    Attributes:
        words: the word vectors of each representation.
    """

    words: Mapping[Representation, WordVectors]

    def encode(self, pair: FormulaPair) -> npt.NDArray[np.float32]:
        """Compute the vectors of a formula."""
        written = sentences(pair)
        means = np.array([self.words[name].mean(written.get(name, [])) for name in REPRESENTATIONS])
        return np.concatenate([means, means[_SUMMED].sum(axis=0, keepdims=True)])

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.words["slt"].vectors.shape[1])

    def identity(self) -> str:
        """Compute 32 hexadecimal digits that tell encoders apart."""
        state = hashlib.blake2b(digest_size=16)
        for name, array in self.arrays().items():
            state.update(f"{name} {array.dtype} {array.shape}".encode())
            state.update(np.ascontiguousarray(array).data)
        return state.hexdigest()

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return {f"{name}_{of}": array for name, words in self.words.items() for of, array in words.arrays().items()}

    @staticmethod
    def no_arrays(dimensions: int) -> dict[str, Array]:
        """Return the same arrays without values, for a part that keeps no encoder."""
        nothing = WordVectors.empty([], dimensions).arrays() | {"hashing": np.zeros(0, dtype=np.int64)}
        return {f"{name}_{of}": array for name in REPRESENTATIONS for of, array in nothing.items()}

    @classmethod
    def of_part(cls, part: Part) -> FormulaEncoder:
        """Open the encoder that a part keeps."""
        return cls({name: WordVectors.of_part(part, name) for name in REPRESENTATIONS})


def quantized(vectors: npt.NDArray[np.float32]) -> Quantized:
    """Round vectors to int8; their length is lost, their direction moves by less than half a degree."""
    greatest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    found: Quantized = np.rint(vectors * (_STEPS / np.where(greatest > 0, greatest, 1.0))).astype(np.int8)
    return found


def squares(rows: Quantized) -> npt.NDArray[np.int32]:
    """Compute the squared length of each of some rows, int8 ``[n, d]``: int32 ``[n]``."""
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

"""The vectors of the nodes of many formulas on a grid, on which the sum of maximum cosines is exact.

A vector of unit length becomes integers, its numbers times 4,000. A product of two such vectors, and every partial sum
of it, is an integer of at most 2²⁴ (Cauchy and Schwarz), which float32 holds exactly. So a product in float32 does not
depend on the order in which a library adds, nor on the other formulas in the product: equal vectors
have equal scores everywhere, and no second stage has to correct the first. Only the vector is rounded: its direction
changes by about 0.0001, less than in float16.

An index keeps the vectors of both graphs of each expression::

    slt_offsets, slt_rows      arrays of :class:`NodeRows`, of symbol layout graphs
    opt_offsets, opt_rows      of operator graphs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self, get_args

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.running.resources import one_blas_thread
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.sparse.expressions import BothTrees, combined_runs, expression_kind
from pyterrier_mathamr.sparse.texts import ends_of
from pyterrier_mathamr.store import Array, Field, Rows, StoredPart

Grid = npt.NDArray[np.int16]
"""Vectors on the grid: int16 ``[r, d]``."""
Scores = npt.NDArray[np.float64]

_STEPS = 4000
_FINE = 1 << 20  # a node's term is a multiple of 1 / _FINE, so that sums of them are exact, too
_BLOCK = 4096  # rows multiplied at once, whose products stay in the CPU's caches


def on_grid(vectors: npt.NDArray[np.float32]) -> Grid:
    """Round vectors of unit length to the grid."""
    rows: Grid = np.rint(vectors * np.float32(_STEPS)).astype(np.int16)
    return rows


def lengths(rows: Grid) -> Scores:
    """Compute the length of each vector on the grid, about 4,000."""
    found: Scores = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return found


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The vectors of the nodes of ``x`` expressions in one kind of graph, ``r`` in all."""

    offsets: Rows  # [x + 1]; expression i owns rows[offsets[i]:offsets[i + 1]], none where it has no such graph
    rows: Grid  # [r, d]; a vector that an expression repeats is kept once, which changes no MaxSim

    @classmethod
    def none(cls, size: int) -> Self:
        return cls(np.zeros(size + 1, dtype=np.int64), np.zeros((0, 0), dtype=np.int16))

    @classmethod
    def of_vectors(cls, vectors: Sequence[npt.NDArray[np.float32]]) -> Self:
        """Keep the vectors of the nodes of each expression, float32 ``[n, d]`` each."""
        if not any(map(len, vectors)):
            return cls.none(len(vectors))
        rows = on_grid(np.concatenate(vectors))
        owner = np.repeat(np.arange(len(vectors), dtype=">u4"), [len(some) for some in vectors])
        owned = np.concatenate([owner.view(np.uint8).reshape(-1, 4), rows.view(np.uint8)], axis=1)
        _, firsts = np.unique(owned.view(f"V{owned.shape[1]}").reshape(-1), return_index=True)
        sizes = np.bincount(owner[firsts].astype(np.int64), minlength=len(vectors))
        return cls(ends_of(sizes), rows[firsts])

    @classmethod
    def of_part(cls, part: StoredPart, prefix: str) -> Self:
        return cls(part[f"{prefix}offsets"], part[f"{prefix}rows"])

    def arrays(self, prefix: str) -> dict[str, Array]:
        return {f"{prefix}offsets": self.offsets, f"{prefix}rows": self.rows}

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        filled = [piece.rows for piece in pieces if len(piece.rows)]
        if not filled:
            return cls.none(size)
        offsets, places = combined_runs([piece.offsets for piece in pieces], numbers, size)
        return cls(offsets, np.concatenate(filled)[places])

    def only(self, expression: int) -> Self:
        """Return the vectors of one expression, as expression 0."""
        start, end = self.offsets[expression : expression + 2].tolist()
        return type(self)(np.array([0, end - start], dtype=np.int64), self.rows[start:end])

    @cached_property
    def _factors(self) -> npt.NDArray[np.float32]:
        factors: npt.NDArray[np.float32] = (1 / np.maximum(lengths(self.rows), 1)).astype(np.float32)
        return factors

    @cached_property
    def _filled(self) -> Rows:
        return np.flatnonzero(np.diff(self.offsets))

    def maxsim(self, query: Grid, temperature: float | None = None) -> Scores:
        """Score all expressions for one formula: S(Q, C) = Σᵢ maxⱼ cos(qᵢ, cⱼ) (In+Out, equation 4).

        With a temperature τ the term of a node is exp((cos - 1) / τ).
        """
        scores = np.zeros(len(self.offsets) - 1)
        if not len(query):
            return scores
        asked, ends = query.astype(np.float32), self.offsets[self._filled + 1]
        each = _FINE / np.maximum(lengths(query), 1)
        first, start = 0, 0
        with one_blas_thread():
            while first < len(ends):
                last = max(first + 1, int(np.searchsorted(ends, start + _BLOCK, side="right")))
                here = slice(start, int(ends[last - 1]))
                products = asked @ self.rows[here].astype(np.float32).T  # [q, rows], exact
                products *= self._factors[here]
                starts = np.concatenate([[start], ends[first : last - 1]]) - start
                best = np.maximum.reduceat(products, starts, axis=1)  # [q, expressions]
                terms = np.rint(best * each[:, None])
                if temperature is not None:
                    terms = np.rint(np.exp((terms / _FINE - 1) / temperature) * _FINE)
                scores[self._filled[first:last]] = terms.sum(axis=0) / _FINE
                first, start = last, here.stop
        return scores


_AT_ONCE = 1024  # expressions encoded together
_NODE_BYTES = 200  # of memory for the vector of a node


class NodeEncoder(Protocol):
    """A model of the nodes of formulas."""

    @property
    def identity(self) -> str:
        """A text that identifies the model."""

    @property
    def kinds(self) -> tuple[Packed, ...]:
        """The kinds of trees whose graphs it encodes."""

    def encode(
        self, trees: Sequence[FormulaTree | None], kind: Packed, *, distinct: bool = True
    ) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of the nodes of each tree, float32 ``[nodes, d]`` of unit length."""


class NodeVectors(BothTrees[NodeRows]):
    """The vectors of the nodes of ``x`` expressions, in symbol layout graphs and in operator graphs."""

    OF = NodeRows

    def __len__(self) -> int:
        return len(self.slt.offsets) - 1

    @classmethod
    def encoded(cls, model: NodeEncoder, pairs: Sequence[FormulaPair]) -> Self:
        """Encode the graphs of expressions, some at a time."""
        some = [pairs[start : start + _AT_ONCE] for start in range(0, len(pairs), _AT_ONCE)]
        ends = np.cumsum([0, *map(len, some)]).tolist()
        numbers = [np.arange(start, end) for start, end in pairwise(ends)]
        return cls.combined([cls._encoded(model, each) for each in some], numbers, len(pairs))

    @classmethod
    def _encoded(cls, model: NodeEncoder, pairs: Sequence[FormulaPair]) -> Self:
        rows = []
        for kind in get_args(Packed):
            trees = [getattr(pair, kind) if kind in model.kinds else None for pair in pairs]
            rows.append(NodeRows.of_vectors(model.encode(trees, kind)) if any(trees) else NodeRows.none(len(trees)))
        return cls(*rows)


def nbytes(pair: FormulaPair) -> int:
    """Estimate the memory of an expression that waits to be encoded."""
    return _NODE_BYTES * sum(len(tree.nodes) for tree in pair if tree is not None)


def _fields(kind: Packed) -> tuple[Field, ...]:
    rows = f"{kind}_r"
    return (
        Field(f"{kind}_offsets", "int64", "x+1", cuts=rows),
        Field(f"{kind}_rows", "int16", f"{rows} {kind}_d"),
    )


IN_OUT = expression_kind(
    NodeVectors,
    *_fields("slt"),
    *_fields("opt"),
    type="node_vector_index",
    format="mathamr_in_out",
    version=1,
    index="InOutIndex('{path}', model)",
)

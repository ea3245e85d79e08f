"""What an In+Out index keeps of an expression: the vectors of the nodes of both of its graphs.

slt_offsets, slt_rows      arrays of :class:`NodeRows`, of symbol layout graphs
opt_offsets, opt_rows      of operator graphs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, get_args

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.sparse.expressions import expression_fields, merging
from pyterrier_mathamr.sparse.index import UNBOUNDED
from pyterrier_mathamr.store import Array, Field, Kind, Part, Rows

from .node_rows import NodeRows

_AT_ONCE = 1024  # expressions encoded together
_NODE_BYTES = 200  # of memory for the vector of a node


class NodeEncoder(Protocol):
    """A model of the nodes of formulas."""

    @property
    def identity(self) -> str:
        """A text that tells models apart."""

    @property
    def kinds(self) -> tuple[Packed, ...]:
        """The kinds of trees whose graphs it encodes."""

    def encode(
        self, trees: Sequence[FormulaTree | None], kind: Packed, *, distinct: bool = True
    ) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of the nodes of each tree, float32 ``[nodes, d]`` of unit length."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeVectors:
    """The vectors of the nodes of ``x`` expressions.

    Attributes:
        slt: of symbol layout graphs.
        opt: of operator graphs.
    """

    slt: NodeRows
    opt: NodeRows

    def __len__(self) -> int:
        """Return the number of expressions."""
        return len(self.slt.offsets) - 1

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Open what a part has."""
        return cls(*(NodeRows(part[f"{kind}_offsets"], part[f"{kind}_rows"]) for kind in get_args(Packed)))

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several; see :class:`~pyterrier_mathamr.sparse.expressions.Payload`."""
        kinds = ([getattr(piece, kind) for piece in pieces] for kind in get_args(Packed))
        return cls(*(NodeRows.combined(of_kind, numbers, size) for of_kind in kinds))

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""
        named = {f"{kind}_{name}": (kind, name) for kind in get_args(Packed) for name in ("offsets", "rows")}
        return {field: getattr(getattr(self, kind), name) for field, (kind, name) in named.items()}


class NodeVectorsBuilder:
    """Encodes expressions, some at a time."""

    def __init__(self, model: NodeEncoder) -> None:
        self._model, self._waiting, self._done = model, list[FormulaPair](), list[NodeVectors]()
        self.nbytes = 0
        """The memory that is taken, about."""

    def add(self, pair: FormulaPair) -> None:
        """Take an expression."""
        self._waiting.append(pair)
        self.nbytes += _NODE_BYTES * sum(len(tree.nodes) for tree in pair if tree is not None)
        if len(self._waiting) >= _AT_ONCE:
            self._encode()

    def payload(self) -> NodeVectors:
        """Return the vectors of all."""
        self._encode()
        sizes = [len(piece) for piece in self._done]
        ends = np.cumsum([0, *sizes])
        numbers = [np.arange(end, end + size) for end, size in zip(ends[:-1].tolist(), sizes, strict=True)]
        return NodeVectors.combined(self._done, numbers, int(ends[-1]))

    def _encode(self) -> None:
        if self._waiting:
            self._done.append(NodeVectors(*(self._rows(kind) for kind in get_args(Packed))))
            self._waiting = []

    def _rows(self, kind: Packed) -> NodeRows:
        trees = [getattr(pair, kind) if kind in self._model.kinds else None for pair in self._waiting]
        return NodeRows.of_vectors(self._model.encode(trees, kind)) if any(trees) else NodeRows.none(len(trees))


def _fields(kind: Packed) -> tuple[Field, ...]:
    rows = f"{kind}_r"
    return (
        Field(f"{kind}_offsets", "int64", "x+1", cuts=rows),
        Field(f"{kind}_rows", "int16", f"{rows} {kind}_d"),
    )


IN_OUT = Kind(
    type="node_vector_index",
    format="mathamr_in_out",
    version=1,
    fields=expression_fields(*_fields("slt"), *_fields("opt")),
    merge=merging(NodeVectors),
    rebuild="InOutIndex('{path}', model).indexer(mode='overwrite').index(posts)",
    part_bytes=UNBOUNDED,
)

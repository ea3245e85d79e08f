"""Both trees of each formula of a collection on disk, for systems that compare whole trees.

A part keeps the trees of each expression, packed::

    slt_offsets, slt_labels, slt_parents, slt_edges      arrays of :class:`PackedTrees`, x trees
    slt_names                                            the labels, ascending
    opt_…                                                likewise
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self, get_args

import numpy as np

from mathamr_systems.edit_distance import EditDistanceReranker
from pyterrier_mathamr.extending import (
    BothTrees,
    CollectingBuilder,
    ExpressionIndex,
    ExpressionSnapshot,
    Packed,
    PackedTrees,
    Packing,
    combined_runs,
    expression_kind,
    method,
    read_names,
    renumbered,
    text_arrays,
    text_fields,
)
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.store import Array, DamagedError, Field, Rows, StoredPart, ranges

_NODE_BYTES = 100  # of memory for a node of a tree that is not packed yet


def _fields(kind: Packed) -> tuple[Field, ...]:
    nodes, labels = f"{kind}_n", f"{kind}_l"
    return (
        Field(f"{kind}_offsets", "int64", "x+1", cuts=nodes),
        Field(f"{kind}_labels", "int32", nodes, below=labels),
        Field(f"{kind}_parents", "int32", nodes),
        Field(f"{kind}_edges", "int32", nodes),
        *text_fields(f"{kind}_names", labels),
    )


class StoredTrees(PackedTrees):
    """Packed trees in a part, and combined from several."""

    __slots__ = ()

    @classmethod
    def of_part(cls, part: StoredPart, prefix: str) -> PackedTrees:
        names, offsets = read_names(part, f"{prefix}names"), part[f"{prefix}offsets"]
        labels, parents, edges = (part[f"{prefix}{name}"] for name in ("labels", "parents", "edges"))
        places = ranges(np.zeros_like(offsets[1:]), np.diff(offsets))
        if bool(np.any(parents >= places)) or bool(np.any((parents < 0) != (places == 0))):
            raise DamagedError(part.path, f"{prefix}parents are not above their nodes")
        if bool(np.any((edges < 0) != (places == 0))) or edges.max(initial=0) > 0x10FFFF:
            raise DamagedError(part.path, f"{prefix}edges are not labels")
        return cls("slt" if prefix == "slt_" else "opt", names, offsets, labels, parents, edges)

    @classmethod
    def combined(
        cls, pieces: Sequence[PackedTrees], numbers: Sequence[Rows], size: int, folder: Path | None = None
    ) -> PackedTrees:
        kept = [piece.take(np.flatnonzero(number >= 0)) for piece, number in zip(pieces, numbers, strict=True)]
        names, labels = renumbered([piece.names for piece in kept], [piece.labels for piece in kept])
        offsets, order = combined_runs(
            [piece.offsets for piece in kept], [numbered[numbered >= 0] for numbered in numbers], size
        )
        nothing = np.zeros(0, dtype=np.int32)
        parents, edges = (
            np.concatenate([nothing, *(getattr(piece, name) for piece in kept)])[order] for name in ("parents", "edges")
        )
        return cls(pieces[0].kind, names, offsets, labels[order], parents, edges)

    def arrays(self, prefix: str) -> dict[str, Array]:
        plain = {f"{prefix}{name}": getattr(self, name) for name in ("offsets", "labels", "parents", "edges")}
        return plain | text_arrays(f"{prefix}names", self.names)


class TreePairs(BothTrees[PackedTrees]):
    """Both trees of ``x`` expressions."""

    OF = StoredTrees

    def __len__(self) -> int:
        return len(self.slt)

    def __iter__(self) -> Iterator[FormulaPair]:
        return map(self.pair, range(len(self)))

    def pair(self, row: int) -> FormulaPair:
        return FormulaPair(self.slt.tree(row), self.opt.tree(row))

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        return super().combined(pieces, numbers, size, folder) if pieces else cls.of_pairs([])

    @classmethod
    def of_pairs(cls, pairs: Sequence[FormulaPair]) -> Self:
        return cls(*(StoredTrees.of_trees([getattr(pair, kind) for pair in pairs], kind) for kind in get_args(Packed)))


def _nbytes(pair: FormulaPair) -> int:
    return _NODE_BYTES * sum(len(tree.nodes) for tree in pair if tree is not None)


TREES = expression_kind(
    TreePairs,
    *_fields("slt"),
    *_fields("opt"),
    type="formula_trees",
    format="mathamr",
    version=1,
    index="FormulaTrees('{path}')",
)


class FormulaTrees(ExpressionIndex[ExpressionSnapshot[TreePairs]]):
    r"""Both trees of each formula of a collection, once for each expression.

    Systems that re-rank candidates by whole trees read them from here: the alignment of Tangent-S, the edit distance.

    Args:
        path: the folder; it need not exist yet.

    Example::

        trees = FormulaTrees("formulas.trees")
        trees.index(dataset.get_corpus_iter())
    """

    KIND, PAYLOAD = TREES, TreePairs

    @staticmethod
    def example() -> FormulaTrees:
        """Return trees that are not built."""
        return FormulaTrees("formulas.trees")

    edit_distance = method(EditDistanceReranker)

    def get(self, formula_id: str) -> FormulaPair:
        """Return both trees of a formula.

        Raises:
            UnknownIdError: there is no such formula.
        """
        snapshot = self.snapshot()
        return snapshot.expressions.payload.pair(int(snapshot.expressions_of([formula_id])[0]))

    def packed(self, kind: Packed) -> PackedTrees:
        """Return the trees of one kind, of each distinct formula."""
        trees = self.snapshot().expressions.payload
        return trees.slt if kind == "slt" else trees.opt

    def packing(self) -> Packing:
        """Describe the stored data of an expression: both trees."""
        return Packing(partial(CollectingBuilder, TreePairs.of_pairs, _nbytes))

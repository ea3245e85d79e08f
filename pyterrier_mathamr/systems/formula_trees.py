"""Both trees of each formula of a collection on disk, for systems that compare whole trees.

A part keeps those of each expression, packed::

    slt_offsets, slt_labels, slt_parents, slt_edges      arrays of :class:`PackedTrees`, x trees
    slt_names                                            the labels, ascending
    opt_…                                                likewise
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import lt
from pathlib import Path
from typing import Self, get_args

import numpy as np

from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed, PackedTrees
from pyterrier_mathamr.sparse.expressions import (
    ExpressionIndex,
    ExpressionSnapshot,
    Packing,
    combined_runs,
    expression_fields,
    merging,
)
from pyterrier_mathamr.sparse.index import UNBOUNDED
from pyterrier_mathamr.sparse.texts import read_texts, text_arrays, text_fields
from pyterrier_mathamr.store import Array, DamagedError, Field, Kind, Rows, StoredPart, ranges
from pyterrier_mathamr.systems.edit_distance import EditDistanceReranker

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


@dataclass(frozen=True, slots=True, eq=False)
class TreePairs:
    """Both trees of ``x`` expressions.

    Attributes:
        slt: the layout trees.
        opt: the operator trees.
    """

    slt: PackedTrees
    opt: PackedTrees

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        """Open what a part has."""
        return cls(*(_read(part, kind) for kind in get_args(Packed)))

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several; a number of -1 leaves an expression out."""
        return cls(
            _combined([piece.slt for piece in pieces], numbers, size, "slt"),
            _combined([piece.opt for piece in pieces], numbers, size, "opt"),
        )

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""
        return _arrays(self.slt) | _arrays(self.opt)


class TreePairsBuilder:
    """Takes the trees of expressions, one after another."""

    def __init__(self) -> None:
        self._slt, self._opt = list[FormulaTree | None](), list[FormulaTree | None]()
        self.nbytes = 0
        """The memory that is taken, about."""

    def add(self, pair: FormulaPair) -> None:
        """Take both trees of an expression."""
        self._slt.append(pair.slt)
        self._opt.append(pair.opt)
        self.nbytes += _NODE_BYTES * sum(len(tree.nodes) for tree in pair if tree is not None)

    def payload(self) -> TreePairs:
        """Return them, packed."""
        return TreePairs(PackedTrees.of_trees(self._slt, "slt"), PackedTrees.of_trees(self._opt, "opt"))


TREES = Kind(
    type="formula_trees",
    format="mathamr",
    version=1,
    fields=expression_fields(*_fields("slt"), *_fields("opt")),
    merge=merging(TreePairs),
    rebuild="FormulaTrees('{path}').indexer(mode='overwrite').index(posts)",
    part_bytes=UNBOUNDED,
)


def _read(part: StoredPart, kind: Packed) -> PackedTrees:
    names, offsets = read_texts(part, f"{kind}_names"), part[f"{kind}_offsets"]
    labels, parents, edges = (part[f"{kind}_{name}"] for name in ("labels", "parents", "edges"))
    if not all(map(lt, names, islice(names, 1, None))):
        raise DamagedError(part.path, f"{kind}_names do not ascend")
    places = ranges(np.zeros_like(offsets[1:]), np.diff(offsets))
    if bool(np.any(parents >= places)) or bool(np.any((parents < 0) != (places == 0))):
        raise DamagedError(part.path, f"{kind}_parents are not above their nodes")
    if bool(np.any((edges < 0) != (places == 0))) or edges.max(initial=0) > 0x10FFFF:
        raise DamagedError(part.path, f"{kind}_edges are no labels")
    return PackedTrees(kind, names, offsets, labels, parents, edges)


def _arrays(trees: PackedTrees) -> dict[str, Array]:
    kind = trees.kind
    plain = {f"{kind}_{name}": getattr(trees, name) for name in ("offsets", "labels", "parents", "edges")}
    return plain | text_arrays(f"{kind}_names", trees.names)


def _combined(pieces: Sequence[PackedTrees], numbers: Sequence[Rows], size: int, kind: Packed) -> PackedTrees:
    """Combine packed trees; labels are those that occur, ascending."""
    kept = [piece.take(np.flatnonzero(number >= 0)) for piece, number in zip(pieces, numbers, strict=True)]
    used = [np.unique(piece.labels) for piece in kept]
    names = sorted({piece.names[label] for piece, some in zip(kept, used, strict=True) for label in some.tolist()})
    number_of = dict(zip(names, range(len(names)), strict=True))
    labels = [np.zeros(0, dtype=np.int32)]
    for piece, some in zip(kept, used, strict=True):
        renumbered = np.zeros(len(piece.names), dtype=np.int32)
        renumbered[some] = [number_of[piece.names[label]] for label in some.tolist()]
        labels.append(renumbered[piece.labels])
    offsets, order = combined_runs([piece.offsets for piece in kept], [of[of >= 0] for of in numbers], size)
    nothing = np.zeros(0, dtype=np.int32)
    parents, edges = (
        np.concatenate(list(chain([nothing], (getattr(piece, name) for piece in kept))))[order]
        for name in ("parents", "edges")
    )
    return PackedTrees(kind, names, offsets, np.concatenate(labels)[order], parents, edges)


class TreesSnapshot(ExpressionSnapshot[TreePairs]):
    """The trees as they were when they were opened."""

    KIND, payload = TREES, TreePairs


class FormulaTrees(ExpressionIndex[TreesSnapshot]):
    r"""Both trees of each formula of a collection, once for each expression.

    Systems that rank candidates anew by whole trees read them from here: the alignment of Tangent-S, the edit distance.

    Args:
        path: the folder; it need not exist yet.

    Example::

        trees = FormulaTrees("formulas.trees")
        trees.index(dataset.get_corpus_iter())
    """

    KIND, SNAPSHOT = TREES, TreesSnapshot

    @staticmethod
    def example() -> FormulaTrees:
        """Return trees that are not built."""
        return FormulaTrees("formulas.trees")

    edit_distance = method(EditDistanceReranker)

    def get(self, formula_id: str) -> FormulaPair:
        """Return both trees of a formula.

        Raises:
            UnknownIdError: it is not there.
        """
        snapshot = self.snapshot()
        row = int(snapshot.expressions_of([formula_id])[0])
        trees = snapshot.expressions.payload
        return FormulaPair(trees.slt.tree(row), trees.opt.tree(row))

    def packed(self, kind: Packed) -> PackedTrees:
        """Return the trees of one kind, of each distinct formula."""
        trees = self.snapshot().expressions.payload
        return trees.slt if kind == "slt" else trees.opt

    def packing(self) -> Packing:
        """Say what is kept of an expression: both trees."""
        return Packing(TreePairsBuilder)

"""Formula trees: symbol layout trees (SLT, how a formula looks) and operator trees (OPT, what it means).

``x^2+1`` in both forms, nodes numbered depth first, each edge with its label::

    SLT   0 V!x ──a── 1 N!2          a above, b below, o over, u under, n next, w within, e element,
          └────n── 2 + ──n── 3 N!1   c before and above, d before and below

    OPT   0 U!plus ──0── 1 O!SUP ──0── 2 V!𝑥        operand position; always 0 below an unordered (U!) node
          │              └───────1── 3 N!2
          └────────0── 4 N!1
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

TreeKind = Literal["slt", "opt", ""]
"""Which of the two forms a tree has; the empty string lets the edge labels tell."""

Edge = tuple[int, int, str]
"""Parent index, child index, edge label."""

SymbolPair = tuple[str, str, str, str]
"""Ancestor label, descendant label, path between them, place of the ancestor."""

_SLT_LABELS = frozenset("aocnbudew")


@dataclass(frozen=True, slots=True)
class FormulaTree:
    """One formula as a rooted, ordered, labelled tree in the conventions of Tangent-S.

    Args:
        nodes: labels in depth-first order; node 0 is the root.
        edges: ``(parent, child, label)`` in the same order, one for each node but the root.
        partial: part of the source was not understood and is left out or guessed.
        source: the LaTeX or MathML that was read; not compared.
        kind: ``"slt"`` or ``"opt"``; not compared.
    """

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]
    partial: bool = False
    source: str = field(default="", compare=False, repr=False)
    kind: TreeKind = field(default="", compare=False)

    @property
    def is_slt(self) -> bool:
        """Whether this is a symbol layout tree."""
        if self.kind:
            return self.kind == "slt"
        return any(label in _SLT_LABELS for _, _, label in self.edges) and not any(e[2] == "0" for e in self.edges)

    def children(self) -> list[list[tuple[str, int]]]:
        """List for each node its children as ``(edge label, node index)``, in order."""
        found: list[list[tuple[str, int]]] = [[] for _ in self.nodes]
        for parent, child, label in self.edges:
            found[parent].append((label, child))
        return found

    def tuples(self, window: int = 1, eob: bool = False) -> tuple[SymbolPair, ...]:
        """Compute the symbol pairs of Tangent-S, what Tangent-CFT and MathAMR are built on.

        Args:
            window: longest distance between the symbols of a pair, in edges; 0 for any distance.
            eob: add the end-of-baseline pairs ``(label, "0!", "n" or "0", place)``.

        Returns:
            The pairs in the order of Tangent-S; a pair of more than 200 characters is dropped, as there.
        """
        from .tuples import symbol_pairs

        return symbol_pairs(self, window, eob)

    def leaf_paths(self) -> tuple[tuple[str, ...], ...]:
        """Compute the leaf-to-root paths of Approach Zero: the labels from each leaf up to the root."""
        from .tuples import leaf_paths

        return leaf_paths(self)

    def unified(self) -> FormulaTree:
        """Give the tree with types for labels: ``V!x`` becomes ``V!``, an operator without type stays."""
        nodes = tuple(label[:2] if label[1:2] == "!" else label for label in self.nodes)
        return FormulaTree(nodes, self.edges, self.partial, self.source, self.kind)

    def digest(self) -> str:
        """Compute 32 hexadecimal digits that are equal exactly for equal trees: the formula's visual identity."""
        text = "\x1f".join(self.nodes) + "\x1e" + "\x1f".join(f"{parent}{label}" for parent, _, label in self.edges)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def __str__(self) -> str:
        from .drawing import indented

        return indented(self)

    def _repr_html_(self) -> str:
        from .drawing import drawing

        return drawing(self)


class FormulaPair(NamedTuple):
    """Both trees of one formula; ``None`` where there is none."""

    slt: FormulaTree | None
    opt: FormulaTree | None

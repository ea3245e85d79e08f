"""The key of a drawing of a graph: what its shapes, colors and letters mean; only those that it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.drawing import Canvas, Paint, Palette, TreeNode, text_width

from .labels import TYPES

_KINDS = {
    "virtual": "virtual node; dashed: joined to all nodes inside",
    "concept": "concept or constant",
    "placeholder": "formula",
    "opt": "operator tree (OPT)",
    "slt": "symbol layout tree (SLT)",
}
_EDGES = {"a": "above", "b": "below", "o": "over", "u": "under", "w": "within", "e": "element", "c": "before, above",
          "d": "before, below"}  # fmt: skip
_ROW, _GAP = 18.0, 20.0


class KeyEntry(NamedTuple):
    """An entry: the kind of a node with its color, or a letter, and what it means."""

    kind: str
    letter: str
    meaning: str


def key_of(nodes: Iterable[TreeNode], *, virtual: bool = True) -> list[KeyEntry]:
    """List what the nodes of a drawing need to be understood."""
    kinds, letters, edges, again = {"virtual"} if virtual else set(), set[str](), set[str](), False
    for node in nodes:
        kinds.add(node.kind)
        letters.add(node.letter)
        again |= node.again
        if node.kind == "slt":
            edges.add(node.role)
    entries = [KeyEntry(kind, "", meaning) for kind, meaning in _KINDS.items() if kind in kinds]
    entries += [KeyEntry("again", "", "a node drawn elsewhere")] if again else []
    entries += [KeyEntry("", letter, meaning) for letter, meaning in TYPES.items() if letter in letters]
    entries += [KeyEntry("edge", letter, meaning) for letter, meaning in _EDGES.items() if letter in edges]
    return entries


def paint_key(canvas: Canvas, entries: Sequence[KeyEntry], x: float, y: float, width: float, colors: Palette) -> float:
    """Paint a key in lines of a width and return its lower border: shapes first, then letters, then edges."""
    at, top, before = x, y, "shape"
    for entry in entries:
        group = "edge" if entry.kind == "edge" else "letter" if entry.letter else "shape"
        mark = "edge " if group == "edge" and group != before else ""
        wide = text_width(f"{mark}{entry.letter} {entry.meaning}") + (20 if group == "shape" else 0)
        if at > x and (group != before or at + wide > x + width):
            at, top = x, top + _ROW
        _entry(canvas, entry, at, top, mark, colors)
        at, before = at + wide + _GAP, group
    return top + _ROW


def _entry(canvas: Canvas, entry: KeyEntry, x: float, y: float, mark: str, colors: Palette) -> None:
    if entry.letter:
        canvas.text(x, y + 10, f"{mark}{entry.letter}", colors.text, strong=True)
        canvas.text(x + text_width(f"{mark}{entry.letter} "), y + 10, entry.meaning, colors.quiet)
        return
    paint: Paint = getattr(colors, entry.kind) if entry.kind != "again" else Paint(colors.panel, colors.line, "")
    round_corners = entry.kind in ("virtual", "concept", "opt", "again")
    marks = "legend dashed" if entry.kind == "again" else "legend"
    canvas.panel(x, y, 14, 12, paint.fill, paint.border, marks, radius=6 if round_corners else 2)
    canvas.text(x + 20, y + 10, entry.meaning, colors.text)

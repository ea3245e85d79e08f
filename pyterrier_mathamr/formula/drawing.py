"""Formula trees for people: as an indented tree, and as a drawing for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tree import FormulaTree

_COLUMN, _ROW, _CHARACTER = 34, 46, 8  # pixels between leaves, between levels, and for each character of a label
_LARGEST = 400  # nodes; a larger tree is shown as text
_DEEPEST = 60  # levels indented; deeper ones stay in the same column, or a chain would fill a square


def _depths(tree: FormulaTree) -> list[int]:
    """Compute the depth of each node."""
    depths = [0] * len(tree.nodes)
    for parent, child, _ in tree.edges:
        depths[child] = depths[parent] + 1
    return depths


def indented(tree: FormulaTree) -> str:
    """Write a tree with one node a line, two blanks a level, its edge label before each node."""
    labels = {child: f"{label} " for _, child, label in tree.edges}
    rows = zip(_depths(tree), tree.nodes, strict=True)
    return "\n".join("  " * min(depth, _DEEPEST) + labels.get(i, "") + node for i, (depth, node) in enumerate(rows))


def drawing(tree: FormulaTree) -> str:
    """Draw a tree as a self-contained SVG picture; a very large tree is returned as text."""
    if len(tree.nodes) > _LARGEST:
        return f"<pre>{html.escape(indented(tree))}</pre>"
    depths, across = _depths(tree), [0.0] * len(tree.nodes)
    below: list[list[int]] = [[child for _, child in edges] for edges in tree.children()]
    width = 0.0
    for node in reversed(range(len(tree.nodes))):  # from the right: children lie before their parent
        if below[node]:
            across[node] = (across[below[node][0]] + across[below[node][-1]]) / 2
        else:
            across[node] = width
            width += max(_COLUMN, _CHARACTER * len(tree.nodes[node]) + 12)
    x = [width - a for a in across]
    y = [_ROW * depth + 24 for depth in depths]
    parts = [
        f'<line x1="{x[p]:.0f}" y1="{y[p] + 6}" x2="{x[c]:.0f}" y2="{y[c] - 16}" stroke="#999"/>'
        f'<text x="{(x[p] + x[c]) / 2:.0f}" y="{(y[p] + y[c]) / 2:.0f}" font-size="10" fill="#777">'
        f"{html.escape(label)}</text>"
        for p, c, label in tree.edges
    ]
    parts += [
        f'<text x="{x[i]:.0f}" y="{y[i]}" text-anchor="middle" font-size="14">{html.escape(label)}</text>'
        for i, label in enumerate(tree.nodes)
    ]
    size = f'width="{width + _COLUMN:.0f}" height="{max(y, default=0) + 20}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="serif">{"".join(parts)}</svg>'

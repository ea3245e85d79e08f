"""Trees that are drawn at random."""

from typing import Any

from hypothesis import strategies as st

from pyterrier_mathamr.formula import FormulaTree


@st.composite
def trees(draw: st.DrawFn, kind: Any, labels: tuple[str, ...], size: int = 14) -> FormulaTree:
    """Draw a tree in preorder; the edges below a node of a layout tree differ, in an operator tree they count up."""
    spine, edges, used = [0], list[tuple[int, int, str]](), dict[int, str]()
    for node in range(1, draw(st.integers(1, size))):
        del spine[draw(st.integers(1, len(spine))) :]
        parent, there = spine[-1], used.get(spine[-1], "")
        free = [edge for edge in "naboucdwe" if edge not in there] if kind == "slt" else str(min(9, len(there)))
        if not free:
            break
        used[parent] = there + draw(st.sampled_from(free))
        edges.append((parent, node, used[parent][-1]))
        spine.append(node)
    nodes = tuple(draw(st.sampled_from(labels)) for _ in range(len(edges) + 1))
    return FormulaTree(nodes, tuple(edges), kind=kind)

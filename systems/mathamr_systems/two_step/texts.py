"""Rows of frames as the texts that the models of the two-step search read.

::

    raw        title, body       formulas as $latex$
    mathamr    graph             its labels, linearized
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.structure import placeholder_number
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_any, post_from_html
from pyterrier_mathamr.posts.reading import check_topic, is_blank, text_of

Order = Literal["role", "written"]

_MATH = "math"
_TREE, _OTHER_TREE = ":opt", ":slt"


def linearise(graph: MathAMRGraph, *, order: Order = "role", math_word: bool = True, latex: bool = False) -> str:
    """Write the labels of a graph depth first, without its edges.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), sections 4.4 and 5.3.2. A
    node that is reached twice is written once; constants are written; the labels of operator trees lose their type
    (``U!plus`` becomes ``plus``). Layout trees are left out.

    Args:
        graph: a graph built with ``formulas="opt"``.
        order: of the children of a node. ``"role"``: by the name of their role without case, so that ``:op10`` comes
            before ``:op2``, and equal roles in reverse writing order, as in the published strings; ``"written"``:
            in writing order.
        math_word: write the word ``math`` for each placeholder, before its tree, as the dissertation's example
            does; the published strings do not.
        latex: write the LaTeX of each formula instead of its operator tree.

    Returns:
        The labels, separated by spaces.

    Raises:
        ConfigError: the order is unknown.
    """
    one_of(*get_args(Order)).check("order", order)
    amr, words = graph.amr, list[str]()
    children: list[list[tuple[str, int]]] = [[] for _ in amr.labels]
    for source, role, target in amr.edges:
        children[source].append((role, target))
    if order == "role":
        for edges in children:
            edges.reverse()
            edges.sort(key=lambda edge: edge[0].lower())  # stable: of equal roles the last written stays first
    seen, waiting = bytearray(len(amr.labels)), [(0, False)]
    while waiting:  # no recursion: formulas may be thousands of symbols deep
        node, in_tree = waiting.pop()
        if seen[node]:
            continue
        seen[node] = True
        label = amr.labels[node]
        number = -1 if in_tree else placeholder_number(label)
        is_formula = 0 <= number < graph.n_formulas
        if is_formula:
            words += [_MATH] * math_word
            words += list(graph.latex[number : number + 1]) * latex
        else:
            words.append(label.partition("!")[2] or label if in_tree else label)
        for role, child in reversed(children[node]):
            if not (is_formula and (role == _OTHER_TREE or (latex and role == _TREE))):
                waiting.append((child, in_tree or (is_formula and role == _TREE)))
    return " ".join(word for word in words if word)


Form = Literal["raw", "mathamr"]
"""Texts with LaTeX between dollars, or linearized MathAMR graphs."""

View = Literal["title", "head", "tail", "whole"]
"""The part of a question to read: its title, the beginning or the end of its body, or title and body."""

Row = Mapping[Any, Any]


def question_text(row: Row, view: View, form: Form) -> str:
    """Write the input of a model for a question."""
    if form == "mathamr":
        return _graph_text(row, "query_graph", "graph")
    check_topic(row)
    title, body = text_of(row, "title"), text_of(row, "html") or text_of(row, "body")
    if not title.strip() and not body.strip():
        return plain_text(post_from_any(text_of(row, "query")))
    if view == "title":
        return plain_text(post_from_any(title))
    return plain_text(post_from_any(body, title if view == "whole" else ""))


def answer_text(row: Row, form: Form) -> str:
    """Write the input of a model for an answer."""
    if form == "mathamr":
        return _graph_text(row, "graph")
    post = MathPost("", ())
    if not is_blank(row.get("html")):
        post = post_from_html(text_of(row, "html"))
    elif not is_blank(row.get("text")):
        post = post_from_any(text_of(row, "text"))
    return plain_text(post)


def _graph_text(row: Row, *columns: str) -> str:
    graph = next((row[name] for name in columns if not is_missing(row.get(name))), None)
    return "" if graph is None or graph.is_empty else linearise(graph)

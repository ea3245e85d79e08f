"""MaxSim as a heat map between the virtual nodes of two posts (MathAMR+, Figure 4.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.drawing.svg import shortened
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import MathPost

from .alignment import Embeddings, virtual_nodes
from .errors import AlignmentError
from .figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = "cividis"  # looks the same with every colour vision, and in grey
_WRITTEN = 600  # cells; more are too small for their numbers


def similarities(
    query_graph: MathAMRGraph,
    query_embs: Embeddings,
    doc_graph: MathAMRGraph,
    doc_embs: Embeddings,
    *,
    query_post: MathPost | None = None,
    doc_post: MathPost | None = None,
) -> pd.DataFrame:
    """Compute the cosine of each virtual node of a query with each of a document.

    Args:
        query_graph: graph of the query.
        query_embs: float32 ``[q, d]``, unit rows: formulas, sentences, document.
        doc_graph: graph of the document.
        doc_embs: float32 ``[n, d]``, the same of the document.
        query_post: the query's text and LaTeX for the labels, where its graph does not have them.
        doc_post: the document's.

    Returns:
        ``[q, n]`` floats; rows and columns are indexed by ``(row, kind, label)``.

    Raises:
        AlignmentError: the vectors do not belong to the graphs, or their widths differ.
    """
    query_nodes = virtual_nodes(query_graph, len(query_embs), query_post)
    doc_nodes = virtual_nodes(doc_graph, len(doc_embs), doc_post)
    if query_embs.shape[1:] != doc_embs.shape[1:]:
        raise AlignmentError(doc_graph.id, f"its vectors {doc_embs.shape} do not fit the query's {query_embs.shape}")
    cosines = np.asarray(query_embs, dtype=np.float64) @ np.asarray(doc_embs, dtype=np.float64).T
    table: pd.DataFrame = pd.DataFrame(
        cosines, pd.MultiIndex.from_frame(query_nodes), pd.MultiIndex.from_frame(doc_nodes)
    )
    return table


def draw_similarities(table: pd.DataFrame, *, title: str = "", label_length: int = 40) -> Figure:
    """Draw a heat map; a frame marks the best match of each virtual node of the query, which MaxSim adds up.

    Args:
        table: of :func:`similarities`.
        title: above the picture.
        label_length: longer labels are cut.

    Returns:
        A matplotlib figure; lines separate formulas, sentences and document. A formula's label begins with its number
        in the sentences (``3`` for FORMULA_3). Up to 600 cells show their numbers.

    Raises:
        MissingExtraError: matplotlib is not installed.

    Example::

        query, document = graph_store.get_many(graph_store.ids()[:2])
        vectors = model.encode([query, document])
        table = explain.similarities(query, vectors[0], document, vectors[1])
        explain.save(explain.draw_similarities(table), 'maxsim.png')
    """
    rows, columns = table.shape
    cell = 0.34 if max(rows, columns) <= 40 else 0.2
    figure = new_figure(columns * cell + 4.6, rows * cell + 3.2)
    axes = figure.add_subplot()
    values = table.to_numpy()
    image = axes.imshow(values, cmap=_COLOURS, aspect="equal", interpolation="nearest")
    _labels(axes, table, label_length, 8 if cell > 0.3 else 6)
    for row, best in enumerate(values.argmax(axis=1)):
        box = axes.add_patch(_frame(best, row))
        box.set_gid(f"best-{row}")
    if values.size <= _WRITTEN and cell > 0.3:
        _numbers(axes, image, values)
    bar = figure.colorbar(image, ax=axes, shrink=min(1.0, 6 / max(rows * cell, 1)), pad=0.02)
    bar.set_label("cosine", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    if title:
        axes.set_title(title, fontsize=10, parse_math=False)
    return figure


def _labels(axes: Axes, table: pd.DataFrame, length: int, size: int) -> None:
    """Write the labels without reading their dollars as math, and separate the kinds by lines."""
    ground = "black"
    for axis, index, line in ((axes.yaxis, table.index, axes.axhline), (axes.xaxis, table.columns, axes.axvline)):
        names = [shortened(_name(*entry), length) for entry in index]
        axis.set_ticks(range(len(names)), names, fontsize=size, parse_math=False)
        for place, (kind, after) in enumerate(pairwise(index.get_level_values("kind"))):
            if kind != after:
                line(place + 0.5, color=ground, linewidth=1.6)
                line(place + 0.5, color="white", linewidth=0.6)
    axes.tick_params(axis="x", rotation=55, bottom=True, length=2)
    for label in axes.get_xticklabels():
        label.set(ha="right", rotation_mode="anchor")
    axes.set_ylabel("query", fontsize=9)
    axes.set_xlabel("document", fontsize=9)


def _name(row: int, kind: str, label: str) -> str:
    """Add a formula's number, by which sentences refer to it."""
    named = kind == "formula" and not label.startswith("FORMULA_")
    return f"{row}: {label}" if named else str(label)


def _frame(column: int, row: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor="#D55E00", linewidth=1.8)


def _numbers(axes: Axes, image: Any, values: Any) -> None:
    """Write each cosine in black or white, whichever stands out more from its cell."""
    for (row, column), value in np.ndenumerate(values):
        red, green, blue = image.cmap(image.norm(value))[:3]
        dark = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.18
        text = f"{value:.2f}".replace("0.", ".", 1)
        axes.text(column, row, text, ha="center", va="center", fontsize=5.5, color="white" if dark else "black")

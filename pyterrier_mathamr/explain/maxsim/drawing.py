"""The picture of a comparison: the two texts, each part of the query and its match in one color; then the numbers.

::

    ┌ query ────────────────────────┐ ┌ document ─────────────────────┐
    │ ① Why is [② x² ≥ 0] ?         │ │ ① A square [② a²] is positive.│
    └───────────────────────────────┘ └───────────────────────────────┘
                                      ①     ②     ③    ③ × ③
             A square a² is positive │.31│ │.12│ │.20│               a number is weight × cosine;
                                  a² │.22│ │.45│ │.18│               framed: the best match of a column
                     the whole text  │.17│ │.14│ │.11│  │.80│
                       in the score   .31 + .45 + .20 +  .80 = 1.76
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy.typing as npt

from pyterrier_mathamr._common.drawing import Canvas, Palette, Picture, Theme, palette
from pyterrier_mathamr.explain.alignment import Embeddings
from pyterrier_mathamr.explain.colors import HUES
from pyterrier_mathamr.formula.display.paragraphs import Badge
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import MathPost

from .comparison import Comparison, Term, compare, similarities
from .panels import measured_panel, paint_panel
from .table import paint_table

MARGIN, _BETWEEN = 14.0, 14.0
_PANEL = 560.0
_GREY = "#b9c0c8"


def draw_maxsim(
    query_graph: MathAMRGraph,
    query_embs: Embeddings,
    doc_graph: MathAMRGraph,
    doc_embs: Embeddings,
    *,
    query_weights: npt.ArrayLike | None = None,
    query_document_weight: float | None = None,
    query_post: MathPost | None = None,
    doc_post: MathPost | None = None,
    theme: Theme = "light",
    parts: int = 16,
) -> Picture:
    """Draw what a document's score is the sum of: both texts, and a table of weighted cosines (MathAMR+, Figure 4.1).

    Args:
        query_graph: graph of the query.
        query_embs: float32 ``[q, d]``, unit rows: formulas, sentences, document.
        doc_graph: graph of the document.
        doc_embs: float32 ``[n, d]``, the same of the document.
        query_weights: float ``[q]``, the weight of each row of the query, as an encoded query has them; 1 by default.
        query_document_weight: the weight of the product of the two document vectors, added to MaxSim.
        query_post: the query's text and LaTeX, where its graph does not have them.
        doc_post: the document's.
        theme: ``light`` or ``dark`` background.
        parts: rows and columns of the table at most; further parts of the query are added up in one column.

    Returns:
        The picture. The numbers in its last row add up to the score.

    Raises:
        AlignmentError: the vectors do not belong to the graphs, their widths or the number of weights differ, or one of
            the posts has no vector.
        ConfigError: there is no such theme.

    Example::

        query, document = graph_store.get_many(graph_store.ids()[:2])
        vectors = model.encode([query, document])
        explain.draw_maxsim(query, vectors[0], document, vectors[1]).save('maxsim.svg')
    """
    table = similarities(query_graph, query_embs, doc_graph, doc_embs, query_post=query_post, doc_post=doc_post)
    found = compare(table, query_graph.id, doc_graph.id, query_weights, query_document_weight)
    return _drawn(found, palette(theme), parts)


class Group(NamedTuple):
    """A part of the query with its number, 1 for the greatest contribution, and its color."""

    number: int
    color: str

    @property
    def badge(self) -> Badge:
        """The number on its color."""
        return Badge(str(self.number), self.color)


def _drawn(found: Comparison, colors: Palette, parts: int) -> Picture:
    canvas, groups = Canvas(), groups_of(found.terms)
    title = f"{found.query_id or 'query'} and {found.document_id or 'document'}: score {found.score:.3f}"
    canvas.text(MARGIN, 26, title, colors.text, strong=True, size=14)
    asked = {row: [group.badge] for row, group in groups.items()}
    met: dict[int, list[Badge]] = {}
    for term in sorted(found.terms, key=lambda term: groups[term.query_row].number):
        badges = met.setdefault(term.document_row, [])
        if groups[term.query_row].badge not in badges:
            badges.append(groups[term.query_row].badge)
    right = MARGIN + _PANEL + _BETWEEN
    panels = (
        measured_panel(f"query {found.query_id}".strip(), found.query, asked, _PANEL),
        measured_panel(f"document {found.document_id}".strip(), found.document, met, _PANEL),
    )
    height = max(panel.height for panel in panels)
    for panel, x in zip(panels, (MARGIN, right), strict=True):
        paint_panel(canvas, panel, x, 40.0, _PANEL, height, colors)
    width, bottom = paint_table(canvas, found, groups, MARGIN, 40.0 + height + 24.0, colors, parts)
    return canvas.picture(max(width, right + _PANEL) + MARGIN, bottom + MARGIN, colors.ground, title)


def groups_of(terms: Sequence[Term]) -> Mapping[int, Group]:
    """Number the rows of the query by what they contribute; the first have colors of their own, the others are grey."""
    totals: dict[int, float] = {}
    for term in terms:
        totals[term.query_row] = totals.get(term.query_row, 0.0) + term.contribution
    ordered = sorted(totals, key=lambda row: -totals[row])
    return {row: Group(i + 1, HUES[i] if i < len(HUES) else _GREY) for i, row in enumerate(ordered)}

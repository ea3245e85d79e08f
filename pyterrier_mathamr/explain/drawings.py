"""Drawings of formulas and graphs, which users find with the other figures."""

from pyterrier_mathamr.formula.display.formula_drawing import draw_formula
from pyterrier_mathamr.graph.drawing.graph_drawing import draw_graph

__all__ = ["draw_formula", "draw_graph"]

"""Explanations: what in a post made its score, and pictures of graphs, scores and experiments."""

from __future__ import annotations

from .alignment import alignment, virtual_nodes
from .charts import draw_speed, draw_topic_differences, topic_differences
from .errors import AlignmentError, ChartError, ExplainError
from .figures import save
from .graph_drawing import draw_graph
from .heatmap import draw_similarities, similarities
from .svg import Picture

__all__ = [
    "AlignmentError",
    "ChartError",
    "ExplainError",
    "Picture",
    "alignment",
    "draw_graph",
    "draw_similarities",
    "draw_speed",
    "draw_topic_differences",
    "save",
    "similarities",
    "topic_differences",
    "virtual_nodes",
]

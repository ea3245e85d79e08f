"""Explanations: which parts of a post contribute to its score, and pictures of graphs, scores and experiments.

::

    graphs, vectors ──▶ alignment      the best match of each virtual node of the query, and its share of the score
                    ──▶ heatmap        all cosines of two posts                    ┐ figures: matplotlib
    table of an experiment ──▶ charts  differences by topic, speed against quality ┘
    graph ──▶ graph_parts ──▶ tree_layout ──▶ graph_drawing ──▶ svg: a Picture, in the colours of palette
"""

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

"""Graphs of posts: AMR with formula trees in place, virtual nodes, vocabulary, tensors, and their stores."""

from __future__ import annotations

from .attach import attach_formulas, detach_formulas
from .batch import GraphBatch, collate
from .errors import GraphError
from .layout import GraphLayout, NodeKind, layout_of
from .mathamr import MathAMRGraph
from .tensors import GraphTensors, graph_tensors
from .virtual import Auxiliary, VirtualKind, VirtualNodes
from .vocabulary import FIRST_VIRTUAL_ID, MASK_ID, UNK_ID, Vocabulary

__all__ = [
    "FIRST_VIRTUAL_ID",
    "MASK_ID",
    "UNK_ID",
    "Auxiliary",
    "GraphBatch",
    "GraphError",
    "GraphLayout",
    "GraphTensors",
    "MathAMRGraph",
    "NodeKind",
    "VirtualKind",
    "VirtualNodes",
    "Vocabulary",
    "attach_formulas",
    "collate",
    "detach_formulas",
    "graph_tensors",
    "layout_of",
]

"""Graphs of posts: AMR with formula trees, virtual nodes, tensors, and their stores.

::

    posts, AMR graphs, formula trees
      │  building/       GraphBuilder: rows → posts → graphs, also in several processes
      │  formula_trees   trees attached below their placeholders
      ▼
    mathamr              MathAMRGraph, to and from Penman notation        store/  GraphStore, on disk
      │  structure       where the formulas and sentences of a graph are
      │  virtual_nodes   the nodes that retrieval vectors are read from;  texts: their plain texts
      ▼
    tensors/             vocabulary ids → GraphTensors → GraphBatch;      TensorStore, on disk
"""

from __future__ import annotations

from .building.from_posts import build_graphs
from .building.parallel import build_store
from .building.transformer import GraphBuilder
from .errors import GraphError, GraphMetadataError, MissingPlaceholderError
from .formula_trees import attach_formulas, detach_formulas
from .mathamr import EMPTY_AMR, MathAMRGraph
from .store.graph_store import GraphStore
from .store.import_penman import ImportReport, Refusal, import_penman
from .structure import GraphLayout, NodeKind, layout_of
from .tensors.batch import GraphBatch, collate
from .tensors.graph_tensors import GraphTensors, graph_tensors
from .tensors.tensor_store import TensorStore
from .tensors.vocabulary import FIRST_VIRTUAL_ID, MASK_ID, UNK_ID, Vocabulary
from .texts import Passages, Segments, passages_of, row_texts, segments_of, sentence_texts
from .virtual_nodes import Auxiliary, VirtualKind, VirtualNodes

__all__ = [
    "EMPTY_AMR",
    "FIRST_VIRTUAL_ID",
    "MASK_ID",
    "UNK_ID",
    "Auxiliary",
    "GraphBatch",
    "GraphBuilder",
    "GraphError",
    "GraphLayout",
    "GraphMetadataError",
    "GraphStore",
    "GraphTensors",
    "ImportReport",
    "MathAMRGraph",
    "MissingPlaceholderError",
    "NodeKind",
    "Passages",
    "Refusal",
    "Segments",
    "TensorStore",
    "VirtualKind",
    "VirtualNodes",
    "Vocabulary",
    "attach_formulas",
    "build_graphs",
    "build_store",
    "collate",
    "detach_formulas",
    "graph_tensors",
    "import_penman",
    "layout_of",
    "passages_of",
    "row_texts",
    "segments_of",
    "sentence_texts",
]

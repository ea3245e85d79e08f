"""Graphs of posts: AMR with formula trees in place, virtual nodes, vocabulary, tensors, and their stores."""

from __future__ import annotations

from .attach import attach_formulas, detach_formulas
from .batch import GraphBatch, collate
from .builder import GraphBuilder
from .building import EMPTY_AMR, build_graphs
from .errors import (
    GraphError,
    MissingPlaceholderError,
    MissingTextsError,
    NothingImportedError,
    TensorsError,
    TextMetadataError,
    VocabularyError,
)
from .import_penman import ImportReport, Refusal, import_penman
from .layout import GraphLayout, NodeKind, layout_of
from .mathamr import MathAMRGraph
from .parallel import build_store
from .store import GraphStore
from .tensor_store import TensorStore
from .tensors import GraphTensors, graph_tensors
from .texts import Passages, passages_of, row_texts, sentence_texts
from .virtual import Auxiliary, VirtualKind, VirtualNodes
from .vocabulary import FIRST_VIRTUAL_ID, MASK_ID, UNK_ID, Vocabulary

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
    "GraphStore",
    "GraphTensors",
    "ImportReport",
    "MathAMRGraph",
    "MissingPlaceholderError",
    "MissingTextsError",
    "NodeKind",
    "NothingImportedError",
    "Passages",
    "Refusal",
    "TensorStore",
    "TensorsError",
    "TextMetadataError",
    "VirtualKind",
    "VirtualNodes",
    "Vocabulary",
    "VocabularyError",
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
    "sentence_texts",
]

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

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:
    from .building.from_posts import build_graphs as build_graphs
    from .building.parallel import build_store as build_store
    from .building.transformer import GraphBuilder as GraphBuilder
    from .errors import GraphError as GraphError
    from .errors import GraphMetadataError as GraphMetadataError
    from .errors import MissingPlaceholderError as MissingPlaceholderError
    from .formula_trees import attach_formulas as attach_formulas
    from .formula_trees import detach_formulas as detach_formulas
    from .mathamr import EMPTY_AMR as EMPTY_AMR
    from .mathamr import MathAMRGraph as MathAMRGraph
    from .store.graph_store import GraphStore as GraphStore
    from .store.import_penman import ImportReport as ImportReport
    from .store.import_penman import Refusal as Refusal
    from .store.import_penman import import_penman as import_penman
    from .structure import GraphLayout as GraphLayout
    from .structure import NodeKind as NodeKind
    from .structure import layout_of as layout_of
    from .tensors.batch import GraphBatch as GraphBatch
    from .tensors.batch import collate as collate
    from .tensors.graph_tensors import GraphTensors as GraphTensors
    from .tensors.graph_tensors import graph_tensors as graph_tensors
    from .tensors.tensor_store import TensorStore as TensorStore
    from .tensors.vocabulary import FIRST_VIRTUAL_ID as FIRST_VIRTUAL_ID
    from .tensors.vocabulary import MASK_ID as MASK_ID
    from .tensors.vocabulary import UNK_ID as UNK_ID
    from .tensors.vocabulary import Vocabulary as Vocabulary
    from .texts import Passages as Passages
    from .texts import Segments as Segments
    from .texts import passages_of as passages_of
    from .texts import row_texts as row_texts
    from .texts import segments_of as segments_of
    from .texts import sentence_texts as sentence_texts
    from .virtual_nodes import Auxiliary as Auxiliary
    from .virtual_nodes import VirtualKind as VirtualKind
    from .virtual_nodes import VirtualNodes as VirtualNodes
    from .virtual_nodes import row_count as row_count

__getattr__, __dir__, __all__ = lazy_names(__name__)

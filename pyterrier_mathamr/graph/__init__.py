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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

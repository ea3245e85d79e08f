"""Graphs of posts: AMR with formula trees, virtual nodes, tensors, and their stores.

::

    posts, AMR graphs, formula trees
      │  building        GraphBuilder: rows → posts → graphs            parallel      in several processes
      ▼
    mathamr              MathAMRGraph: trees attached below their       store         GraphStore, on disk
      │                  placeholders; to and from Penman notation;     penman_files  other programs' graphs, repaired
      │                  the plain texts of its virtual nodes           drawing       a graph as a picture
      │  structure       where formulas and sentences are; the virtual nodes that retrieval vectors are read from
      ▼
    tensors              vocabulary ids → GraphTensors → GraphBatch     tensor_store  TensorStore, on disk
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""The indexes of vectors and the transformers over them.

::

    MathAMR.doc_encoder() ──▶ indexing ──▶ indexes    parts in a folder (parts, store); from_graphs: by many workers
                                  └──────▶ qdrant/    points in a database
                                              │ backend      the snapshot of an index: select, score, look up
    MathAMR.query_encoder() ──▶ transformers ─┤              one retriever, the scorer, the loaders
                                              │ search/      candidates, exact scores
                                              │ subsets      only some documents, by docno or by kept columns
                                 adaptive ────┘              neighbors of documents; GAR and LADR along them

    sharded       several indexes searched as one, each in a process or on a node of a cluster (places)

A third of this layer is ``qdrant/`` and ``sharded``: the same rankings where one folder on one machine is not enough.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

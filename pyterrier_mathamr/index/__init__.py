"""The indexes of vectors and the transformers over them.

::

    MathAMR.doc_encoder() ──▶ indexing ──▶ indexes    parts in a folder (parts, store); spreading: by many workers
                                  └──────▶ qdrant/    points in a database
                                              │ snapshot     a Backend: select, score, look up
    MathAMR.query_encoder() ──▶ transformers ─┤              one retriever, the scorer, the loaders
                                              │ search/      candidates, exact scores
                                              │
    sharded/      several indexes searched as one, each in a process or on a node of a cluster
"""

import warnings
from typing import Any

import lazy_loader

_lazy_names, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; old names are kept for one release."""
    if name in ("PartsError", "QueryError"):
        warnings.warn(f"index.{name} is now index.MathAMRIndexError.", DeprecationWarning, stacklevel=2)
        name = "MathAMRIndexError"
    return _lazy_names(name)

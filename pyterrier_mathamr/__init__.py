"""Math-aware retrieval for PyTerrier: MathAMR+ graphs, R-GCN encoders and MaxSim over virtual nodes.

Public names are imported when they are first used: ``import pyterrier_mathamr`` loads neither torch nor faiss nor Java.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import arqmath  # noqa: F401 - registers the datasets as soon as ir_datasets is loaded; takes a millisecond
from ._version import __version__

if TYPE_CHECKING:
    from .arqmath import (
        TASK1_MEASURES,
        TASK2_MEASURES,
        TASK3_MEASURES,
        VisualIdDeduplication,
        register,
        register_arqmath,
    )
    from .graph import GraphBuilder, GraphStore
    from .index import MathAMRFormulaIndex, MathAMRIndex, QdrantFormulaIndex, QdrantIndex
    from .model import MathAMR, MathAMRConfig, TextEncoder, Trainer
    from .systems import BM25Index, TangentIndex

_ROOM_OF = {
    "TASK1_MEASURES": "arqmath",
    "TASK2_MEASURES": "arqmath",
    "TASK3_MEASURES": "arqmath",
    "VisualIdDeduplication": "arqmath",
    "register": "arqmath",
    "register_arqmath": "arqmath",
    "GraphBuilder": "graph",
    "GraphStore": "graph",
    "MathAMRFormulaIndex": "index",
    "MathAMRIndex": "index",
    "QdrantFormulaIndex": "index",
    "QdrantIndex": "index",
    "MathAMR": "model",
    "MathAMRConfig": "model",
    "TextEncoder": "model",
    "Trainer": "model",
    "BM25Index": "systems",
    "TangentIndex": "systems",
}
_ROOMS = ("amr", "arqmath", "cli", "experiments", "explain", "formula", "graph", "index", "model", "posts", "systems")

__all__ = [  # noqa: RUF022 - in the order of the data's way
    "GraphBuilder",
    "GraphStore",
    "MathAMR",
    "MathAMRConfig",
    "TextEncoder",
    "Trainer",
    "MathAMRIndex",
    "MathAMRFormulaIndex",
    "QdrantIndex",
    "QdrantFormulaIndex",
    "BM25Index",
    "TangentIndex",
    "VisualIdDeduplication",
    "TASK1_MEASURES",
    "TASK2_MEASURES",
    "TASK3_MEASURES",
    "register",
    "register_arqmath",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        value = getattr(importlib.import_module(f".{_ROOM_OF[name]}", __name__), name)
    elif name in _ROOMS:
        value = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM_OF, *_ROOMS})

"""Math-aware retrieval for PyTerrier: MathAMR+ graphs, R-GCN encoders and MaxSim over virtual nodes.

Public names are imported when they are first used: ``import pyterrier_mathamr`` loads neither torch nor faiss nor Java.
"""

from typing import Any

import lazy_loader

from . import arqmath

_lazy_names, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    return arqmath.register if name == "register" else _lazy_names(name)  # deprecated; goes with the next release

"""Math-aware retrieval for PyTerrier: MathAMR+ graphs, R-GCN encoders and MaxSim over virtual nodes.

Public names are imported when they are first used: ``import pyterrier_mathamr`` loads neither torch nor faiss nor Java.
"""

import lazy_loader

from . import arqmath  # noqa: F401 - registers the datasets as soon as ir_datasets is loaded; takes a millisecond

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

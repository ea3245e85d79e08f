"""Math-aware retrieval for PyTerrier: MathAMR+ graphs, R-GCN encoders and MaxSim over virtual nodes.

Public names are imported when they are first used: ``import pyterrier_mathamr`` loads neither torch nor faiss nor Java.
Other published systems are in the package ``mathamr_systems`` (``pip install 'pyterrier-mathamr[systems]'``).
"""

import lazy_loader

from . import arqmath as arqmath  # registers its datasets once ir_datasets is imported

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

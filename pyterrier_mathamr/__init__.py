"""Math-aware retrieval for PyTerrier: MathAMR+ graphs, R-GCN encoders and MaxSim over virtual nodes.

Public names are imported when they are first used: ``import pyterrier_mathamr`` loads neither torch nor faiss nor Java.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import arqmath  # noqa: F401 - registers the datasets as soon as ir_datasets is loaded; takes a millisecond
from ._common.lazy import lazy_names
from ._version import __version__

if TYPE_CHECKING:
    from . import amr as amr
    from . import cli as cli
    from . import engine as engine
    from . import experiments as experiments
    from . import explain as explain
    from . import formula as formula
    from . import graph as graph
    from . import index as index
    from . import model as model
    from . import posts as posts
    from . import systems as systems
    from ._common.errors import MathAMRError as MathAMRError
    from ._common.errors import MathAMRWarning as MathAMRWarning
    from ._common.running.processes import Processes as Processes
    from ._common.running.ray_cluster import RayCluster as RayCluster
    from .arqmath import TASK1_MEASURES as TASK1_MEASURES
    from .arqmath import TASK2_MEASURES as TASK2_MEASURES
    from .arqmath import TASK3_MEASURES as TASK3_MEASURES
    from .arqmath import VisualIdDeduplication as VisualIdDeduplication
    from .arqmath import register as register
    from .arqmath import register_arqmath as register_arqmath
    from .engine import SearchEngine as SearchEngine
    from .graph import GraphBuilder as GraphBuilder
    from .graph import GraphStore as GraphStore
    from .index import MathAMRFormulaIndex as MathAMRFormulaIndex
    from .index import MathAMRIndex as MathAMRIndex
    from .index import QdrantFormulaIndex as QdrantFormulaIndex
    from .index import QdrantIndex as QdrantIndex
    from .index import ShardedIndex as ShardedIndex
    from .model import MathAMR as MathAMR
    from .model import MathAMRConfig as MathAMRConfig
    from .model import TextEncoder as TextEncoder
    from .model import Trainer as Trainer
    from .systems import BM25Index as BM25Index
    from .systems import TangentIndex as TangentIndex

__getattr__, __dir__, __all__ = lazy_names(__name__)
__all__ += ["__version__"]

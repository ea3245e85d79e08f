"""In+Out (Amador and Zanibbi, ICTIR 2025): search by the vectors of the nodes of formula graphs.

::

    both trees ──model──▶ float32 [nodes, d] ──indexer──▶ payload: node_rows of distinct expressions ──index
                                  │                                            │
                                  └──retriever── MaxSim in each graph ─────────┴── combining ──▶ ranking of formulas

The model is that of ``model/in_out``.
"""

from __future__ import annotations

from pyterrier_mathamr.model.in_out import InOut as InOut
from pyterrier_mathamr.model.in_out import InOutOptions as InOutOptions

from .combining import Combine as Combine
from .combining import Scale as Scale
from .index import InOutIndex as InOutIndex
from .index import InOutIndexer as InOutIndexer
from .index import InOutSnapshot as InOutSnapshot
from .payload import NodeEncoder as NodeEncoder
from .retriever import InOutRetriever as InOutRetriever

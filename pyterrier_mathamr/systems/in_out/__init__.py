"""In+Out (Amador and Zanibbi, ICTIR 2025): search by the vectors of the nodes of formula graphs.

::

    both trees ──model/in_out──▶ float32 [nodes, d] ── node_rows ──▶ vectors of distinct expressions on disk
                                       │                                   │
                 query's formula ──────┴── index: MaxSim in each graph ────┴──▶ ranking of formulas
"""

from __future__ import annotations

from pyterrier_mathamr.model.in_out import InOut as InOut
from pyterrier_mathamr.model.in_out import InOutOptions as InOutOptions

from .index import Combine as Combine
from .index import InOutIndex as InOutIndex
from .index import InOutRetriever as InOutRetriever
from .index import Scale as Scale

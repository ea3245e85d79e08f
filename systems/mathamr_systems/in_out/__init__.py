"""In+Out (Amador and Zanibbi, ICTIR 2025): a vector for each symbol of a formula, learned only from formulas.

::

    trees ──graphs──▶ SLG, OPG ──model──▶ float32 [nodes, d] ── index ──▶ vectors of distinct expressions on disk
              └─subexpressions─▶ parts ─training: graphs of one formula against others      │
                                                                                            │
                 query's formula ────────────────────── MaxSim in each graph ───────────────┴──▶ ranking of formulas
"""

from __future__ import annotations

from .graphs import InOutOptions as InOutOptions
from .index import Combine as Combine
from .index import InOutIndex as InOutIndex
from .index import InOutRetriever as InOutRetriever
from .index import Scale as Scale
from .model import InOut as InOut
from .model import train_in_out as train_in_out

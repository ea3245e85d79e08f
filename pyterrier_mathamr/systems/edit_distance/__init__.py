"""Edit distance of formula trees, by which CFTED and CFT2TED rank candidates anew.

::

    packed trees ── postorder ──▶ keyroots, leftmost leaves ── distance ──▶ cost of changing the query into each
"""

from __future__ import annotations

from .distance import EditCosts as EditCosts
from .distance import tree_edit_distance as tree_edit_distance
from .distance import tree_edit_distances as tree_edit_distances
from .reranker import EDIT_COSTS as EDIT_COSTS
from .reranker import Combine as Combine
from .reranker import CostNames as CostNames
from .reranker import EditDistanceReranker as EditDistanceReranker

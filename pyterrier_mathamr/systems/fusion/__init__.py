"""Several rankings in one, by a weighted sum over systems of a function of each system's scores.

::

    queries ──┬── system 0 ──▶ ranking ── part ── w₀ ─┐
              ├── system 1 ──▶ ranking ── part ── w₁ ─┼─▶ Σ ──▶ ranking of all documents that one of them found
              └── …                                   ┘

A fusion says what the part is, the weights, and what a document has that a system did not find:

    ZScoreFusion    the standard score among the query's documents     weights    the lowest of the system
    ConvexFusion    the score brought to 0 … 1                         α, 1 - α   0
    ModifiedRRF     score / (k + rank)                                 1          0
    Ensemble        as ZScoreFusion, scorers of what was found, too    learned    the lowest of the system

``blend`` is the sum for what one first stage found, `LinearBlend`.
"""

from __future__ import annotations

from .base import Fusion as Fusion
from .base import System as System
from .base import ranked as ranked
from .ensemble import Ensemble as Ensemble
from .min_max import ConvexFusion as ConvexFusion
from .reciprocal_rank import RRF_K as RRF_K
from .reciprocal_rank import ModifiedRRF as ModifiedRRF
from .reciprocal_rank import reciprocal_ranks as reciprocal_ranks
from .z_score import ZScoreFusion as ZScoreFusion
from .z_score import fit_fusion_weight as fit_fusion_weight
from .z_score import fit_fusion_weights as fit_fusion_weights
from .z_score import fuse_rankings as fuse_rankings
from .z_score import standard_scores as standard_scores

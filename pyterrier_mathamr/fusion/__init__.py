"""Several rankings in one, by a weighted sum over systems of a function of each system's scores.

::

    queries ──┬── system 0 ──▶ ranking ── part ── w₀ ─┐
              ├── system 1 ──▶ ranking ── part ── w₁ ─┼─▶ Σ ──▶ ranking of all documents that one of them found
              └── …                                   ┘

A fusion defines the parts, the weights, and the score of a document that a system did not find:

    ZScoreFusion    the standard score among the query's documents     weights    the lowest of the system
    ConvexFusion    the score brought to 0 … 1                         α, 1 - α   0
    ModifiedRRF     score / (k + rank)                                 1          0
    Ensemble        as ZScoreFusion, scorers of what was found, too    learned    the lowest of the system

`LinearBlend` is the learned sum for what one first stage found.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

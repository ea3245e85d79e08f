"""Several rankings in one, by a weighted sum over systems of a function of each system's scores.

::

    queries ──┬── system 0 ──▶ ranking ── part ── w₀ ─┐
              ├── system 1 ──▶ ranking ── part ── w₁ ─┼─▶ Σ ──▶ ranking of all documents that one of them found
              └── …                                   ┘

The fusions differ in each document's part, the weights, and the part of a document that a system did not find:

    ZScoreFusion    the standard score among the query's documents     weights    the lowest of the system
    ConvexFusion    the score rescaled to 0 … 1                        α, 1 - α   0
    ModifiedRRF     score / (k + rank)                                 1          0
    Ensemble        as ZScoreFusion, but also with scorers             learned    the lowest of the system

`LinearBlend` is a learned sum that re-ranks the results of one first stage.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Learning to rank formulas: their similarities to the query as features, and linear rankers of any features.

::

    ranking ── features ── pt.ltr ──▶ ranker ──▶ ranking
"""

from __future__ import annotations

from .features import FormulaFeatures as FormulaFeatures
from .ranker import ListwiseRanker as ListwiseRanker
from .ranker import PairwiseRanker as PairwiseRanker

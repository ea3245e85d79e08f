"""The two-step search: similar questions first, then their answers (Mansouri, dissertation, 2022, section 5.3).

::

    linearise     a MathAMR graph as one line of words
    ranking_svm   SVM-rank over six features
"""

from __future__ import annotations

from .linearise import linearise as linearise
from .ranking_svm import RankingSVM as RankingSVM

"""Tangent-S: what its symbol pairs find, ranked anew by how well whole trees align.

::

    trees ── counts ──▶ nodes that any two nodes would align ── alignment ──▶ MSS, precision, exact recall
"""

from __future__ import annotations

from .alignment import AlignmentScores as AlignmentScores
from .alignment import align as align
from .alignment import alignment_scores as alignment_scores
from .retriever import TANGENT_S_WEIGHTS as TANGENT_S_WEIGHTS
from .retriever import TangentS as TangentS

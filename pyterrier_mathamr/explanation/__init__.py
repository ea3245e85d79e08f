"""Explanations of scores: what each part of a query contributes to the score of a document.

::

    explanation   Part, Explanation: the parts, whose contributions sum to the score
    asking        the query and the document that an explanation is asked for
    alignment     the parts of MaxSim: the best match of each virtual node of the query
    pipelines     explanations of pipelines, by their last stage that scores
    terminal      an explanation as a table of text
    notebook      an explanation as HTML;  colors: the two texts, each part and what it met in one color

All systems explain by these; users find them in :mod:`pyterrier_mathamr.explain`, beside the figures.
"""

from __future__ import annotations

from .alignment import explain_maxsim, virtual_nodes
from .asking import Asked, QueryRow, read_asked
from .errors import AlignmentError, AskedError, ExplainError
from .explanation import Explanation, Part, Reading
from .pipelines import Ranked, explain_score, explained, name_of

__all__ = [
    "AlignmentError",
    "Asked",
    "AskedError",
    "ExplainError",
    "Explanation",
    "Part",
    "QueryRow",
    "Ranked",
    "Reading",
    "explain_maxsim",
    "explain_score",
    "explained",
    "name_of",
    "read_asked",
    "virtual_nodes",
]

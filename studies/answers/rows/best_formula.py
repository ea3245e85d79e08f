"""The row of formulas alone, by vectors: an answer has the score of its best formula."""

from __future__ import annotations

import pyterrier as pt

from pyterrier_mathamr.systems import FormulaAnswers
from studies.answers.definition import AnswerRow
from studies.answers.parts import DEPTH, AnswerParts


def _in_out(parts: AnswerParts) -> pt.Transformer:
    """Compare the largest formula of a topic by In+Out with those of all answers."""
    return FormulaAnswers(parts.shared.in_out, parts.threads, DEPTH, store=parts.topic_trees())


IN_OUT_ROW = AnswerRow("In+Out by best formula", _in_out)

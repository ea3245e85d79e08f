"""The definition of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from studies.answers.definition import AnswerStudy

from .question_search import question_table
from .rows import ROWS
from .sanity import sanity_table

if TYPE_CHECKING:
    from studies.answers.definition import Outcome

QUESTIONS, SANITY = "Questions by links", "Sanity of QASim"


def _more(outcome: Outcome) -> dict[str, pd.DataFrame]:
    return {QUESTIONS: question_table(outcome), SANITY: sanity_table(outcome)}


STUDY = AnswerStudy(
    "answers/two-step",
    "Questions first, then their answers",
    rows=ROWS,
    more=_more,
    about={
        QUESTIONS: "Test questions look for the questions that they are linked with, among all others.",
        SANITY: "Cross-entropy on the fold of the judgments that is held out.",
    },
    notes=(
        "QASim and the ranking SVM are trained on one year and rank for the other, both ways. The SVM is fitted on the "
        "topics that its QASim was trained on, as published.",
        "Rows with QASim or MathSE rank the judged candidates of a topic alone: measures remove the others first, and "
        "QASim would read some hundred thousand of them. In their fusions, ranks are those among judged candidates.",
        "No question of the test part is in any pair that QQSim or QASim was trained on.",
        "Without votes in the collection MathSE is QQSim; without comments and accepted answers these features are 0.",
        "Linked posts cannot be measured: there are no links of topics.",
    ),
)

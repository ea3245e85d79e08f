"""The two-step search: similar questions first, then their answers (Mansouri, dissertation, 2022, section 5.3).

::

    questions ──qqsim──▶ ModifiedRRF ──threads.answers()──▶ candidates
                                                              ├── math_se ─────────────────▶ QQSim · votes
                                                              ├── qasim ── TimesQQ ────────▶ QQSim · QASim
                                                              └── features ── ranking_svm ─▶ SVM-rank
    texts, graph_words   what the models read: LaTeX between dollars, or a MathAMR graph as words
    networks, training   language models: loaded, saved, run; a loop over batches that keeps the best epoch
      bi_losses          the two losses of bi-encoders, in turn
      qasim_losses       those of QASim, and what is held out
    baselines            answers of linked questions
    formula_answers      answers of formulas that Tangent or another index finds
"""

from __future__ import annotations

from .baselines import LinkedPosts as LinkedPosts
from .encoders import QuestionDocEncoder as QuestionDocEncoder
from .encoders import QuestionQueryEncoder as QuestionQueryEncoder
from .features import TwoStepFeatures as TwoStepFeatures
from .formula_answers import FormulaAnswers as FormulaAnswers
from .formula_answers import TangentAnswers as TangentAnswers
from .graph_words import linearise as linearise
from .math_se import MathSEScore as MathSEScore
from .qasim import TARGETS as TARGETS
from .qasim import QASim as QASim
from .qasim_scorer import QASimScorer as QASimScorer
from .qasim_scorer import TimesQQ as TimesQQ
from .qqsim import QQSim as QQSim
from .ranking_svm import RankingSVM as RankingSVM
from .training import FitOptions as FitOptions

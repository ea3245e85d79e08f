"""The two-step search: similar questions first, then their answers (Mansouri, dissertation, 2022, section 5.3).

::

    questions ──qqsim──▶ ModifiedRRF ──threads.answers()──▶ candidates
                                                              ├── math_se ─────────────────▶ QQSim · votes
                                                              ├── qasim ── TimesQQ ────────▶ QQSim · QASim
                                                              └── features ── ranking_svm ─▶ SVM-rank
    texts, graph_words   what the models read: LaTeX between dollars, or a MathAMR graph as words
    networks, training   language models: loaded, saved, run; a loop over batches that keeps the best epoch
      bi_losses          the two losses of bi-encoders, in turn
    qqsim/, qasim/       the two models, each with its transformers; qasim/losses has those of QASim
    baselines            answers of linked questions
    formula_answers      answers of formulas that Tangent or another index finds
"""

from __future__ import annotations

from .baselines import LinkedPosts as LinkedPosts
from .features import TwoStepFeatures as TwoStepFeatures
from .formula_answers import FormulaAnswers as FormulaAnswers
from .formula_answers import TangentAnswers as TangentAnswers
from .graph_words import linearise as linearise
from .math_se import MathSEScore as MathSEScore
from .qasim.model import TARGETS as TARGETS
from .qasim.model import QASim as QASim
from .qasim.scorer import QASimScorer as QASimScorer
from .qasim.scorer import TimesQQ as TimesQQ
from .qqsim.encoders import QuestionDocEncoder as QuestionDocEncoder
from .qqsim.encoders import QuestionQueryEncoder as QuestionQueryEncoder
from .qqsim.model import QQSim as QQSim
from .ranking_svm import RankingSVM as RankingSVM
from .training import FitOptions as FitOptions

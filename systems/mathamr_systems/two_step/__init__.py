"""The two-step search: similar questions first, then their answers (Mansouri, dissertation, 2022, section 5.3).

::

    questions ──QQSim──▶ ModifiedRRF ──threads.answers()──▶ candidates ──ranking──▶ answers
                                                               └── QASim ──┘
    networks    language models: loaded, saved, run, trained; one vector for each text; the losses of bi-encoders
    similarity  the input of the models (LaTeX between dollars, or a MathAMR graph as words), QQSim and QASim
    ranking     both similarities as scores and features; answers of linked questions, and of formulas
"""

from __future__ import annotations

from .networks import FitOptions as FitOptions
from .ranking import FormulaAnswers as FormulaAnswers
from .ranking import LinkedPosts as LinkedPosts
from .ranking import MathSEScore as MathSEScore
from .ranking import RankingSVM as RankingSVM
from .ranking import TimesQQ as TimesQQ
from .ranking import TwoStepFeatures as TwoStepFeatures
from .similarity import TARGETS as TARGETS
from .similarity import QASim as QASim
from .similarity import QQSim as QQSim
from .similarity import linearise as linearise

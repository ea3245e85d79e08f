"""The two-step search: similar questions first, then their answers (Mansouri, dissertation, 2022, section 5.3).

::

    questions ──qqsim──▶ ModifiedRRF ──threads.answers()──▶ candidates ──ranking──▶ answers
                                                               └── qasim ──┘
    texts       the input of the models: LaTeX between dollars, or a MathAMR graph as words
    networks    language models: loaded, saved, run, trained; the losses of bi-encoders
    bi_encoder  one vector for each text, and the transformers that add it
    answers     baselines: answers of linked questions, and of formulas that an index of formulas finds
"""

from __future__ import annotations

from .answers import FormulaAnswers as FormulaAnswers
from .answers import LinkedPosts as LinkedPosts
from .networks import FitOptions as FitOptions
from .qasim import TARGETS as TARGETS
from .qasim import QASim as QASim
from .qqsim import QQSim as QQSim
from .ranking import MathSEScore as MathSEScore
from .ranking import RankingSVM as RankingSVM
from .ranking import TimesQQ as TimesQQ
from .ranking import TwoStepFeatures as TwoStepFeatures
from .texts import linearise as linearise

"""The study ``answers/two-step``: questions first, then their answers.

::

    recipes ──▶ models: QQSim and QASim, trained once for each seed ◀── material: texts, links, judgments
                  │
                  ├──▶ question_index: similar questions, and their answers
                  ├──▶ rows: rankings of answers       of judged candidates, as the measures see them
                  └──▶ question_search, sanity         further tables
"""

from __future__ import annotations

from .study import STUDY as STUDY

"""Experiments on a whole collection: build, search, measure, report; and studies that compare ways to train.

::

    training/ ─────────────────────────────┐         mined negatives
    measuring/ ──▶ search ─────────────────┤         topics to rankings and measures
    stages ────────────────────────────────┴▶ artifacts/   what a work folder keeps
                                                  │
                                   ┌──────────────┴─────────────┐
                                   ▼                            ▼
                                 tasks/: one model          studies/, formula_studies/, answer_studies/: many models
                                   └──────────────┼─────────────┘
                                              protocol/: everything chosen on other topics than those that are measured
                                                  │
                                                  ▼
                                              reporting/: tables, notes, costs, versions; published figures beside them
"""

from __future__ import annotations

from pyterrier_mathamr.arqmath.release.inventory import is_release
from studies.answers import ANSWER_STUDIES, AnswerRow, AnswerStudy, run_answer_study
from studies.formulas import FORMULA_STUDIES, FormulaStudy, run_formula_study
from studies.protocol import MTEBSearch, run_beir, run_domains, run_protocol
from studies.trained import PRESETS, STUDIES, Study, run_study

from .artifacts.jobs import build_graphs, index_graph_store
from .errors import ConditionsFailedError, ExperimentError, NoRelevantTopicError, SettingsChangedError, SourceError
from .measuring import (
    DEFAULT_MEASURES,
    KNOWN_ITEM_MEASURES,
    Evaluation,
    evaluate_known_item,
    evaluate_runs,
    measure,
    measure_by_topic,
    read_judgements,
    read_rankings,
    run_systems,
)
from .reporting.published import published, published_answers
from .reporting.report import Report, environment, markdown_table
from .search import search_systems
from .stages import StageRecord, Stages
from .tasks import TRAINING_PRESETS, run_arqmath, run_demo, run_task2
from .training.negatives import MINERS, Miner, mine_negatives

__all__ = [
    "ANSWER_STUDIES",
    "DEFAULT_MEASURES",
    "FORMULA_STUDIES",
    "KNOWN_ITEM_MEASURES",
    "MINERS",
    "PRESETS",
    "STUDIES",
    "TRAINING_PRESETS",
    "AnswerRow",
    "AnswerStudy",
    "ConditionsFailedError",
    "Evaluation",
    "ExperimentError",
    "FormulaStudy",
    "MTEBSearch",
    "Miner",
    "NoRelevantTopicError",
    "Report",
    "SettingsChangedError",
    "StageRecord",
    "Stages",
    "Study",
    "environment",
    "evaluate_known_item",
    "evaluate_runs",
    "markdown_table",
    "measure",
    "measure_by_topic",
    "mine_negatives",
    "published",
    "published_answers",
    "read_judgements",
    "read_rankings",
    "run_answer_study",
    "run_arqmath",
    "run_beir",
    "run_demo",
    "run_domains",
    "run_formula_study",
    "run_protocol",
    "run_study",
    "run_systems",
    "run_task2",
    "search_systems",
]

__getattr__ = moved

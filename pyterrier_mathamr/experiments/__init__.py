"""Experiments on a whole collection: build, search, measure, report; and studies that compare ways to train.

::

    sources ─┬─▶ training/ ────────────────┐         pairs, with mined negatives, to a model
             └─────────────────────────────┤         posts to graphs and vectors on disk
    measuring/ ──▶ search ─────────────────┤         topics to rankings and measures
    stages ────────────────────────────────┴▶ artifacts/   what a work folder keeps, and the jobs that make it
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

from .answer_studies import ANSWER_STUDIES, AnswerRow, AnswerStudy, run_answer_study
from pyterrier_mathamr.index.from_graphs import build_graphs, index_graph_store
from .errors import ConditionsFailedError, ExperimentError, NoRelevantTopicError, SettingsChangedError, SourceError
from .formula_studies import FORMULA_STUDIES, FormulaStudy, run_formula_study
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
from .protocol import MTEBSearch, run_beir, run_domains, run_protocol
from .reporting.published import published, published_answers
from .reporting.report import Report, environment, markdown_table
from .search import search_systems
from pyterrier_mathamr.arqmath.sources import LINKED_QUESTIONS, LinkedQuestions, TrainingPairs, count_documents, known_answers, linked_pairs, read_documents, read_training_pairs
from .stages import StageRecord, Stages
from .studies import PRESETS, STUDIES, Study, run_study
from .tasks import TRAINING_PRESETS, run_arqmath, run_demo, run_task2
from pyterrier_mathamr.model.training.from_sources import FurtherTraining, train_from_sources, train_in_out
from .training.negatives import MINERS, Miner, mine_negatives

__all__ = [
    "ANSWER_STUDIES",
    "DEFAULT_MEASURES",
    "FORMULA_STUDIES",
    "KNOWN_ITEM_MEASURES",
    "LINKED_QUESTIONS",
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
    "FurtherTraining",
    "LinkedQuestions",
    "MTEBSearch",
    "Miner",
    "NoRelevantTopicError",
    "Report",
    "SettingsChangedError",
    "SourceError",
    "StageRecord",
    "Stages",
    "Study",
    "TrainingPairs",
    "build_graphs",
    "count_documents",
    "environment",
    "evaluate_known_item",
    "evaluate_runs",
    "index_graph_store",
    "is_release",
    "known_answers",
    "linked_pairs",
    "markdown_table",
    "measure",
    "measure_by_topic",
    "mine_negatives",
    "published",
    "published_answers",
    "read_documents",
    "read_judgements",
    "read_rankings",
    "read_training_pairs",
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
    "train_from_sources",
    "train_in_out",
]

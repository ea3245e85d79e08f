"""Experiments: the whole way on a collection, its tables, and with what they were made."""

from __future__ import annotations

from .arqmath_run import run_arqmath
from .compare import measure, measure_by_topic, run_systems, search_systems
from .demo import run_demo
from .environment import environment
from .errors import ConditionsFailedError, ExperimentError, NoRelevantTopicError, SettingsChangedError, SourceError
from .jobs import build_graphs, index_graph_store
from .known_item import KNOWN_ITEM_MEASURES, evaluate_known_item
from .links import LINKED_QUESTIONS, LinkedQuestions, known_answers, linked_pairs
from .markdown import markdown_table
from .negatives import MINERS, Miner, mine_negatives
from .report import Report
from .sources import TrainingPairs, read_documents, read_training_pairs
from .stages import StageRecord, Stages
from .studies import PRESETS, STUDIES, Study, published, run_study
from .task2_run import run_task2
from .training import FurtherTraining, train_from_sources

__all__ = [
    "KNOWN_ITEM_MEASURES",
    "LINKED_QUESTIONS",
    "MINERS",
    "PRESETS",
    "STUDIES",
    "ConditionsFailedError",
    "ExperimentError",
    "FurtherTraining",
    "LinkedQuestions",
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
    "environment",
    "evaluate_known_item",
    "index_graph_store",
    "known_answers",
    "linked_pairs",
    "markdown_table",
    "measure",
    "measure_by_topic",
    "mine_negatives",
    "published",
    "read_documents",
    "read_training_pairs",
    "run_arqmath",
    "run_demo",
    "run_study",
    "run_systems",
    "run_task2",
    "search_systems",
    "train_from_sources",
]

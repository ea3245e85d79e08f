"""Experiments: the whole way on a collection, its tables, and with what they were made."""

from __future__ import annotations

from .errors import ConditionsFailedError, ExperimentError, NoRelevantTopicError, SettingsChangedError, SourceError
from .jobs import build_graphs, index_graph_store
from .measuring import KNOWN_ITEM_MEASURES, evaluate_known_item, measure, measure_by_topic, run_systems, search_systems
from .negatives import MINERS, Miner, mine_negatives
from .report import Report, environment, markdown_table
from .sources import (
    LINKED_QUESTIONS,
    LinkedQuestions,
    TrainingPairs,
    known_answers,
    linked_pairs,
    read_documents,
    read_training_pairs,
)
from .stages import StageRecord, Stages
from .studies import PRESETS, STUDIES, Study, published, run_study
from .tasks import run_arqmath, run_demo, run_task2
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

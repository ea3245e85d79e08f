"""Experiments: the whole way on a collection, its tables, and with what they were made."""

from __future__ import annotations

from .arqmath_run import run_arqmath
from .compare import measure, measure_by_topic, run_systems, search_systems
from .demo import run_demo
from .environment import environment
from .errors import ExperimentError, NoRelevantTopicError, SettingsChangedError, SourceError
from .jobs import build_graphs, index_graph_store, train_from_sources
from .known_item import KNOWN_ITEM_MEASURES, evaluate_known_item, known_item_table
from .report import Report, markdown_table
from .sources import TrainingPairs, read_documents, read_training_pairs
from .stages import StageRecord, Stages

__all__ = [
    "KNOWN_ITEM_MEASURES",
    "ExperimentError",
    "NoRelevantTopicError",
    "Report",
    "SettingsChangedError",
    "SourceError",
    "StageRecord",
    "Stages",
    "TrainingPairs",
    "build_graphs",
    "environment",
    "evaluate_known_item",
    "index_graph_store",
    "known_item_table",
    "markdown_table",
    "measure",
    "measure_by_topic",
    "read_documents",
    "read_training_pairs",
    "run_arqmath",
    "run_demo",
    "run_systems",
    "search_systems",
    "train_from_sources",
]

"""Names of earlier releases, each with its place now: in a room of the package, or in ``studies/`` of a clone."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_PLACES = {
    **dict.fromkeys(("ANSWER_STUDIES", "FORMULA_STUDIES", "STUDIES"), "studies.registry.STUDIES"),
    **dict.fromkeys(("run_answer_study", "run_formula_study", "run_study"), "studies.registry.run_study"),
    **dict.fromkeys(("AnswerStudy", "FormulaStudy", "Study"), "studies.study.Study"),
    "AnswerParts": "experiments.systems.AnswerParts",
    "AnswerRow": "experiments.System",
    "ConditionsFailedError": "studies.study.RunsFailedError",
    "LINKED_QUESTIONS": "arqmath.LINKED_QUESTIONS",
    "LinkedQuestions": "arqmath.LinkedQuestions",
    "NoRelevantTopicError": "experiments.ExperimentError",
    "PRESETS": "studies.study.PRESETS",
    "SettingsChangedError": "experiments.ExperimentError",
    "SourceError": "arqmath.ARQMathError",
    "TRAINING_PRESETS": "experiments.preparing.TRAINING_PRESETS",
    "TrainingPairs": "arqmath.TrainingPairs",
    "build_graphs": "arqmath.graphs_from_sources",
    "count_documents": "arqmath.count_documents",
    "index_graph_store": "index.index_graph_store",
    "is_release": "arqmath.is_release",
    "known_answers": "arqmath.known_answers",
    "linked_pairs": "arqmath.linked_pairs",
    "measure_by_topic": "experiments.measuring.measure_by_topic",
    "published_answers": "experiments.report.published_answers",
    "read_documents": "arqmath.read_documents",
    "read_training_pairs": "arqmath.read_training_pairs",
    "run_domains": "studies.protocol.domains.run_domains",
    "run_protocol": "studies.protocol.protocol_run.run_protocol",
    "run_systems": "experiments.measuring.run_systems",
    "run_task2": "experiments.task2.run_task2",
    "train_from_sources": "arqmath.train_from_sources",
    "train_in_out": "model.train_in_out",
}


def moved(name: str) -> Any:
    """Return a name that was here until the last release, with a warning that names its new place."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'pyterrier_mathamr.experiments' has no attribute {name!r}")
    if place.startswith("studies."):
        raise AttributeError(f"{name} is now {place} in a clone of the repository, not in the package")
    warnings.warn(f"experiments.{name} is now pyterrier_mathamr.{place}.", DeprecationWarning, stacklevel=3)
    module, _, attribute = place.rpartition(".")
    return getattr(import_module(f"pyterrier_mathamr.{module}"), attribute)

"""Names of earlier releases: what builds, trains and indexes is in lower rooms now, and studies are in ``studies/``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pyterrier_mathamr.arqmath import LinkedQuestions, train_from_sources
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, train_in_out
from pyterrier_mathamr.systems import FormulaTrees, InOut, InOutOptions

from .negatives import Miner, mine_negatives

_MOVED = {
    **dict.fromkeys(
        ["LINKED_QUESTIONS", "LinkedQuestions", "TrainingPairs", "count_documents", "is_release", "known_answers"],
        "arqmath",
    ),
    **dict.fromkeys(["linked_pairs", "read_documents", "read_training_pairs"], "arqmath"),
    "SourceError": "arqmath.ARQMathError",
    "build_graphs": "arqmath.graphs_from_sources",
    "index_graph_store": "index",
}


_STUDIES = {
    **dict.fromkeys(("ANSWER_STUDIES", "FORMULA_STUDIES", "STUDIES"), "registry.STUDIES"),
    **dict.fromkeys(("run_answer_study", "run_formula_study", "run_study"), "registry.run_study"),
    **dict.fromkeys(("AnswerStudy", "FormulaStudy", "Study"), "study.Study"),
    "ConditionsFailedError": "study.RunsFailedError",
    "PRESETS": "study.PRESETS",
    "run_protocol": "protocol.protocol_run.run_protocol",
    "run_domains": "protocol.domains.run_domains",
}
_RENAMED = {
    "run_task2": ("task2", "run_task2", "run_arqmath(…, task=2)"),
    "AnswerRow": ("systems", "System", "System"),
    "NoRelevantTopicError": ("stages", "ExperimentError", "ExperimentError"),
    "TRAINING_PRESETS": ("preparing", "TRAINING_PRESETS", "preparing.TRAINING_PRESETS"),
}


def moved(name: str) -> Any:
    """Return a name that was here until the last release, with a warning that names its new place."""
    if name in _STUDIES:
        raise AttributeError(f"{name} is now studies.{_STUDIES[name]} in a clone of the repository, not in the package")
    if name in _RENAMED:
        module, now, said = _RENAMED[name]
        warnings.warn(f"experiments.{name} is now experiments.{said}.", DeprecationWarning, stacklevel=3)
        return getattr(import_module(f".{module}", __package__), now)
    here = {"FurtherTraining": FurtherTraining, "train_from_sources": _train, "train_in_out": _train_in_out}
    if name not in _MOVED and name not in here:
        raise AttributeError(f"module 'pyterrier_mathamr.experiments' has no attribute {name!r}")
    room, _, new = _MOVED.get(name, "model" if name == "train_in_out" else "arqmath.train_from_sources").partition(".")
    warnings.warn(f"{name} is now pyterrier_mathamr.{room}.{new or name}.", DeprecationWarning, stacklevel=3)
    return here[name] if name in here else getattr(import_module(f"pyterrier_mathamr.{room}"), new or name)


@dataclass(frozen=True, slots=True)
class FurtherTraining:
    """What are arguments of ``arqmath.train_from_sources`` now."""

    negatives: Miner | None = None
    negatives_from: str = "mathamr-plus-mini"
    linked_questions: LinkedQuestions = "none"
    first: tuple[Path, ...] = ()


def _train(
    sources: Sequence[Path],
    graph_store: Path,
    output: Path,
    config: MathAMRConfig,
    *,
    further: FurtherTraining | None = None,
    verbose: bool = False,
    **options: Any,
) -> MathAMR:
    further = further or FurtherTraining()
    if further.negatives:
        model = MathAMR.from_pretrained(further.negatives_from) if further.negatives == "model" else None
        given: dict[str, Any] = {"graphs": GraphStore(graph_store), "model": model, "verbose": verbose}
        options["mine"] = partial(mine_negatives, further.negatives, **given)
    options |= {"linked_questions": further.linked_questions, "first": further.first}
    return train_from_sources(sources, graph_store, output, config, verbose=verbose, **options)


def _train_in_out(trees: Path, output: Path, options: InOutOptions, **more: Any) -> InOut:
    return train_in_out(FormulaTrees(trees), output, options, **more)

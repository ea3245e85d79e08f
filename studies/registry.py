"""All studies by name, and how one is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import to_stderr
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.arqmath import read_training_pairs

from . import answers, models
from .answers import colbert, extract, marf, two_step_tables
from .formulas import in_out, mathamr_sbert
from .models import reporting
from .models.ablations import ABLATIONS
from .models.paper import PAPER
from .study import RunsFailedError, Setting, Study, find_preset

_OF_MODELS = (*PAPER, *ABLATIONS)
_OF_FORMULAS = (in_out.IN_OUT, in_out.MESSAGE_PASSING, mathamr_sbert.STUDY)
_OF_ANSWERS = (colbert.COLBERT_STUDY, colbert.HYBRID_STUDY, marf.STUDY, two_step_tables.STUDY, extract.STUDY)

STUDIES: Mapping[str, Study] = MappingProxyType(
    {study.name: study for study in (*_OF_MODELS, *_OF_FORMULAS, *_OF_ANSWERS)}
)
_MEASURE = {
    "models": models.measure,
    "answers": answers.measure,
    "formulas": in_out.measure,
    "contexts": mathamr_sbert.measure,
}
_REPORT = {
    "models": reporting.report,
    "answers": answers.report,
    "formulas": in_out.report,
    "contexts": mathamr_sbert.report,
}


def find_study(name: str) -> Study:
    """Look up a study by its name, or by the number of one of the paper's tables."""
    for study in STUDIES.values():
        if name == study.name or name in {f"paper/{table}" for of, tables in study.published for table in tables}:
            return study
    raise ConfigError("study", name, "one of " + ", ".join(STUDIES))


def run_study(
    study: str | Study,
    collection: str | Path,
    workdir: str | Path,
    *,
    pairs: Sequence[str | Path] = (),
    years: Sequence[int | str] = (2020, 2022),
    seeds: Sequence[int] | None = None,
    preset: str = "auto",
    changes: Mapping[str, Any] | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    device: str | None = None,
    verbose: bool = True,
) -> Report:
    """Run a study: train and measure everything that it compares with each seed, and make the tables."""
    study = find_study(study) if isinstance(study, str) else study
    find_preset(preset)  # refuses another name before anything is made
    if workers < 0:
        raise ConfigError("workers", workers, "a whole number of at least 0")
    for name, given in (("years", years), ("seeds", seeds)):
        if given is not None and not given:
            raise ConfigError(name, given, "at least one")
    say = to_stderr if verbose else None
    shared = Artifacts(collection, Path(workdir), pairs=tuple(map(Path, pairs)), say=say, verbose=verbose)
    count = 0
    if preset == "auto" and study.kind != "formulas":
        count = shared.training_pairs + sum(len(read_training_pairs(file).train) for file in shared.pairs)
    scale = find_preset(preset, count)
    if preset == "auto" and count and say is not None:
        say(f"{count:,} training pairs: preset {scale.name}, chosen by that number; --preset chooses another")
    usual = (scale.seeds if study.kind == "models" else None) or study.seeds
    setting = Setting(
        study,
        shared,
        years=tuple(map(str, years)),
        seeds=tuple(seeds if seeds is not None else usual),
        preset=scale,
        changes=dict(changes or {}),
        workers=workers,
        executor=executor,
        device=device,
    )
    outcome = _MEASURE[study.kind](setting)
    report = _REPORT[study.kind](outcome).write(setting.folder)
    setting.say(f"report: {setting.folder / 'report.md'}")
    if outcome.failed:
        raise RunsFailedError(setting.folder, outcome.failed)
    return report

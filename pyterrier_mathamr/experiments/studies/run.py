"""A study from its definition to its report, with one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.errors import ConditionsFailedError
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.search import Depth
from pyterrier_mathamr.experiments.stages import to_stderr, write_whole

from .definition import Study
from .job import Job
from .materials import Materials
from .measuring import FormulaMaterials
from .registry import Preset, find_preset, find_study
from .reporting import Jobs, study_report
from .results import Results, read_results
from .workers import run_jobs
from .working import run_job


def run_study(
    study: str | Study,
    collection: str | Path,
    workdir: str | Path,
    *,
    pairs: Sequence[str | Path] = (),
    years: Sequence[int | str] = (2020, 2022),
    seeds: Sequence[int] | None = None,
    preset: str = "full",
    changes: dict[str, Any] | None = None,
    workers: int = 1,
    device: str | None = None,
    verbose: bool = True,
) -> Report:
    """Run a study: train and measure each condition with each seed, and make the tables.

    What is finished is not done again, what was killed goes on, and studies of a work folder share the runs that they
    have in common.

    Args:
        study: a name such as ``paper/4.6`` or ``ablation/layers``, see ``STUDIES``; or a study of your own.
        collection: a local ARQMath folder.
        workdir: where graphs, models and reports are kept.
        pairs: files of pairs from outside the collection, also trained on.
        years: whose topics and judgements are searched with and pooled.
        seeds: in place of the preset's or the study's.
        preset: ``full`` as in the paper, or ``mini``, scaled down for a small collection.
        changes: options of the configuration for all conditions, after those of the preset.
        workers: how many runs at a time, each a process with one thread; 0 does them in this process.
        device: where to train; ``None`` takes the best there is.
        verbose: say on stderr what is done.

    Returns:
        The report; it is written to ``workdir/studies/<name>`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        ConfigError: there is no such study or preset, or an option is not possible.
        ConditionsFailedError: some runs failed; the report of the others is written all the same.
        ARQMathError: a file of the release is missing or damaged.
    """
    study = find_study(study) if isinstance(study, str) else study
    scale = find_preset(preset)
    if workers < 0:
        raise ConfigError("workers", workers, "a whole number of at least 0")
    say = to_stderr if verbose else _silent
    folder, wanted = Path(workdir), tuple(map(str, years))
    materials = Materials(Path(collection), tuple(map(Path, pairs)), folder, say=say, verbose=False)
    jobs = study_jobs(study, materials, scale, wanted, seeds, changes or {}, device)
    materials.prepare(wanted)
    if study.task2:
        FormulaMaterials(materials).prepare(wanted)
    failed = _do(jobs, workers, say)
    report = study_report(study, jobs, materials, wanted, scale, changes or {})
    target = folder / "studies" / study.name.replace("/", "-")
    _write(report, read_results(jobs), target)
    say(f"report: {target / 'report.md'}")
    if failed:
        raise ConditionsFailedError(target, failed)
    return report


def study_jobs(
    study: Study,
    materials: Materials,
    preset: Preset,
    years: tuple[str, ...],
    seeds: Sequence[int] | None,
    changes: dict[str, Any],
    device: str | None,
) -> Jobs:
    """Write down the runs of a study, by condition and seed.

    Args:
        study: its conditions.
        materials: collection, pairs and work folder.
        preset: its options and seeds.
        years: whose topics are searched with.
        seeds: in place of the preset's or the study's.
        changes: options for all conditions, after those of the preset.
        device: where to train.

    Raises:
        ConfigError: an option is not possible.
    """
    if not materials.pairs and any(condition.recipe.pairs != "all" for condition in study.conditions):
        raise ConfigError("pairs", [], f"at least one file of pairs, which {study.name} is about")
    depth = Depth()
    if study.scales_depth and preset.scales_depth:
        depth = Depth.scaled(sum(1 for _ in materials.collection.answers()))
    options = {**dict(preset.changes), **changes}
    return {
        (condition.name, seed): Job(
            collection=materials.collection.path,
            workdir=materials.workdir,
            config=study.config(condition, seed, options),
            recipe=condition.recipe,
            pairs=materials.pairs if condition.recipe.pairs != "collection" else (),
            years=years,
            strategies=study.strategies,
            depth=depth,
            device=device,
            task2=study.task2,
        )
        for seed in (seeds or preset.seeds or study.seeds)
        for condition in study.conditions
    }


def _do(jobs: Jobs, workers: int, say: Any) -> dict[tuple[str, int], str]:
    """Do what is not finished; what failed, and why."""
    rest = [job for job in jobs.values() if not job.finished()]
    say(f"{len(jobs)} runs, {len(jobs) - len(rest)} finished before")
    if workers == 0:
        for job in rest:
            run_job(job, say=say)
        return {}
    reasons = run_jobs(rest, workers, say)
    return {key: reasons[job.folder] for key, job in jobs.items() if job.folder in reasons}


def _write(report: Report, results: Results, target: Path) -> None:
    """Write the report, and the values that its tables and tests are made of."""
    target.mkdir(parents=True, exist_ok=True)
    report.write(target)
    write_whole(target / "by-topic.csv", results.values.to_csv(index=False))


def _silent(text: str) -> None:
    """Say nothing."""

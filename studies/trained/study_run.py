"""Run a study from its definition to its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr.arqmath import read_training_pairs
from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.errors import ConditionsFailedError
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.experiments.search import Depth
from pyterrier_mathamr.experiments.stages import to_stderr

from .definition import Study
from .job import Job, Jobs
from .job_run import run_job
from .registry import Preset, find_preset, find_study
from .reporting import study_report
from .spread import spread_jobs
from .workers import run_jobs


def run_study(
    study: str | Study,
    collection: str | Path,
    workdir: str | Path,
    *,
    pairs: Sequence[str | Path] = (),
    years: Sequence[int | str] = (2020, 2022),
    seeds: Sequence[int] | None = None,
    preset: str = "auto",
    changes: dict[str, Any] | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    device: str | None = None,
    verbose: bool = True,
) -> Report:
    """Run a study: train and measure each condition with each seed, and make the tables.

    Finished runs are not repeated, killed runs continue, and studies of a work folder share the runs that they have in
    common.

    Args:
        study: a name such as ``paper/4.6`` or ``ablation/layers``, see ``STUDIES``; or a study of your own.
        collection: a local ARQMath folder.
        workdir: where graphs, models and reports are kept.
        pairs: files of pairs from outside the collection, to train on as well.
        years: of the topics and judgments, which are pooled.
        seeds: instead of the preset's or the study's.
        preset: ``full`` as in the paper, ``mini``, scaled down for a small collection, or ``auto``, which chooses by
            the number of training pairs.
        changes: options of the configuration for all conditions, which override those of the preset.
        workers: how many runs at a time, each a process with one thread; 0 does them in this process.
        executor: where the runs are done instead, such as a cluster whose nodes share the work folder.
        device: where to train; ``None`` is the best available.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir/studies/<name>`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        ConfigError: there is no such study or preset, or an option is invalid.
        ConditionsFailedError: some runs failed; the report on the others is written nevertheless.
        ARQMathError: a file of the release is missing or damaged.
    """
    study = find_study(study) if isinstance(study, str) else study
    wanted = _checked(preset, workers, years)
    say = to_stderr if verbose else lambda text: None
    shared = Artifacts(collection, Path(workdir), pairs=tuple(map(Path, pairs)), say=say, verbose=verbose)
    scale = _scale(preset, shared, say)
    jobs = study_jobs(study, shared, scale, wanted, seeds, changes or {}, device)
    shared.prepare(wanted, task2=study.task2)
    failed = _do(jobs, workers, executor, say, verbose)
    report = study_report(study, jobs, shared, wanted, scale, changes or {})
    target = Path(workdir) / "studies" / study.name.replace("/", "-")
    report.write(target)
    say(f"report: {target / 'report.md'}")
    if failed:
        raise ConditionsFailedError(target, failed)
    return report


def _checked(preset: str, workers: int, years: Sequence[int | str]) -> tuple[str, ...]:
    """Refuse options before anything is made, and return the years as text."""
    find_preset(preset)
    if workers < 0:
        raise ConfigError("workers", workers, "a whole number of at least 0")
    if not years:
        raise ConfigError("years", years, "at least one year")
    return tuple(map(str, years))


def _scale(preset: str, shared: Artifacts, say: Callable[[str], None]) -> Preset:
    """Find the preset; with ``auto``, count the pairs and say what was chosen."""
    if preset != "auto":
        return find_preset(preset)
    pairs = shared.training_pairs + sum(len(read_training_pairs(file).train) for file in shared.pairs)
    chosen = find_preset(preset, pairs)
    say(f"{pairs:,} training pairs: preset {chosen.name}, chosen by that number; --preset chooses another")
    return chosen


def study_jobs(
    study: Study,
    shared: Artifacts,
    preset: Preset,
    years: tuple[str, ...],
    seeds: Sequence[int] | None,
    changes: dict[str, Any],
    device: str | None,
) -> Jobs:
    """List the runs of a study, by condition and seed."""
    if not shared.pairs and any(condition.recipe.pairs != "all" for condition in study.conditions):
        raise ConfigError("pairs", [], f"at least one file of pairs, which {study.name} is about")
    depth = Depth()
    if study.scales_depth and preset.scales_depth:
        depth = Depth.scaled(sum(1 for _ in shared.collection.answers()))
    options = {**dict(preset.changes), **changes}
    return {
        (condition.name, seed): Job(
            collection=shared.collection.path,
            workdir=shared.workdir,
            config=study.config(condition, seed, options),
            recipe=condition.recipe,
            pairs=shared.pairs if condition.recipe.pairs != "collection" else (),
            years=years,
            strategies=study.strategies,
            depth=depth,
            device=device,
            task2=study.task2,
        )
        for seed in (seeds or preset.seeds or study.seeds)
        for condition in study.conditions
    }


def _do(
    jobs: Jobs, workers: int, executor: Executor | None, say: Callable[[str], None], verbose: bool
) -> dict[tuple[str, int], str]:
    """Do the unfinished jobs; return the reason for each failure."""
    rest = [job for job in jobs.values() if not job.finished()]
    say(f"{len(jobs)} runs, {len(jobs) - len(rest)} finished before")
    if isinstance(executor, Processes):
        workers = executor.slots
    elif executor is not None:
        return _reasons(jobs, spread_jobs(rest, executor, say))
    if workers == 0:
        for job in rest:
            run_job(job, say=say, verbose=verbose)
        return {}
    return _reasons(jobs, run_jobs(rest, workers, say, verbose=verbose))


def _reasons(jobs: Jobs, reasons: Mapping[Path, str]) -> dict[tuple[str, int], str]:
    return {key: reasons[job.folder] for key, job in jobs.items() if job.folder in reasons}

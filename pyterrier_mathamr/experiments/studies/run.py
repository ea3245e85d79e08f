"""A study from its definition to its report, with one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.errors import ConditionsFailedError
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.stages import to_stderr, write_whole

from .definition import Study
from .job import Job
from .materials import KNOWN_ITEM, Materials
from .published import published
from .registry import Preset, find_preset, find_study
from .results import ONCE, Results, read_results
from .strategies import BM25, FLOOR, Depth
from .tables import KNOWN, REFERENCE, TASK1, StudyTables
from .training import run_job
from .workers import run_jobs

Jobs = dict[tuple[str, int], Job]

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer counts 0. Years are pooled by topic.",
    "± is the standard deviation over the seeds.",
    "A star marks a row that differs from its baseline in a two-tailed paired t-test over the pooled topics, p < 0.05 "
    "after Bonferroni over all tests of the study. In the table of means the values of a topic are averaged over the "
    "seeds first, so that a topic counts once; in the table of best seeds, which is the paper's, the best of each row "
    "are compared, which flatters both.",
    "The best seed is that of the highest nDCG' on the topics that are reported, as in the paper: a maximum, not an "
    "estimate.",
    "The floor is the mean of 200 random orders of the judged answers of each topic. On a part of the release few "
    "answers are judged, so that nDCG' and MAP' begin high.",
    "Known items: the questions of the test part, never trained on, look for their own answers among all answers.",
    "The weight of the fusion was chosen on validation questions for each run; 'equal weights' is one half.",
    "Peak memory is that of a run's own process. The share of waiting is the part of an epoch's time in which training "
    "waited for its batches.",
    "Times of queries are of one thread, of queries that are encoded already, one by one; other runs may have been "
    "beside it.",
)

SHORT = (
    "Rankings are short here: a judged answer that is not among them counts as not found, while the floor ranks all "
    "of them, so that a system can be below it. Compare systems with each other."
)


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
    failed = _do(jobs, workers, say)
    report = study_report(study, jobs, materials, wanted, scale)
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


def study_report(study: Study, jobs: Jobs, materials: Materials, years: tuple[str, ...], preset: Preset) -> Report:
    """Make the report of the runs that are finished.

    Args:
        study: its rows and tests.
        jobs: by condition and seed.
        materials: for the floor.
        years: whose topics are pooled.
        preset: says what differs from the paper.
    """
    tables = StudyTables(study, _with_references(read_results(jobs), materials, years), years)
    seeds = sorted({seed for _, seed in jobs})
    pooled = " and ".join(years)
    measured = {
        f"Task 1, {pooled} pooled, mean over seeds": tables.tested(),
        f"Task 1, {pooled} pooled, best seed": tables.best_seed(),
        **({f"Task 1, {year}": tables.mean([year], TASK1) for year in years} if len(years) > 1 else {}),
        "Known items, test questions": tables.mean([KNOWN_ITEM], KNOWN),
        "Tests": tables.significance(),
        "Every system, Task 1 pooled": tables.every_system(years, TASK1),
        "Every system, known items": tables.every_system([KNOWN_ITEM], KNOWN),
        "Training and index": tables.costs(),
        "Runs": tables.results.costs,
        "Single queries": tables.speed(),
    }
    if study.tables:
        measured["Order of the rows by nDCG'"] = tables.order()
    one = next(iter(jobs.values()))
    common, different = _configurations(jobs)
    return Report(
        title=f"{study.name}: {study.title}, on {materials.collection.path.name}",
        settings={
            "study": study.name,
            "collection": str(materials.collection.path),
            "pairs": [file.name for file in materials.pairs],
            "years": list(years),
            "seeds": seeds,
            "preset": preset.name,
            "tests": tables.tests,
            "results for each query": one.depth.results,
            "scale of candidates": one.depth.scale,
            "conditions": {name: _text(options) for name, options in different.items()},
            **common,
        },
        stages=tuple(materials.stages.records),
        tables=measured,
        notes=(preset.why, *([SHORT] if one.depth.scale < 1 else []), *NOTES),
        published=_published(study),
    )


def _write(report: Report, results: Results, target: Path) -> None:
    """Write the report, and the values that its tables and tests are made of."""
    target.mkdir(parents=True, exist_ok=True)
    report.write(target)
    write_whole(target / "by-topic.csv", results.values.to_csv(index=False))


def _configurations(jobs: Jobs) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Give the options that all conditions have in common, and by condition the others; seeds are left out."""
    configs = {
        name: {**job.config.to_dict(), **asdict(job.recipe), "pairs": [file.name for file in job.pairs]}
        for (name, _), job in jobs.items()
    }
    first = next(iter(configs.values()))
    common = {option for option in first if all(config[option] == first[option] for config in configs.values())}
    different = {
        name: {option: value for option, value in config.items() if option not in {*common, "seed"}}
        for name, config in configs.items()
    }
    return {option: value for option, value in first.items() if option in common - {"seed"}}, different


def _text(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items()) or "all as below"


def _with_references(results: Results, materials: Materials, years: tuple[str, ...]) -> Results:
    """Put the floor and BM25, which depend on no condition, under the name of none."""
    values = results.values
    marks: dict[str, Any] = {"condition": REFERENCE, "seed": ONCE}
    floors = [materials.floor(year).assign(topics=year, system=FLOOR, **marks) for year in years]
    first = values[values["system"] == BM25].drop_duplicates(["topics", "qid", "measure"]).assign(**marks)
    rest = values[values["system"] != BM25]
    return Results(pd.concat([*floors, first, rest], ignore_index=True), results.speed, results.costs)


def _published(study: Study) -> dict[str, pd.DataFrame]:
    """Give the paper's tables of this study as printed; the caption names the source."""
    paper = published()
    return {
        f"Table {number} of {paper.source} {paper.tables[number].caption}": paper.tables[number].frame()
        for number in study.tables
    }


def _silent(text: str) -> None:
    """Say nothing."""

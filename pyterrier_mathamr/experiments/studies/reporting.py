"""The report of a study: its tables, the notes to read them with, and the paper's own beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from pyterrier_mathamr.experiments.published import published
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.search import BM25, FLOOR

from .definition import Study
from .job import Job
from .materials import KNOWN_ITEM, Materials
from .measuring import FormulaMaterials, formula_label
from .registry import Preset
from .results import ONCE, Results, read_results
from .tables import KNOWN, MAIN, REFERENCE, TASK1, StudyTables

Jobs = dict[tuple[str, int], Job]

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer counts 0. Years are pooled by topic.",
    "± is the standard deviation over the seeds.",
    "A star marks a row that differs from its baseline in a two-tailed paired t-test over the pooled topics, p < 0.05 "
    "after Bonferroni over all tests of the study. In the table of means the values of a topic are averaged over the "
    "seeds first, so that a topic counts once; in the table of best seeds, which is the paper's, the best of each row "
    "are compared, which flatters both.",
    "The tables against BM25 are corrected for their own tests alone: each system of each condition.",
    "The best seed is that of the highest nDCG' on the topics that are reported, as in the paper: a maximum, not an "
    "estimate.",
    "The floor is the mean of 200 random orders of the judged answers of each topic. On a part of the release few "
    "answers are judged, so that nDCG' and MAP' begin high. It has all of them, a system those that it ranks: a system "
    "can be below it.",
    "Known items: the questions of the test part, never trained on, look for their own answers among all answers.",
    "The weight of the fusion was chosen on validation questions for each run; 'equal weights' is one half.",
    "Peak memory is that of a run's own process. The share of waiting is the part of an epoch's time in which training "
    "waited for its batches.",
    "Times of queries are of one thread, of queries that are encoded already, one by one; other runs may have been "
    "beside it.",
)

SHORT = (
    "Rankings are short here: a judged answer that is not among them counts as not found. Compare systems with each "
    "other."
)

TASK2 = (
    "Task 2: each formula topic is the vector of that formula in the graph of its question; rankings are of visually "
    "distinct formulas, judged by visual id where the collection has such judgements. Tangent is a search by pairs of "
    "symbols. Nothing was fitted to these topics."
)


def study_report(
    study: Study,
    jobs: Jobs,
    materials: Materials,
    years: tuple[str, ...],
    preset: Preset,
    changes: Mapping[str, Any],
) -> Report:
    """Make the report of the runs that are finished.

    Args:
        study: its rows and tests.
        jobs: by condition and seed.
        materials: for the floor.
        years: whose topics are pooled.
        preset: says what differs from the paper.
        changes: options that were set for this run.
    """
    tables = StudyTables(study, _with_references(study, read_results(jobs), materials, years), years)
    seeds = sorted({seed for _, seed in jobs})
    pooled = " and ".join(years)
    of = [formula_label(year) for year in years] if study.task2 else []
    measured = {
        f"Task 1, {pooled} pooled, mean over seeds": tables.tested(tables.rows, years),
        f"Task 1, {pooled} pooled, best seed": tables.best_seed(),
        **({f"Task 1, {year}": tables.mean([year], TASK1) for year in years} if len(years) > 1 else {}),
        "Known items, test questions": tables.mean([KNOWN_ITEM], KNOWN),
        **({f"Task 2, {pooled} pooled, mean over seeds": tables.tested(tables.formula_rows, of)} if of else {}),
        "Tests": pd.concat([tables.significance(tables.rows, years), tables.significance(tables.formula_rows, of)]),
        "Against BM25, Task 1 pooled": tables.against_bm25(years, MAIN),
        "Against BM25, known items": tables.against_bm25([KNOWN_ITEM], KNOWN[0]),
        "Every system, Task 1 pooled": tables.every_system(years, TASK1),
        "Every system, known items": tables.every_system([KNOWN_ITEM], KNOWN),
        "Training and index": tables.costs(),
        "Runs": tables.results.costs,
        "Single queries": tables.speed(),
    }
    if study.tables:
        measured["Order of the rows by nDCG'"] = tables.order()
    return Report(
        title=f"{study.name}: {study.title}, on {materials.collection.path.name}",
        settings=_settings(study, jobs, materials, years, preset, tables.tests),
        stages=tuple(materials.stages.records),
        tables=measured,
        notes=(
            preset.why,
            *_set_by_hand(changes, seeds, preset.seeds or study.seeds),
            *([SHORT] if any(job.depth.scale < 1 for job in jobs.values()) else []),
            *([TASK2] if study.task2 else []),
            *NOTES,
            *references(study),
        ),
        published=_published(study),
    )


def _settings(
    study: Study, jobs: Jobs, materials: Materials, years: tuple[str, ...], preset: Preset, tests: int
) -> dict[str, Any]:
    """Write down what was asked for."""
    one = next(iter(jobs.values()))
    common, different = _configurations(jobs)
    return {
        "study": study.name,
        "collection": str(materials.collection.path),
        "pairs": [file.name for file in materials.pairs],
        "years": list(years),
        "seeds": sorted({seed for _, seed in jobs}),
        "preset": preset.name,
        "tests": tests,
        "results for each query": one.depth.results,
        "scale of candidates": one.depth.scale,
        "conditions": {name: _text(options) for name, options in different.items()},
        **common,
    }


def _set_by_hand(changes: Mapping[str, Any], seeds: Sequence[int], usual: Sequence[int]) -> list[str]:
    """Say what the preset's own note cannot know."""
    said = [f"{name} = {value}" for name, value in changes.items()]
    said += [f"seeds {', '.join(map(str, seeds))}"] if seeds != sorted(usual) else []
    return [f"Set for this run, whatever is said above: {'; '.join(said)}."] if said else []


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


def _with_references(study: Study, results: Results, materials: Materials, years: tuple[str, ...]) -> Results:
    """Put the floor, BM25 and Tangent, which depend on no condition, under the name of none."""
    values = results.values
    marks: dict[str, Any] = {"condition": REFERENCE, "seed": ONCE}
    floors = [materials.floor(year).assign(topics=year, system=FLOOR, **marks) for year in years]
    if study.task2:
        of = FormulaMaterials(materials)
        floors += [of.references(year).assign(topics=formula_label(year), **marks) for year in years]
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


def references(study: Study) -> list[str]:
    """List what the numbers in brackets of the published tables stand for, each once."""
    paper = published()
    return list(dict.fromkeys(line for number in study.tables for line in paper.cited(paper.tables[number])))

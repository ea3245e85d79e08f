"""The report of a study: its tables, the notes to read them with, and the paper's own tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import FLOOR, RANDOM_ANSWERS, random_known_items
from pyterrier_mathamr.experiments.reporting.published import published
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.experiments.search import BM25, STRATEGIES, Depth

from .definition import Study
from .job import KNOWN_ITEM, Jobs, formula_label
from .registry import Preset
from .results import ONCE, Key, Results, read_results
from .tables import KNOWN, MAIN, REFERENCE, TASK1, StudyTables

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0. Years are pooled by topic.",
    "± is the standard deviation over the seeds.",
    "A star marks a row that differs significantly from its baseline (two-sided paired t-test over the pooled topics, "
    "p < 0.05 after Bonferroni over all tests of the study). In the table of means the values of a topic are averaged "
    "over the seeds first, so that each topic enters the test once; in the table of best seeds, which is the paper's, "
    "the best seed of each row is compared, which flatters both.",
    "The tables against BM25 are corrected only for their own tests: each system of each condition.",
    "The best seed has the highest nDCG' on the reported topics, as in the paper: a maximum, not an estimate.",
    "The floor is the mean of 200 random orders of the judged answers of each topic. On a part of the release few "
    "answers are judged, so nDCG' and MAP' start high. The floor ranks all of them, a system only those it finds, so "
    "a system can be below it.",
    "Known items: the questions of the test part, never trained on, look for their own answers among all answers. The "
    "random order of all answers is the exact expectation.",
    "The weight of the fusion was chosen on validation questions for each run; 'equal weights' is one half.",
    "Peak memory is that of a run's own process. The share of waiting is the part of an epoch in which training waited "
    "for its batches.",
    "`BM25 % n >> scorer` rescores BM25's first n answers, and `doc-VN + MaxSim (k = n)` the first n by the document "
    "vectors; figures of different depths do not compare.",
    "Query times include encoding, on one thread; other runs may have shared the machine.",
)

ADVICE = (
    "They have learned too little, or rank too few answers to find the judged ones: train on more pairs (`--pairs`), "
    "take more topics (`--years`) or longer rankings (`--preset full`), or compare with the bundled model "
    "mathamr-plus-mini."
)

SHORT = (
    "Rankings are short here; a judged answer that is not among them is not found. Compare systems only with each "
    "other."
)

TASK2 = (
    "Task 2: each formula topic is the vector of that formula in the graph of its question; rankings are of visually "
    "distinct formulas, judged by visual id where the collection has such judgments. Tangent is a search by pairs of "
    "symbols. Nothing was fitted to these topics."
)


def study_report(
    study: Study,
    jobs: Jobs,
    shared: Artifacts,
    years: tuple[str, ...],
    preset: Preset,
    changes: Mapping[str, Any],
) -> Report:
    """Make the report of the finished runs."""
    results = read_results(jobs)
    tables = StudyTables(study, _with_references(study, results, shared, years), years)
    seeds = sorted({seed for _, seed in jobs})
    depth = next(iter(jobs.values())).depth
    measured = _tables(study, tables, years)
    remarks = _remarks(tables, years, measured)
    return Report(
        title=f"{study.name}: {study.title}, on {shared.collection.path.name}",
        settings=_settings(study, jobs, shared, years, preset, tables.tests),
        stages=tuple(shared.stages.records),
        tables={caption: with_depths(table, depth) for caption, table in measured.items()},
        about=_about(study, tables, shared, years, depth, seeds, measured),
        remarks={caption: [named_by_depth(text, depth) for text in found] for caption, found in remarks.items()},
        notes=(
            preset.why,
            *_set_by_hand(changes, seeds, preset.seeds or study.seeds),
            *([SHORT] if depth.scale < 1 else []),
            *([TASK2] if study.task2 else []),
            *NOTES,
            *references(study),
        ),
        published=published().captioned(study.tables),
        values={"by-topic": with_depths(results.values, depth)},
    )


def _tables(study: Study, tables: StudyTables, years: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Compute the tables by their captions."""
    pooled, of = " and ".join(years), _formula_labels(study, years)
    measured = {
        f"Task 1, {pooled} pooled, mean over seeds": tables.tested(tables.rows, years),
        f"Task 1, {pooled} pooled, best seed": tables.best_seed(),
        **({f"Task 1, {year}": tables.mean([year], TASK1) for year in years} if len(years) > 1 else {}),
        "Known items, test questions": tables.mean([KNOWN_ITEM], KNOWN),
        **({f"Task 2, {pooled} pooled, mean over seeds": tables.tested(tables.formula_rows, of)} if of else {}),
        "Tests": pd.concat([tables.significance(tables.rows, years), tables.significance(tables.formula_rows, of)]),
        "Against BM25, Task 1 pooled": tables.against_bm25(years, MAIN),
        "Against BM25, known items": tables.against_bm25([KNOWN_ITEM], KNOWN[0]),
        "Every system, Task 1 pooled": tables.mean(years, TASK1, tables.systems()),
        "Every system, known items": tables.mean([KNOWN_ITEM], KNOWN, tables.systems()),
        "Training and index": tables.costs(),
        "Runs": tables.results.costs,
        "Single queries": tables.speed(),
    }
    if study.tables:
        measured["Order of the rows by nDCG'"] = tables.order()
    return measured


def _formula_labels(study: Study, years: tuple[str, ...]) -> list[str]:
    """Name the formula topics of the years, if the study measures Task 2."""
    return [formula_label(year) for year in years] if study.task2 else []


def _remarks(
    tables: StudyTables, years: tuple[str, ...], measured: Mapping[str, pd.DataFrame]
) -> dict[str, tuple[str, ...]]:
    """Point out below each table of measures what is not above the random order."""
    of = _formula_labels(tables.study, years)
    rows, formulas = ([row.key for row in some] for some in (tables.rows, tables.formula_rows))
    chosen: dict[str, tuple[Sequence[str], str, Sequence[Key]]] = {
        "Every system, Task 1 pooled": (years, MAIN, [(REFERENCE, BM25), *tables.systems()]),
        "Every system, known items": ([KNOWN_ITEM], KNOWN[0], [(REFERENCE, BM25), *tables.systems()]),
        "Known items, test questions": ([KNOWN_ITEM], KNOWN[0], rows),
    }
    for caption in measured:
        if caption.startswith("Task 1") and "best seed" not in caption:
            chosen[caption] = ([year for year in years if year in caption], MAIN, rows)
        if caption.startswith("Task 2"):
            chosen[caption] = (of, MAIN, formulas)
    return {caption: tables.near_random_remark(*one, ADVICE) for caption, one in chosen.items()}


def _about(
    study: Study,
    tables: StudyTables,
    shared: Artifacts,
    years: tuple[str, ...],
    depth: Depth,
    seeds: Sequence[int],
    measured: Mapping[str, pd.DataFrame],
) -> dict[str, str]:
    """Say what each table is of: collection, topics, depth, seeds, test."""
    name, answers = shared.collection.path.name, len(shared.bm25)
    of = (
        f"{name}, {answers:,} answers; rankings of {depth.results} unless the name says otherwise; "
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}."
    )
    judged = {year: shared.topics(year) for year in years}
    known = f"{len(shared.questions('test').topics)} test questions of {of}"
    said = {
        "Known items, test questions": known,
        "Every system, known items": known,
        "Against BM25, known items": known,
        "Single queries": f"Topics of {years[0]}, one at a time on one thread: `encoding ms` from the text to the "
        "vectors, `search ms` from these to the ranking; queries per second, p50 and p95 are of their sum.",
    }
    for caption in measured:
        if "Task 1" in caption:
            chosen = [judged[year] for year in years if year in caption] or list(judged.values())
            topics, judgments = (
                sum(len(part) for part in parts) for parts in zip(*((c.topics, c.qrels) for c in chosen), strict=True)
            )
            said[caption] = f"{topics} topics with {judgments:,} judgments of {of}"
        if caption.startswith("Task 2"):
            found = [shared.formula_topics(year) for year in years]
            said[caption] = f"{sum(len(one.topics) for one in found)} formula topics of {of}"
    if tables.tests and (tested := f"Task 1, {' and '.join(years)} pooled, mean over seeds") in said:
        said[tested] += f" A star: differs from the row's baseline, after Bonferroni over {tables.tests} tests."
    return said


def with_depths(table: pd.DataFrame, depth: Depth) -> pd.DataFrame:
    """Name the systems of a table by their numbers of candidates at a depth."""
    texts = [name for name in ("system", "against") if name in table.columns]
    return table.assign(**{name: [named_by_depth(str(text), depth) for text in table[name]] for name in texts})


def named_by_depth(text: str, depth: Depth) -> str:
    """Replace the names of systems in a text by those with the numbers of candidates at a depth."""
    for strategy in STRATEGIES.values():
        text = text.replace(strategy.name, strategy.label(depth))
    return text


def _settings(
    study: Study, jobs: Jobs, shared: Artifacts, years: tuple[str, ...], preset: Preset, tests: int
) -> dict[str, Any]:
    """List the settings of the study."""
    one = next(iter(jobs.values()))
    common, different = _configurations(jobs)
    return {
        "study": study.name,
        "collection": str(shared.collection.path),
        "pairs": [file.name for file in shared.pairs],
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
    """Name the options and seeds that differ from the preset."""
    said = [f"{name} = {value}" for name, value in changes.items()]
    said += [f"seeds {', '.join(map(str, seeds))}"] if seeds != sorted(usual) else []
    return [f"Set for this run, overriding the above: {'; '.join(said)}."] if said else []


def _configurations(jobs: Jobs) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Separate the options that all conditions share from those of each condition; seeds are left out."""
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


def _with_references(study: Study, results: Results, shared: Artifacts, years: tuple[str, ...]) -> Results:
    """Add the floor and Tangent, and list them and BM25 under no condition."""
    values = results.values
    marks: dict[str, Any] = {"condition": REFERENCE, "seed": ONCE}
    questions = shared.questions("test").qrels
    known = random_known_items(questions, len(shared.bm25)).assign(topics=KNOWN_ITEM, system=RANDOM_ANSWERS, **marks)
    floors = [known, *(shared.floor(year).assign(topics=year, system=FLOOR, **marks) for year in years)]
    if study.task2:
        floors += [shared.references(year).assign(topics=formula_label(year), **marks) for year in years]
    bm25 = values["system"] == BM25
    first = values[bm25].drop_duplicates(["topics", "qid", "measure"]).assign(**marks)
    return Results(pd.concat([*floors, first, values[~bm25]], ignore_index=True), results.speed, results.costs)


def references(study: Study) -> list[str]:
    """List the publications that the published tables cite, each once."""
    paper = published()
    return list(dict.fromkeys(line for number in study.tables for line in paper.cited(paper.tables[number])))

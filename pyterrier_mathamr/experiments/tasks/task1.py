"""Task 1: answers to questions, by the ways to search and by the fusion with BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    RANDOM_ANSWERS,
    Comparison,
    compare,
    fusion_weights,
    random_known_items,
    time_queries,
)
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.search import TASK1, Search
from pyterrier_mathamr.model import MathAMRConfig

from .found import FoundTopics, pooled
from .preparing import Prepared, prepare, years_of

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0. Judgments of answers that are not in this collection are left out, and so are topics without a "
    "relevant answer in it.",
    "`BM25 % n >> scorer` rescores BM25's first n answers by MaxSim, and `doc-VN + MaxSim (k = n)` the first n by the "
    "document vectors; the other systems rank all answers. Judged answers beyond n are not found, so figures of "
    "different depths do not compare.",
    "The random order is the mean of 200 shuffles of the judged answers of each topic, with a fixed seed. It ranks all "
    "of them, a system only those it finds. For known items it is the expectation over all answers.",
    "BM25 was chosen on validation questions, and the weight of the fusion was fitted to them, by softmax over all "
    "documents that either side found; test questions were never trained on.",
    "Peak memory is that of the process up to the end of the stage.",
)

KNOWN_ITEMS = "Known items, test questions"
TIME = "Time of a query"
WEIGHTS = "Fusion weight, validation questions"


def run_arqmath(
    path: str | Path,
    year: int | str | Sequence[int | str],
    workdir: str | Path,
    *,
    config: MathAMRConfig | None = None,
    model: str | None = None,
    preset: str = "auto",
    changes: Mapping[str, Any] | None = None,
    verbose: bool = True,
) -> Report:
    """Build everything from a local ARQMath folder, and compare MathAMR+ with BM25 on Task 1.

    Finished stages are kept in ``workdir`` and not repeated, so a run that was stopped continues.

    Args:
        path: the folder of the release, or of a part of it.
        year: 2020, 2021 or 2022 (or another year in the file names) of the topics and judgments; or several, as a list
            or joined by commas, which are also pooled.
        workdir: where artifacts, tables and ``report.md`` are kept.
        config: of the model to train, instead of a preset.
        model: name or folder of a trained model, to use it instead of training one.
        preset: how the model is made; ``auto`` chooses by the number of training pairs, see ``TRAINING_PRESETS``.
        changes: options of the configuration that override those of the preset.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` has a finished stage with other settings.
        ConfigError: more than one of ``config``, ``model`` and ``preset`` is given, or there is no year.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of a year can be measured on this collection.
    """
    years = years_of(year)
    made = prepare(path, workdir, config=config, model=model, preset=preset, changes=changes, verbose=verbose)
    own, shared, timed = made.own, made.shared, made.own.stages.timed
    search = Search(made.model, own.answers(made.model), shared.bm25, TASK1)
    with timed("fusion weight"):
        questions = shared.questions("validation")
        weights = fusion_weights(*search.fit(questions), questions.qrels)
    with timed("known items"):
        known_items = _known_items(search, shared)
    with timed(f"task 1, {', '.join(years)}"):
        found = {one: _search_topics(search, shared, one) for one in years}
        compared = _compare(found)
    with timed("time of a query"):
        topics = shared.topics(years[0]).topics
        speed = time_queries(search.ways(shared.topic_formulas(years[0])), topics)
    return Report(
        title=f"Task 1 of ARQMath {', '.join(years)} on {shared.collection.path.name}",
        settings=made.settings(
            years=list(years), answers=len(shared.bm25), topics=sum(len(one.topics) for one in found.values())
        )
        | {"fusion weight": search.weight},
        stages=tuple(shared.stages.records),
        tables={
            **{caption: one.table for caption, one in compared.items()},
            KNOWN_ITEMS: known_items.table,
            TIME: speed,
            WEIGHTS: weights,
        },
        about={
            **{caption: _about(made, one) for caption, one in compared.items()},
            KNOWN_ITEMS: _about_known_items(made, known_items),
            TIME: about_times(speed, years[0]),
            WEIGHTS: f"{len(questions.topics)} validation questions look for their own answers, with each weight of "
            f"MathAMR+ beside BM25. The weight of the tables above, {search.weight:.2f}, was fitted to whole rankings.",
        },
        remarks={
            **{caption: one.remark(made.advice) for caption, one in compared.items()},
            KNOWN_ITEMS: known_items.remark(made.advice),
        },
        notes=(made.note, *NOTES),
        values={f"task-1-{one}-by-topic": compared[f"Task 1, {one}"].by_topic for one in years},
    ).write(shared.workdir)


def _search_topics(search: Search, shared: Artifacts, year: str) -> FoundTopics:
    """Search with the topics of a year."""
    found = shared.topics(year)
    return FoundTopics(search.rankings(search.encode(found)), found.topics[["qid"]], found.qrels, shared.floor(year))


def _compare(found: Mapping[str, FoundTopics]) -> dict[str, Comparison]:
    """Compare the systems on the topics of all years together, if there are several, and of each."""
    chosen = {f"Task 1, {year}": one for year, one in found.items()}
    if len(found) > 1:
        chosen = {f"Task 1, {' and '.join(found)} pooled": pooled(found), **chosen}
    return {caption: compare(*one) for caption, one in chosen.items()}


def _known_items(search: Search, shared: Artifacts) -> Comparison:
    """Search with the test questions for their own answers."""
    found = shared.questions("test")
    floor = random_known_items(found.qrels, len(shared.bm25))
    rankings = search.rankings(search.encode(found))
    return compare(rankings, found.topics, found.qrels, floor, KNOWN_ITEM_MEASURES, floor_name=RANDOM_ANSWERS)


def _about(made: Prepared, one: Comparison) -> str:
    """Say what a table of Task 1 is of."""
    return (
        f"{one.topics} topics with a relevant answer among the {len(made.shared.bm25):,} answers of "
        f"{made.shared.collection.path.name}, {one.judgements:,} judgments of these ("
        f"{one.judgements / max(1, one.topics):.1f} a topic). Rankings of 1000 answers unless the name says otherwise. "
        f"{made.who} {star(one, 'BM25')}"
    )


def _about_known_items(made: Prepared, one: Comparison) -> str:
    """Say what the table of known items is of."""
    if not one.topics:
        return "This collection has no test questions with answers."
    return (
        f"{one.topics} questions of {made.shared.collection.path.name}, never trained on, look for their own answers "
        f"among all {len(made.shared.bm25):,}. {made.who} {star(one, 'BM25')}"
    )


def star(one: Comparison, baseline: str) -> str:
    """Say what a star in a table means.

    Args:
        one: the comparison.
        baseline: the system that the others are tested against.
    """
    systems = len(one.table) - 2  # without the baseline and the random order
    return (
        f"A star: differs from {baseline} (two-sided paired t-test over the topics, p < 0.05 after Bonferroni over "
        f"{systems} systems)."
    )


def about_times(speed: pd.DataFrame, year: str) -> str:
    """Say how the times of queries were taken.

    Args:
        speed: see :func:`time_queries`.
        year: of the topics.
    """
    threads = torch.get_num_threads()
    device = "a GPU" if torch.cuda.is_available() else f"{threads} CPU thread{'s' * (threads > 1)}"
    queries = int(speed["queries"].max()) if len(speed) else 0
    return (
        f"{queries} topics of {year}, one at a time, on {device}. `encoding ms` is parsing, graph and model, from the "
        "text to the vectors; `ms per query` is encoding and search. p50 and p95 are of that sum."
    )

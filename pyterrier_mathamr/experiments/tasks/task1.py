"""Task 1: answers to questions, by the ways to search and by the fusion with BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.experiments.measuring import Comparison, with_missing
from pyterrier_mathamr.experiments.measuring.topics import require_years
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.model import MathAMRConfig
from studies.answers.answer_systems import chosen_answers
from studies.answers.tables import FEW_JUDGED

from .answer_search import AnswerSearch
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
OTHERS = (
    "The other systems are trained once, with seed 42; their studies (`mathamr experiment answers/…`) have several "
    "seeds. Systems that rank by the text of questions have no row among known items: a question would find itself.",
    "The stage of each other system is its search with all topics, the encoding of the topics included.",
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
    systems: Sequence[str] | None = None,
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
        systems: names as in the tables, or ``all``; by default BM25 and the ways to search with MathAMR+. BM25, the
            baseline, is always there.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` has a finished stage with other settings.
        ConfigError: more than one of ``config``, ``model`` and ``preset`` is given, there is no year, or a name is
            that of no system.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of a year can be measured on this collection.
    """
    years, chosen = years_of(year), chosen_answers(systems)
    require_years(ARQMathCollection(path), years)
    made = prepare(path, workdir, config=config, model=model, preset=preset, changes=changes, verbose=verbose)
    timed = made.own.stages.timed
    found = AnswerSearch(made, chosen, tuple(years))
    with timed("fusion weight"):
        weights = found.fit()
    with timed("known items"):
        known_items = found.known_items()
    with timed(f"task 1, {', '.join(years)}"):
        compared = found.topics()
    with timed("time of a query"):
        speed = found.times()
    return _report(found, compared, known_items, speed, weights).write(made.shared.workdir)


def _report(
    found: AnswerSearch,
    compared: Mapping[str, Comparison],
    known_items: Comparison,
    speed: pd.DataFrame,
    weights: pd.DataFrame,
) -> Report:
    """Put everything that was measured into tables."""
    made, years, names = found.made, found.years, found.chosen.names
    shared, asked = made.shared, sum(len(made.shared.topics(year).topics) for year in years)
    missing = [f"**Not measured**: {name}. {error}" for name, error in found.missing.items()]
    if found.unfitted:
        missing.append(f"**Not measured**: {', '.join(found.unfitted)}. They are fitted on other years: give several.")
    fitted = {WEIGHTS: weights} if len(weights) else {}
    return Report(
        title=f"Task 1 of ARQMath {', '.join(years)} on {shared.collection.path.name}",
        settings=made.settings(years=list(years), answers=len(shared.bm25), topics=asked)
        | ({"fusion weight": found.search.weight} if fitted else {}),
        stages=tuple({record.name: record for record in reversed(shared.stages.records)}.values())[::-1],
        tables={
            **{caption: with_missing(one.table, names, found.missing) for caption, one in compared.items()},
            KNOWN_ITEMS: with_missing(known_items.table, names, found.missing),
            TIME: speed,
            **fitted,
        },
        about={
            **{caption: _about(made, one) for caption, one in compared.items()},
            KNOWN_ITEMS: _about_known_items(made, known_items),
            TIME: about_times(speed, years[0]),
            WEIGHTS: f"{len(shared.questions('validation').topics)} validation questions look for their own answers, "
            "with each weight of MathAMR+ beside BM25. The weight of the tables above, "
            f"{found.search.weight:.2f}, was fitted to whole rankings.",
        },
        remarks={
            **{caption: [*one.remark(made.advice), *missing] for caption, one in compared.items()},
            KNOWN_ITEMS: known_items.remark(made.advice),
        },
        notes=(made.note, *NOTES, *(OTHERS if found.chosen.rows else ())),
        values={f"task-1-{one}-by-topic": compared[f"Task 1, {one}"].by_topic for one in years},
    )


def _about(made: Prepared, one: Comparison) -> str:
    """Say what a table of Task 1 is of."""
    return (
        f"{one.topics} topics with a relevant answer among the {len(made.shared.bm25):,} answers of "
        f"{made.shared.collection.path.name}, {one.judgments:,} judgments of these ("
        f"{one.judgments / max(1, one.topics):.1f} a topic). Rankings of 1000 answers unless the name says otherwise. "
        f"{made.who} {FEW_JUDGED} {star(one, 'BM25')}"
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
    """Say what a star in a table means."""
    systems = len(one.table) - 2  # without the baseline and the random order
    return (
        f"A star: differs from {baseline} (two-sided paired t-test over the topics, p < 0.05 after Bonferroni over "
        f"{systems} systems)."
    )


def about_times(speed: pd.DataFrame, year: str) -> str:
    """Say how the times of queries were taken."""
    threads = torch.get_num_threads()
    device = "a GPU" if torch.cuda.is_available() else f"{threads} CPU thread{'s' * (threads > 1)}"
    queries = int(speed["queries"].max()) if len(speed) else 0
    return (
        f"{queries} topics of {year}, one at a time, on {device}. `encoding ms` is parsing, graph and model, from the "
        "text to the vectors; `ms per query` is encoding and search. p50 and p95 are of that sum."
    )

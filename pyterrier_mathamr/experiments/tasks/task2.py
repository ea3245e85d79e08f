"""Task 2: formulas of posts for a formula of a question, beside a search by symbol pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pyterrier_mathamr.arqmath import TASK2_MEASURES
from pyterrier_mathamr.experiments.artifacts import TANGENT
from pyterrier_mathamr.experiments.measuring import Comparison, compare, random_floor, run_systems, time_queries
from pyterrier_mathamr.experiments.published import published
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.search import DISTINCT_FORMULAS, FORMULA_DEPTH
from pyterrier_mathamr.experiments.topics import formula_topics, visual_judgements
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.systems import fuse_rankings

from .formula_systems import CANDIDATES, FORMULA_SYSTEMS, FUSED, MATHAMR, FormulaParts, chosen_systems
from .preparing import prepare, years_of
from .task1 import TIME, about_times

TASK2 = "Task 2"
TASK2_NOTES = (
    "Rankings are of visually distinct formulas: only the first instance of each is kept, as in the official "
    "evaluation. `formula ids` are judgements of instances, the best grade of those that look the same; `visual ids` "
    "are the organisers' own.",
    "Relevant is a grade of 2 or 3; unjudged formulas are removed first (the prime). Judgements of formulas that are "
    "not in this collection are left out, and so are topics without a relevant formula in it.",
    "A star marks a measure that differs significantly from Tangent's (two-sided paired t-test, p < 0.05 after "
    "Bonferroni over the systems of the same year and judgements).",
    "`MathAMR+` encodes the formula within its question; `MathAMR+ (formula alone)` encodes it without. The fusion has "
    "equal weights, fixed beforehand. Nothing was fitted to topics of Task 2.",
    "`Tangent-S` aligns both trees of the candidates of Tangent; its weights were fitted by its authors on NTCIR-12. "
    f"`edit distance` ranks the first {CANDIDATES:,} formulas of Tangent anew by a weighted sum of tree similarities, "
    "with costs that were chosen on the topics of 2020.",
    "The random order is the mean of 200 shuffles of the judged formulas of each topic, with a fixed seed. It has "
    "every judged formula, a system those among its first 1000: on a part of the release, where few formulas are "
    "judged, a system can be below it.",
)


def run_task2(
    path: str | Path,
    years: int | str | Sequence[int | str],
    workdir: str | Path,
    *,
    config: MathAMRConfig | None = None,
    model: str | None = None,
    preset: str = "auto",
    changes: Mapping[str, Any] | None = None,
    systems: Sequence[str] | None = None,
    verbose: bool = True,
) -> Report:
    """Index the formulas of a local ARQMath folder, and compare MathAMR+ with a search by symbol pairs on Task 2.

    Args:
        path: the folder of the release, or of a part of it.
        years: 2020, 2021 or 2022 (or another year in the file names), or several, as a list or joined by commas.
        workdir: where artifacts are kept, such as that of ``run_arqmath``, whose graphs and model are used again.
        config: of the model to train, instead of a preset.
        model: name or folder of a trained model, to use it instead of training one.
        preset: how the model is made; ``auto`` chooses by the number of training pairs, see ``TRAINING_PRESETS``.
        changes: options of the configuration that override those of the preset.
        systems: names of :data:`FORMULA_SYSTEMS`, or ``all``; by default those without whole trees. Tangent, the
            baseline, is always there.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir/task-2`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` has a finished stage with other settings.
        ConfigError: more than one of ``config``, ``model`` and ``preset`` is given, there is no year, or a name is
            that of no system.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of a year can be measured on this collection.
    """
    when, names = years_of(years), chosen_systems(systems)
    made = prepare(path, workdir, config=config, model=model, preset=preset, changes=changes, verbose=verbose)
    shared, index = made.shared, made.own.formulas(made.model)
    measured = [_measure_year(FormulaParts(shared, made.model, index, year), names) for year in when]
    compared = [(year, kind, one) for year, found in zip(when, measured, strict=True) for kind, one in found.by_kind]
    judgements = "; ".join(f"{one.judgements:,} of {year} by {kind}" for year, kind, one in compared)
    speed = pd.concat([found.speed for found in measured], ignore_index=True)
    return Report(
        title=f"Task 2 of ARQMath {', '.join(when)} on {shared.collection.path.name}",
        settings=made.settings(years=when, formulas=len(index))
        | {"ranked before de-duplication": FORMULA_DEPTH, "pairs of symbols": shared.tangent.pair_options().to_dict()},
        stages=tuple(shared.stages.records),
        tables={
            TASK2: pd.concat([_row_of(one.table, year, kind, one.topics) for year, kind, one in compared]),
            TIME: speed,
        },
        about={
            TASK2: f"Formula topics with a relevant formula among the {len(index):,} of {shared.collection.path.name}. "
            f"Judgements of these: {judgements}. "
            f"Rankings of {DISTINCT_FORMULAS} visually distinct formulas, of {FORMULA_DEPTH:,} found. {made.who} A "
            f"star: differs from {TANGENT} (two-sided paired t-test over the topics of the block, p < 0.05 after "
            "Bonferroni over its systems).",
            TIME: about_times(speed, "each year"),
        },
        remarks={
            TASK2: [f"{year}, {kind}: {text}" for year, kind, one in compared for text in one.remark(made.advice)]
        },
        notes=(made.note, *TASK2_NOTES),
        published=published().captioned(["4.21"]),
        values={"task-2-by-topic": pd.concat([_row_of(one.by_topic, year, kind) for year, kind, one in compared])},
    ).write(shared.workdir / "task-2")


class MeasuredYear(NamedTuple):
    """What was measured with the formula topics of a year.

    Attributes:
        by_kind: kind of judgements and comparison.
        speed: see :func:`time_queries`.
    """

    by_kind: list[tuple[str, Comparison]]
    speed: pd.DataFrame


def _measure_year(parts: FormulaParts, names: Sequence[str]) -> MeasuredYear:
    """Search with the formula topics of a year."""
    shared, year = parts.shared, parts.year
    judged = visual_judgements(shared.collection, year, shared.formulas, shared.visual_ids)
    topics = formula_topics(shared.collection, year)
    topics = topics[topics["qid"].isin(pd.concat(judged.values())["qid"])].reset_index(drop=True)
    ways = {name: FORMULA_SYSTEMS[name](parts) for name in names}
    single = {name: way for name, way in ways.items() if name != FUSED}
    systems = {name: way.encode >> way.search if way.encode else way.search for name, way in single.items()}
    with shared.stages.timed(f"task 2, {year}"):
        rankings, _ = run_systems(systems, topics)
        if FUSED in ways:
            rankings[FUSED] = fuse_rankings(rankings[TANGENT], rankings[MATHAMR], 0.5, DISTINCT_FORMULAS)
        by_kind = []
        for kind, qrels in judged.items():
            own = topics[topics["qid"].isin(qrels["qid"])]
            by_kind.append((kind, compare(rankings, own, qrels, random_floor(qrels), TASK2_MEASURES)))
        speed = time_queries(ways, topics)
    speed.insert(0, "year", year)
    return MeasuredYear(by_kind, speed)


def _row_of(table: pd.DataFrame, year: str, kind: str, topics: int | None = None) -> pd.DataFrame:
    """Put the year, the kind of judgements and, after the name, the number of topics in front of the measures."""
    marked = table.copy()
    if topics is not None:
        marked.insert(1, "topics", topics)
    marked.insert(0, "judged", kind)
    marked.insert(0, "year", year)
    return marked

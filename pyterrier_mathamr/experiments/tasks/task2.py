"""Task 2: formulas of posts for a formula of a question, beside a search by symbol pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import TASK2_MEASURES
from pyterrier_mathamr.experiments.artifacts import TANGENT, Artifacts
from pyterrier_mathamr.experiments.measuring import measure, measure_by_topic, random_floor, run_systems
from pyterrier_mathamr.experiments.published import published
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.search import DISTINCT_FORMULAS, FORMULA_DEPTH, distinct
from pyterrier_mathamr.experiments.topics import formula_topics, visual_judgements
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRFormulaIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.systems import fuse_rankings

from .preparing import described, prepared

MATHAMR = "MathAMR+"
FORMULA_FLOOR = "judged formulas in random order"
TASK2_NOTES = (
    "Rankings are of visually distinct formulas: only the first instance of each is kept, as in the official "
    "evaluation. `formula ids` are judgements of instances, the best grade of those that look the same; `visual ids` "
    "are the organisers' own.",
    "Relevant is a grade of 2 or 3; unjudged formulas are removed first (the prime). Judgements of formulas that are "
    "not in this collection are left out, and so are topics without a relevant formula in it.",
    "A star marks a measure that differs significantly from Tangent's (two-sided paired t-test, p < 0.05 after "
    "Bonferroni over the systems of the same year and judgements).",
    "`MathAMR+` encodes the formula within its question; `MathAMR+, formula alone` encodes it without. The fusion has "
    "equal weights, fixed beforehand. Nothing was fitted to topics of Task 2.",
    "The random order has every judged formula, a system those among its first 1000: on a part of the release, where "
    "few formulas are judged, a system can be below it.",
)


def run_task2(
    path: str | Path,
    years: int | str | Sequence[int | str],
    workdir: str | Path,
    *,
    config: MathAMRConfig | None = None,
    model: str | None = None,
    verbose: bool = True,
) -> Report:
    """Index the formulas of a local ARQMath folder, and compare MathAMR+ with a search by symbol pairs on Task 2.

    Args:
        path: the folder of the release, or of a part of it.
        years: 2020, 2021 or 2022 (or another year in the file names), or several, as a list or joined by commas.
        workdir: where artifacts are kept, such as that of ``run_arqmath``, whose graphs and model are used again.
        config: of the model to train; by default that of the paper's experiments.
        model: name or folder of a trained model, to use it instead of training one.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir/task-2`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` has a finished stage with other settings.
        ConfigError: ``config`` and ``model`` are both given, or there is no year.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of a year can be measured on this collection.
    """
    when = str(years).split(",") if isinstance(years, (int, str)) else [str(year) for year in years]
    if not when:
        raise ConfigError("years", years, "at least one year")
    own, encoder = prepared(path, workdir, config, model, verbose)
    shared, index = own.shared, own.formulas(encoder)
    tables, speeds, by_topic = zip(*(_measure_year(shared, encoder, index, year) for year in when), strict=True)
    paper = published()
    return Report(
        title=f"Task 2 of ARQMath, {', '.join(when)}, {shared.collection.path.name}",
        settings=described(shared, encoder, {"formulas": len(index), "ranked before de-duplication": FORMULA_DEPTH})
        | {"pairs of symbols": shared.tangent.pair_options().to_dict()},
        stages=tuple(shared.stages.records),
        tables={
            "Task 2": pd.concat(tables, ignore_index=True),
            "Time of a query": pd.concat(speeds, ignore_index=True),
        },
        notes=TASK2_NOTES,
        published=paper.captioned(["4.21"]),
        values={"task-2-by-topic": pd.concat(by_topic, ignore_index=True)},
    ).write(shared.workdir / "task-2")


def _formula_systems(
    shared: Artifacts, model: MathAMR, index: MathAMRFormulaIndex, year: str
) -> dict[str, pt.Transformer]:
    """Make the systems of Task 2, from topics to rankings of visually distinct formulas; the first is the baseline."""
    trees = shared.topic_formulas(year)
    found = index.retriever(num_results=FORMULA_DEPTH)
    systems = {
        TANGENT: shared.tangent.retriever(FORMULA_DEPTH, store=trees),
        MATHAMR: GraphBuilder(store=trees) >> model.query_encoder() >> found,
        "MathAMR+, formula alone": GraphBuilder(store=trees, queries="formula") >> model.query_encoder() >> found,
    }
    return {name: distinct(system) for name, system in systems.items()}


def _measure_year(
    shared: Artifacts, model: MathAMR, index: MathAMRFormulaIndex, year: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Search with the formula topics of a year: the rows of the table, the times, the values by topic."""
    judged = visual_judgements(shared.collection, year, shared.formulas, shared.visual_ids)
    topics = formula_topics(shared.collection, year)
    topics = topics[topics["qid"].isin(pd.concat(judged.values())["qid"])].reset_index(drop=True)
    systems = _formula_systems(shared, model, index, year)
    rows: list[pd.DataFrame] = []
    values: list[pd.DataFrame] = []
    with shared.stages.timed(f"task 2, {year}"):
        rankings, speed = run_systems(systems, topics)
        rankings[f"{TANGENT} + {MATHAMR}"] = fuse_rankings(rankings[TANGENT], rankings[MATHAMR], 0.5, DISTINCT_FORMULAS)
        for kind, qrels in judged.items():
            own = topics[topics["qid"].isin(qrels["qid"])]
            chance = random_floor(qrels).groupby("measure")["value"].mean()
            floor = pd.DataFrame([{"name": FORMULA_FLOOR, **chance}])
            table = pd.concat([measure(rankings, own, qrels, TASK2_MEASURES), floor], ignore_index=True)
            table.insert(1, "topics", len(own))
            rows.append(_marked(table, year, kind))
            values.append(_marked(measure_by_topic(rankings, own, qrels, TASK2_MEASURES), year, kind))
    speed.insert(0, "year", year)
    return pd.concat(rows, ignore_index=True), speed, pd.concat(values, ignore_index=True)


def _marked(table: pd.DataFrame, year: str, kind: str) -> pd.DataFrame:
    """Put the year and the kind of judgements before the other columns."""
    table.insert(0, "judged", kind)
    table.insert(0, "year", year)
    return table

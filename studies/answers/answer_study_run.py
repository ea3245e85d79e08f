"""Run a study of answer retrieval from its definition to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.errors import BrokenExtraError, ConfigError, MissingExtraError
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    RANDOM_ANSWERS,
    Missing,
    measure_by_topic,
    random_known_items,
)
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.experiments.stages import to_stderr
from studies.trained.job import KNOWN_ITEM
from studies.trained.registry import find_preset
from studies.trained.results import ONCE, Results
from studies.trained.tables import REFERENCE

from .definition import AnswerRow, AnswerStudy, Outcome
from .parts import AnswerParts
from .registry import find_answer_study
from .rows.common import COMMON_ROWS
from .tables import answer_report


def run_answer_study(
    study: str | AnswerStudy,
    collection: str | Path,
    workdir: str | Path,
    *,
    pairs: Sequence[str | Path] = (),
    years: Sequence[int | str] = (2020, 2022),
    seeds: Sequence[int] | None = None,
    preset: str = "mini",
    changes: Mapping[str, Any] | None = None,
    device: str | None = None,
    verbose: bool = True,
) -> Report:
    """Train and measure each system of a study on Task 1 and on known items.

    What is finished is not repeated, and studies of a work folder share models, indexes and rankings.

    Args:
        study: a name of ``ANSWER_STUDIES``, or a study of your own.
        collection: a local ARQMath folder.
        workdir: where artifacts, models and rankings are kept.
        pairs: files of pairs from outside the collection, for systems that are trained on such pairs, too.
        years: of the topics and judgments, which are pooled.
        seeds: of trained systems, instead of the study's.
        preset: ``mini``, scaled down for a small collection and a CPU; ``full`` as published; or ``auto``, which
            chooses by the number of training pairs.
        changes: options of the recipes that override those of the preset.
        device: where to train and encode; ``None`` is the best available.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir/studies/<name>`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        ConfigError: there is no such study or preset, no year or seed, or a single year for rows that are fitted on
            others.
        ARQMathError: a file of the release is missing or damaged.
    """
    study = find_answer_study(study) if isinstance(study, str) else study
    rows = study.all_rows(COMMON_ROWS)
    find_preset(preset)  # refuses another name before anything is made
    when, chosen = tuple(map(str, years)), tuple(study.seeds if seeds is None else seeds)
    _refuse(rows, when, chosen)
    say = to_stderr if verbose else None
    shared = Artifacts(collection, Path(workdir), pairs=tuple(map(Path, pairs)), say=say, verbose=verbose)
    preset = find_preset(preset, shared.training_pairs if preset == "auto" else 0).name
    shared.prepare(when)
    parts = AnswerParts(shared, when[0], when, preset=preset, changes=changes or {}, device=device)
    missing: Missing = {}
    values = _references(parts)
    for row in rows:
        try:
            values += _values(row, parts, chosen)
        except (MissingExtraError, BrokenExtraError) as error:
            missing[row.name] = error
    results = Results(pd.concat(values, ignore_index=True), pd.DataFrame(), pd.DataFrame())
    report = answer_report(Outcome(study, rows, parts, chosen, results, missing))
    return report.write(shared.workdir / "studies" / study.name.replace("/", "-"))


def _refuse(rows: Sequence[AnswerRow], years: Sequence[str], seeds: Sequence[int]) -> None:
    """Refuse what no row, or not every row, can be measured with."""
    for name, given in (("years", years), ("seeds", seeds)):
        if not given:
            raise ConfigError(name, given, "at least one")
    if len(years) == 1 and (fitted := [row.name for row in rows if row.fitted]):
        raise ConfigError("years", years, f"several, since rows are fitted on the others: {'; '.join(fitted)}")


def _values(row: AnswerRow, parts: AnswerParts, seeds: Sequence[int]) -> list[pd.DataFrame]:
    """Measure what a row finds, with each seed if it is trained."""
    values = []
    for seed in seeds if row.trained else (ONCE,):
        for of in (*([KNOWN_ITEM] if row.known else []), *parts.years):
            own = parts.at(of=of, seed=seed)
            topics, qrels, _ = own.found
            measures = KNOWN_ITEM_MEASURES if own.known else TASK1_MEASURES
            found = measure_by_topic({row.name: own.ranking(row)}, topics, qrels, measures)
            values.append(_marked(found.rename(columns={"name": "system"}), of, seed))
    return values


def _references(parts: AnswerParts) -> list[pd.DataFrame]:
    """Measure random orders."""
    shared = parts.shared
    known = random_known_items(shared.questions("test").qrels, len(shared.bm25))
    floors = [_marked(known.assign(system=RANDOM_ANSWERS), KNOWN_ITEM, ONCE)]
    return floors + [_marked(shared.floor(year).assign(system=FLOOR), year, ONCE) for year in parts.years]


def _marked(values: pd.DataFrame, of: str, seed: int) -> pd.DataFrame:
    """Add what results are read by; a topic for which nothing judged was found has 0."""
    marked = values.assign(condition=REFERENCE, seed=seed, topics=of).fillna({"value": 0.0})
    return marked[["condition", "seed", "system", "topics", "qid", "measure", "value"]]

"""Run a study of formula models from its definition to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.artifacts import TANGENT, Artifacts
from pyterrier_mathamr.experiments.measuring import FLOOR, KNOWN_ITEM_MEASURES, Way, measure_by_topic
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.experiments.search import distinct
from pyterrier_mathamr.experiments.stages import to_stderr
from pyterrier_mathamr.systems import InOutOptions

from .definition import FormulaStudy, find_formula_study
from .known_items import KNOWN_FORMULAS, draw_known_formulas, search_known_formulas
from .measuring import KNOWN, FormulaRun
from .summary import Key, study_table

NOTES = (
    "Rankings are of visually distinct formulas, judged by visual ids where the collection has such judgments. "
    "Topics are those with a relevant formula in the collection; nothing was fitted to any of them.",
    "`known RR@10`: queries are formulas of the collection in which one variable was renamed throughout or one piece "
    "was cut, and the formula itself is sought.",
    "Figures are means over seeds; `std` is that of the seeds' means. The test is the two-sided paired t-test over the "
    "topics of all years.",
)


def run_formula_study(
    study: str | FormulaStudy,
    collection: str | Path,
    workdir: str | Path,
    *,
    years: Sequence[int | str] = (2020, 2022),
    seeds: Sequence[int] | None = None,
    changes: Mapping[str, Any] | None = None,
    known: int = KNOWN_FORMULAS,
    verbose: bool = True,
) -> Report:
    """Train and measure each model of a study, beside Tangent and a random order.

    Args:
        study: a name of ``FORMULA_STUDIES``, or a study of your own.
        collection: a local ARQMath folder.
        workdir: where artifacts, models and values are kept.
        years: of the topics.
        seeds: instead of the study's.
        changes: options of ``InOutOptions`` for all conditions, which the conditions' own override.
        known: queries of known items.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir/studies/<name>``.

    Raises:
        ConfigError: there is no such study, no year, or an option is invalid.
        ARQMathError: a file of the release is missing or damaged.
    """
    study = find_formula_study(study) if isinstance(study, str) else study
    when = tuple(map(str, years))
    if not when:
        raise ConfigError("years", years, "at least one year")
    options = {
        (name, seed): InOutOptions(**{**(changes or {}), **own, "seed": seed})
        for name, own in study.conditions.items()
        for seed in (seeds or study.seeds)
    }
    shared = Artifacts(collection, Path(workdir), say=to_stderr if verbose else None, verbose=verbose)
    with shared.stages.timed("known formulas"):
        queries = draw_known_formulas(shared, known)
        values = _references(shared, when, queries)
    for (name, seed), one in options.items():
        with shared.stages.timed(f"{name}, seed {seed}"):
            found = FormulaRun(shared, one, study, when).values(queries)
        for combination, own in found.groupby("system", sort=False):
            values.setdefault((name, str(combination)), []).append(own.assign(seed=seed))
    tables = {key: pd.concat(parts) for key, parts in values.items()}
    return _report(study, shared, when, tables, len(queries)).write(
        shared.workdir / "studies" / study.name.replace("/", "-")
    )


def _references(shared: Artifacts, years: Sequence[str], queries: pd.DataFrame) -> dict[Key, list[pd.DataFrame]]:
    """Measure Tangent, and a random order of the judged formulas."""
    parts = pd.concat([shared.references(year).assign(topics=year) for year in years])
    way = Way(distinct(shared.tangent.retriever(200)))
    qrels = queries[["qid", "docno"]].assign(label=1)
    known = measure_by_topic(search_known_formulas({TANGENT: way}, queries), queries, qrels, KNOWN_ITEM_MEASURES)
    both = pd.concat([parts, known.rename(columns={"name": "system"}).assign(topics=KNOWN)]).assign(seed=0)
    return {(name, ""): [both[both["system"] == name]] for name in (FLOOR, TANGENT)}


def _report(
    study: FormulaStudy, shared: Artifacts, years: Sequence[str], values: Mapping[Key, pd.DataFrame], known: int
) -> Report:
    baseline = study.against or TANGENT
    against: dict[Key, Key] = {}
    for condition, combination in values:
        other = (TANGENT, "") if study.against is None else (study.against, combination)
        if condition not in (FLOOR, TANGENT, study.against) and other in values:
            against[condition, combination] = other
    return Report(
        title=f"{study.title}, on {shared.collection.path.name}",
        settings={
            "study": study.name,
            "years": ", ".join(years),
            "formulas trained on": study.formulas or "all",
            "known items": known,
        },
        stages=tuple(shared.stages.records),
        tables={study.title: study_table(values, against)},
        about={
            study.title: f"Topics of {', '.join(years)}. A star: nDCG' differs from that of {baseline} (p < 0.05 after "
            f"Bonferroni over the {len(against)} tests of the table)."
        },
        notes=NOTES,
        values={"by-topic": pd.concat(own.assign(condition=key[0], system=key[1]) for key, own in values.items())},
    )

"""Task 2: formulas of posts for a formula of a question, beside a search by symbol pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr.arqmath import TASK2_MEASURES, ARQMathCollection
from pyterrier_mathamr.experiments.artifacts import TANGENT
from pyterrier_mathamr.experiments.measuring import Comparison, compare, paired_test, time_queries, with_missing
from pyterrier_mathamr.experiments.measuring.topics import require_years
from pyterrier_mathamr.experiments.reporting.published import published
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.experiments.search import DISTINCT_FORMULAS, FORMULA_DEPTH
from pyterrier_mathamr.model import MathAMRConfig
from studies.formulas.known_items import with_known_formulas
from studies.formulas.variants import CANDIDATES
from studies.formulas.weights import write_weights

from .formulas.parts import FormulaParts
from .formulas.search import SearchedYear, SearchedYears
from .formulas.systems import FORMULA_SYSTEMS, MATHAMR, chosen_systems
from .found import pooled
from .preparing import Prepared, prepare, years_of
from .task1 import TIME, about_times

TASK2 = "Task 2"
POOLED = "all years"
DIFFERENCES = f"Differences from {TANGENT} over the topics of all years"
WEIGHTS = "Fitted weights"
Compared = tuple[str, str, Comparison]
"""A year or :data:`POOLED`, a kind of judgments, and the comparison."""

TASK2_NOTES = (
    "Rankings are of visually distinct formulas: only the first instance of each is kept, as in the official "
    "evaluation. `formula ids` are judgments of instances, the best grade of those that look the same; `visual ids` "
    "are the organisers' own.",
    "Relevant is a grade of 2 or 3; unjudged formulas are removed first (the prime). Judgments of formulas that are "
    "not in this collection are left out, and so are topics without a relevant formula in it.",
    "A star marks a measure that differs significantly from Tangent's (two-sided paired t-test, p < 0.05 after "
    "Bonferroni over the systems of the same year and judgments).",
    "`MathAMR+` encodes the formula within its question; `MathAMR+ (formula alone)` encodes it without. `Tangent + "
    "MathAMR+` has equal weights, fixed beforehand.",
    "`Fused` sums the standard scores of its systems, with weights that were fitted on the judgments of the other "
    "years. A formula that a system does not find has this system's lowest score.",
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
    known_items: bool = False,
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
        systems: names as in the tables, ``all``, or ``variants``, which are systems with other options; by default
            Tangent, MathAMR+ and both fused with equal weights. Tangent, the baseline, is always there.
        known_items: also measure with altered formulas of the collection; see :mod:`.formulas.known_items`.
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
    require_years(ARQMathCollection(path), when, 2)
    made = prepare(path, workdir, config=config, model=model, preset=preset, changes=changes, verbose=verbose)
    shared, index = made.shared, made.own.formulas(made.model)
    searched = SearchedYears([SearchedYear(FormulaParts(shared, made.model, index, year)) for year in when])
    with shared.stages.timed(f"task 2, {', '.join(when)}"):
        searched.search(names)
        compared = _compare(searched)
    if searched.weights:
        on = f"{shared.collection.path.name}, {', '.join(when)}"
        write_weights(shared.workdir / "task-2" / "weights.json", searched.weights, on)
    with shared.stages.timed("time of a query"):
        speed = _speed(searched)
    report = _report(made, len(index), names, searched, compared, speed)
    if known_items:  # without MathAMR+ in a question, which these formulas have none of
        ways = {
            name: way for name, way in searched.years[0].ways.items() if name in FORMULA_SYSTEMS and name != MATHAMR
        }
        report = with_known_formulas(report, shared, ways)
    report.write(shared.workdir / "task-2")
    return report


def _report(
    made: Prepared,
    formulas: int,
    names: Sequence[str],
    searched: SearchedYears,
    compared: Sequence[Compared],
    speed: pd.DataFrame,
) -> Report:
    """Put everything that was measured into tables."""
    shared, when = made.shared, [year.parts.year for year in searched.years]
    judgments = "; ".join(f"{one.judgments:,} of {year} by {kind}" for year, kind, one in compared if year != POOLED)
    differences, weights = _differences(compared), _weights(searched)
    return Report(
        title=f"Task 2 of ARQMath {', '.join(when)} on {shared.collection.path.name}",
        settings=made.settings(years=when, formulas=formulas)
        | {"ranked before de-duplication": FORMULA_DEPTH, "pairs of symbols": shared.tangent.pair_options().to_dict()},
        stages=tuple(shared.stages.records),
        tables={
            TASK2: pd.concat(
                _row_of(with_missing(one.table, names, searched.missing), year, kind, one.topics)
                for year, kind, one in compared
            ),
            **({DIFFERENCES: differences} if len(differences) else {}),
            **({WEIGHTS: weights} if len(weights) else {}),
            TIME: speed,
        },
        about={
            TASK2: f"Formula topics with a relevant formula among the {formulas:,} of {shared.collection.path.name}. "
            f"Judgments of these: {judgments}. "
            f"Rankings of {DISTINCT_FORMULAS} visually distinct formulas, of {FORMULA_DEPTH:,} found. {made.who} A "
            f"star: differs from {TANGENT} (two-sided paired t-test over the topics of the block, p < 0.05 after "
            "Bonferroni over its systems).",
            DIFFERENCES: "Mean difference in nDCG' over all topics, and p of the two-sided paired t-test, as it is and "
            "after Bonferroni over the systems.",
            WEIGHTS: "Of a system's standard scores in a fusion, or of features. Those of a year are fitted on the "
            "judgments of the other years; of a single year, they are those that come with the package.",
            TIME: about_times(speed, "each year"),
        },
        remarks={
            TASK2: [
                *(f"{year}, {kind}: {text}" for year, kind, one in compared for text in one.remark(made.advice)),
                *(f"**Not measured**: {name}. {error}" for name, error in searched.missing.items()),
            ]
        },
        notes=(made.note, *TASK2_NOTES),
        published=published().captioned(["4.21"]),
        values={"task-2-by-topic": pd.concat([_row_of(one.by_topic, year, kind) for year, kind, one in compared])},
    )


def _compare(searched: SearchedYears) -> list[Compared]:
    """Compare the systems by each kind of judgments: on the topics of each year, and of all years together."""
    found = {(year.parts.year, kind): year.found(kind) for year in searched.years for kind in year.parts.judged}
    for kind in dict.fromkeys(kind for _, kind in list(found)):
        of_kind = {year: one for (year, own), one in found.items() if own == kind}
        if len(of_kind) > 1:
            found[POOLED, kind] = pooled(of_kind)
    return [(year, kind, compare(*one, TASK2_MEASURES)) for (year, kind), one in found.items()]


def _differences(compared: Sequence[Compared]) -> pd.DataFrame:
    """Test each system against the baseline over the topics of all years, by the first measure."""
    rows = []
    for year, kind, one in compared:
        if year == POOLED:
            own = one.by_topic[one.by_topic["measure"] == str(TASK2_MEASURES[0])].fillna({"value": 0.0})
            values = own.pivot(index="qid", columns="name", values="value")[own["name"].drop_duplicates()]
            for name in values.columns[1:]:
                test = paired_test(values[name].to_numpy(), values[TANGENT].to_numpy(), values.shape[1] - 1)
                rows.append((kind, name, len(values), round(test.difference, 4), test.p, test.corrected))
    return pd.DataFrame(rows, columns=["judged", "name", "topics", "difference", "p", "p corrected"])


def _weights(searched: SearchedYears) -> pd.DataFrame:
    """List the weights of systems that have any."""
    rows = [
        (name, year.parts.year, part, weight)
        for year in searched.years
        for name, weights in year.weights.items()
        for part, weight in weights.items()
    ]
    return pd.DataFrame(rows, columns=["name", "year", "of", "weight"])


def _speed(searched: SearchedYears) -> pd.DataFrame:
    """Time the systems on the topics of each year."""
    found = {year.parts.year: time_queries(year.ways, year.parts.topics) for year in searched.years}
    for year, speed in found.items():
        speed.insert(0, "year", year)
    return pd.concat(found.values(), ignore_index=True)


def _row_of(table: pd.DataFrame, year: str, kind: str, topics: int | None = None) -> pd.DataFrame:
    """Put the year, the kind of judgments and, after the name, the number of topics in front of the measures."""
    marked = table.copy()
    if topics is not None:
        marked.insert(1, "topics", topics)
    marked.insert(0, "judged", kind)
    marked.insert(0, "year", year)
    return marked

"""Cross-validated results: settings are tuned on some topics and measured on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mathamr_systems.experiments.choosing import (
    CROSSED_BM25,
    CROSSED_FUSION,
    ChosenSystem,
    Fold,
    Nested,
    chosen_table,
    described,
    pooled_folds,
    tests_of,
)
from mathamr_systems.experiments.measuring import (
    FEW_JUDGED,
    KNOWN_ITEM_MEASURES,
    TEST_COLUMNS,
    means_table,
    measure_by_topic,
    not_measured,
    stars,
    with_missing,
)
from mathamr_systems.experiments.preparing import Prepared, prepare, years_of
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.systems import COLBERT, TUNED
from mathamr_systems.experiments.workdir import require_years
from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathCollection
from pyterrier_mathamr.model import MathAMRConfig

from .catalogue import ALL_LINKS, DUPLICATES, WEIGHED, Catalogue, Cost, Material, crossed_years, protocol_systems
from .overview import (
    ABOUT,
    ABOUT_PARTS,
    CROSSED,
    FOLDS,
    KNOWN,
    LINKED,
    MS,
    OVERVIEW,
    PARTS,
    draw_systems,
    overview_table,
    parts_table,
)

TESTS, CHOSEN = "Tests", "What was chosen"
TESTED = {
    CROSSED: (str(TASK1_MEASURES[0]), CROSSED_BM25),
    FOLDS: (str(TASK1_MEASURES[0]), CROSSED_BM25),
    KNOWN: (str(KNOWN_ITEM_MEASURES[0]), TUNED),
}
"""By caption, the measure that is tested, and the strongest BM25; that of known items was chosen on such questions."""
NOTES = (
    "Everything is tuned by the mean nDCG' of the training topics: k1 and b of cross-validated BM25, the candidates "
    "of a first stage, the weights of fusions, and the seed of systems trained with several. Each topic is measured by "
    "a system that was tuned without it.",
    "BM25 is a standard one, with k1 .9 and b .4. The one tuned for mathematics has pairs of neighbors, k1 2 and b 1, "
    "tuned on the validation questions, by their own answers, as was the weight of the fusion that names these "
    "questions.",
    "± is the standard error of the mean over the topics.",
    "The package's own contents were chosen earlier: bundled models, their options and BM25's tokens were compared on "
    "topics of 2020 and 2022. This protocol cannot undo that choice.",
    "Known items and duplicates: everything is tuned on all judged topics; the test questions were used neither for "
    "training nor for tuning. A test question searches for its own answers; for duplicates, for the answers of the "
    "questions that it duplicates or is linked with, without its own. Systems that read the text of questions have no "
    "known items, since a question would find itself; systems that rank only judged answers have neither.",
)


SEEDS = (42,)
YEARS = "2020,2022"


def run_protocol(
    path: str | Path,
    workdir: str | Path,
    *,
    years: int | str | Sequence[int | str] = YEARS,
    systems: Sequence[str] | None = None,
    seeds: Sequence[int] = SEEDS,
    model: str | MathAMRConfig | None = None,
    changes: Mapping[str, Any] | None = None,
    verbose: bool = True,
) -> Report:
    """Measure systems of Task 1 on topics that chose nothing: years crossed, and ten folds of all topics."""
    chosen, when = protocol_systems(systems), tuple(years_of(years))
    if CROSSED_FUSION in chosen:
        chosen[WEIGHED] = (TUNED, COLBERT)
    if len(when) < 2:
        crossed_years([f"{year} topic" for year in when])  # refuses a single year before anything is made
    require_years(ARQMathCollection(path), when)
    made = prepare(path, workdir, model=model, changes=changes, verbose=verbose)
    material = Material(made.shared, when)
    catalogue = Catalogue(made, material, tuple(seeds))
    made_systems = catalogue.systems(chosen)
    with made.own.stages.timed("protocol"):
        report = protocol_report(made, material, made_systems, catalogue.costs(chosen))
    folder = made.shared.workdir / "protocol" / "crossed"
    report.write(folder)
    draw_systems(report.tables[OVERVIEW], str(TASK1_MEASURES[0]), MS, CROSSED_BM25, folder)
    return report


def protocol_report(
    made: Prepared, material: Material, systems: Sequence[ChosenSystem], costs: Mapping[str, Cost] | None = None
) -> Report:
    """Measure systems, and make the report."""
    nested, qids = Nested(systems, material.judged, material.qrels), list(material.judged.topics["qid"])
    values, chosen = {}, []
    for caption, folds in ((CROSSED, crossed_years(qids)), (FOLDS, pooled_folds(qids))):
        values[caption], own = _judged(nested, material, folds)
        chosen.append(own)
    asked, own = _asked(nested, material)
    values, chosen = values | asked, [*chosen, own]
    tests, names = _tests_table(values, systems), [system.name for system in systems]
    tables = {
        caption: _starred(means_table(values[caption], names, list(map(str, measures)), years=years), tests, caption)
        for caption, measures, years in (
            (CROSSED, TASK1_MEASURES, material.years),
            (FOLDS, TASK1_MEASURES, ()),
            (KNOWN, KNOWN_ITEM_MEASURES, ()),
        )
    } | {LINKED: _linked(values, names)}
    able = {
        KNOWN: [system.name for system in systems if system.known],
        LINKED: [system.name for system in systems if system.linked],
    }
    kept = {caption: _rows(table, able.get(caption, names), nested) for caption, table in tables.items()}
    linked, parts = material.linked_answers, parts_table(values)
    more = {OVERVIEW: overview_table(tables, names, costs or {}), **({PARTS: parts} if len(parts) else {})}
    about = f"{len(qids)} topics of {' and '.join(material.years)}, {len(material.qrels):,} judgments. {FEW_JUDGED}"
    return Report(
        title=f"Task 1 on topics that chose nothing, {', '.join(material.years)} of {made.shared.collection.path.name}",
        settings=made.settings(years=list(material.years), topics=len(qids), systems=names),
        stages=made.shared.stages.last(),
        tables={**kept, **more, TESTS: tests, CHOSEN: chosen_table(chosen)},
        about={
            CROSSED: f"{about} {_star(CROSSED)}",
            FOLDS: f"{about} {_star(FOLDS)}",
            KNOWN: f"{len(material.known_items.topics)} test questions look for their own answers. {_star(KNOWN)}",
            OVERVIEW: ABOUT,
            PARTS: ABOUT_PARTS,
            LINKED: _about_linked(linked[DUPLICATES]["qid"].nunique(), linked[ALL_LINKS]["qid"].nunique()),
        },
        remarks={CROSSED: not_measured(nested.missing)},
        notes=(made.note, *NOTES),
        values={f"{caption.lower().replace(' ', '-')}-by-topic": each for caption, each in values.items()},
    )


def _judged(nested: Nested, material: Material, folds: Sequence[Fold]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure the rankings of all folds together."""
    rankings, chosen = nested.run(folds)
    return _values(rankings, material.judged.topics, material.qrels, TASK1_MEASURES), chosen


def _asked(nested: Nested, material: Material) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Choose on all judged topics, then search for known items and for the answers of linked questions."""
    fitted = nested.fit(frozenset(material.judged.topics["qid"]))
    asked = material.known_items
    rankings = {
        name: fitted[name].rank(asked) for name, system in nested.systems.items() if system.linked and name in fitted
    }
    others = {name: material.without_own(ranking) for name, ranking in rankings.items()}
    knowing = {name: ranking for name, ranking in rankings.items() if nested.systems[name].known}
    found = {KNOWN: _values(knowing, asked.topics, material.own_answers, KNOWN_ITEM_MEASURES)}
    for kind, qrels in material.linked_answers.items():
        topics = asked.only(set(qrels["qid"])).topics
        found[kind] = _values(others, topics, qrels, KNOWN_ITEM_MEASURES[:1])
    chosen = [("all topics", name, described(one.chosen)) for name, one in fitted.items() if one.chosen]
    return found, pd.DataFrame(chosen, columns=["fold", "system", "chosen"])


def _values(
    rankings: Mapping[str, pd.DataFrame], topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any]
) -> pd.DataFrame:
    """Measure by topic; a topic without a judged result has 0."""
    return measure_by_topic(rankings, topics, qrels, measures).fillna({"value": 0.0})


def _linked(values: Mapping[str, pd.DataFrame], names: Sequence[str]) -> pd.DataFrame:
    """Put the figures of both kinds of links side by side."""
    measure = KNOWN_ITEM_MEASURES[0]
    tables = [
        means_table(values[kind], names, [str(measure)]).rename(
            columns={str(measure): f"{measure} of {kind}", f"{measure} error": f"{measure} of {kind} error"}
        )
        for kind in (DUPLICATES, ALL_LINKS)
    ]
    return tables[0].merge(tables[1], on="name", sort=False)


def _rows(table: pd.DataFrame, names: Sequence[str], nested: Nested) -> pd.DataFrame:
    """Keep the rows of systems, and name the missing extra of others."""
    measured = table[table["name"].isin([name for name in names if name not in nested.missing])]
    return with_missing(measured, names, {name: error for name, error in nested.missing.items() if name in names})


def _tests_table(found: Mapping[str, pd.DataFrame], systems: Sequence[ChosenSystem]) -> pd.DataFrame:
    """Test each system against the baseline and against each of its parts, over the same topics."""
    tables = [
        tests_of(found[caption], systems, measure, baseline).assign(table=caption)
        for caption, (measure, baseline) in TESTED.items()
    ]
    return pd.concat(tables, ignore_index=True)[["table", "system", "against", *TEST_COLUMNS]]


def _starred(table: pd.DataFrame, tests: pd.DataFrame, caption: str) -> pd.DataFrame:
    """Mark the systems that differ significantly from the baseline."""
    measure, baseline = TESTED[caption]
    own = tests[(tests["table"] == caption) & (tests["against"] == baseline) & tests["significant"].astype(bool)]
    return table.assign(**{f"{measure} reject": table["name"].isin(own["system"])})


def _star(caption: str) -> str:
    return stars(TESTED[caption][1], "the table's tests")


def _about_linked(duplicates: int, links: int) -> str:
    return f"{duplicates} test questions have a duplicate that has answers here, {links} any link."

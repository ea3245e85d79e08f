"""The report of the protocol: means with their standard errors, tests, and what was chosen in each fold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.choosing.definition import ProtocolSystem
from pyterrier_mathamr.experiments.choosing.strategies import SHIPPED
from pyterrier_mathamr.experiments.measuring import KNOWN_ITEM_MEASURES, SHORT_NAMES, PairedTest, paired_test
from pyterrier_mathamr.experiments.search import BM25

CROSSED, FOLDS, KNOWN, LINKED = "Years crossed", "Ten folds", "Known items", "Duplicate questions"
TESTS, CHOSEN = "Tests", "What was chosen"
TESTED = {
    CROSSED: (str(TASK1_MEASURES[0]), BM25),
    FOLDS: (str(TASK1_MEASURES[0]), BM25),
    KNOWN: (str(KNOWN_ITEM_MEASURES[0]), SHIPPED),
}
"""By caption, the measure that is tested, and the baseline; that of known items was chosen on such questions."""
NOTES = (
    "Everything is chosen by the mean nDCG' of the training topics: k1 and b of BM25, the candidates that a first "
    "stage hands on, the weights of fusions, and the seed of what was trained with several. Each topic is measured by "
    "a system that was chosen without it.",
    "BM25 as shipped has k1 2 and b 1, which were chosen on the validation questions, by their own answers, as was the "
    "weight of the fusion that names these questions.",
    "± is the standard error of the mean over the topics.",
    "What comes with the package was chosen earlier: bundled models, their options and BM25's tokens were compared on "
    "topics of 2020 and 2022. This protocol cannot undo that choice.",
    "Known items and duplicates: everything is chosen on all judged topics; the test questions were neither trained on "
    "nor chosen on. A test question looks for its own answers; of duplicates, for the answers of the questions that it "
    "duplicates or is linked with, its own left out. Systems that read the text of questions have no known items, "
    "since a question would find itself; those that rank judged answers alone have neither.",
)


def means_table(
    values: pd.DataFrame, measures: Sequence[Any], names: Sequence[str], years: bool = False
) -> pd.DataFrame:
    """Average over topics, with standard errors."""
    lines = []
    for name in names:
        own = values[values["name"] == name]
        line: dict[str, object] = {"name": name}
        first = own[own["measure"] == str(measures[0])]
        if years:
            by_year = first.groupby(first["qid"].str.partition(" ")[0], sort=False)["value"].mean()
            line |= {f"{SHORT_NAMES[str(measures[0])]} {year}": value for year, value in by_year.items()}
        for measure in map(str, measures):
            value = own.loc[own["measure"] == measure, "value"]
            line[measure] = float(value.mean()) if len(value) else math.nan
            line[f"{measure} error"] = float(value.std(ddof=1)) / math.sqrt(len(value)) if len(value) > 1 else math.nan
        lines.append(line)
    return pd.DataFrame(lines)


def tests_table(found: Mapping[str, pd.DataFrame], systems: Sequence[ProtocolSystem]) -> pd.DataFrame:
    """Test each system against the baseline and against each of its parts, over the same topics."""
    tables = [
        tests_of(found[caption], systems, measure, baseline).assign(table=caption)
        for caption, (measure, baseline) in TESTED.items()
    ]
    return pd.concat(tables, ignore_index=True)[["table", "system", "against", *PairedTest.NAMES]]


def tests_of(values: pd.DataFrame, systems: Sequence[ProtocolSystem], measure: str, baseline: str) -> pd.DataFrame:
    """Test each system against the baseline and against each of its parts, by one measure."""
    wide = values[values["measure"] == measure].pivot(index="qid", columns="name", values="value")
    pairs = [
        (system.name, other)
        for system in systems
        for other in dict.fromkeys((baseline, *system.parts))
        if system.name != other and {system.name, other} <= set(wide.columns)
    ]
    lines = []
    for name, other in pairs:
        test = paired_test(wide[name].to_numpy(), wide[other].to_numpy(), len(pairs)).columns()
        lines.append({"system": name, "against": other, **test, "difference": round(test["difference"], 4)})
    return pd.DataFrame(lines, columns=["system", "against", *PairedTest.NAMES])


def starred(table: pd.DataFrame, tests: pd.DataFrame, caption: str) -> pd.DataFrame:
    """Mark the systems that differ significantly from the baseline."""
    measure, baseline = TESTED[caption]
    own = tests[(tests["table"] == caption) & (tests["against"] == baseline) & tests["significant"].astype(bool)]
    return table.assign(**{f"{measure} reject": table["name"].isin(own["system"])})


def star(caption: str) -> str:
    """Say what a star in a table means."""
    baseline = TESTED[caption][1]
    return (
        f"A star: differs from {baseline} (two-sided paired t-test, p < 0.05 after Bonferroni over the table's tests)."
    )


def chosen_table(chosen: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join folds that chose the same: ``system``, ``chosen``, ``folds``."""
    folds = pd.concat(chosen).groupby(["system", "chosen"], sort=False)["fold"].agg("; ".join)
    table = folds.rename("folds").reset_index()
    order = pd.concat(chosen)["system"].drop_duplicates().tolist()
    sorted_by_system: pd.DataFrame = table.iloc[table["system"].map(order.index).argsort(kind="stable")]
    return sorted_by_system.reset_index(drop=True)


def about_linked(duplicates: int, links: int) -> str:
    """Say what the table of linked questions is of."""
    return f"{duplicates} test questions have a duplicate that has answers here, {links} any link."

"""Task 2 with other letters in the queries: a topic's formula and the question around it.

Trees of queries are read from LaTeX in both cases, since there are official ones only for the topics as written.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from mathamr_systems.experiments.measuring import means_table, paired_tests, rounded
from mathamr_systems.experiments.preparing import prepare
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.task2 import FORMULA_ONLY, MATHAMR, PATTERNS, POOLED, FormulaParts, search_years
from mathamr_systems.experiments.workdir import TANGENT
from pyterrier_mathamr.arqmath import TASK2_MEASURES
from studies.formulas.systems import shipped_weights, task2_systems

from .letters import renaming, with_letters

_FORMULA = re.compile(r'(<span class="math-container"[^>]*>\s*\$+)(.*?)(\$+\s*</span>)', re.DOTALL)
SYSTEMS = (TANGENT, PATTERNS, MATHAMR, FORMULA_ONLY, f"{TANGENT} + {MATHAMR}")
MEASURES, TESTS = "Task 2", f"Differences from {TANGENT} over the topics of all years"


@dataclass(frozen=True)
class Written(FormulaParts):
    """The topics of a year, with trees of queries from LaTeX."""

    @cached_property
    def trees(self) -> None:
        return None


@dataclass(frozen=True)
class Renamed(Written):
    """The same with other letters."""

    @cached_property
    def topics(self) -> pd.DataFrame:
        return renamed_topics(super().topics)


def renamed_topics(topics: pd.DataFrame) -> pd.DataFrame:
    """Give each topic (``qid, title, body, latex``) other letters for its variables, the same throughout it."""

    def of_topic(topic: pd.Series) -> pd.Series:
        texts = {column: topic[column] for column in ("title", "body")}
        formulas = [html.unescape(match[2]) for text in texts.values() for match in _FORMULA.finditer(text)]
        names = renaming(" ".join(f"${latex}$" for latex in formulas), topic["qid"])

        def of_formula(match: re.Match[str]) -> str:
            return match[1] + html.escape(with_letters(html.unescape(match[2]), names), quote=False) + match[3]

        texts = {column: _FORMULA.sub(of_formula, text) for column, text in texts.items()}
        return pd.Series({**topic, **texts, "latex": with_letters(topic["latex"], names)})

    return topics.apply(of_topic, axis="columns")


def run_formula_topics(
    path: str | Path,
    years: Sequence[str],
    workdir: str | Path,
    *,
    model: str = "mathamr-plus-mini",
    systems: Sequence[str] = SYSTEMS,
    verbose: bool = True,
) -> Report:
    """Measure systems that search for formulas, as the topics are written and with other letters.

    Args:
        path: an ARQMath folder.
        years: whose topics and judgments, by visual ids where there are such.
        workdir: where indexes, tables and ``report.md`` are kept; finished stages are not repeated.
        model: name or folder of a trained model.
        systems: names of systems of Task 2.
        verbose: report each stage on stderr, with progress bars.
    """
    made = prepare(path, workdir, model=model, verbose=verbose)
    index, chosen = made.own.formulas(made.model), list(task2_systems(systems) or ())
    names, measure = [system.name for system in chosen], TASK2_MEASURES[0]
    table, tests, values = pd.DataFrame({"name": names}), [], []
    for letters, kind_of_parts in (("as written", Written), ("renamed", Renamed)):
        parts = [kind_of_parts(made.shared, made.model, index, year) for year in years]
        _, compared = search_years(parts, chosen, shipped_weights(), f"task 2, {letters}")
        kinds = {judged for _, judged, _ in compared}
        for year, judged, one in compared:
            if judged == "formula ids" and "visual ids" in kinds:
                continue
            means = means_table(one.by_topic, names, [str(measure)])
            column = f"{year}, {letters}"
            table[column], table[f"{column} error"] = means[str(measure)], means[f"{measure} error"]
            values.append(one.by_topic.assign(year=year, letters=letters))
            if year == POOLED:
                pairs = [(name, TANGENT) for name in names if name != TANGENT]
                tests.append(rounded(paired_tests(one.by_topic, pairs, str(measure))).assign(letters=letters))
    return Report(
        title=f"Task 2 of ARQMath {', '.join(years)} with other letters",
        settings=made.settings(years=list(years), formulas=len(index)),
        stages=made.shared.stages.records,
        tables={MEASURES: table, **({TESTS: pd.concat(tests)} if tests else {})},
        about={MEASURES: f"{measure}; ± is the standard error."},
        notes=("A renamed topic has other letters for its variables, the same in its formula and its question.",),
        values={"task-2-letters-by-topic": pd.concat(values)},
    ).write(Path(workdir))

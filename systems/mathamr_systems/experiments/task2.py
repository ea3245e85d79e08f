"""Task 2, formulas of posts for a formula of a question: MathAMR+, a search by symbol pairs and other systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pyterrier as pt
import torch

from pyterrier_mathamr.arqmath import TASK2_MEASURES, ARQMathCollection
from pyterrier_mathamr.extending import ConfigError, MissingExtraError
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.fusion import Ensemble, fit_fusion_weights, ranked, standard_scores
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRFormulaIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig

from .measuring import (
    Comparison,
    FoundTopics,
    Missing,
    TimedPipeline,
    compare,
    joined,
    not_measured,
    paired_tests,
    pooled,
    random_floor,
    rounded,
    run_systems,
    stars,
    time_queries,
    with_missing,
)
from .preparing import Prepared, prepare, years_of
from .report import Report, published
from .stages import write_atomically
from .systems import ALL, System, Weights
from .workdir import DISTINCT_FORMULAS, FORMULA_DEPTH, TANGENT, FormulaArtifacts, distinct, require_years

MATHAMR = "MathAMR+"
FORMULA_ONLY = "MathAMR+ (formula only)"
PATTERNS = "Patterns"
OTHER_SYSTEMS = "a clone compares other systems: `python -m studies {task} FOLDER --systems …`"
TIME = "Time of a query"


@dataclass(frozen=True)
class FormulaParts:
    """The artifacts from which a system is made, for the topics of a year."""

    shared: FormulaArtifacts
    model: MathAMR
    index: MathAMRFormulaIndex
    year: str
    weights: Weights = field(default_factory=dict)  # of a system that is fitted; never on this year's judgments
    # rankings to fit weights on, shared by the fits of several other years
    found: dict[Callable[[FormulaParts], pt.Transformer], pd.DataFrame] = field(default_factory=dict, repr=False)

    @cached_property
    def trees(self) -> FormulaStore | None:
        """The official trees of the topics' formulas."""
        return self.shared.topic_formulas(self.year)

    @cached_property
    def judged(self) -> dict[str, pd.DataFrame]:
        """The judgments by their kind."""
        return self.shared.formula_judgments(self.year)

    @property
    def qrels(self) -> pd.DataFrame:
        """The judgments to fit weights on: by visual ids, where there are such."""
        return self.judged.get("visual ids", next(iter(self.judged.values())))

    @cached_property
    def topics(self) -> pd.DataFrame:
        """The topics with a relevant formula, by any kind of judgments."""
        topics = self.shared.formula_topics(self.year)
        return topics[topics["qid"].isin(pd.concat(self.judged.values())["qid"])].reset_index(drop=True)


FormulaSystem = System[FormulaParts, TimedPipeline]
"""Its pipeline ranks visually distinct formulas."""


def _tangent(parts: FormulaParts) -> TimedPipeline:
    return TimedPipeline(distinct(parts.shared.tangent.retriever(FORMULA_DEPTH, store=parts.trees)))


def by_patterns(parts: FormulaParts) -> TimedPipeline:
    """Rank by how formulas match the query, and the others by symbol pairs."""
    similar = parts.shared.tangent.retriever(FORMULA_DEPTH, store=parts.trees)
    return TimedPipeline(distinct(parts.shared.patterns.retriever(FORMULA_DEPTH, similar=similar)))


def _mathamr(parts: FormulaParts, **queries: Any) -> TimedPipeline:
    """Rank by the formula's vector, within its question or without."""
    encode = GraphBuilder(store=parts.trees, **queries) >> parts.model.query_encoder()
    return TimedPipeline(distinct(parts.index.retriever(num_results=FORMULA_DEPTH)), encode)


def fused(name: str, parts: Sequence[str], *, fitted: bool = False) -> FormulaSystem:
    """Fuse systems of the table, re-rankers last, with equal weights or those fitted on the other years."""

    def make(_: FormulaParts) -> TimedPipeline:
        raise ConfigError("systems", name, "a fusion after its parts")

    return System(name, make, against=tuple(parts), fuses=tuple(parts), fitted=fitted)


FORMULA_SYSTEMS: Mapping[str, FormulaSystem] = MappingProxyType(
    {
        system.name: system
        for system in (
            FormulaSystem(TANGENT, _tangent),
            FormulaSystem(MATHAMR, _mathamr),
            FormulaSystem(FORMULA_ONLY, lambda parts: _mathamr(parts, queries="formula")),
            fused(f"{TANGENT} + {MATHAMR}", (TANGENT, MATHAMR)),
        )
    }
)
"""The systems of Task 2, the baseline first."""


@dataclass
class SearchedYear:
    """The results of systems for the topics of a year: their searches, rankings, and the weights of some."""

    parts: FormulaParts
    pipelines: dict[str, TimedPipeline] = field(default_factory=dict)
    rankings: dict[str, pd.DataFrame] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)
    scorers: dict[str, pt.Transformer] = field(default_factory=dict)  # of re-rankers

    def add(self, system: FormulaSystem, pipeline: TimedPipeline) -> None:
        self.rankings |= run_systems({system.name: pipeline.whole}, self.parts.topics)[0]
        self.pipelines[system.name] = pipeline
        if system.scorer is not None:
            self.scorers[system.name] = system.scorer(self.parts)

    def scored(self, parts: Sequence[str]) -> list[pd.DataFrame]:
        """Return the results of a fusion's parts; re-rankers, which come last, score the others' results."""
        retrievers, scorers = self._divided(parts)
        return Ensemble(*(self.rankings[part] for part in retrievers), features=scorers).rankings(self.parts.topics)

    def _divided(self, parts: Sequence[str]) -> tuple[list[str], list[pt.Transformer]]:
        retrievers = [part for part in parts if part not in self.scorers]
        return retrievers, [self.scorers[part] for part in parts[len(retrievers) :]]

    def fuse(self, name: str, weights: Weights, scored: Sequence[pd.DataFrame]) -> None:
        """Fuse the results of systems, from :meth:`scored`, with a weight for each."""
        retrievers, scorers = self._divided(list(weights))
        pipelines = [self.pipelines[part] for part in retrievers]
        encoders = list({id(one.encode): one.encode for one in pipelines if one.encode}.values())
        encode = encoders[0] if len(encoders) == 1 else None  # parts with different encoders encode separately
        values = tuple(weights.values())
        searches = [one.whole if encode is None else one.search for one in pipelines]
        fusion = Ensemble(*searches, features=scorers, weight=values, num_results=DISTINCT_FORMULAS)
        self.pipelines[name] = TimedPipeline(fusion, encode)
        self.rankings[name] = ranked(standard_scores(scored), values, DISTINCT_FORMULAS)

    def found(self, kind: str, measures: list[Any] = TASK2_MEASURES) -> FoundTopics:
        """Return the rankings to measure by one kind of judgments."""
        qrels, topics = self.parts.judged[kind], self.parts.topics
        floor = random_floor(qrels, measures)
        return FoundTopics(self.rankings, topics[topics["qid"].isin(qrels["qid"])], qrels, floor)


class SearchedYears:
    """The results of systems for the topics of several years: each system, then the fusions."""

    def __init__(self, years: Sequence[SearchedYear], given: Mapping[str, Weights]) -> None:
        self.years, self._given = years, given
        self.missing: Missing = {}
        self.weights: dict[str, Weights] = {}

    def search(self, systems: Sequence[FormulaSystem]) -> None:
        for system in systems:
            if not system.fuses:
                try:
                    self._add(system)
                except MissingExtraError as error:
                    self.missing[system.name] = error
        for system in systems:
            if system.fuses:
                self._fuse(system, [part for part in system.fuses if part not in self.missing])

    def _add(self, system: FormulaSystem) -> None:
        """Search with a system, whose weights are fitted on the other years."""
        fit = system.fit
        if fit is not None:
            self._weigh(system.name, lambda years: fit([year.parts for year in years]))
        for year in self.years:
            year.add(system, system.make(replace(year.parts, weights=year.weights.get(system.name, {}))))

    def _fuse(self, system: FormulaSystem, parts: Sequence[str]) -> None:
        """Fuse systems, with equal weights or with weights fitted on the other years."""
        scored = {year.parts.year: year.scored(parts) for year in self.years}

        def fit(years: Sequence[SearchedYear]) -> Weights:
            names = [year.parts.year for year in years]
            scores = [joined({name: scored[name][part] for name in names}) for part in range(len(parts))]
            qrels = joined({year.parts.year: year.parts.qrels for year in years})
            return dict(zip(parts, fit_fusion_weights(scores, qrels), strict=True))

        if system.fitted:
            self._weigh(system.name, fit)
        equal = dict.fromkeys(parts, 1 / len(parts))
        for year in self.years:
            weights = year.weights.get(system.name, equal)
            year.fuse(system.name, {part: weights[part] for part in parts}, scored[year.parts.year])

    def _weigh(self, name: str, fit: Callable[[Sequence[SearchedYear]], Weights]) -> None:
        """Fit the weights for each year on all others; for a single year, use the given ones."""
        if len(self.years) == 1:
            if name not in self._given:
                raise ConfigError("years", [self.years[0].parts.year], f"several: {name} is fitted on the other years")
            self.years[0].weights[name] = self._given[name]
            return
        self.weights[name] = fit(self.years)
        for year in self.years:
            year.weights[name] = fit([other for other in self.years if other is not year])


TASK2 = "Task 2"
POOLED = "all years"
DIFFERENCES = f"Differences from {TANGENT} over the topics of all years"
WEIGHTS = "Fitted weights"
Compared = tuple[str, str, Comparison]
"""A year or :data:`POOLED`, a kind of judgments, and the comparison."""

TASK2_NOTES = (
    "Rankings are of visually distinct formulas: only the first instance of each is kept, as in the official "
    "evaluation. `formula ids` are judgments of instances, the best grade of equal-looking ones; `visual ids` "
    "are the organizers' own.",
    "Relevant is a grade of 2 or 3; unjudged formulas are removed first (the prime). Judgments of formulas that are "
    "not in this collection are left out, and so are topics without a relevant formula in it.",
    "`MathAMR+` encodes the formula within its question; `MathAMR+ (formula only)` encodes it without. `Tangent + "
    "MathAMR+` has equal weights, fixed beforehand.",
    "The random order is the mean of 200 shuffles of the judged formulas of each topic, with a fixed seed. It has "
    "every judged formula, a system only the ones among its first 1000: on a part of the release, where few formulas "
    "are judged, a system can be below it.",
)


def chosen_formulas(
    systems: Sequence[str | FormulaSystem] | None,
    known: Mapping[str, FormulaSystem] = FORMULA_SYSTEMS,
    others: str = OTHER_SYSTEMS.format(task="task-2"),
) -> list[FormulaSystem]:
    """Choose the systems of a table, the parts of fusions and the baseline included."""
    chosen = {TANGENT: known[TANGENT]}
    for asked in known.values() if systems is None else systems:
        if not isinstance(asked, str):
            chosen[asked.name] = asked
        elif found := [name for name in known if asked.lower() in (ALL, name.lower())]:
            for name in found:
                chosen |= {part: known[part] for part in (*known[name].fuses, name)}
        else:
            allowed = f"{ALL}, or some of: {'; '.join(known)}; {others}"
            raise ConfigError("systems", asked, allowed)
    return list(chosen.values())


def run_task2(
    path: str | Path,
    years: int | str | Sequence[int | str],
    workdir: str | Path,
    *,
    systems: Sequence[str | FormulaSystem] | None = None,
    weights: Mapping[str, Weights] = MappingProxyType({}),
    more: Callable[[Report, SearchedYears], Report] = lambda report, _: report,
    notes: Sequence[str] = (),
    verbose: bool = True,
    model: str | MathAMRConfig | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Report:
    """Index the formulas of a folder and compare systems on Task 2; see :func:`run_arqmath` with ``task=2``."""
    when, chosen = years_of(years), chosen_formulas(systems)
    require_years(ARQMathCollection(path), when, 2)
    made = prepare(path, workdir, model=model, changes=changes, verbose=verbose)
    shared, index = made.shared, made.own.formulas(made.model)
    parts = [FormulaParts(shared, made.model, index, year) for year in when]
    searched, compared = search_years(parts, chosen, weights, f"task 2, {', '.join(when)}")
    folder = shared.workdir / "task-2"
    if searched.weights:
        folder.mkdir(parents=True, exist_ok=True)
        fitted = {"format": 1, "fitted on": f"{shared.collection.path.name}, {', '.join(when)}"}
        write_atomically(folder / "weights.json", json.dumps({**fitted, "weights": searched.weights}, indent=1) + "\n")
    names = [system.name for system in chosen]
    return more(_report(made, len(index), names, searched, compared, notes), searched).write(folder)


def search_years(
    parts: Sequence[FormulaParts],
    systems: Sequence[FormulaSystem],
    weights: Mapping[str, Weights],
    stage: str,
    measures: list[Any] = TASK2_MEASURES,
) -> tuple[SearchedYears, list[Compared]]:
    """Search for the topics of each year, and compare the systems by each kind of judgments, also on all years."""
    searched = SearchedYears([SearchedYear(one) for one in parts], weights)
    with parts[0].shared.stages.timed(stage):
        searched.search(systems)
        years = searched.years
        found = {(year.parts.year, kind): year.found(kind, measures) for year in years for kind in year.parts.judged}
        for kind in dict.fromkeys(kind for _, kind in list(found)):
            of_kind = {year: one for (year, judged_kind), one in found.items() if judged_kind == kind}
            if len(of_kind) > 1:
                found[POOLED, kind] = pooled(of_kind)
        return searched, [(year, kind, compare(*one, measures)) for (year, kind), one in found.items()]


def about_times(speed: pd.DataFrame, year: str) -> str:
    """Describe how the times of queries were measured."""
    threads = torch.get_num_threads()
    device = "a GPU" if torch.cuda.is_available() else f"{threads} CPU thread{'s' * (threads > 1)}"
    queries = int(speed["queries"].max()) if len(speed) else 0
    return (
        f"{queries} topics of {year}, one at a time, on {device}. `encoding ms` is parsing, graph and model, from the "
        "text to the vectors; `ms per query` is encoding and search. p50 and p95 are of that sum."
    )


def _report(
    made: Prepared,
    formulas: int,
    names: Sequence[str],
    searched: SearchedYears,
    compared: Sequence[Compared],
    notes: Sequence[str],
) -> Report:
    shared, when = made.shared, [year.parts.year for year in searched.years]
    judgments = "; ".join(f"{one.judgments:,} of {year} by {kind}" for year, kind, one in compared if year != POOLED)
    weights, (measured, differences, speed) = _weights(searched), tables_of(searched, compared, names)
    return Report(
        title=f"Task 2 of ARQMath {', '.join(when)} on {shared.collection.path.name}",
        settings=made.settings(years=when, formulas=formulas)
        | {"ranked before de-duplication": FORMULA_DEPTH, "pairs of symbols": shared.tangent.pair_options().to_dict()},
        stages=tuple(shared.stages.records),
        tables={
            TASK2: measured,
            **({DIFFERENCES: differences} if len(differences) else {}),
            **({WEIGHTS: weights} if len(weights) else {}),
            TIME: speed,
        },
        about={
            TASK2: f"Formula topics with a relevant formula among the {formulas:,} of {shared.collection.path.name}. "
            f"Judgments of these: {judgments}. "
            f"Rankings of {DISTINCT_FORMULAS} visually distinct formulas, of {FORMULA_DEPTH:,} found. {made.who} "
            + stars(TANGENT, "the systems of the same year and judgments"),
            DIFFERENCES: "Mean difference in nDCG' over all topics, and p of the two-sided paired t-test, before and "
            "after Bonferroni over the systems.",
            WEIGHTS: "Weights of a system's standard scores in a fusion, or of features. The weights of a year are "
            "fitted on the judgments of the other years; for a single year, they come with the package.",
            TIME: about_times(speed, "each year"),
        },
        remarks={
            TASK2: [
                *(f"{year}, {kind}: {text}" for year, kind, one in compared for text in one.remark(made.advice)),
                *not_measured(searched.missing),
            ]
        },
        notes=(made.note, *TASK2_NOTES, *notes),
        published=published().captioned(["4.21"]),
        values={"task-2-by-topic": values_of(compared)},
    )


def tables_of(
    searched: SearchedYears, compared: Sequence[Compared], names: Sequence[str], measure: Any = TASK2_MEASURES[0]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Make the tables of the measures, of tests of a measure against the baseline over all years, and of times."""
    measured, differences = [], [pd.DataFrame(columns=["judged", "name", "topics", "difference", "p", "p corrected"])]
    for year, kind, one in compared:
        table = with_missing(one.table, names, searched.missing)
        table.insert(1, "topics", one.topics)
        measured.append(_labelled(table, year, kind))
        if year == POOLED:
            pairs = [(name, TANGENT) for name in one.by_topic["name"].drop_duplicates() if name != TANGENT]
            tests = rounded(paired_tests(one.by_topic, pairs, str(measure)))
            tests = tests.assign(judged=kind, name=tests["system"], topics=one.topics)
            differences.append(tests[differences[0].columns])
    with searched.years[0].parts.shared.stages.timed("time of a query"):
        times = {year.parts.year: time_queries(year.pipelines, year.parts.topics) for year in searched.years}
    speed = pd.concat(times, names=["year"]).reset_index("year").reset_index(drop=True)
    return pd.concat(measured, ignore_index=True), pd.concat(differences[1:] or differences, ignore_index=True), speed


def values_of(compared: Sequence[Compared]) -> pd.DataFrame:
    return pd.concat([_labelled(one.by_topic, year, kind) for year, kind, one in compared], ignore_index=True)


def _labelled(table: pd.DataFrame, year: str, kind: str) -> pd.DataFrame:
    marked = table.copy()
    marked.insert(0, "judged", kind)
    marked.insert(0, "year", year)
    return marked


def _weights(searched: SearchedYears) -> pd.DataFrame:
    rows = [
        (name, year.parts.year, part, weight)
        for year in searched.years
        for name, weights in year.weights.items()
        for part, weight in weights.items()
    ]
    return pd.DataFrame(rows, columns=["name", "year", "of", "weight"])

"""Settings that are chosen on some topics, and measured on others.

::

    Training ── System.make ──▶ Fitted ── rank(Questions) ──▶ ranking
    topics and judgments        what was chosen    other topics, without judgments

    folds ──▶ Nested: fit on the training topics of each fold, rank its test topics
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.extending import ConfigError, MissingExtraError, pseudo_random
from pyterrier_mathamr.fusion import ranked, standard_scores
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import BM25Index

from .measuring import Missing, measure_by_topic, paired_tests, rounded
from .systems import ALL, BM25, COLBERT, DEPTH, DOC_VN, FUSION, SCORER, SINGLE, TASK1, TUNED, System, SystemSearch, Way
from .workdir import TopicSet

PLUS = " + "
MAIN = TASK1_MEASURES[0]
"""nDCG', the measure by which everything is tuned on ARQMath."""
CROSSED_BM25 = "cross-validated BM25"
"""The one tuned for mathematics, with k1 and b chosen on the training topics."""
CROSSED_FUSION = f"{CROSSED_BM25}{PLUS}{COLBERT}"
K1 = (0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0)
B = (0.0, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
DEPTHS = (50, 100, 200, 500, 1000)
"""Candidates of a first stage."""
STEPS = (20, 10, 5, 4, 3, 2, 1)
MOST = 70
"""Weights of a grid: steps of 1/20 for two systems, of 1/10 for three, of 1/5 for four."""


# Folds ---------------------------------------------------------------------------------------------------------------


class Fold(NamedTuple):
    """Topics to choose on, and topics to measure, by their qids; none is in both."""

    name: str
    training: frozenset[str]
    test: frozenset[str]


def pooled_folds(qids: Sequence[str]) -> list[Fold]:
    """Split the topics of all years into ten folds of the same size, by a hash of the qid."""
    if len(qids) < 2:
        raise ConfigError("years", list(qids), "years with at least two topics")
    order = sorted(qids, key=pseudo_random)
    count, folds = min(10, len(order)), []
    for fold in range(count):
        test = frozenset(order[fold::count])
        folds.append(Fold(f"fold {fold + 1}", frozenset(qids) - test, test))
    return folds


# The settings --------------------------------------------------------------------------------------------------------


class Questions(NamedTuple):
    """Questions to rank documents for: the name of the set, and ``qid``, ``query``, ``title``, ``body``."""

    of: str
    topics: pd.DataFrame

    def only(self, qids: Collection[str]) -> Questions:
        return Questions(self.of, self.topics[self.topics["qid"].isin(list(qids))].reset_index(drop=True))

    def kept(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of rankings or judgments that belong to these questions."""
        kept: pd.DataFrame = rows[rows["qid"].isin(self.topics["qid"])].reset_index(drop=True)
        return kept


@dataclass(frozen=True, eq=False)
class Fitted:
    """A system with everything chosen."""

    # the settings, such as {"k1": 2.0, "b": 1.0}; empty if there was nothing to tune
    chosen: Mapping[str, object]
    # ranks at most 1000 documents for each question: qid, docno, score, rank. The results for one question must not
    # depend on the other questions.
    rank: Callable[[Questions], pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Training:
    """The topics that everything is chosen on."""

    questions: Questions
    qrels: pd.DataFrame  # their judgments, and no others: qid, docno, label
    part: Callable[[str], Fitted]  # another system of the report by its name, fitted on the same topics
    mean: Callable[[Fitted], float]  # the mean of a fitted system over these topics, of nDCG' on ARQMath

    def best(self, candidates: Sequence[Fitted]) -> Fitted:
        """Choose the candidate with the highest mean, of equal ones the first."""
        return candidates[0] if len(candidates) == 1 else max(candidates, key=self.mean)


ChosenSystem = System[Training, Fitted]
"""A system fitted on training topics; the systems that it is tested ``against`` precede it, as its parts."""


def choice(name: str, candidates: Sequence[Fitted], **options: Any) -> ChosenSystem:
    """Make a system from a grid of settings; the one with the highest mean on the training topics is chosen."""
    return System(name, lambda training: training.best(candidates), **options)


def fused(parts: tuple[str, ...], *, weights: tuple[float, ...] | None = None, **options: Any) -> ChosenSystem:
    """Make a fusion of other systems: the weighted sum of standard scores, by given weights or the best of a grid."""
    name = " + ".join(parts) + (f", weights {' : '.join(f'{weight:g}' for weight in weights)}" if weights else "")
    grids: dict[tuple[Fitted, ...], list[Fitted]] = {}

    def grid(fitted: tuple[Fitted, ...]) -> list[Fitted]:
        scores: dict[tuple[str, ...], pd.DataFrame] = {}

        def joined(questions: Questions) -> pd.DataFrame:
            key = (questions.of, *questions.topics["qid"])
            if key not in scores:
                scores.clear()  # all weights are measured on one set of questions, then the chosen one on another
                scores[key] = standard_scores([part.rank(questions) for part in fitted])
            return scores[key]

        def candidate(shares: tuple[float, ...]) -> Fitted:
            named = {f"weight of {part}": share for part, share in zip(parts, shares, strict=True)}
            return Fitted({} if weights else named, lambda questions: ranked(joined(questions), shares, DEPTH))

        return [candidate(shares) for shares in ([weights] if weights else weight_grid(len(fitted)))]

    def fit(training: Training) -> Fitted:
        fitted = tuple(training.part(part) for part in parts)
        if fitted not in grids:  # folds that chose the same parts share their measurements
            grids[fitted] = grid(fitted)
        return training.best(grids[fitted])

    return System(name, fit, against=parts, fuses=parts, **options)


@cache
def weight_grid(systems: int) -> Sequence[tuple[float, ...]]:
    """List all weights that sum to 1, in the finest steps that give at most :data:`MOST`."""
    steps = next(steps for steps in STEPS if math.comb(steps + systems - 1, systems - 1) <= MOST or steps == 1)
    shares = product(range(steps + 1), repeat=systems)
    return tuple(tuple(share / steps for share in some) for some in shares if sum(some) == steps)


def chosen_systems(
    names: Sequence[str] | None, others: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> dict[str, tuple[str, ...]]:
    """Choose systems by name, or several joined by ``+`` (a fusion): each with its parts, which come before it."""
    chosen: dict[str, tuple[str, ...]] = {BM25: (), TUNED: (), CROSSED_BM25: ()}
    every = [CROSSED_FUSION if name == FUSION else name for name in (*TASK1, *others)]
    for asked in names or every[: len(TASK1)]:
        for name in every if asked.strip().lower() == ALL else [asked]:
            found = _known(name, (CROSSED_BM25, *every))
            parts = found if len(found) > 1 else others.get(found[0], ())
            chosen |= {part: () for part in parts if part not in chosen}
            chosen.setdefault(PLUS.join(found), parts)
    return chosen


def _known(name: str, every: Sequence[str]) -> tuple[str, ...]:
    """Find one system by its name, or several joined by ``+``, which some names have, too."""
    known = {PLUS.join(_pieces(each)): each for each in every if each != CROSSED_FUSION}
    pieces, names = _pieces(name), list[str]()
    while pieces:
        length = next((end for end in range(len(pieces), 0, -1) if PLUS.join(pieces[:end]) in known), 0)
        if not length:
            allowed = f"{ALL}, or some of: {'; '.join(known.values())}; or several joined by +"
            raise ConfigError("systems", name, allowed)
        names.append(known[PLUS.join(pieces[:length])])
        del pieces[:length]
    return tuple(names)


def _pieces(name: str) -> list[str]:
    return [piece.strip().lower() for piece in name.split("+")]


class Nested:
    """Fits systems on training topics; returns only their results for the other topics."""

    def __init__(
        self, systems: Sequence[ChosenSystem], questions: Questions, qrels: pd.DataFrame, measure: Any = MAIN
    ) -> None:
        self.systems = {system.name: system for system in systems}
        self.questions, self._qrels, self._measure = questions, qrels, measure
        self.missing: Missing = {}
        self._values: Callable[[Fitted], pd.Series[float]] = cache(self._measured)
        before: set[str] = set()
        for system in systems:
            if not before.issuperset(system.against):
                raise ConfigError("against", system.against, f"systems before {system.name!r}: {'; '.join(before)}")
            before.add(system.name)

    def fit(self, qids: frozenset[str]) -> dict[str, Fitted]:
        """Fit all systems on some topics; a system with a missing extra is left out, and so are fusions of it."""
        questions = self.questions.only(qids)
        asked = list(questions.topics["qid"])
        fitted: dict[str, Fitted] = {}

        def mean(one: Fitted) -> float:
            return float(self._values(one)[asked].mean())

        training = Training(questions, questions.kept(self._qrels), fitted.__getitem__, mean)
        for name, system in self.systems.items():
            lacking = [self.missing[part] for part in (name, *system.against) if part in self.missing]
            try:
                if lacking:
                    raise lacking[0]
                one = system.make(training)
                if not system.against:
                    one.rank(questions)  # an extra may be missing only now
                fitted[name] = one
            except MissingExtraError as error:
                self.missing[name] = error
        return fitted

    def run(self, folds: Sequence[Fold]) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
        """Fit on the training topics of each fold, and rank its test topics."""
        rankings_of: dict[str, list[pd.DataFrame]] = {name: [] for name in self.systems}
        chosen = []
        for fold in folds:
            asked = self.questions.only(fold.test)
            for name, fitted in self.fit(fold.training).items():
                rankings_of[name].append(asked.kept(fitted.rank(asked)))
                if fitted.chosen:
                    chosen.append((fold.name, name, described(fitted.chosen)))
        rankings = {name: pd.concat(parts) for name, parts in rankings_of.items() if len(parts) == len(folds)}
        return rankings, pd.DataFrame(chosen, columns=["fold", "system", "chosen"])

    def _measured(self, fitted: Fitted) -> pd.Series[float]:
        """Measure a candidate on all topics, by qid, 0 if nothing judged was found."""
        topics = self.questions.topics
        values = measure_by_topic({"": fitted.rank(self.questions)}, topics, self._qrels, [self._measure])
        by_topic: pd.Series[float] = values.set_index("qid")["value"].reindex(topics["qid"]).fillna(0.0)
        return by_topic


def described(chosen: Mapping[str, object]) -> str:
    """Write the settings in one line, such as ``k1 2, b 1``."""
    return ", ".join(f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in chosen.items())


# BM25 and the ways to search with one model --------------------------------------------------------------------------


_COLUMNS = ["qid", "docno", "score", "rank"]
Find = Callable[[str], pd.DataFrame]
"""From the name of a set of questions to a ranking."""


@dataclass(frozen=True, eq=False)
class ModelSystems:
    """BM25 and the ways to search with a model, each with its grid of settings."""

    # the model and the vectors; made when the first system that needs them searches
    indexes: Callable[[], tuple[MathAMR, MathAMRIndex]]
    bm25: Callable[[], BM25Index]
    tuned: Callable[[], BM25Index]
    found: Callable[[str], TopicSet]  # the topics of a set of questions
    find: Callable[[Find, str], pd.DataFrame]  # runs a search on a set of questions, all years joined
    _encoded: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)
    _rankings: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict, repr=False)

    def system(self, name: str) -> ChosenSystem:
        return choice(name, self.candidates(name))

    def candidates(self, name: str) -> list[Fitted]:
        """List the settings of a system that there are to choose from."""
        if name == CROSSED_BM25:
            grid = [(k1, b) for k1 in K1 for b in B]
            return [self.fitted(partial(self._by_words, k1, b), {"k1": k1, "b": b}, keep=False) for k1, b in grid]
        if name in (DOC_VN, SCORER):  # exact scores of candidates, which do not depend on the others
            return [self.fitted(partial(self._first, TASK1[name], one), {"candidates": one}) for one in DEPTHS]
        return [self.fitted(partial(self._by_vectors, name))]

    def fitted(self, find: Find, chosen: Mapping[str, object] | None = None, *, keep: bool = True) -> Fitted:
        """Make a system of a search function; with ``keep`` its rankings stay in memory."""
        rankings: dict[str, pd.DataFrame] = {}

        def rank(questions: Questions) -> pd.DataFrame:
            ranking = rankings.get(questions.of)
            if ranking is None:
                ranking = self.find(find, questions.of)
                if keep:
                    rankings[questions.of] = ranking
            return questions.kept(ranking)

        return Fitted(chosen or {}, rank)

    def _by_words(self, k1: float, b: float, questions: str) -> pd.DataFrame:
        ranking: pd.DataFrame = self.tuned().retriever(DEPTH, k1=k1, b=b)(self.found(questions).topics)
        return ranking[_COLUMNS]

    def _by_vectors(self, name: str, questions: str) -> pd.DataFrame:
        """Search in one way with all topics, which are encoded once."""
        if questions not in self._encoded:
            self._encoded[questions] = self.search.encode(self.found(questions))
        if (name, questions) not in self._rankings:
            self._rankings[name, questions] = self._systems[name](self._encoded[questions])[_COLUMNS]
        return self._rankings[name, questions]

    def _first(self, way: Way, depth: int, questions: str) -> pd.DataFrame:
        """Rescore the top results of the first stage."""
        stage = self._by_vectors(TUNED if way.name == SCORER else SINGLE, questions)
        rows = pd.MultiIndex.from_frame(stage.loc[stage["rank"] < depth, ["qid", "docno"]])
        scored = self._by_vectors(way.name, questions)
        kept = scored[pd.MultiIndex.from_frame(scored[["qid", "docno"]]).isin(rows)]
        return kept.assign(rank=kept.groupby("qid").cumcount())

    @cached_property
    def search(self) -> SystemSearch:
        ways = {name: way for name, way in TASK1.items() if not way.fuses}
        return SystemSearch(*self.indexes(), self.bm25(), self.tuned(), ways)

    @cached_property
    def _systems(self) -> dict[str, pt.Transformer]:
        return self.search.systems()


# Tables --------------------------------------------------------------------------------------------------------------


def tests_of(values: pd.DataFrame, systems: Sequence[ChosenSystem], measure: str, baseline: str) -> pd.DataFrame:
    """Test each system against the baseline and against each of its parts, by one measure."""
    measured = set(values["name"])
    pairs = [
        (system.name, other)
        for system in systems
        for other in dict.fromkeys((baseline, *system.against))
        if system.name != other and {system.name, other} <= measured
    ]
    return rounded(paired_tests(values, pairs, measure))


def chosen_table(chosen: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join folds that chose the same: ``system``, ``chosen``, ``folds``."""
    folds = pd.concat(chosen).groupby(["system", "chosen"], sort=False)["fold"].agg("; ".join)
    table = folds.rename("folds").reset_index()
    order = pd.concat(chosen)["system"].drop_duplicates().tolist()
    sorted_by_system: pd.DataFrame = table.iloc[table["system"].map(order.index).argsort(kind="stable")]
    return sorted_by_system.reset_index(drop=True)

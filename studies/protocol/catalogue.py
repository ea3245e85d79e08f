"""The systems of Task 1 by their names, as the protocol measures them: each with its grid of settings.

=================  ================================================  ============================================
questions          right answers                                     from
=================  ================================================  ============================================
judged topics      answers by their grades                           the years of the release, pooled
known item         the question's own answers                        the test questions of the collection
duplicates         the answers of questions that it duplicates       the same, as far as ``links.tsv`` names some
all links          the answers of questions that it is linked with   the same
=================  ================================================  ============================================
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from mathamr_systems.experiments.choosing import (
    CROSSED_BM25,
    ChosenSystem,
    Find,
    Fitted,
    Fold,
    ModelSystems,
    Questions,
    Training,
    choice,
    chosen_systems,
    fused,
)
from mathamr_systems.experiments.measuring import joined
from mathamr_systems.experiments.preparing import Prepared
from mathamr_systems.experiments.systems import COLBERT, DEPTH, FUSION, TUNED, AnswerParts, AnswerSystem, System
from mathamr_systems.experiments.workdir import KNOWN_ITEM, Artifacts
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.arqmath import MissingFileError
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.fusion import fit_fusion_weights, ranked, standard_scores
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.store import StoredArtifact, replace_file
from studies.answers.catalogue import ANSWER_SYSTEMS
from studies.answers.colbert import COLBERT_ROW
from studies.answers.marf import MARF
from studies.answers.rows import IN_OUT_ROW, MATHAMR_ROW, QUESTION_ROWS, STRUCTURAL_ROW, TITLES_ROW, TOKEN_ROW
from studies.answers.two_step import QQSIM, TANGENT

DUPLICATES, ALL_LINKS = "duplicates", "all links"
JUDGED = "judged topics"
"""The topics of all years, each qid with its year in front: ``2020 A.1``."""


def crossed_years(qids: Sequence[str]) -> list[Fold]:
    """Leave each year out in turn."""
    years = list(dict.fromkeys(qid.partition(" ")[0] for qid in qids))
    if len(years) < 2:
        raise ConfigError("years", years, "several, as everything is chosen on the others: --years 2020,2022")
    folds = []
    for year in years:
        test = frozenset(qid for qid in qids if qid.partition(" ")[0] == year)
        others = " and ".join(other for other in years if other != year)
        folds.append(Fold(f"{others} → {year}", frozenset(qids) - test, test))
    return folds


@dataclass(frozen=True, eq=False)
class Material:
    """Questions and judgments of a collection."""

    shared: Artifacts
    years: tuple[str, ...]

    @cached_property
    def judged(self) -> Questions:
        """The topics of all years."""
        return Questions(JUDGED, self._of_years(lambda year: self.shared.topics(year).topics))

    @cached_property
    def qrels(self) -> pd.DataFrame:
        """Their judgments."""
        return self._of_years(lambda year: self.shared.topics(year).qrels)

    @cached_property
    def known_items(self) -> Questions:
        """The test questions."""
        return Questions(KNOWN_ITEM, self.shared.questions("test").topics)

    @property
    def own_answers(self) -> pd.DataFrame:
        """The own answers of the test questions, as judgments."""
        return self.shared.questions("test").qrels

    @cached_property
    def linked_answers(self) -> Mapping[str, pd.DataFrame]:
        """The answers of questions that the test questions are linked with, as judgments, by the kind of link."""
        answers, found = defaultdict[str, list[str]](list), defaultdict[str, set[tuple[str, str]]](set)
        for post in self.shared.collection.answers():
            answers[post.parent_id].append(post.id)
        asked = set(self.known_items.topics["qid"])
        try:
            links = list(self.shared.collection.links())
        except MissingFileError:
            links = []
        for link in links:
            for one, other in ((link.question_id, link.related_id), (link.related_id, link.question_id)):
                if one in asked and one != other:
                    for kind in (ALL_LINKS, *([DUPLICATES] if link.kind == "duplicate" else [])):
                        found[kind].update((one, docno) for docno in answers[other])
        return {
            kind: pd.DataFrame(sorted(found[kind]), columns=["qid", "docno"], dtype=str).assign(label=1)
            for kind in (DUPLICATES, ALL_LINKS)
        }

    def without_own(self, ranking: pd.DataFrame) -> pd.DataFrame:
        """Leave the own answers of test questions out of a ranking."""
        own = pd.MultiIndex.from_frame(self.own_answers[["qid", "docno"]])
        kept: pd.DataFrame = ranking[~pd.MultiIndex.from_frame(ranking[["qid", "docno"]]).isin(own)]
        return kept

    def find(self, find: Find, of: str) -> pd.DataFrame:
        """Search with the topics of each year, or with known items."""
        return self._of_years(find) if of == JUDGED else find(of)

    def _of_years(self, find: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
        return joined({year: find(year) for year in self.years}).reset_index(drop=True)


QUERIES = 20
"""Topics that are timed, one at a time."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a system."""

    ms: float = 0.0  # CPU milliseconds of a query, over all threads; opening files and loading models is not counted
    # the bytes of each artifact that is searched, by its path: indexes and threads, not models
    files: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Cost) -> Cost:
        """Add the time; an artifact that both search is kept once."""
        return Cost(self.ms + other.ms, {**self.files, **other.files})


def cost_of(system: pt.Transformer, topics: pd.DataFrame, most: int = QUERIES) -> Cost:
    """Answer topics one at a time."""
    queries = [topics.iloc[[row]] for row in range(min(most, len(topics)))]
    system(queries[0])
    start = time.process_time()
    for query in queries:
        system(query)
    ms = 1000 * (time.process_time() - start) / len(queries)
    return Cost(ms, {str(path): _bytes(path) for path in _artifacts(system)})


def kept_cost(parts: AnswerParts, name: str, measure: Callable[[], Cost], **settings: Any) -> Cost:
    """Measure a cost, unless the work folder has it."""

    def build(path: Path) -> None:
        cost = measure()
        text = json.dumps({"ms": cost.ms, "files": dict(cost.files)}, indent=2)
        replace_file(path, f"{text}\n".encode())

    content: Any = parse_json(parts.stage(f"cost of {name}", build, **settings).read_bytes())
    return Cost(content["ms"], content["files"])


def _artifacts(system: object) -> set[Path]:
    """Find the artifacts that a pipeline searches: attributes of its stages, whatever these call them."""
    found, seen, open_ = set[Path](), set[int](), [system]
    while open_:
        one = open_.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, StoredArtifact):
            if not isinstance(one, FormulaStore | GraphStore):  # of topics; they are read, not searched
                found.add(Path(one.path))
        elif isinstance(one, pt.Transformer):
            open_ += _values(vars(one).values())
    return found


def _values(values: Iterable[object]) -> list[object]:
    """Return values, and values inside lists and tuples."""
    return list(chain.from_iterable(one if isinstance(one, list | tuple) else (one,) for one in values))


def _bytes(path: Path) -> int:
    files: Collection[Path] = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


RIDGE = 0.1
"""As :class:`~pyterrier_mathamr.fusion.Ensemble` has it; not chosen by these figures."""
PLAIN = (CROSSED_BM25, COLBERT, TANGENT.name)
"""Words, graphs and formulas, which need no extra."""
QUESTIONS = (*(row.name for row in QUESTION_ROWS), QQSIM.name)
"""Parts that read the question of an answer."""
EVERY = (*PLAIN, MATHAMR_ROW.name, TOKEN_ROW.name, COLBERT_ROW.name, MARF.name, STRUCTURAL_ROW.name, *QUESTIONS)
THREADS = (CROSSED_BM25, MATHAMR_ROW.name, TITLES_ROW.name, QQSIM.name)
"""Words, text, text with the title of its question, and similar questions: four parts selected by their gain on
years crossed, so the figures of their ensemble are optimistic."""
WITH_FORMULAS = "Ensemble with questions and formulas"
_WHOLE = {
    "Ensemble": PLAIN,
    "Ensemble by In+Out": (CROSSED_BM25, COLBERT, IN_OUT_ROW.name),
    "Ensemble with questions": THREADS,
    WITH_FORMULAS: (*THREADS, IN_OUT_ROW.name),
    "Ensemble of all": EVERY,
}
_UNKNOWN = {STRUCTURAL_ROW.name, *QUESTIONS}
ABLATIONS = {f"{name} without {part}": (name, part) for name, parts in _WHOLE.items() for part in parts}
"""By name, the whole ensemble and the part that is left out."""


def ensemble(name: str, parts: tuple[str, ...]) -> ChosenSystem:
    """Define an ensemble whose weights are learned on the training topics."""
    return System(name, partial(_learn, parts), against=parts, known=_UNKNOWN.isdisjoint(parts))


def _learn(parts: tuple[str, ...], training: Training) -> Fitted:
    """Learn the weights of parts that are fitted on the same topics."""
    fitted = [training.part(name) for name in parts]
    rankings = [part.rank(training.questions) for part in fitted]
    weights = fit_fusion_weights(rankings, training.qrels, ridge=RIDGE, judged_only=True)

    def rank(asked: Questions) -> pd.DataFrame:
        return ranked(standard_scores([part.rank(asked) for part in fitted]), weights, DEPTH)

    return Fitted({f"weight of {name}": weight for name, weight in zip(parts, weights, strict=True)}, rank)


_MORE = (IN_OUT_ROW, MATHAMR_ROW, *QUESTION_ROWS, QQSIM)
ROWS: Mapping[str, AnswerSystem] = {**ANSWER_SYSTEMS, **{row.name: row for row in _MORE}}
WEIGHED = f"{FUSION}, weight of validation questions"
"""The fusion of Task 1: nothing is chosen on judged topics."""
LEARNED: dict[str, ChosenSystem] = {
    name: ensemble(name, parts)
    for name, parts in {
        **_WHOLE,
        **{
            name: tuple(part for part in _WHOLE[whole] if part != left_out)
            for name, (whole, left_out) in ABLATIONS.items()
        },
    }.items()
}
"""Systems that are fitted on the training topics, besides fusions, by their names."""


def protocol_systems(names: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Choose systems, their parts included, each after its parts."""
    others = {**dict.fromkeys(ROWS, ()), **{name: system.against for name, system in LEARNED.items()}}
    chosen = chosen_systems(names, others)
    for name, parts in chosen.items():
        if fitted := [part for part in parts if part in ROWS and ROWS[part].fitted]:
            what = f"a fusion without {fitted[0]}, which is fitted on the judgments of the other years"
            raise ConfigError("systems", name, what)
    return chosen


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Makes systems of the artifacts of a work folder."""

    made: Prepared  # the model and the artifacts
    material: Material
    seeds: tuple[int, ...]  # of other systems that are trained; one of them is chosen

    def systems(self, chosen: Mapping[str, tuple[str, ...]]) -> list[ChosenSystem]:
        """Make systems."""
        made: dict[str, ChosenSystem] = {}
        for name, parts in chosen.items():
            if name in LEARNED:
                made[name] = LEARNED[name]
            elif name == WEIGHED:
                made[name] = self._weighed()
            elif parts:
                known = all(made[part].known for part in parts)
                made[name] = fused(parts, known=known, linked=all(made[part].linked for part in parts))
            else:
                made[name] = self._row(ROWS[name]) if name in ROWS else self._own.system(name)
        return list(made.values())

    def costs(self, chosen: Mapping[str, tuple[str, ...]]) -> dict[str, Cost]:
        """Measure the costs of systems, each once in a work folder; without systems whose extra is missing."""
        found: dict[str, Cost] = {}
        for name, parts in chosen.items():
            if not parts:
                cost = self._row_cost(ROWS[name]) if name in ROWS else self._own_cost(name)
                found |= {} if cost is None else {name: cost}
            elif set(parts) <= set(found):
                found[name] = sum((found[part] for part in parts), Cost())
        return found

    def _row_cost(self, row: AnswerSystem) -> Cost | None:
        """Measure a system of the answer studies, including the parts of a fusion."""
        if row.fitted:  # it ranks only judged answers
            return None
        parts = replace(self._parts, live=True, asked=[])

        def measure() -> Cost:
            own = cost_of(row.make(parts), parts.found.topics)
            return sum(filter(None, map(self._row_cost, parts.asked)), own)

        try:
            return kept_cost(parts, row.name, measure, trained=row.trained, **row.settings)
        except MissingExtraError:
            return None

    def _own_cost(self, name: str) -> Cost:
        """Measure a way to search with the model."""
        shared, year = self.made.shared, self.material.years[0]

        def measure() -> Cost:
            own = self._own.search.pipelines(shared.topic_formulas(year))[TUNED if name == CROSSED_BM25 else name]
            return cost_of(own.whole, shared.topics(year).topics)

        return kept_cost(self._parts, name, measure, model=self.made.model.identity)

    def _weighed(self) -> ChosenSystem:
        """Fuse the tuned BM25 and the model by the weight of the validation questions, as Task 1 does."""
        parts = (TUNED, COLBERT)
        words, vectors = (self._own.candidates(name)[0] for name in parts)

        def rank(questions: Questions) -> pd.DataFrame:
            scores = standard_scores([words.rank(questions), vectors.rank(questions)])
            return ranked(scores, (1 - self._weight, self._weight), DEPTH)

        return choice(WEIGHED, [Fitted({}, rank)], against=parts)

    @cached_property
    def _weight(self) -> float:
        """The weight of the model in the fusion with BM25, fitted to the validation questions."""
        self._own.search.fit(self.made.shared.questions("validation"))
        return self._own.search.weight

    def _row(self, row: AnswerSystem) -> ChosenSystem:
        """Offer a system of the answer studies, with each seed if it is trained and not fitted on other years."""
        chosen = row.trained and not row.fitted and len(self.seeds) > 1
        seeds = self.seeds if chosen else self.seeds[:1]
        candidates = tuple(self._trained(row, seed, chosen) for seed in seeds)
        return choice(row.name, candidates, known=row.known, linked=row.linked)

    def _trained(self, row: AnswerSystem, seed: int, chosen: bool) -> Fitted:
        return self._own.fitted(
            lambda of: self._parts.at(of=of, seed=seed).ranking(row), {"seed": seed} if chosen else {}
        )

    @cached_property
    def _own(self) -> ModelSystems:
        made, shared = self.made, self.made.shared
        return ModelSystems(
            lambda: (made.model, made.own.answers(made.model)),
            lambda: shared.bm25,
            lambda: shared.tuned,
            lambda of: self._parts.at(of=of).found,
            self.material.find,
        )

    @cached_property
    def _parts(self) -> AnswerParts:
        preset = "full" if self.made.choices.get("preset") == "full" else "mini"
        years = self.material.years
        return AnswerParts(self.made.shared, years[0], years, self.seeds[0], preset)

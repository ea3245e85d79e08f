"""The systems that experiments compare: each a name and how to make its pipeline from the artifacts of a work folder.

::

    System.make(of) ──▶ pipeline from topics to a ranking

    of: Vectors         one model's vectors and two BM25s: the ways to search of section 3.5.2, :data:`TASK1`
        AnswerParts     a set of topics of Task 1 and everything of its collection; rankings are kept in the work folder
        FormulaParts    the topics of Task 2 (:mod:`.task2`)
        Training        judged topics, to choose settings by (:mod:`.choosing`)

Your own system for ``run_arqmath(…, systems=[…])``::

    System("My words", lambda parts: BM25Index(parts.stage("my-words", build)).retriever(1000))
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, cast

import pandas as pd
import pyterrier as pt

from mathamr_systems import ThreadStore
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.fusion import ZScoreFusion, ranked, standard_scores
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.store import replace_file, writer_lock

from .measuring import TimedPipeline, fitted_weight, run_systems
from .stages import Stages, slug
from .workdir import KNOWN_ITEM, Artifacts, TopicSet

Of = TypeVar("Of")
Made = TypeVar("Made")
Weights = Mapping[str, float]
"""By the name of a feature, or of a system in a fusion."""

ALL = "all"
ONCE = -1
"""The seed of systems that are not trained."""
DEPTH = 1000
"""Documents of a ranking."""


@dataclass(frozen=True, eq=False)
class System(Generic[Of, Made]):
    """A system: one row of a table.

    Attributes:
        name: in every table; a work folder keeps rankings by it, and all runs on the folder share them.
        make: makes the pipeline, from topics (``qid``, ``query``, ``title``, ``body``) to a ranking of at most 1000
            documents. It is called for each set of topics and each seed. If an extra is missing, it or its search
            raises ``MissingExtraError``, and the row names the extra.
        against: names of further systems that it is tested against, such as its parts.
        trained: whether it depends on the seed, the preset and the options that are set by hand.
        sized: whether it depends on preset and options, but not on the seed.
        fitted: whether it is fitted on judgments of years other than the one whose topics it ranks for.
        known: whether it can search for known items; false for a system that reads the text of questions, since each
            question would find itself.
        linked: whether it can search for the answers of linked questions, since it ranks all answers, not only judged
            ones.
        settings: other settings on which its rankings depend, as plain values: if they change, it ranks again.
        fuses: for a fusion, the systems whose rankings it joins, with equal weights unless it is ``fitted``.
        fit: for a system with weights, fits them on the topics of other years.
        scorer: for a re-ranker, makes it without its first stage: in a fusion it scores the others' results.
    """

    name: str
    make: Callable[[Of], Made]
    against: tuple[str, ...] = ()
    trained: bool = False
    sized: bool = False
    fitted: bool = False
    known: bool = True
    linked: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    fuses: tuple[str, ...] = ()
    fit: Callable[[Sequence[Of]], Weights] | None = None
    scorer: Callable[[Of], pt.Transformer] | None = None


# The ways to search with one model -----------------------------------------------------------------------------------

HNSW_HITS = 128
BM25 = "BM25"
"""The standard one."""
TUNED = "BM25, tuned for mathematics"
STRUCTURED = "BM25, with structures of formulas"
"""With the preset ``math``; it is also the first stage of the re-ranker, and a part of the fusion."""
BASELINES = (BM25, TUNED)
"""Systems are tested against the better one."""
SINGLE = "single vector"
DOC_VN = "doc-VN + MaxSim (k = 1000)"
COLBERT = "ColBERT-style"
SCORER = "tuned BM25 % 1000 >> scorer"
FUSION = "tuned BM25 + ColBERT-style"


@dataclass(frozen=True, slots=True)
class Depth:
    """The length of rankings: documents for each query, and the factor for the paper's numbers of candidates."""

    results: int = DEPTH
    scale: float = 1.0

    def candidates(self, number: int) -> int:
        return round(number * self.scale)


class Vectors(NamedTuple):
    """The artifacts of the ways to search; queries are encoded already."""

    index: MathAMRIndex
    bm25: pt.Transformer
    tuned: pt.Transformer  # BM25 with the preset math
    depth: Depth = Depth()
    weight: float = 0.5  # of MaxSim, in a fusion that sets no weight


Way = System[Vectors, pt.Transformer]


def bm25(of: Vectors) -> pt.Transformer:
    return (of.bm25 % of.depth.results).compile()


def tuned(of: Vectors) -> pt.Transformer:
    return (of.tuned % of.depth.results).compile()


def single(of: Vectors, exact: bool = True) -> pt.Transformer:
    return of.index.single_vector(num_results=of.depth.results, exact=exact)


def doc_vn(of: Vectors, candidates: int = DEPTH, exact: bool = True) -> pt.Transformer:
    scaled = of.depth.candidates(candidates)
    return of.index.doc_vn(scaled, num_results=min(scaled, of.depth.results), exact=exact)


def colbert(of: Vectors, exact: bool = True) -> pt.Transformer:
    return of.index.colbert(num_results=of.depth.results, exact=exact, hits=HNSW_HITS)


def scorer(of: Vectors) -> pt.Transformer:
    return (of.tuned % of.depth.candidates(DEPTH)).compile() >> of.index.scorer()


def fusion(of: Vectors, weight: float | None = None) -> pt.Transformer:
    share = of.weight if weight is None else weight
    return ZScoreFusion(tuned(of), colbert(of), weight=share, num_results=of.depth.results)


TASK1: Mapping[str, Way] = MappingProxyType(
    {
        way.name: way
        for way in (
            Way(BM25, bm25),
            Way(TUNED, tuned),
            Way(SINGLE, single),
            Way(DOC_VN, doc_vn, settings={"candidates": DEPTH}),
            Way(COLBERT, colbert),
            Way(SCORER, scorer, settings={"candidates": DEPTH}),
            Way(FUSION, fusion, fuses=(TUNED, COLBERT)),
        )
    }
)
"""The systems of Task 1, :data:`BASELINES` first."""


def label(way: Way, depth: Depth) -> str:
    """Return the name with the number of candidates at a depth, such as ``tuned BM25 % 101 >> scorer``."""
    number = way.settings.get("candidates")
    return way.name.replace(str(number), str(depth.candidates(number))) if number else way.name


@dataclass(eq=False)
class SystemSearch:
    """Searches in several ways with one model; each query is encoded once for all of them."""

    model: MathAMR
    index: MathAMRIndex
    bm25: BM25Index
    tuned: BM25Index
    ways: Mapping[str, Way]
    depth: Depth = Depth()
    device: str | None = None
    weight: float = 0.5  # of MaxSim in the fitted fusion; see fit()

    def systems(self) -> dict[str, pt.Transformer]:
        """Make the transformers from encoded topics to rankings."""
        bm25, tuned = (index.retriever(self.depth.results) for index in (self.bm25, self.tuned))
        vectors = Vectors(self.index, bm25, tuned, self.depth, self.weight)
        return {name: way.make(vectors) for name, way in self.ways.items()}

    def encode(self, topic_set: TopicSet) -> pd.DataFrame:
        """Add ``query_embs`` to topics, from their stored graphs."""
        encoder = self.model.query_encoder(device=self.device)
        encoded: pd.DataFrame = (topic_set.graphs.loader(side="query") >> encoder)(topic_set.topics)
        return encoded.drop(columns="query_graph")

    def pipelines(self, trees: FormulaStore | None = None) -> dict[str, TimedPipeline]:
        """Make the systems from the text of topics to rankings, in the two stages that are timed."""
        encode = GraphBuilder(store=trees, reads=self.model.reads) >> self.model.query_encoder(device=self.device)
        return {
            name: TimedPipeline(system, None if name in BASELINES else encode)
            for name, system in self.systems().items()
        }

    def rankings(self, topics: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Search in each way once, and fuse the rankings of the tuned BM25 and ColBERT-style search."""
        found, _ = run_systems(
            {name: made for name, made in self.systems().items() if not self.ways[name].fuses}, topics
        )
        for name, way in self.ways.items():
            if way.fuses:
                weight = way.settings.get("weight", self.weight)
                scores = standard_scores([found[TUNED], found[COLBERT]])
                found[name] = ranked(scores, (1 - weight, weight), self.depth.results)
        return found

    def fit(self, questions: TopicSet) -> None:
        """Fit the weight of the fusion to questions."""
        systems = self.systems()
        rankings, _ = run_systems({name: systems[name] for name in (TUNED, COLBERT)}, self.encode(questions))
        self.weight = fitted_weight(rankings[TUNED], rankings[COLBERT], questions.qrels)


# Other systems of Task 1 ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AnswerParts:
    """The artifacts from which a system of Task 1 is made, for one set of topics and one seed.

    Attributes:
        shared: the artifacts of the collection, such as ``shared.collection`` and ``shared.bm25``; each is made on
            first use.
        of: the topics: a year, or :data:`KNOWN_ITEM`.
        years: all years of the experiment.
        seed: the seed of a trained system; -1 for others.
        preset: ``mini`` or ``full``.
        changes: options of the recipe that were set by hand.
        device: to train and encode on; ``None`` is the best available.
        live: whether topics are read from their text, as new ones would be, instead of from the graphs and vectors
            in the work folder. Systems are timed in this way.
        asked: systems whose rankings were requested while systems are timed: the cost of a fusion includes its parts.
    """

    shared: Artifacts
    of: str
    years: tuple[str, ...]
    seed: int = ONCE
    preset: str = "mini"
    changes: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None
    live: bool = False
    asked: list[AnswerSystem] = field(default_factory=list, repr=False)
    stages: Stages = field(init=False, repr=False)
    _loaded: dict[Hashable, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", Stages(self.folder, self.shared.say))
        self.stages.records = self.shared.stages.records  # one list of costs for the report

    @property
    def folder(self) -> Path:
        """Where everything of these systems is kept, in the collection's work folder."""
        return self.shared.workdir / "answers"

    @property
    def known(self) -> bool:
        """Whether the topics are the test questions, which look for their own answers."""
        return self.of == KNOWN_ITEM

    @property
    def found(self) -> TopicSet:
        """The topics, their judgments and their graphs."""
        return self.shared.questions("test") if self.known else self.shared.topics(self.of)

    def topic_graphs(self) -> pt.Transformer:
        """Return a transformer that adds ``query_graph`` to the topics."""
        if self.live:
            return GraphBuilder(store=None if self.known else self.topic_trees())
        return self.found.graphs.loader(side="query")

    def topic_trees(self) -> FormulaStore:
        """Return the official trees of the topics' formulas."""
        return self.shared.formulas if self.known else self.shared.topic_formulas(self.of)

    @property
    def other_years(self) -> tuple[str, ...]:
        """The years whose judgments may be fitted on: all but the topics' own."""
        return tuple(year for year in self.years if year != self.of)

    def at(self, *, of: str | None = None, seed: int | None = None) -> AnswerParts:
        """Return a copy for other topics or another seed; loaded artifacts are shared."""
        return replace(self, of=of or self.of, seed=self.seed if seed is None else seed)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Make an object once in this process, such as a model that is loaded for each set of topics."""
        if key not in self._loaded:
            self._loaded[key] = make()
        return cast("Made", self._loaded[key])

    def stage(self, name: str, build: Callable[[Path], object], *, trained: bool = False, **settings: Any) -> Path:
        """Make an artifact once for the settings given, and return its path; systems that ask for the same share it.

        ``build`` is given the path; work of a run that was killed is still there. With ``trained`` the artifact also
        depends on seed, preset and options that are set by hand.
        """
        inputs = {**self.shared.origin, **settings, **(self._training if trained else {})}
        key = _key_of(name, inputs)
        path = self.folder / "made" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(self.folder / "locks" / key, wait=True):
            self.stages.run(key, path, inputs, lambda: build(path))
        return path

    def ranking(self, system: AnswerSystem) -> pd.DataFrame:
        """Return a system's ranking for these topics, read from the work folder if it was made before."""
        parts = self if system.trained else self.at(seed=ONCE)
        if self.live:
            self.asked.append(system)
        fitted = {"years": list(self.years)} if system.fitted else {}
        training = parts._training if system.trained or system.sized else {}
        inputs = {**self.shared.origin, **system.settings, **training, **fitted}
        name = f"{_key_of(system.name, inputs)}-{self.of.replace(' ', '-')}"
        file = self.folder / "rankings" / f"{name}.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)

        def rank() -> None:
            ranking = run_systems({"": system.make(replace(parts, live=False))}, parts.found.topics)[0][""]
            replace_file(file, gzip.compress(ranking.to_csv(index=False).encode(), compresslevel=1, mtime=0))

        with writer_lock(self.folder / "locks" / name, wait=True):
            self.stages.run(name, file, inputs, rank)
        dtypes: Any = {"qid": str, "docno": str, "score": "float64"}
        return pd.read_csv(file, dtype=dtypes, float_precision="round_trip")

    @property
    def threads(self) -> ThreadStore:
        """Questions, their answers, and comments of readers."""
        shared = self.shared

        def build(path: Path) -> None:
            indexer = ThreadStore(path).indexer(verbose=shared.verbose, total=shared.collection.count_posts())
            indexer.index(shared.collection.posts())

        return self.once("threads", lambda: ThreadStore(self.stage("threads", build)))

    def answer_texts(self) -> pt.Transformer:
        """Return a transformer that adds ``html``, the text of each answer, as text scorers need it."""
        return self.threads.text_loader()

    @property
    def _training(self) -> dict[str, Any]:
        return {"seed": self.seed, "preset": self.preset, "changes": dict(self.changes)}


AnswerSystem = System[AnswerParts, pt.Transformer]


def _key_of(name: str, settings: Mapping[str, Any]) -> str:
    """Name a folder by the inputs of its content, such as ``bm25-1f0c23ab``."""
    text = json.dumps(settings, sort_keys=True)
    return f"{slug(name)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

"""What the rows of an answer study are made of, and where their models and rankings are kept."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import run_systems
from pyterrier_mathamr.experiments.measuring.topics import TopicSet
from pyterrier_mathamr.experiments.stages import Stages
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMRConfig, TextEncoder
from pyterrier_mathamr.store import replace_file, writer_lock, writing
from pyterrier_mathamr.systems import ThreadStore
from studies.trained.job import KNOWN_ITEM
from studies.trained.results import ONCE

from .definition import AnswerRow, key_of

DEPTH = 1000
"""Answers of a ranking."""
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class AnswerParts:
    """What a row is made of, for one set of topics and one seed.

    Attributes:
        shared: the artifacts of the collection, such as ``shared.collection`` and ``shared.bm25``; each is made on
            first use.
        of: the topics: a year, or :data:`KNOWN_ITEM`.
        years: all years of the study.
        seed: of a row that is trained; -1 for others.
        preset: ``mini`` or ``full``.
        changes: options of the recipe that were set by hand.
        device: to train and encode on; ``None`` is the best available.
        live: topics are read from their text, as new ones would be, and not from what the work folder keeps of them:
            their graphs and vectors. So are systems timed.
        asked: rows whose rankings were asked for while systems are timed: a fusion costs what its parts cost, too.
    """

    shared: Artifacts
    of: str
    years: tuple[str, ...]
    seed: int = ONCE
    preset: str = "mini"
    changes: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None
    live: bool = False
    asked: list[AnswerRow] = field(default_factory=list, repr=False)
    stages: Stages = field(init=False, repr=False)
    _loaded: dict[Hashable, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", Stages(self.folder, self.shared.say))
        self.stages.records = self.shared.stages.records  # one list of costs for the report

    @property
    def folder(self) -> Path:
        """Where everything of answer studies is kept, in the collection's work folder."""
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

    def text_encoder(self, config: MathAMRConfig) -> TextEncoder | None:
        """Return the text encoder of a configuration; see :meth:`Artifacts.text_encoder`."""
        return self.shared.text_encoder(config, cached=not self.live)

    @property
    def other_years(self) -> tuple[str, ...]:
        """The years whose judgments may be fitted on: all but that of the topics."""
        return tuple(year for year in self.years if year != self.of)

    def at(self, *, of: str | None = None, seed: int | None = None) -> AnswerParts:
        """Return the same for other topics or another seed; what is loaded is shared."""
        return replace(self, of=of or self.of, seed=self.seed if seed is None else seed)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Make an object once in this process, such as a model that is loaded for each set of topics."""
        if key not in self._loaded:
            self._loaded[key] = make()
        return cast("Made", self._loaded[key])

    def stage(self, name: str, build: Callable[[Path], object], *, trained: bool = False, **settings: Any) -> Path:
        """Make an artifact in the work folder, unless it is finished; studies that ask for the same share it."""
        own = {**self.shared.origin, **settings, **(self._training if trained else {})}
        key = key_of(name, own)
        path = self.folder / "made" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(self.folder / "locks" / key, wait=True):
            self.stages.run(key, path, own, lambda: build(path))
        return path

    def ranking(self, row: AnswerRow) -> pd.DataFrame:
        """Return what a row finds for these topics: ranked now, or read if it was ranked before."""
        parts = self if row.trained else self.at(seed=ONCE)
        if self.live:
            self.asked.append(row)
        own = parts._settings_of(row)
        key = key_of(row.name, own)
        name = f"{key}-{self.of.replace(' ', '-')}"
        file = self.folder / "rankings" / f"{name}.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(self.folder / "locks" / name, wait=True):
            self.stages.run(name, file, own, lambda: _rank(row.make(replace(parts, live=False)), parts, file))
        read = pd.read_csv(file, dtype={"qid": str, "docno": str, "score": str})
        return read.assign(score=read["score"].astype("float64"))  # pandas' own reader of numbers may round

    @property
    def threads(self) -> ThreadStore:
        """Questions, their answers, and what readers said of them."""
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

    def _settings_of(self, row: AnswerRow) -> dict[str, Any]:
        """List what the rankings of a row depend on."""
        fitted = {"years": list(self.years)} if row.fitted else {}
        return {**self.shared.origin, **row.settings, **(self._training if row.trained else {}), **fitted}


def _rank(system: pt.Transformer, parts: AnswerParts, file: Path) -> None:
    """Search with all topics, and keep the ranking."""
    ranking = run_systems({"": system}, parts.found.topics)[0][""]
    with writing(file):
        replace_file(file, gzip.compress(ranking.to_csv(index=False).encode(), compresslevel=1, mtime=0))

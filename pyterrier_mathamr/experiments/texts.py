"""Collections of texts with judged queries, other than ARQMath, and what is built of them in a work folder.

::

    documents.bm25      terms
    graphs.mathamr      graphs of the documents
    topics.mathamr      graphs of the queries
    documents.mathamr   vectors by the model
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.index import MathAMRIndex, index_documents
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import STRONG_TOKENS, BM25Index

from .artifacts.jobs import index_documents
from .choosing.definition import Fitted, ProtocolSystem, Questions
from .choosing.fused import Fused
from .choosing.strategies import SHIPPED, ModelSystems
from .measuring.topics import TopicSet
from .search import COLBERT
from .stages import Stages

ASKED = "queries"
EQUAL = Fused((SHIPPED, COLBERT), weights=(0.5, 0.5))
"""With nothing to choose."""


@dataclass(frozen=True, eq=False)
class TextCollection:
    """Documents, queries and judgments.

    Attributes:
        name: in reports.
        documents: reads them: ``docno``, ``text``, and ``title`` where there is one.
        topics: ``qid`` and ``query``.
        qrels: ``qid``, ``docno``, ``label``.
        origin: what its content depends on, as plain values.
    """

    name: str
    documents: Callable[[], Iterable[dict[str, str]]]
    topics: pd.DataFrame
    qrels: pd.DataFrame
    origin: Mapping[str, object]

    @property
    def questions(self) -> Questions:
        """The queries, without judgments."""
        return Questions(ASKED, self.topics)


@dataclass(frozen=True, eq=False)
class TextArtifacts:
    """The indexes of a collection, each made on first use.

    Attributes:
        collection: of texts.
        model: the encoder.
        stages: of the work folder, which belongs to this collection and model.
        verbose: show progress bars.
    """

    collection: TextCollection
    model: MathAMR
    stages: Stages
    verbose: bool = False

    @cached_property
    def bm25(self) -> BM25Index:
        """The terms of the documents."""
        index = BM25Index(self.stages.workdir / "documents.bm25")
        indexer = index.indexer("overwrite", tokens=STRONG_TOKENS, resume=True, verbose=self.verbose)
        settings = {**self._origin, "tokens": STRONG_TOKENS.to_dict()}
        self.stages.run("bm25", index.path, settings, lambda: indexer.index(self.collection.documents()))
        return index

    @cached_property
    def graphs(self) -> GraphStore:
        """The graphs of the documents."""
        store = GraphStore(self.stages.workdir / "graphs.mathamr")
        self.stages.run("graphs", store.path, self._origin, lambda: self._build(store))
        return store

    @cached_property
    def topics(self) -> TopicSet:
        """The queries with their graphs."""
        store, topics = GraphStore(self.stages.workdir / "topics.mathamr"), self.collection.topics

        def build() -> None:
            store.discard()
            (GraphBuilder(verbose=False) >> store.indexer()).index(topics.to_dict("records"))

        self.stages.run("topics", store.path, {**self._origin, "topics": len(topics)}, build)
        return TopicSet(topics, self.collection.qrels, store)

    @cached_property
    def index(self) -> MathAMRIndex:
        """The vectors of the documents."""
        index, graphs = MathAMRIndex(self.stages.workdir / "documents.mathamr"), self.graphs
        docnos, settings = self.bm25.snapshot(), {**self._origin, "model": self.model.identity}
        self.stages.run(
            "index",
            index.path,
            settings,
            lambda: index_documents(docnos, graphs, self.model, index, verbose=self.verbose),
        )
        return index

    def systems(self, chosen: Mapping[str, tuple[str, ...]]) -> list[ProtocolSystem]:
        """Make systems."""
        own = ModelSystems(lambda: (self.model, self.index), lambda: self.bm25, lambda _: self.topics, self._fitted)
        made: list[ProtocolSystem] = [Fused(parts) if parts else own.system(name) for name, parts in chosen.items()]
        return [*made, EQUAL] if {SHIPPED, COLBERT} <= chosen.keys() else made

    def _fitted(
        self, find: Callable[[str], pd.DataFrame], chosen: Mapping[str, object] | None = None, *, keep: bool = True
    ) -> Fitted:
        """Make a system of its rankings; a query does not find itself."""
        kept: list[pd.DataFrame] = []

        def rank(questions: Questions) -> pd.DataFrame:
            found = kept[0] if kept else find(ASKED)
            found = found[found["qid"] != found["docno"]]
            if keep and not kept:
                kept.append(found)
            return questions.kept(found)

        return Fitted(chosen or {}, rank)

    def _build(self, store: GraphStore) -> GraphStore:
        sources = dict(self._origin)
        return build_store(
            self.collection.documents(), GraphBuilder(), store, sources=sources, mode="overwrite", verbose=self.verbose
        )

    @property
    def _origin(self) -> dict[str, object]:
        return {**self.collection.origin, "version": __version__}

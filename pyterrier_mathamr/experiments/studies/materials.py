"""What all runs on a collection share: graphs, tokens, topics and judgements, each made once and then found.

The folder of the work::

    official.formulas, graphs.mathamr, answers.bm25    as those of ``run_arqmath``, which can share the folder
    pairs/<file>.mathamr                               graphs of a file of pairs
    texts.sqlite                                       vectors of texts, where a run asks a text encoder
    topics/<name>/topics.json, qrels.json              topics of a year, or questions of a part of the collection
    topics/<year>/graphs.mathamr, floor.csv            graphs of a year's topics, and what chance gives on them
    runs/<key>/                                        one training run, see ``training.py``
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_qrels, known_item_topics
from pyterrier_mathamr.experiments.artifacts import ARQMathStages
from pyterrier_mathamr.experiments.jobs import build_graphs
from pyterrier_mathamr.experiments.measuring import Split, random_floor
from pyterrier_mathamr.experiments.stages import Stages, write_whole
from pyterrier_mathamr.experiments.topics import judged_topics
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.model import MathAMRConfig, TextEncoder
from pyterrier_mathamr.store import writer_lock
from pyterrier_mathamr.systems import BM25Index

KNOWN_ITEM = "known item"


class TopicSet(NamedTuple):
    """Topics, their judgements, and where their graphs are.

    Attributes:
        topics: ``qid``, ``query``, ``title``, ``body``.
        qrels: ``qid``, ``docno``, ``label``.
        graphs: by qid.
    """

    topics: pd.DataFrame
    qrels: pd.DataFrame
    graphs: GraphStore


class Materials:
    """Makes or finds what the runs on a collection share.

    Args:
        collection: a local ARQMath folder.
        pairs: files of pairs from outside the collection.
        workdir: where all is kept.
        say: is told of each stage before it begins, or ``None``.
        verbose: show progress bars.
    """

    def __init__(
        self,
        collection: Path,
        pairs: Sequence[Path],
        workdir: Path,
        *,
        say: Callable[[str], None] | None = None,
        verbose: bool = False,
    ) -> None:
        self.collection, self.pairs, self.workdir = ARQMathCollection(collection), tuple(pairs), workdir
        self.stages, self._say, self._verbose = Stages(workdir, say), say, verbose

    def prepare(self, years: Sequence[str]) -> None:
        """Make all of it, one process at a time.

        Args:
            years: whose topics are searched with.

        Raises:
            ARQMathError: a file of the release is missing or damaged.
            NoRelevantTopicError: no topic of a year can be measured on this collection.
        """
        with writer_lock(self.workdir / "materials", wait=True):
            self.pair_graphs()
            for split in ("validation", "test"):
                self.questions(split)
            for year in years:
                self.topics(year)
                self.floor(year)

    @cached_property
    def graphs(self) -> GraphStore:
        """The graphs of the collection's posts."""
        arqmath = self.arqmath()
        return arqmath.graphs(GraphBuilder(store=arqmath.formulas(), verbose=False))

    def pair_graphs(self) -> list[GraphStore]:
        """Give the graphs of each file of pairs."""
        stores = []
        for file in self.pairs:
            name = file.name.partition(".")[0]
            path = self.workdir / "pairs" / f"{name}.mathamr"
            path.parent.mkdir(exist_ok=True)
            self.stages.run(
                f"pairs-{name}",
                path,
                {"file": str(file.resolve()), "bytes": file.stat().st_size},
                lambda file=file, path=path: build_graphs([file], path, verbose=self._verbose),  # type: ignore[misc]
            )
            stores.append(GraphStore(path))
        return stores

    @cached_property
    def bm25(self) -> BM25Index:
        """The index of the answers' tokens."""
        return self.arqmath().bm25()

    def text_encoder(self, config: MathAMRConfig) -> TextEncoder | None:
        """Give the text encoder of a run, with vectors that all runs share; none where it has none.

        In bfloat16, which moves a vector by half a percent of its length, far less than a seed does, and is several
        times faster where the processor has it.

        Args:
            config: of the run.
        """
        if config.features == "lookup":
            return None
        return TextEncoder(config.text_model, cache=self.workdir / "texts.sqlite", precision="bfloat16")

    def answers(self) -> list[str]:
        """List the answers, in the order of the dump."""
        return [str(document["docno"]) for document in self.bm25.get_corpus_iter()]

    def questions(self, split: Split) -> TopicSet:
        """Give the questions of one part and their own answers.

        Args:
            split: ``validation`` to choose by, ``test`` to report.
        """
        topics, qrels = self.kept(
            split,
            lambda: (
                known_item_topics(self.collection.questions(), split),
                known_item_qrels(self.collection.pairs(), split),
            ),
        )
        return TopicSet(topics, qrels, self.graphs)

    def topics(self, year: str) -> TopicSet:
        """Give the topics of a year that can be measured on this collection, and their judgements.

        Args:
            year: 2020, 2021 or 2022, or another by which the files are named.
        """
        topics, qrels = self.kept(year, lambda: judged_topics(self.collection, year, frozenset(self.answers())))
        store = GraphStore(self.workdir / "topics" / year / "graphs.mathamr")
        if not store.built():
            folder = self.workdir / "topics" / year
            trees = self.arqmath(Stages(folder), folder, year).topic_formulas()
            store.discard()
            (GraphBuilder(store=trees, verbose=False) >> store.indexer()).index(topics.to_dict("records"))
        return TopicSet(topics, qrels, store)

    def floor(self, year: str) -> pd.DataFrame:
        """Give what a random order of a year's judged answers reaches: ``qid``, ``measure``, ``value``."""
        file = self.workdir / "topics" / year / "floor.csv"
        if not file.is_file():
            write_whole(file, random_floor(self.topics(year).qrels).to_csv(index=False))
        return pd.read_csv(file, dtype={"qid": str})

    def kept(
        self, name: str, read: Callable[[], tuple[pd.DataFrame, pd.DataFrame]]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read topics and judgements once from the collection, then from the work folder.

        Args:
            name: of their folder.
            read: reads them from the collection.
        """
        folder = self.workdir / "topics" / name
        files = (folder / "topics.json", folder / "qrels.json")
        if not files[1].is_file():
            folder.mkdir(parents=True, exist_ok=True)
            for file, frame in zip(files, read(), strict=True):
                write_whole(file, frame.to_json(orient="records"))
        topics, qrels = (pd.DataFrame(json.loads(file.read_text(encoding="utf-8"))) for file in files)
        return topics, qrels

    def arqmath(self, stages: Stages | None = None, folder: Path | None = None, year: str = "") -> ARQMathStages:
        """Give what makes the artifacts of a folder, by default that of the work.

        Args:
            stages: of the folder.
            folder: where the artifacts are kept.
            year: whose topics they are of, if of topics.
        """
        place = self.workdir if folder is None else folder
        return ARQMathStages(self.collection, year, place, stages or self.stages, verbose=self._verbose)

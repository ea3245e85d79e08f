"""The artifacts of a run on a local ARQMath folder, each made once.

formulas.sqlite         official trees of the collection's formulas
topic-formulas.sqlite   and of the topics'
graphs.mathamr          graphs of all posts
model                   weights, vocabulary, configuration (training/ keeps the state after each epoch)
answers.mathamr         vectors of the answers
answers.bm25            their tokens
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_split
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, Trainer
from pyterrier_mathamr.systems import STRONG_TOKENS, BM25Index

from .stages import Stages


class ARQMathStages:
    """Makes or finds each artifact of a run.

    Args:
        collection: a local ARQMath folder.
        year: whose topics are searched with.
        workdir: where the artifacts are kept.
        stages: runs the stages and keeps their records.
        verbose: show progress bars.
    """

    def __init__(
        self, collection: ARQMathCollection, year: int | str, workdir: Path, stages: Stages, *, verbose: bool = False
    ) -> None:
        self.collection, self.year, self.workdir = collection, year, workdir
        self.stages, self.verbose = stages, verbose
        self._source = {"collection": str(collection.path.resolve())}

    def formulas(self) -> FormulaStore:
        """Make the store of the collection's official formula trees."""
        return self._formula_store("formulas", self.collection.slt_tables, self.collection.opt_tables)

    def topic_formulas(self) -> FormulaStore:
        """Make the store of the official formula trees of the year's topics."""
        tables = self.collection.topic_tables(self.year)
        return self._formula_store("topic-formulas", tables.slt, tables.opt)

    def _formula_store(self, name: str, slt: tuple[Path, ...], opt: tuple[Path, ...]) -> FormulaStore:
        path = self.workdir / f"{name}.sqlite"
        files = [file.name for file in (*slt, *opt)]
        self.stages.run(
            name,
            path,
            {**self._source, "tables": files},
            lambda: FormulaStore.build(path, slt, opt, verbose=self.verbose, overwrite=True),
        )
        return FormulaStore(path)

    def graphs(self, builder: GraphBuilder) -> GraphStore:
        """Make the graphs of all posts.

        Args:
            builder: with the official formula trees of the collection.
        """
        store = GraphStore(self.workdir / "graphs.mathamr")
        self.stages.run(
            "graphs",
            store.path,
            {**self._source, "builder": _described(builder)},
            lambda: self._build_graphs(builder, store),
        )
        return store

    def _build_graphs(self, builder: GraphBuilder, store: GraphStore) -> None:
        """Build what a run that was stopped has not stored yet."""
        mode: Literal["create", "overwrite"] = "overwrite" if store.built() else "create"
        posts = islice(self._posts(), store.unfinished(), None)
        (builder >> store.indexer(mode, verbose=self.verbose)).index(posts)

    def model(self, graphs: GraphStore, config: MathAMRConfig | None, model: str | None) -> MathAMR:
        """Train a model on the pairs of the training questions, or open one.

        Args:
            graphs: of all posts.
            config: of the training; the defaults where not given.
            model: name or folder of a trained model, which is used in place of training.
        """
        if model is not None:
            return MathAMR.from_pretrained(model)
        config = config or MathAMRConfig()
        path = self.workdir / "model"
        self.stages.run(
            "train",
            path,
            {**self._source, "config": config.to_dict()},
            lambda: self._train(graphs, config).save(path),
        )
        return MathAMR.from_pretrained(path)

    def _train(self, graphs: GraphStore, config: MathAMRConfig) -> MathAMR:
        """Train; questions of the test part are never seen, those of validation only stop the training."""
        parts: dict[str, list[tuple[str, str]]] = {"train": [], "validation": [], "test": []}
        for question, answer in self.collection.pairs():
            if question in graphs and answer in graphs:
                parts[known_item_split(question)].append((question, answer))
        shutil.rmtree(self.workdir / "model", ignore_errors=True)  # of a run that lost its record
        return Trainer(config).fit(
            parts["train"],
            graphs,
            validation=parts["validation"],
            checkpoint=self.workdir / "training",
            verbose=self.verbose,
        )

    def answers(self, graphs: GraphStore, model: MathAMR) -> MathAMRIndex:
        """Encode and index the answers.

        Args:
            graphs: of all posts.
            model: the encoder.
        """
        index = MathAMRIndex(self.workdir / "answers.mathamr")
        documents = ({"docno": post.id, "graph": graphs[post.id]} for post in self.collection.answers())
        self.stages.run(
            "index",
            index.path,
            {**self._source, "model": model.identity},
            lambda: (model.doc_encoder() >> index.indexer(mode="overwrite", verbose=self.verbose)).index(documents),
        )
        return index

    def bm25(self) -> BM25Index:
        """Index the tokens of the answers."""
        index = BM25Index(self.workdir / "answers.bm25")
        documents = ({"docno": post.id, "html": post.body} for post in self.collection.answers())
        self.stages.run(
            "bm25",
            index.path,
            {**self._source, "tokens": STRONG_TOKENS.to_dict()},
            lambda: index.indexer("overwrite", tokens=STRONG_TOKENS, verbose=self.verbose).index(documents),
        )
        return index

    def _posts(self) -> Iterator[dict[str, Any]]:
        for post in self.collection.posts():
            yield {"docno": post.id, "title": post.title, "html": post.body}


def _described(builder: GraphBuilder) -> str:
    """Say what the builder is without the folder it happens to read from."""
    parser = builder.parser if isinstance(builder.parser, str) else builder.parser.name
    return f"parser={parser!r}, formulas={builder.formulas!r}"

"""The artifacts of a run on a local ARQMath folder, each made once.

The folder of a run::

    official.formulas       official trees of the collection's formulas
    topics.formulas         and of the topics'
    graphs.mathamr          graphs of all posts
    model                   weights, vocabulary, configuration (until then training/ keeps the state of each epoch)
    answers.mathamr         vectors of the answers
    answers.bm25            their tokens
    formulas.mathamr        vectors of the formulas of all posts
    formulas.tangent        their pairs of symbols
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.systems import STRONG_TOKENS, BM25Index, TangentIndex

from .jobs import complete_store, index_documents, train_on_pairs
from .sources import read_documents, read_training_pairs
from .stages import Stages


def refuse_both(config: MathAMRConfig | None, model: str | None) -> None:
    """Refuse to be told both how to train a model and which one to use.

    Args:
        config: of a training, or nothing.
        model: name or folder of a trained model, or nothing.

    Raises:
        ConfigError: both are given.
    """
    if model is not None and config is not None:
        raise ConfigError("config", "a configuration", "either config= (to train a model) or model= (to use one)")


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
        self._source = {"collection": str(collection.path.resolve()), "version": __version__}

    def formulas(self) -> FormulaStore:
        """Make the store of the collection's official formula trees."""
        return self._formula_store("formulas", "official", self.collection.slt_tables, self.collection.opt_tables)

    def topic_formulas(self) -> FormulaStore:
        """Make the store of the official formula trees of the year's topics."""
        tables = self.collection.topic_tables(self.year)
        return self._formula_store("topic-formulas", "topics", tables.slt, tables.opt)

    def _formula_store(self, stage: str, name: str, slt: tuple[Path, ...], opt: tuple[Path, ...]) -> FormulaStore:
        path = self.workdir / f"{name}.formulas"
        files = [file.name for file in (*slt, *opt)]
        self.stages.run(
            stage,
            path,
            {**self._source, "tables": files},
            lambda: FormulaStore.build(path, slt, opt, verbose=self.verbose, reuse=True),
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
            lambda: complete_store([self.collection.path], builder, store, verbose=self.verbose),
        )
        return store

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
            lambda: self._train(graphs, config, path),
        )
        return MathAMR.from_pretrained(path)

    def _train(self, graphs: GraphStore, config: MathAMRConfig, path: Path) -> None:
        """Train; questions of the test part are never seen, those of validation only stop the training."""
        shutil.rmtree(path, ignore_errors=True)  # of a run that lost its record
        pairs, checkpoint = read_training_pairs(self.collection.path), self.workdir / "training"
        train_on_pairs([pairs], graphs, config, checkpoint, verbose=self.verbose).save(path)
        shutil.rmtree(checkpoint)

    def answers(self, graphs: GraphStore, model: MathAMR) -> MathAMRIndex:
        """Encode and index the answers.

        Args:
            graphs: of all posts.
            model: the encoder.
        """
        index = MathAMRIndex(self.workdir / "answers.mathamr")
        docnos = (post.id for post in self.collection.answers())
        self.stages.run(
            "index",
            index.path,
            {**self._source, "model": model.identity},
            lambda: index_documents(docnos, graphs, model, index, verbose=self.verbose),
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
            lambda: index.indexer("overwrite", tokens=STRONG_TOKENS, resume=True, verbose=self.verbose).index(
                documents
            ),
        )
        return index

    def formula_index(self, graphs: GraphStore, model: MathAMR, store: FormulaStore) -> MathAMRFormulaIndex:
        """Encode all posts and index the vectors of their formulas.

        Args:
            graphs: of all posts.
            model: the encoder.
            store: the visual ids of the formulas.
        """
        index = MathAMRFormulaIndex(self.workdir / "formulas.mathamr")
        self.stages.run(
            "formula-index",
            index.path,
            {**self._source, "model": model.identity},
            lambda: index_documents(graphs.ids(), graphs, model, index, verbose=self.verbose, visual_ids=store),
        )
        return index

    def tangent(self, store: FormulaStore) -> TangentIndex:
        """Index the pairs of symbols of the formulas of all posts.

        Args:
            store: the official trees and visual ids of the formulas.
        """
        index = TangentIndex(self.workdir / "formulas.tangent")
        indexer = index.indexer("overwrite", store=store, resume=True, verbose=self.verbose)
        self.stages.run(
            "tangent", index.path, self._source, lambda: indexer.index(read_documents(self.collection.path))
        )
        return index


def _described(builder: GraphBuilder) -> str:
    """Say what the builder is without the folder it happens to read from."""
    parser = builder.parser if isinstance(builder.parser, str) else builder.parser.name
    return f"parser={parser!r}, formulas={builder.formulas!r}"

"""The indexes of a collection's formulas, one for each system of formula retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyterrier as pt

from pyterrier_mathamr.arqmath import ARQMathCollection, read_documents
from pyterrier_mathamr.experiments.stages import Stages
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.sparse import PairOptions, TangentIndex
from pyterrier_mathamr.store import StoredArtifact
from pyterrier_mathamr.systems import ApproachZeroIndex, FastTextOptions, FormulaTrees, InOut, InOutIndex, TangentCFT

TANGENT = "Tangent"
IN_OUT_MODEL = "in-out-mini"
Index = TypeVar("Index", bound=StoredArtifact)


class FormulaIndexes:
    """The indexes of all formulas of a collection; each is made on first use.

    Attributes:
        collection: of the posts.
        workdir: where the indexes are kept.
        stages: what is finished, and with which settings.
        verbose: show progress bars.
        origin: the settings that all stages have.
    """

    collection: ARQMathCollection
    workdir: Path
    stages: Stages
    verbose: bool
    origin: dict[str, str]

    @property
    def formulas(self) -> FormulaStore:
        """The official trees and visual ids of the collection's formulas."""
        raise NotImplementedError

    @cached_property
    def tangent(self) -> TangentIndex:
        """The index of the symbol pairs of all formulas."""
        return self.of_formulas("tangent", TangentIndex(self.workdir / "formulas.tangent"))

    @cached_property
    def wide_tangent(self) -> TangentIndex:
        """The same of a wider window, as in the runs of Tangent-S at ARQMath."""
        index, pairs = TangentIndex(self.workdir / "formulas-wide.tangent"), PairOptions(window=4, ends="small")
        return self.of_formulas("tangent, window 4", index, settings={"pairs": pairs.to_dict()}, pairs=pairs)

    @cached_property
    def formula_trees(self) -> FormulaTrees:
        """Both trees of all formulas, for systems that compare whole trees."""
        return self.of_formulas("formula-trees", FormulaTrees(self.workdir / "formulas.trees"))

    @cached_property
    def approach0(self) -> ApproachZeroIndex:
        """The index of the leaf-root paths of all formulas."""
        return self.of_formulas("approach0", ApproachZeroIndex(self.workdir / "formulas.a0"))

    @cached_property
    def cft(self) -> TangentCFT:
        """The vectors of all formulas by Tangent-CFT, trained on them in a few minutes."""
        training = FastTextOptions.small()
        index, settings = TangentCFT(self.workdir / "formulas.cft"), {"training": training.to_dict()}
        return self.of_formulas("cft", index, settings=settings, training=training)

    @cached_property
    def in_out(self) -> InOutIndex:
        """The vectors of the nodes of all formulas, by the bundled In+Out model."""
        model = InOut.from_pretrained(IN_OUT_MODEL)
        index = InOutIndex(self.workdir / "formulas.inout", model)
        return self.of_formulas("in-out", index, settings={"model": model.identity})

    def of_formulas(
        self, stage: str, index: Index, *, settings: Mapping[str, Any] | None = None, **options: Any
    ) -> Index:
        """Index the formulas of all posts, or find the index built."""
        make: Any = index.indexer
        indexer = make("overwrite", store=self.formulas, resume=True, verbose=self.verbose, **options)
        documents, count = read_documents(self.collection.path), self.collection.count_posts
        own = {**self.origin, **(settings or {})}
        self.stages.run(stage, index.path, own, lambda: indexer.index(self.counted(documents, count)))
        return index

    def counted(self, documents: Iterator[dict[str, Any]], count: Callable[[], int]) -> Iterable[dict[str, Any]]:
        """Give documents their number, for a progress bar."""
        counted: Iterable[dict[str, Any]] = pt.utils.GeneratorLen(documents, count()) if self.verbose else documents
        return counted

"""An index of Approach Zero on disk, and what a reader of it has opened."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.sparse.expressions import ExpressionIndex, ExpressionSnapshot
from pyterrier_mathamr.sparse.index import SparseIndex
from pyterrier_mathamr.store import Rows

from .indexer import ApproachZeroIndexer
from .payload import APPROACH0, PathLists
from .retriever import ApproachZeroRetriever
from .scorer import ApproachZeroScorer


class ApproachZeroIndex(ExpressionIndex, SparseIndex):
    r"""An inverted index over leaf-root paths of operator trees, after the formula search of Approach Zero.

    Zhong, Xie and Lin, "Applying structural and dense semantic matching for the ARQMath Lab 2022", CLEF 2022; Zhong,
    Rohatgi, Wu, Giles and Zanibbi, "Accelerating substructure similarity search for formula retrieval", ECIR 2020.
    Formulas are ranked by their greatest common sub-structure with the query, how well its symbols agree, and their
    length. The text around formulas is not used. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = ApproachZeroIndex("formulas.a0")
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND = APPROACH0
    ARTIFACT_TYPE, ARTIFACT_FORMAT = APPROACH0.type, APPROACH0.format

    schematic: ClassVar[dict[str, str]] = {
        "label": "Approach Zero Index",
        "help_url": "https://doi.org/10.1007/978-3-030-45439-5_47",
    }

    @staticmethod
    def example() -> ApproachZeroIndex:
        """Return an index that is not built."""
        return ApproachZeroIndex("index.a0")

    indexer = method(ApproachZeroIndexer)
    retriever = method(ApproachZeroRetriever)
    scorer = method(ApproachZeroScorer)

    def snapshot(self) -> ApproachZeroSnapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("ApproachZeroSnapshot", super().snapshot())

    def open_snapshot(self) -> ApproachZeroSnapshot:
        """Open the index."""
        return ApproachZeroSnapshot(self.path)


class ApproachZeroSnapshot(ExpressionSnapshot[PathLists]):
    """An index of Approach Zero as it was when it was opened."""

    KIND, payload = APPROACH0, PathLists

    @cached_property
    def sizes(self) -> Rows:
        """How many formulas each expression owns: int64 ``[x]``."""
        of = self.expressions
        found = np.zeros(len(of.payload.of.leaves), dtype=np.int64)
        np.add.at(found, of.numbers, np.diff(of.owned))
        return found

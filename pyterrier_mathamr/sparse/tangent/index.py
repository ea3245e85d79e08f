"""A Tangent index on disk, and what a reader of it has opened."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, cast

from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.sparse.expressions import ExpressionIndex, Expressions, ExpressionSnapshot
from pyterrier_mathamr.sparse.index import SparseIndex, read_options

from .content import TANGENT, SymbolPairs
from .indexer import TangentIndexer
from .pairs import PairOptions
from .retriever import TangentRetriever


class TangentIndex(ExpressionIndex, SparseIndex):
    r"""An inverted index over symbol pairs of layout and operator trees, in the manner of Tangent-S.

    This is the first stage of Tangent-S, which ranks by the harmonic mean of two shares: that of the query's pairs that
    a formula has, and that of its pairs that the query has. The alignment of trees and the trained regression that
    follow there are left out. The text around formulas is not used. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = TangentIndex("formulas.tangent")
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND = TANGENT
    ARTIFACT_TYPE, ARTIFACT_FORMAT = TANGENT.type, TANGENT.format

    schematic: ClassVar[dict[str, str]] = {
        "label": "Tangent Index",
        "help_url": "https://doi.org/10.1145/3077136.3080748",
    }

    @staticmethod
    def example() -> TangentIndex:
        """Return an index that is not built."""
        return TangentIndex("index.tangent")

    indexer = method(TangentIndexer)
    retriever = method(TangentRetriever)

    def content(self) -> Expressions[SymbolPairs]:
        """Return the symbol pairs and the formulas (raises as :meth:`snapshot`)."""
        return self.snapshot().expressions

    def pair_options(self) -> PairOptions:
        """Return the options with which the symbol pairs were taken (raises as :meth:`snapshot`)."""
        return self.snapshot().pairs

    def snapshot(self) -> TangentSnapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("TangentSnapshot", super().snapshot())

    def open_snapshot(self) -> TangentSnapshot:
        """Open the index."""
        return TangentSnapshot(self.path)


class TangentSnapshot(ExpressionSnapshot[SymbolPairs]):
    """A Tangent index as it was when it was opened."""

    KIND, payload = TANGENT, SymbolPairs

    @cached_property
    def pairs(self) -> PairOptions:
        """Which symbol pairs were taken."""
        return read_options(self, "pairs", PairOptions.from_dict)

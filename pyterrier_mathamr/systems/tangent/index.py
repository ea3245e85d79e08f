"""A Tangent index on disk, and what a reader of it has opened."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, cast

import numpy as np

from pyterrier_mathamr._common.counts import counted
from pyterrier_mathamr._common.signatures import method
from pyterrier_mathamr.store import Rows, Snapshot
from pyterrier_mathamr.systems.sparse.index import SparseIndex, read_options
from pyterrier_mathamr.systems.sparse.ranking import Remembered
from pyterrier_mathamr.systems.sparse.texts import read_texts

from .content import TANGENT, TangentContent
from .indexer import TangentIndexer
from .pairs import PairOptions
from .retriever import TangentRetriever

_AT_ONCE = 4096


class TangentIndex(SparseIndex):
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

    KIND, KEEPS_FIRST = TANGENT, True
    HOLDS = "formula"
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

    def more_counts(self) -> list[str]:
        """List the number of distinct expressions, those of each part."""
        return [counted(sum(len(part["keys"]) for part in self.snapshot().parts), "expression")]

    def content(self) -> TangentContent:
        """Return the symbol pairs and the formulas (raises as :meth:`snapshot`)."""
        return self.snapshot().content

    def pair_options(self) -> PairOptions:
        """Return the options with which the symbol pairs were taken (raises as :meth:`snapshot`)."""
        return self.snapshot().pairs

    def snapshot(self) -> TangentSnapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("TangentSnapshot", super().snapshot())

    def open_snapshot(self) -> TangentSnapshot:
        """Open the index."""
        return TangentSnapshot(self.path)

    def get_corpus_iter(self) -> Iterator[dict[str, str]]:
        """Yield ``docno`` (the formula's id), ``post_id`` and ``visual_id`` of each formula."""
        for part in self.snapshot().parts:
            rows = np.flatnonzero(part.alive)
            for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
                texts = part.ids.texts(some), read_texts(part, "post_ids", some), read_texts(part, "visual_ids", some)
                for docno, post_id, visual_id in zip(*texts, strict=True):
                    yield {"docno": docno, "post_id": post_id, "visual_id": visual_id}


class TangentSnapshot(Snapshot):
    """A Tangent index as it was when it was opened; formulas are numbered as in :class:`TangentContent`.

    Args:
        path: the index's folder.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, TANGENT)
        self.formula_ids = Remembered(lambda numbers: self.ids(self.live[numbers]))
        self.post_ids = Remembered(partial(self._texts, "post_ids"))
        self.visual_ids = Remembered(partial(self._texts, "visual_ids"))

    @cached_property
    def pairs(self) -> PairOptions:
        """Which symbol pairs were taken."""
        return read_options(self, "pairs", PairOptions.from_dict)

    @cached_property
    def content(self) -> TangentContent:
        """The symbol pairs and the formulas."""
        return TangentContent.of_parts(self.parts)

    def expression(self, formula_id: str) -> int:
        """Return the number of the expression of a formula.

        Raises:
            UnknownIdError: the index does not hold the formula.
        """
        number = np.searchsorted(self.live, self.find([formula_id])[0])
        run = np.searchsorted(self.content.owned, number, side="right") - 1
        return int(self.content.expressions[run])

    def _texts(self, name: str, numbers: Rows) -> list[str]:
        found = np.empty(len(numbers), dtype=object)
        for part, places, rows in self.by_part(self.live[numbers]):
            found[places] = read_texts(part, name, rows)
        return list(found)

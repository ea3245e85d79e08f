"""``TangentIndex``: formulas found by the pairs of symbols that they share with the query's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, cast

import numpy as np

from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.store import Mode
from pyterrier_mathamr.systems.sparse.index import SparseIndex
from pyterrier_mathamr.systems.sparse.texts import read_texts

from .content import TANGENT, TangentContent
from .indexer import TangentIndexer
from .pairs import PairOptions
from .retriever import TangentRetriever
from .snapshot import TangentSnapshot

_AT_ONCE = 4096


class TangentIndex(SparseIndex):
    r"""An inverted index over symbol pairs of layout and operator trees, in the manner of Tangent-S.

    Tangent-S finds candidates by the harmonic mean of the share of the query's pairs that a formula has and the share
    of its pairs that the query has; what follows there, an alignment of trees and a regression fitted to judgements, is
    left out, so that nothing is trained. The text around formulas plays no part. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = TangentIndex("formulas.tangent")
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND, FIRST_COUNTS = TANGENT, True
    ARTIFACT_TYPE, ARTIFACT_FORMAT = TANGENT.type, TANGENT.format

    schematic: ClassVar[dict[str, str]] = {
        "label": "Tangent Index",
        "help_url": "https://doi.org/10.1145/3077136.3080748",
    }

    @staticmethod
    def example() -> TangentIndex:
        """Give an index that is not built."""
        return TangentIndex("index.tangent")

    def indexer(
        self,
        mode: Mode = "create",
        *,
        pairs: PairOptions = PairOptions(),  # noqa: B008 - frozen
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        resume: bool = False,
        verbose: bool = False,
    ) -> TangentIndexer:
        """Make the indexer: posts with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Args:
            mode: ``create`` refuses an index that is there, ``overwrite`` replaces it once the new one is whole,
                ``append`` adds to it.
            pairs: which pairs of symbols are taken; queries are taken apart alike.
            store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
            visual_ids: formula id to visual id; by default the store's.
            resume: take over what an earlier such call that died had finished.
            verbose: show a progress bar.

        Raises:
            ConfigError: the mode is unknown.
        """
        return TangentIndexer(
            self, mode, pairs=pairs, store=store, visual_ids=visual_ids, resume=resume, verbose=verbose
        )

    def retriever(
        self,
        num_results: int = 1000,
        *,
        slt_weight: float = 0.5,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> TangentRetriever:
        """Make a retriever: ``latex``, or ``query`` that is one formula, to ``docno, post_id, visual_id, score, rank``.

        Args:
            num_results: at most so many formulas for each query; those without a common pair are left out.
            slt_weight: 0 to 1; what the layout trees count against the operator trees.
            store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
            verbose: show a progress bar.

        Raises:
            ConfigError: an option is out of its range.
        """
        return TangentRetriever(self, num_results=num_results, slt_weight=slt_weight, store=store, verbose=verbose)

    def content(self) -> TangentContent:
        """Give the pairs and the formulas (raises as :meth:`snapshot`)."""
        return self.snapshot().content

    def pair_options(self) -> PairOptions:
        """Give the options the formulas were taken apart with (raises as :meth:`snapshot`)."""
        return self.snapshot().pairs

    def snapshot(self) -> TangentSnapshot:
        """The index as it is now; one of several parts is combined in memory, until it is compacted."""
        return cast("TangentSnapshot", super().snapshot())

    def open_snapshot(self) -> TangentSnapshot:
        """Open the index."""
        return TangentSnapshot(self.path)

    def get_corpus_iter(self) -> Iterator[dict[str, str]]:
        """Give ``docno`` (the formula's id), ``post_id`` and ``visual_id`` of each formula."""
        for part in self.snapshot().parts:
            rows = np.flatnonzero(part.alive)
            for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
                texts = part.ids.texts(some), read_texts(part, "post_ids", some), read_texts(part, "visual_ids", some)
                for docno, post_id, visual_id in zip(*texts, strict=True):
                    yield {"docno": docno, "post_id": post_id, "visual_id": visual_id}

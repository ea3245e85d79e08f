"""``TangentIndex``: formulas found by the pairs of symbols that they share with the query's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import pandas as pd

from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.systems._artifact import FolderArtifact, Mode
from pyterrier_mathamr.systems.errors import IndexFormatError

from .content import TangentContent
from .indexer import TangentIndexer
from .pairs import PairOptions
from .retriever import TangentRetriever


class TangentIndex(FolderArtifact):
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

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "mathamr_tangent"
    FORMAT_VERSION = 1
    _loaded: tuple[TangentContent, PairOptions] | None

    schematic: ClassVar[dict[str, str]] = {
        "label": "Tangent Index",
        "help_url": "https://doi.org/10.1145/3077136.3080748",
    }

    @staticmethod
    def example() -> TangentIndex:
        """Give an index that is not built."""
        return TangentIndex("index.tangent")

    def forget(self) -> None:
        """Drop what was read from disk, after the index was built anew."""
        self._loaded = None

    def indexer(
        self,
        mode: Mode = "create",
        *,
        pairs: PairOptions = PairOptions(),  # noqa: B008 - frozen
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        verbose: bool = False,
    ) -> TangentIndexer:
        """Make the indexer: posts with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Args:
            mode: ``create`` refuses to replace an index, ``overwrite`` replaces it once the new one is whole.
            pairs: which pairs of symbols are taken; queries are taken apart alike.
            store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
            visual_ids: formula id to visual id; by default the store's.
            verbose: show a progress bar.

        Raises:
            ConfigError: the mode is unknown.
        """
        return TangentIndexer(self, mode, pairs=pairs, store=store, visual_ids=visual_ids, verbose=verbose)

    def index(self, iter: Iterable[Mapping[str, Any]]) -> TangentIndex:
        """Build the index with the defaults of :meth:`indexer`.

        Args:
            iter: posts.
        """
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        """Say which columns a document may bring, one list for each way."""
        return self.indexer().index_inputs()

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

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search as :meth:`retriever` with its defaults does."""
        return self.retriever().transform(inp)

    def content(self) -> TangentContent:
        """Give the pairs and the formulas, mapped into memory when first asked for.

        Raises:
            IndexNotBuiltError: there is no index at the path.
            OtherArtifactError: something else is there.
            IndexFormatError: it cannot be read, or has a format that this release does not read.
        """
        return self._load()[0]

    def pair_options(self) -> PairOptions:
        """Give the options the formulas were taken apart with (raises as :meth:`content`)."""
        return self._load()[1]

    def get_corpus_iter(self) -> Iterator[dict[str, str]]:
        """Give ``docno`` (the formula's id), ``post_id`` and ``visual_id`` of each formula."""
        content = self.content()
        for row in zip(content.docnos, content.post_ids, content.visual_ids, strict=True):
            yield dict(zip(("docno", "post_id", "visual_id"), map(str, row), strict=True))

    def __len__(self) -> int:
        return len(self.content().docnos)

    def _load(self) -> tuple[TangentContent, PairOptions]:
        if self._loaded is None:
            try:
                meta = self.read_meta()
                self._loaded = (TangentContent.load(self.path), PairOptions(**meta["pairs"]))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise IndexFormatError(self.path, f"the index cannot be read ({error})") from error
        return self._loaded

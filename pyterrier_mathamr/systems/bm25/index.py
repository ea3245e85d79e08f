"""BM25 without Java: an index of math-aware tokens, scored by ``bm25s``.

The defaults are the strong form (stop words removed, stemming, pairs of neighbours, ``k1=2``, ``b=1``, logarithmic
query weights): a first stage worth reranking and a baseline worth beating. The plain form, for comparison::

    index.indexer(tokens=PLAIN_TOKENS).index(documents)
    index.retriever(k1=0.9, b=0.4, query_weights="linear")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, cast

from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.store import Mode
from pyterrier_mathamr.systems.sparse.index import SparseIndex
from pyterrier_mathamr.systems.sparse.postings import Postings

from .indexer import BM25Indexer
from .retriever import BM25Retriever, QueryWeights
from .snapshot import BM25, BM25Snapshot
from .tokens import STRONG_TOKENS, TokenOptions


class BM25Index(SparseIndex):
    """A BM25 index of posts with formulas, built and searched without Java; called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        index = BM25Index("answers.bm25")
        index.index(dataset.get_corpus_iter())
        rerank = index.retriever() >> encode >> mathamr_index.scorer()
    """

    KIND = BM25
    ARTIFACT_TYPE, ARTIFACT_FORMAT = BM25.type, BM25.format

    schematic: ClassVar[dict[str, str]] = {"label": "BM25 Index", "help_url": "https://github.com/xhluca/bm25s"}

    @staticmethod
    def example() -> BM25Index:
        """Give an index that is not built."""
        return BM25Index("index.bm25")

    def indexer(
        self,
        mode: Mode = "create",
        *,
        tokens: TokenOptions = STRONG_TOKENS,
        resume: bool = False,
        verbose: bool = False,
    ) -> BM25Indexer:
        """Make the indexer: documents with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Args:
            mode: ``create`` refuses an index that is there, ``overwrite`` replaces it once the new one is whole,
                ``append`` adds to it.
            tokens: how posts are cut; queries are cut alike.
            resume: take over what an earlier such call that died had finished.
            verbose: show a progress bar.

        Returns:
            The indexer.

        Raises:
            ConfigError: the mode is unknown.
        """
        return BM25Indexer(self, mode, tokens=tokens, resume=resume, verbose=verbose)

    def retriever(
        self,
        num_results: int = 1000,
        *,
        k1: float = 2.0,
        b: float = 1.0,
        query_weights: QueryWeights = "log",
        verbose: bool = False,
    ) -> BM25Retriever:
        """Make a retriever over this index: ``query``, or ``title`` and ``body``, to ``docno, score, rank``.

        Args:
            num_results: at most so many documents for each query; those without a common token are left out.
            k1: at least 0; how slowly repetition in a document saturates.
            b: 0 to 1; how much long documents are discounted.
            query_weights: a token that stands ``f`` times in the query counts ``1 + ln f`` (``log``) or ``f``
                (``linear``); posts as queries repeat themselves.
            verbose: show a progress bar.

        Returns:
            The retriever.

        Raises:
            ConfigError: an option is out of its range.
        """
        return BM25Retriever(self, num_results=num_results, k1=k1, b=b, query_weights=query_weights, verbose=verbose)

    bm25 = retriever

    def postings(self) -> Postings:
        """Give the term counts (raises as :meth:`snapshot`)."""
        return self.snapshot().postings

    def token_options(self) -> TokenOptions:
        """Give the options the documents were cut with (raises as :meth:`snapshot`)."""
        return self.snapshot().tokens

    def snapshot(self) -> BM25Snapshot:
        """The index as it is now; one of several parts is combined in memory, until it is compacted."""
        return cast("BM25Snapshot", super().snapshot())

    def open_snapshot(self) -> BM25Snapshot:
        """Open the index."""
        return BM25Snapshot(self.path)

    def get_corpus_iter(self) -> Iterator[dict[str, DocNo]]:
        """Give the ``docno`` of each document in order; the texts are not stored."""
        for docno in self.snapshot():
            yield {"docno": docno}

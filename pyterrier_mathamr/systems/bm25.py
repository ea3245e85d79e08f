"""BM25 without Java: an index of math-aware tokens, scored by ``bm25s``.

The defaults are the strong form (stop words removed, stemming, pairs of neighbours, ``k1=2``, ``b=1``, logarithmic
query weights): a first stage worth reranking and a baseline worth beating. The plain form, for comparison::

    index.indexer(tokens=PLAIN_TOKENS).index(documents)
    index.retriever(k1=0.9, b=0.4, query_weights="linear")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import pandas as pd

from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr._common.types import DocNo

from ._artifact import FolderArtifact, Mode
from .bm25_indexer import BM25Indexer
from .bm25_retriever import BM25Retriever, QueryWeights
from .errors import IndexFormatError
from .postings import Postings
from .tokens import STRONG_TOKENS, TokenOptions


class BM25Index(FolderArtifact):
    """A BM25 index of posts with formulas, built and searched without Java; called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        index = BM25Index("answers.bm25")
        index.index(dataset.get_corpus_iter())
        rerank = index.retriever() >> encode >> mathamr_index.scorer()
    """

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "mathamr_bm25"
    FORMAT_VERSION = 1
    _loaded: tuple[Postings, TokenOptions] | None
    _engine: tuple[tuple[float, float], Any] | None

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
        verbose: bool = False,
    ) -> BM25Indexer:
        """Make the indexer: documents with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Args:
            mode: ``create`` refuses to replace an index, ``overwrite`` replaces it once the new one is whole.
            tokens: how posts are cut; queries are cut alike.
            verbose: show a progress bar.

        Returns:
            The indexer.

        Raises:
            ConfigError: the mode is unknown.
        """
        return BM25Indexer(self, mode, tokens=tokens, verbose=verbose)

    def index(self, iter: Iterable[Mapping[str, Any]]) -> BM25Index:
        """Build the index with the defaults of :meth:`indexer`.

        Args:
            iter: documents with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            This index.
        """
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        """Say which columns a document may bring, one list for each way."""
        return self.indexer().index_inputs()

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

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search as :meth:`retriever` with its defaults does.

        Args:
            inp: ``qid`` with ``query``, or with ``title`` and ``body``.
        """
        return self.retriever().transform(inp)

    def postings(self) -> Postings:
        """Give the term counts, mapped into memory when first asked for.

        Raises:
            IndexNotBuiltError: there is no index at the path.
            OtherArtifactError: something else is there.
            IndexFormatError: it cannot be read, or has a format that this release does not read.
        """
        return self._load()[0]

    def token_options(self) -> TokenOptions:
        """Give the options the documents were cut with (raises as :meth:`postings`)."""
        return self._load()[1]

    def engine(self, k1: float, b: float) -> Any:
        """Give the ``bm25s.BM25`` that holds the weights of ``k1`` and ``b``; the last one is kept.

        Args:
            k1: see :meth:`retriever`.
            b: see :meth:`retriever`.

        Raises:
            MissingExtraError: ``bm25s`` is not installed.
        """
        if self._engine is None or self._engine[0] != (k1, b):
            postings = self.postings()
            engine = require("bm25s", "bm25").BM25(method="lucene", k1=k1, b=b)
            engine.scores = {
                "data": postings.weights(k1, b),
                "indices": postings.documents,
                "indptr": postings.offsets,
                "num_docs": len(self),
            }
            engine.nonoccurrence_array = None  # only BM25L and BM25+ have one; bm25s's own load sets both attributes
            self._engine = ((k1, b), engine)
        return self._engine[1]

    def get_corpus_iter(self) -> Iterator[dict[str, DocNo]]:
        """Give the ``docno`` of each document in order; the texts are not stored."""
        for docno in self.postings().docnos:
            yield {"docno": str(docno)}

    def _load(self) -> tuple[Postings, TokenOptions]:
        if self._loaded is None:
            try:
                meta = self.read_meta()
                self._loaded = (Postings.load(self.path), TokenOptions.from_dict(meta["tokens"]))
            except (OSError, ValueError, KeyError) as error:
                raise IndexFormatError(self.path, f"the index cannot be read ({error})") from error
        return self._loaded

    def forget(self) -> None:
        """Drop what was read from disk, after the index was built anew."""
        self._loaded = self._engine = None

    def __len__(self) -> int:
        return len(self.postings().docnos)

"""Building a BM25 index, or adding to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr.store import Array, Mode, row_fingerprint
from pyterrier_mathamr.systems.sparse import index as sparse
from pyterrier_mathamr.systems.sparse.documents import CountedDocuments
from pyterrier_mathamr.systems.sparse.postings import PostingsBuilder
from pyterrier_mathamr.systems.sparse.reading import document_post

from .tokens import STRONG_TOKENS, TokenOptions, post_tokens

if TYPE_CHECKING:
    from .index import BM25Index


class BM25Indexer(sparse.SparseIndexer):
    """Builds a :class:`BM25Index`, or adds to one, in one step at the end.

    An answer of ARQMath has some 130 distinct tokens; building takes about 1 ms for each. Its memory is that of a part,
    some 130 MB, beside the ids of the documents; the vocabulary and the counts are united on the disk.

    Finished parts are kept if the process is killed: the same call with ``resume=True`` continues after the last one. A
    document that differs from that of the earlier call is then an error.

    Args:
        bm25_index: the index.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        tokens: how posts, and later queries, are cut into tokens.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``, in posts and later in queries.
        resume: continue an earlier call that was interrupted.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label, help_url = "BM25 Indexer", "https://github.com/xhluca/bm25s"

    def __init__(
        self,
        bm25_index: BM25Index,
        mode: Mode = "create",
        *,
        tokens: TokenOptions = STRONG_TOKENS,
        bare_formulas: bool = False,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.bm25_index, self.mode, self.tokens = bm25_index, mode, tokens
        self.bare_formulas, self.resume, self.verbose = bare_formulas, resume, verbose

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> BM25Index:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index.

        Raises:
            ConfigError: the index that is added to was built with other options.
            DuplicateIdError: a ``docno`` occurs twice, or is in the index that is added to; nothing was changed.
            MissingExtraError: the extra ``bm25`` is not installed.
            StoreError: another of its kinds; nothing was changed.
        """
        require("bm25s", "bm25")
        details = {"tokens": self.tokens.to_dict()}
        counting = _Counting(self.tokens, self.bare_formulas)
        self.build(self.bm25_index, iter, details, {}, lambda job: CountedDocuments(job, counting))
        return self.bm25_index


class _Counting:
    """Counts the tokens of posts."""

    def __init__(self, tokens: TokenOptions, bare_formulas: bool) -> None:
        self._tokens, self._bare_formulas, self._builder = tokens, bare_formulas, PostingsBuilder()

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""
        return self._builder.nbytes

    def source(self, document: Mapping[str, Any]) -> int:
        """Hash all columns of a document."""
        return row_fingerprint(document)

    def add(self, document: Mapping[str, Any]) -> None:
        """Count a document."""
        post = document_post(document, bare_formulas=self._bare_formulas)
        self._builder.add(post_tokens(post, self._tokens))

    def take(self) -> dict[str, Array]:
        """Return the arrays of what was counted, and begin anew."""
        counted, self._builder = self._builder, PostingsBuilder()
        return counted.postings().arrays()

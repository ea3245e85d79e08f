"""Building a BM25 index, or adding to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.sparse.documents import CountedDocuments
from pyterrier_mathamr.sparse.postings import PostingsBuilder
from pyterrier_mathamr.sparse.reading import document_post
from pyterrier_mathamr.store import Array, Mode, row_fingerprint

from .tokens import STRONG_TOKENS, TokenOptions, post_tokens

if TYPE_CHECKING:
    from .index import BM25Index


class BM25Indexer(sparse.SparseIndexer):
    """Builds a :class:`BM25Index`, or adds to one, in one step at the end.

    An answer of ARQMath has some 130 distinct tokens; building takes about 1 ms for each. Its memory is that of a part,
    some 130 MB; ids, vocabulary and counts are united on the disk.

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
        counting = _Counting(self.reading())
        self.build(self.bm25_index, iter, self._details(), {}, lambda job: CountedDocuments(job, counting))
        return self.bm25_index

    def reading(self) -> ReadTokens:
        """Return what reads documents, by itself or for :meth:`adding`; it can be pickled."""
        return ReadTokens(self.tokens, self.bare_formulas)

    @contextmanager
    def adding(self) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
        """Build the index of documents that :meth:`reading` has read: give them to what this yields, in order."""
        require("bm25s", "bm25")
        begun = self.begun(self.bm25_index, self._details(), {}, lambda job: CountedDocuments(job, _Counting(None)))
        with begun as part:
            yield part.add

    def _details(self) -> dict[str, Any]:
        return {"tokens": self.tokens.to_dict()}


@dataclass(frozen=True)
class ReadTokens:
    """Reads documents.

    Attributes:
        options: which tokens.
        bare_formulas: also read formulas without delimiters.
    """

    options: TokenOptions
    bare_formulas: bool

    def tokens(self, document: Mapping[str, Any]) -> list[str]:
        """List the tokens of a document."""
        return post_tokens(document_post(document, bare_formulas=self.bare_formulas), self.options)

    def __call__(self, documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Read documents: ``docno``, their hash, and their tokens, which have no white space, in one text."""
        return [
            {"docno": each["docno"], "source": row_fingerprint(each), "tokens": " ".join(self.tokens(each))}
            for each in documents
        ]


class _Counting:
    """Counts the tokens of documents."""

    def __init__(self, read: ReadTokens | None) -> None:
        self._read, self._builder = read, PostingsBuilder()

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""
        return self._builder.nbytes

    def source(self, document: Mapping[str, Any]) -> int:
        """Hash all columns of a document."""
        return int(document["source"]) if self._read is None else row_fingerprint(document)

    def add(self, document: Mapping[str, Any]) -> None:
        """Count a document."""
        self._builder.add(document["tokens"].split() if self._read is None else self._read.tokens(document))

    def take(self) -> dict[str, Array]:
        """Return the arrays of what was counted, and begin anew."""
        counted, self._builder = self._builder, PostingsBuilder()
        return counted.postings().arrays()

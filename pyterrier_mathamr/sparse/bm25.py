"""A BM25 index of math-aware tokens: building it, adding to it, and its opened state for readers.

::

    post ──tokens──▶ words, symbols (, pairs) ──indexer──▶ postings on disk ──bm25_search──▶ weights ──▶ ranking

An index is built as one of :data:`~.bm25_search.PRESETS`, which has its tokens and the defaults of its searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError, require
from pyterrier_mathamr._common.parameters import method, one_of
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.posts import MathPost, query_post
from pyterrier_mathamr.store import (
    META,
    Appended,
    Content,
    DamagedError,
    DuplicateIdError,
    Field,
    Job,
    Kind,
    Mode,
    Parts,
    Rows,
    Snapshot,
    StoredPart,
    detail,
    row_fingerprint,
)

from . import index as sparse
from .bm25_search import PRESETS, SURVEY, BM25Retriever, BM25Scorer, PostingWeights, PresetName, Weighting
from .expansion import RM3
from .index import (
    UNBOUNDED,
    Remembered,
    SparseIndex,
    SparseIndexer,
    document_or_empty,
    read_options,
)
from .postings import BLOCK, Postings, PostingsBuilder, postings_fields, postings_of
from .tokens import TokenOptions, post_tokens


class BM25Indexer(SparseIndexer):
    """Builds a :class:`BM25Index`, or adds to one, in one step at the end.

    An answer of ARQMath has some 130 distinct tokens; building needs about 1 ms for each. It needs the memory of a
    part, some 130 MB; ids, vocabulary and counts are united on the disk.

    Finished parts are kept if the process is killed: the same call with ``resume=True`` continues after the last one. A
    document that differs from the earlier call's is then an error.

    Args:
        bm25_index: the index; its preset determines the tokens, and later k1, b and the weights of queries.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        tokens: how posts, and later queries, are cut into tokens; ``None`` for the tokens of the preset.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``, in posts and later in queries.
        resume: continue an earlier call that was interrupted.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label, help_url = "BM25 Indexer", SURVEY

    def __init__(
        self,
        bm25_index: BM25Index,
        mode: Mode = "create",
        *,
        tokens: TokenOptions | None = None,
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
            StoreError: anything else failed; nothing was changed.
        """
        with self._begun(self.reading().tokens) as part:
            for batch in self.batches(iter):
                part.add([(row["docno"], row_fingerprint(row), row) for row in batch])
        return self.bm25_index

    def reading(self) -> ReadTokens:
        """Return what reads documents, by itself or for :meth:`adding`; it can be pickled."""
        return ReadTokens(self._tokens(), self.bare_formulas)

    @contextmanager
    def adding(self) -> Iterator[Callable[[Sequence[Read]], None]]:
        """Build the index of documents that :meth:`reading` has read; pass them, in order, to the yielded function."""
        with self._begun(str.split) as part:
            yield part.add

    @contextmanager
    def _begun(self, tokens: Callable[[Any], list[str]]) -> Iterator[_Growing]:
        if self._tokens().stem:
            require("Stemmer", "bm25")  # before anything is written
        details = {"preset": self.bm25_index.preset_of(self.mode), "tokens": self._tokens().to_dict()}
        with self.begun(self.bm25_index, details, {}) as job:
            part = _Growing(job, tokens)
            yield part
            part.write()

    def _tokens(self) -> TokenOptions:
        return self.tokens or PRESETS[self.bm25_index.preset_of(self.mode)].tokens


Read = tuple[DocNo, int, str]
"""A document that was read: its hash, and its tokens, which have no white space, in one text."""


@dataclass(frozen=True)
class ReadTokens:
    """Reads documents."""

    options: TokenOptions
    bare_formulas: bool

    def tokens(self, document: Mapping[str, Any]) -> list[str]:
        return post_tokens(document_or_empty(document, bare_formulas=self.bare_formulas), self.options)

    def __call__(self, documents: Sequence[Mapping[str, Any]]) -> list[Read]:
        """Read documents in a worker."""
        return [(row["docno"], row_fingerprint(row), " ".join(self.tokens(row))) for row in documents]


class _Growing:
    """Documents that are counted, and which are not written yet."""

    def __init__(self, job: Job, tokens: Callable[[Any], list[str]]) -> None:
        self._job, self._tokens, self._builder = job, tokens, PostingsBuilder()
        self._done = sparse.sources_of(job.done)
        self._sources: dict[DocNo, int] = {}

    def add(self, documents: Sequence[tuple[DocNo, int, Any]]) -> None:
        """Count new documents, each with its hash; write a part when it is large enough."""
        docnos = [docno for docno, _, _ in documents]
        rows = self._job.rows_done(docnos).tolist()
        stored = self._job.look_up(docnos).tolist()
        for (docno, source, document), row, old in zip(documents, rows, stored, strict=True):
            if row >= 0:
                if self._done[row] != source:
                    raise self._job.changed(docno)
                continue
            if old >= 0 or docno in self._sources:
                raise DuplicateIdError(self._job.path, [docno])
            self._sources[docno] = source
            self._builder.add(self._tokens(document))
            if self._builder.nbytes >= sparse.PART_BYTES:
                self.write()

    def write(self) -> None:
        """Write the counts since the last part."""
        if self._sources:
            sources = np.fromiter(self._sources.values(), dtype=np.uint64, count=len(self._sources))
            self._job.add(Content(list(self._sources), {**self._builder.postings().arrays(), "sources": sources}))
            self._sources, self._builder = {}, PostingsBuilder()


def _merge(parts: Sequence[StoredPart]) -> Content:
    """Make one part of several, without the documents that were deleted."""
    sources = Appended(parts[0].path.parent, np.dtype(np.uint64))
    for part in parts:
        for start in range(0, len(part), BLOCK):
            sources.append(part["sources"][start : start + BLOCK][part.alive[start : start + BLOCK]])
    arrays = postings_of(parts, parts[0].path.parent).arrays()
    return Content(Parts(parts), {**arrays, "sources": sources.array()})


BM25 = Kind(
    type="sparse_index",
    format="mathamr_bm25",
    version=3,
    fields=(*postings_fields(), Field("sources", "uint64", "m")),
    merge=_merge,
    rebuild="BM25Index('{path}', preset='math').indexer(mode='overwrite').index(documents)",  # what format 2 had
    part_bytes=UNBOUNDED,
)


class BM25Index(SparseIndex):
    """A BM25 index of posts with formulas, built and searched without Java; called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.
        preset: what an index is built as. ``"standard"`` is BM25 as in other search engines: words and symbols of
            formulas, Terrier's stop words, Porter 2 stemming, ``k1=0.9`` and ``b=0.4``. ``"math"`` was tuned on known
            items of ARQMath: also pairs of neighbors, a short list of stop words, ``k1=2``, ``b=1`` and logarithmic
            query weights. ``"structures"`` also has the structure of each sub-expression, in which letters have no
            names, at twice the weight: it finds formulas in other letters, and needs some 10 ms a post to build.
            ``None`` builds a standard index and opens any.

    Raises:
        ConfigError: there is no such preset; or, when the index is opened, it was built with another one.

    Example::

        index = BM25Index("answers.bm25", preset="math")
        index.index(dataset.get_corpus_iter())
        rerank = index.retriever() >> encode >> mathamr_index.scorer()
    """

    KIND = BM25
    HOLDS = "document"
    _USAGE = "pipeline = found.retriever()"

    schematic: ClassVar[dict[str, str]] = {"label": "BM25 Index", "help_url": SURVEY}

    def __init__(self, path: str | Path, *, preset: PresetName | None = None) -> None:
        one_of(*PRESETS).or_none().check("preset", preset)
        super().__init__(path)
        self.preset = preset

    def __repr__(self) -> str:
        return f"BM25Index({str(self.path)!r}{'' if self.preset is None else f', preset={self.preset!r}'})"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, BM25Index) and self.preset == other.preset

    __hash__ = SparseIndex.__hash__

    @staticmethod
    def example() -> BM25Index:
        """Return an index that is not built."""
        return BM25Index("index.bm25")

    indexer = method(BM25Indexer)
    retriever = bm25 = method(BM25Retriever)
    scorer = method(BM25Scorer)
    rm3 = method(RM3)

    def snapshot(self) -> BM25Snapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("BM25Snapshot", super().snapshot())

    def open_snapshot(self) -> BM25Snapshot:
        snapshot = BM25Snapshot(self.path)
        if self.preset not in (None, snapshot.preset):
            again = f"{self!r}.indexer(mode='overwrite').index(documents)"
            raise ConfigError(
                "preset",
                self.preset,
                f"{snapshot.preset!r}, as {self.path} was built with, or none; or build it again: {again}",
            )
        return snapshot

    def preset_of(self, mode: Mode) -> PresetName:
        """Return the preset of the index after a build: an addition keeps the stored one."""
        return self.snapshot().preset if mode == "append" and self.built() else self.preset or "standard"

    def get_corpus_iter(self) -> Iterator[dict[str, DocNo]]:
        """Yield the ``docno`` of each document in order; the texts are not stored."""
        for docno in self.snapshot():
            yield {"docno": docno}


class BM25Snapshot(Snapshot):
    """A BM25 index as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, BM25)
        self.docnos = Remembered(self, lambda snapshot, numbers: snapshot.ids(snapshot.live[numbers]))
        self._weights: PostingWeights | None = None

    @cached_property
    def preset(self) -> PresetName:
        """What the index was built as."""
        preset = cast("PresetName", detail(self.manifest.details, "preset", str, self.path))
        if preset not in PRESETS:
            raise DamagedError(self.path / META, f"its preset is {preset!r:.40}, not one of {', '.join(PRESETS)}")
        return preset

    @cached_property
    def tokens(self) -> TokenOptions:
        """How the documents were cut into tokens."""
        return read_options(self, "tokens", TokenOptions.from_dict)

    def read_query(self, query: Mapping[Any, Any]) -> MathPost:
        """Read a query as the documents were read."""
        return query_post(query, bare_formulas=bool(self.manifest.details.get("bare_formulas")))

    def rows_of(self, docnos: Sequence[str]) -> Rows:
        """Look up documents, as :attr:`postings` numbers them (raises ``UnknownIdError``): int64 ``[docnos]``."""
        return np.searchsorted(self.live, self.find(docnos))

    @cached_property
    def postings(self) -> Postings:
        """The term counts of the documents that are not deleted, numbered in order."""
        return postings_of(self.parts)

    def weights(self, weighting: Weighting) -> PostingWeights:
        """Return the weights of postings; the last weights are cached."""
        weighting = weighting._replace(query_weights="linear")  # on which the weights of postings do not depend
        cached = self._weights
        if cached is None or cached.weighting != weighting:
            cached = self._weights = PostingWeights(weighting, self.postings)
        return cached

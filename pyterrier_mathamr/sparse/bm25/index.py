"""A BM25 index on disk, and what a reader of it has opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.sparse.documents import live_sources, postings_of
from pyterrier_mathamr.sparse.index import UNBOUNDED, SparseIndex, read_options, reads_bare_formulas
from pyterrier_mathamr.sparse.postings import Postings, postings_fields
from pyterrier_mathamr.sparse.ranking import Remembered
from pyterrier_mathamr.sparse.reading import query_post
from pyterrier_mathamr.store import Content, Field, Kind, LiveIds, Part, Snapshot

from .indexer import BM25Indexer
from .retriever import BM25Retriever
from .scorer import BM25Scorer
from .tokens import TokenOptions
from .weighting import PostingWeights, Weighting


def merge_parts(parts: Sequence[Part]) -> Content:
    """Make one part of several, without the documents that were deleted."""
    arrays = postings_of(parts, parts[0].path.parent).arrays()
    return Content(LiveIds(parts), {**arrays, "sources": live_sources(parts)})


BM25 = Kind(
    type="sparse_index",
    format="mathamr_bm25",
    version=2,
    fields=(*postings_fields(), Field("sources", "uint64", "m")),
    merge=merge_parts,
    rebuild="BM25Index('{path}').indexer(mode='overwrite').index(documents)",
    part_bytes=UNBOUNDED,
)


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
    HOLDS = "document"
    ARTIFACT_TYPE, ARTIFACT_FORMAT = BM25.type, BM25.format

    schematic: ClassVar[dict[str, str]] = {"label": "BM25 Index", "help_url": "https://github.com/xhluca/bm25s"}

    @staticmethod
    def example() -> BM25Index:
        """Return an index that is not built."""
        return BM25Index("index.bm25")

    indexer = method(BM25Indexer)
    retriever = bm25 = method(BM25Retriever)
    scorer = method(BM25Scorer)

    def postings(self) -> Postings:
        """Return the term counts (raises as :meth:`snapshot`)."""
        return self.snapshot().postings

    def token_options(self) -> TokenOptions:
        """Return the options with which the documents were cut into tokens (raises as :meth:`snapshot`)."""
        return self.snapshot().tokens

    def snapshot(self) -> BM25Snapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("BM25Snapshot", super().snapshot())

    def open_snapshot(self) -> BM25Snapshot:
        """Open the index."""
        return BM25Snapshot(self.path)

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
    def tokens(self) -> TokenOptions:
        """How the documents were cut into tokens."""
        return read_options(self, "tokens", TokenOptions.from_dict)

    def read_query(self, query: Mapping[Any, Any]) -> MathPost:
        """Read a query as the documents were read; one that cannot be read is empty, with a warning."""
        return query_post(query, bare_formulas=reads_bare_formulas(self))

    @cached_property
    def postings(self) -> Postings:
        """The term counts of the documents that are not deleted, numbered in order."""
        return postings_of(self.parts)

    def weights(self, weighting: Weighting, terms: Iterable[int]) -> npt.NDArray[np.float32]:
        """Weigh the postings of some terms, float32 ``[p]``; those of the last weighting are kept."""
        weighting = weighting._replace(query_weights="linear")  # on which the weights of postings do not depend
        if self._weights is None or self._weights.weighting != weighting:
            self._weights = PostingWeights(weighting, self.postings)
        return self._weights.of(terms)

    @cached_property
    def _engine(self) -> Any:
        return require("bm25s", "bm25").BM25(method="lucene")

    def engine(self, weighting: Weighting, terms: Iterable[int]) -> Any:
        """Return the ``bm25s.BM25`` with the weights of some terms."""
        engine = copy(self._engine)  # of this weighting, whatever another thread's is
        engine.scores = {
            "data": self.weights(weighting, terms),
            "indices": self.postings.documents,
            "indptr": self.postings.offsets,
            "num_docs": len(self),
        }
        engine.nonoccurrence_array = None  # only BM25L and BM25+ have one; bm25s's own load sets both attributes
        return engine

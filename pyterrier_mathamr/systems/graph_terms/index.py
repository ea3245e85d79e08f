"""An index of graph terms on disk, and what a reader of it has opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr._common.transformers import HELP_URL
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.sparse.bm25.weighting import PostingWeights, Weighting
from pyterrier_mathamr.sparse.documents import live_sources, postings_of
from pyterrier_mathamr.sparse.index import UNBOUNDED, SparseIndex
from pyterrier_mathamr.sparse.postings import Postings, postings_fields
from pyterrier_mathamr.sparse.ranking import Remembered
from pyterrier_mathamr.store import Array, Content, Field, Kind, LiveIds, Part, Snapshot

from .indexer import GraphTermsIndexer
from .retriever import GraphTermsRetriever
from .scorer import GraphTermsScorer
from .terms import FIELDS, GraphField


def merge_parts(parts: Sequence[Part]) -> Content:
    """Make one part of several, without the documents that were deleted."""
    arrays: dict[str, Array] = {}
    for field in FIELDS:
        arrays |= postings_of(parts, parts[0].path.parent, f"{field}_").arrays(f"{field}_")
    return Content(LiveIds(parts), {**arrays, "sources": live_sources(parts)})


GRAPH_TERMS = Kind(
    type="sparse_index",
    format="mathamr_graph_terms",
    version=1,
    fields=(
        *(array for field in FIELDS for array in postings_fields(f"{field}_")),
        Field("sources", "uint64", "m"),
    ),
    merge=merge_parts,
    rebuild="GraphTermsIndex('{path}').indexer(mode='overwrite').index(graphs)",
    part_bytes=UNBOUNDED,
)


class GraphTermsIndex(SparseIndex):
    """A BM25 index of the graphs of posts, one field for each kind of term; called directly it is its retriever.

    Edges and nodes of both trees of formulas, concepts of the AMR and pairs of them are counted apart. Nothing is
    trained, and no extra is needed. Words are not in it: ``BM25Index`` has them, and ``bm25 + 0.25 * graph_terms`` is
    a ranking by both.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        index = GraphTermsIndex("answers.graphterms")
        (mathamr.GraphBuilder() >> index.indexer()).index(dataset.get_corpus_iter())
        pipeline = mathamr.GraphBuilder() >> index.retriever()
    """

    KIND = GRAPH_TERMS
    HOLDS = "document"
    ARTIFACT_TYPE, ARTIFACT_FORMAT = GRAPH_TERMS.type, GRAPH_TERMS.format

    schematic: ClassVar[dict[str, str]] = {"label": "Graph terms Index", "help_url": HELP_URL}

    @staticmethod
    def example() -> GraphTermsIndex:
        """Return an index that is not built."""
        return GraphTermsIndex("index.graphterms")

    indexer = method(GraphTermsIndexer)
    retriever = method(GraphTermsRetriever)
    scorer = method(GraphTermsScorer)

    def index_inputs(self) -> list[list[str]]:
        """Return the columns of a document."""
        return self.indexer().index_inputs()

    def more_counts(self) -> list[str]:
        """List the distinct terms of each kind."""
        snapshot = self.snapshot()
        return [counted(len(snapshot.postings(field).names), field.removesuffix("s")) for field in FIELDS]

    def postings(self, field: GraphField) -> Postings:
        """Return the counts of the terms of one kind (raises as :meth:`snapshot`)."""
        return self.snapshot().postings(field)

    def snapshot(self) -> GraphTermsSnapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("GraphTermsSnapshot", super().snapshot())

    def open_snapshot(self) -> GraphTermsSnapshot:
        """Open the index."""
        return GraphTermsSnapshot(self.path)

    def get_corpus_iter(self) -> Iterator[dict[str, DocNo]]:
        """Yield the ``docno`` of each document in order; the graphs are not stored."""
        for docno in self.snapshot():
            yield {"docno": docno}


class GraphTermsSnapshot(Snapshot):
    """An index of graph terms as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, GRAPH_TERMS)
        self.docnos = Remembered(self, lambda snapshot, numbers: snapshot.ids(snapshot.live[numbers]))
        self._postings: dict[GraphField, Postings] = {}
        self._weights: dict[GraphField, PostingWeights] = {}

    def postings(self, field: GraphField) -> Postings:
        """Return the counts of the documents that are not deleted, numbered in order; a field is read on first use."""
        if field not in self._postings:
            self._postings[field] = postings_of(self.parts, prefix=f"{field}_")
        return self._postings[field]

    def weights(self, field: GraphField, weighting: Weighting, terms: Iterable[int]) -> npt.NDArray[np.float32]:
        """Weigh the postings of some terms of a field, float32 ``[p]``; those of the last weighting are kept."""
        if field not in self._weights or self._weights[field].weighting != weighting:
            self._weights[field] = PostingWeights(weighting, self.postings(field))
        return self._weights[field].of(terms)

"""Building an index of graph terms, or adding to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import pandas as pd

from pyterrier_mathamr._common.frames import MissingValueError, is_missing
from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.sparse.documents import CountedDocuments
from pyterrier_mathamr.sparse.index import SparseIndexer
from pyterrier_mathamr.sparse.postings import PostingsBuilder
from pyterrier_mathamr.store import Array, Mode, row_fingerprint

from .terms import FIELDS, GraphField, terms_of_graph

if TYPE_CHECKING:
    from .index import GraphTermsIndex


class GraphTermsIndexer(SparseIndexer):
    """Builds a :class:`GraphTermsIndex`, or adds to one, in one step at the end.

    Counting takes about 1 ms for each graph, parsing its text not included. Its memory is that of a part, some 500 MB,
    beside the ids of the documents and the vocabulary.

    Finished parts are kept if the process is killed: the same call with ``resume=True`` continues after the last one. A
    document whose graph differs from that of the earlier call is then an error.

    Args:
        graph_terms_index: the index.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        resume: continue an earlier call that was interrupted.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label = "Graph terms Indexer"
    checks: ClassVar[Mapping[str, Rule]] = {"mode": one_of(*get_args(Mode))}
    bare_formulas = False  # of posts, which are graphs by now

    def __init__(
        self,
        graph_terms_index: GraphTermsIndex,
        mode: Mode = "create",
        *,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.graph_terms_index, self.mode, self.resume, self.verbose = graph_terms_index, mode, resume, verbose

    def index_inputs(self) -> list[list[str]]:
        """Return the columns of a document."""
        return [["docno", "graph"]]

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> GraphTermsIndex:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``graph``, as ``GraphBuilder`` and ``GraphStore`` give
                them.

        Returns:
            The index.

        Raises:
            MissingValueError: a document has no graph.
            DuplicateIdError: a ``docno`` occurs twice, or is in the index that is added to; nothing was changed.
            StoreError: another of its kinds; nothing was changed.
        """
        counting = _Counting()
        self.build(self.graph_terms_index, iter, {}, {}, lambda job: CountedDocuments(job, counting))
        return self.graph_terms_index


class _Counting:
    """Counts the terms of graphs, each kind on its own."""

    def __init__(self) -> None:
        self._builders = _empty()

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""
        return sum(builder.nbytes for builder in self._builders.values())

    def source(self, document: Mapping[str, Any]) -> int:
        """Hash what terms are made of: labels and edges."""
        graph = _graph_of(document)
        labels, edges = graph.amr.labels, graph.amr.edges
        return row_fingerprint({"labels": labels, "edges": edges, "formulas": graph.n_formulas})

    def add(self, document: Mapping[str, Any]) -> None:
        """Count a document."""
        terms = terms_of_graph(_graph_of(document))
        for field, builder in self._builders.items():
            builder.add(terms.of(field))

    def take(self) -> dict[str, Array]:
        """Return the arrays of what was counted, and begin anew."""
        counted, self._builders = self._builders, _empty()
        arrays: dict[str, Array] = {}
        for field, builder in counted.items():
            arrays |= builder.postings().arrays(f"{field}_")
        return arrays


def _empty() -> dict[GraphField, PostingsBuilder]:
    return {field: PostingsBuilder() for field in FIELDS}


def _graph_of(document: Mapping[str, Any]) -> MathAMRGraph:
    graph: Any = document.get("graph")
    if is_missing(graph):
        raise MissingValueError("graph", "documents", [str(document["docno"])])
    found: MathAMRGraph = graph
    return found

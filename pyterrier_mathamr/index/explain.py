"""Why a document has its score: the virtual node that each node of the query met, and its contribution."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import pandas as pd

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr.explain import Asked, Explanation, QueryRow, read_asked
from pyterrier_mathamr.explain.maxsim import Nodes, Side, maxsim_parts

from .building.entries import stored_formula_ids
from .protocols import Field, SearchableSnapshot
from .search.queries import QueryBatch


class Explainable(Protocol):
    """What an explanation needs of a transformer over an index."""

    index: Any
    label: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]

    @property
    def field(self) -> Field:
        """The vectors that are compared."""

    def read(self, queries: pd.DataFrame, snapshot: SearchableSnapshot) -> QueryBatch:
        """Read the vectors and weights of queries."""


class Explaining:
    """A retriever or scorer that explains its scores."""

    def explain(self: Explainable, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each virtual node of a query contributes to the score of a document (eq. 3.4)."""
        asked = read_asked(query, docno, self.label, self.needs)
        snapshot = self.index.snapshot()
        numbers = snapshot.find([asked.docno])
        batch = self.read(asked.frame(), snapshot)
        readings = asked.query_reading(), asked.document_reading()
        if not len(batch):  # a blank query
            return Explanation.of(asked.docno, [], *readings)
        compared = batch.last_rows() if self.field == "doc" else batch
        rows, _ = snapshot.rows(numbers, self.field)
        sides = _query_side(compared, asked, self), _document_side(rows, asked, snapshot, self)
        blend = None if compared.document_weights is None else float(compared.document_weights[0])
        return Explanation.of(asked.docno, maxsim_parts(self.label, *sides, compared.weights, blend), *readings)


def _query_side(compared: QueryBatch, asked: Asked, system: Explainable) -> Side:
    """Name the compared vectors of a query by their rows in ``query_embs``."""
    given: Any = asked.row.get("query_formula_ids")
    ids, count = None if is_missing(given) else list(map(str, given)), len(asked.row["query_embs"])
    nodes, rows = Nodes.of(count, ids, asked.graph("query_graph")), range(count)
    if _of_formulas(system):
        row = (ids or []).index(str(asked.row["query_formula_id"]))
        rows = range(row, row + 1)
    return Side(compared.rows, rows[-len(compared.rows) :], nodes)


def _document_side(rows: Any, asked: Asked, snapshot: SearchableSnapshot, system: Explainable) -> Side:
    """Name the compared vectors of a document by their rows in the index, or of a formula by its row in its post."""
    if _of_formulas(system):
        row, latex = asked.formula()
        before = [""] * row
        return Side(rows, [row], Nodes(["formula"] * (row + 1), [*before, asked.docno], [*before, latex]))
    numbers = snapshot.find([asked.docno])
    count = int(snapshot.lengths(numbers, "all")[0])
    ids = stored_formula_ids(snapshot.texts("formula_ids", numbers)[0], snapshot.path)
    return Side(rows, range(count)[-len(rows) :], Nodes.of(count, ids, asked.graph("graph")))


def _of_formulas(system: Explainable) -> bool:
    """Whether the documents of the index are formulas."""
    return "query_formula_id" in system.needs

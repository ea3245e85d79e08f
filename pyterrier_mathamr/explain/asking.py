"""What an explanation is asked for: one query and one document, as a row or as rows of a frame.

::

    encode(topics).iloc[0], "d7"           the row of an encoded query, and any document
    (encode >> retriever)(topics).iloc[3]  the row of a result: its query and its document
    ranking of one query, "d7"             the rows of one query, of which one may be the document's
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pandas as pd

from pyterrier_mathamr._common.frames import (
    columns_of_documents,
    describes_document,
    distinct_queries,
    is_missing,
    with_objects,
)
from pyterrier_mathamr.posts import PostError, post_from_any, post_from_html

from .asking_errors import AskedError
from .explanation import Explanation, Part, Reading

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph

QueryRow: TypeAlias = "Mapping[str, Any] | pd.Series[Any] | pd.DataFrame"
"""A row as a dictionary or a series, or a frame of one query."""

_TEXTS = ("graph", "html", "text")
_OF_DOCUMENT = (*_TEXTS, "docno", "doc_embs", "score", "rank")


class Asked(NamedTuple):
    """A query and a document.

    Attributes:
        row: column to value: those of the query, and of the document where they are known.
        docno: the document.
    """

    row: dict[str, Any]
    docno: str

    def frame(self) -> pd.DataFrame:
        """Return the row as a frame, with a ``qid``."""
        plain = pd.DataFrame({"qid": [str(self.row.get("qid", "explained"))], "docno": [self.docno]})
        others = {name: [value] for name, value in self.row.items() if name not in plain.columns}
        return with_objects(plain, **others)

    def query_frame(self) -> pd.DataFrame:
        """Return the query alone as a frame."""
        return self.frame().drop(columns=list(_OF_DOCUMENT), errors="ignore")

    def query_row(self) -> dict[str, Any]:
        """Return what a scorer of rankings reads the query from: the row without what is known of the document."""
        return {name: value for name, value in self.row.items() if not describes_document(name)}

    def texts(self) -> dict[str, Any]:
        """Return the columns that are the document's text."""
        return {name: self.row[name] for name in _TEXTS if not is_missing(self.row.get(name))}

    def graph(self, column: str) -> MathAMRGraph | None:
        """Return the graph in a column, ``None`` where there is none."""
        value = self.row.get(column)
        return None if is_missing(value) else value

    def formula(self) -> tuple[int, str]:
        """Return the number and the LaTeX of the formula ``docno`` in ``graph``; 0 and "" where there is none."""
        graph = self.graph("graph")
        if graph is None or self.docno not in graph.formula_ids:
            return 0, ""
        row = graph.formula_ids.index(self.docno)
        return row, graph.latex[row] if row < len(graph.latex) else ""

    def query_reading(self) -> Reading | None:
        """Return the text of ``query_graph``."""
        graph = self.graph("query_graph")
        return None if graph is None else Reading.of_graph(graph)

    def document_reading(self) -> Reading | None:
        """Return the text of the document's ``graph``, else of ``html`` or ``text``."""
        if (graph := self.graph("graph")) is not None:
            return Reading.of_graph(graph)
        for column, read in (("html", post_from_html), ("text", post_from_any)):
            if not is_missing(self.row.get(column)):
                try:
                    return Reading(read(str(self.row[column])))
                except PostError:
                    return None
        return None

    def explained(self, parts: Sequence[Part]) -> Explanation:
        """Explain the document's score by its parts, beside the texts of both."""
        return Explanation.of(self.docno, parts, self.query_reading(), self.document_reading())


def read_asked(query: QueryRow, docno: str | None, system: str, needs: Sequence[str] = ()) -> Asked:
    """Read the arguments of ``explain``.

    Args:
        query: a row of a query or of a result, or a frame of one query.
        docno: the document; by default that of the row.
        system: named in errors.
        needs: the columns that the system explains by.

    Raises:
        AskedError: there is not one query, a column is missing, or no document is named.
    """
    row = _row_of(query, docno, system)
    if docno is None:
        if is_missing(row.get("docno")):
            raise AskedError(system, "no document is named", "Give its docno: explain(row, docno).")
        docno = str(row["docno"])
    if str(row.get("docno", docno)) != docno:
        row = {name: value for name, value in row.items() if name not in _OF_DOCUMENT}
    if missing := [name for name in needs if is_missing(row.get(name))]:
        what = f"the row has no {', '.join(missing)}"
        raise AskedError(system, what, f"Give a row that has been through the stages before it, {_EXAMPLE}.")
    return Asked({**row, "docno": docno}, docno)


_EXAMPLE = "such as explain(encode(topics).iloc[0], docno) for an encoder `encode`"


def _row_of(query: QueryRow, docno: str | None, system: str) -> dict[str, Any]:
    if not isinstance(query, pd.DataFrame):
        if not isinstance(query, (Mapping, pd.Series)):
            raise AskedError(system, f"{type(query).__name__} is no row", f"Give a dictionary or series, {_EXAMPLE}.")
        return {str(name): value for name, value in query.items()}
    if "qid" not in query.columns or query["qid"].nunique() != 1:
        found = query["qid"].nunique() if "qid" in query.columns else "no column qid"
        raise AskedError(system, f"the frame is not of one query ({found})", "Give the rows of one qid.")
    first = distinct_queries(query).to_dict("records")[0]
    of_query = {str(name): value for name, value in first.items() if name not in _OF_DOCUMENT}
    if "docno" not in query.columns:
        return of_query
    own = query[query["docno"].astype(str) == (str(query["docno"].iloc[0]) if docno is None else docno)]
    loaded = {"title", "body"} & {*columns_of_documents(query)}
    known = own.drop(columns=list(loaded)).to_dict("records")[0] if len(own) else {}
    return {**of_query, **{str(name): value for name, value in known.items() if not is_missing(value)}}

"""Asking any system or pipeline to explain the score of one document for one query.

Both are given as a row, or as rows of a frame::

    encode(topics).iloc[0], "d7"           the row of an encoded query, and any document
    (encode >> retriever)(topics).iloc[3]  the row of a result: its query and its document
    ranking of one query, "d7"             the rows of one query, which may include the document's

The explanation of a pipeline is the explanation of its last scoring stage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import is_missing, with_objects
from pyterrier_mathamr.posts import post_from_any, post_from_html
from pyterrier_mathamr.posts.topics import columns_of_documents, describes_document, distinct_queries

from .explanation import AskedError, Explanation, Part, Reading

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph

QueryRow: TypeAlias = "Mapping[str, Any] | pd.Series[Any] | pd.DataFrame"
"""A row as a dictionary or a series, or a frame of one query."""

_TEXTS = ("graph", "html", "text")
_OF_DOCUMENT = (*_TEXTS, "docno", "doc_embs", "score", "rank")


class Asked(NamedTuple):
    """A query and a document.

    Attributes:
        row: column to value: the columns of the query, and the known columns of the document.
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
        """Return the query as a frame without document columns."""
        return self.frame().drop(columns=list(_OF_DOCUMENT), errors="ignore")

    def query_row(self) -> dict[str, Any]:
        """Return the row without document columns, from which a scorer of rankings reads the query."""
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
                return Reading(read(str(self.row[column])))
        return None

    def explained(self, parts: Sequence[Part]) -> Explanation:
        """Explain the document's score by its parts, with the texts of both."""
        return Explanation.of(self.docno, parts, self.query_reading(), self.document_reading())


def read_asked(query: QueryRow, docno: str | None, system: str, needs: Sequence[str] = ()) -> Asked:
    """Read the arguments of ``explain``.

    Args:
        query: a row of a query or of a result, or a frame of one query.
        docno: the document; by default the one in the row.
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
            what = f"{type(query).__name__} is not a row"
            raise AskedError(system, what, f"Give a dictionary or Series, {_EXAMPLE}.")
        return {str(name): value for name, value in query.items()}
    if "qid" not in query.columns or query["qid"].nunique() != 1:
        queries = query["qid"].nunique() if "qid" in query.columns else "no column qid"
        raise AskedError(system, f"the frame is not of one query ({queries})", "Give the rows of one qid.")
    first = distinct_queries(query).to_dict("records")[0]
    of_query = {str(name): value for name, value in first.items() if name not in _OF_DOCUMENT}
    if "docno" not in query.columns:
        return of_query
    rows = query[query["docno"].astype(str) == (str(query["docno"].iloc[0]) if docno is None else docno)]
    loaded = {"title", "body"} & {*columns_of_documents(query)}
    known = rows.drop(columns=list(loaded)).to_dict("records")[0] if len(rows) else {}
    return {**of_query, **{str(name): value for name, value in known.items() if not is_missing(value)}}


_ERROR = 1e-4


class Ranked(NamedTuple):
    """The results of a system for a query, and its explanation for one document.

    Attributes:
        ranking: all documents that it found.
        explanation: of the document's score; ``None`` if it has no score.
    """

    ranking: pd.DataFrame
    explanation: Explanation | None


def explain_score(system: pt.Transformer, query: str | QueryRow, docno: str | None = None) -> Explanation:
    """Explain the score that a system or pipeline gives a document.

    The stages run as in a search. The last stage with a method ``explain`` explains; if the final score differs, or no
    stage has the method, the explanation is a single part.

    Args:
        system: queries to a ranking.
        query: a typed query, a row of a query, or a frame of one query.
        docno: the document; by default the one in the row.

    Raises:
        AskedError: the document has no score, or the query is not one.

    Example::

        pipeline = bm25 % 100 >> encode >> index.scorer()
        print(explain.explain_score(pipeline, "Why is $x^2 + 1 > 0$?", pipeline.search("a square")["docno"].iloc[0]))
    """
    name = name_of(system)
    asked = read_asked({"qid": "1", "query": query} if isinstance(query, str) else query, docno, name)
    explanation = explained(system, asked.query_frame(), asked.docno, asked.texts(), beyond=True).explanation
    if explanation is None:
        raise AskedError(name, f"it does not find {asked.docno!r}", "Explain a document of its ranking.")
    return explanation


def explained(
    system: pt.Transformer,
    frame: pd.DataFrame,
    docno: str,
    texts: Mapping[str, Any] | None = None,
    *,
    beyond: bool = False,
) -> Ranked:
    """Run a system and explain the score of one document.

    Args:
        system: a transformer or a pipeline.
        frame: its input, of one query.
        docno: the document.
        texts: columns that are the document's text; a stage may load them, too.
        beyond: also explain the score that a document outside the ranking would have, where the last stage can.
    """
    stages = list(system) if isinstance(system, pt.Compose) else [system]
    frames = [frame]
    for stage in stages:
        frames.append(stage(frames[-1]))
    row = _found_row(frames[-1], docno)
    texts = {**(texts or {}), **Asked(row, docno).texts()}
    return Ranked(frames[-1], _of_stages(stages, frames, docno, texts) if row or beyond else None)


def name_of(system: pt.Transformer) -> str:
    """Name a system by its last stage."""
    last = list(system)[-1] if isinstance(system, pt.Compose) else system
    return str(getattr(last, "label", "") or type(last).__name__)


def _of_stages(
    stages: Sequence[Any], frames: Sequence[pd.DataFrame], docno: str, texts: Mapping[str, Any]
) -> Explanation | None:
    """Explain the score that some stages give a document; ``None`` where they give none and no stage can explain."""
    explanation: Explanation | None = None
    row = _found_row(frames[-1], docno)
    places = [place for place, stage in enumerate(stages) if hasattr(_explainer(stage), "explain")]
    if places:
        place = places[-1]
        stage, frame = _explainer(stages[place]), _with_texts(frames[place], docno, texts)
        options = {}
        if getattr(stage, "explains_incoming", False):
            options["incoming"] = _of_stages(stages[:place], frames[: place + 1], docno, texts)
        explanation = stage.explain(frame, docno, **options)
    if "score" not in row:
        return explanation
    if explanation and math.isclose(explanation.score, row["score"], rel_tol=_ERROR, abs_tol=_ERROR):
        return explanation
    name = name_of(stages[-1]) if stages else "first stage"
    return Explanation.of(docno, [Part(name, "score", contribution=float(row["score"]))])


def _explainer(stage: Any) -> Any:
    """Return the object that explains a stage: itself, or the learner of ``pt.ltr.apply_learned_model``."""
    return stage if hasattr(stage, "explain") else getattr(stage, "learner", stage)


def _found_row(ranking: pd.DataFrame, docno: str) -> dict[str, Any]:
    """Return a document's row in a ranking; empty if it is not there."""
    rows = ranking[ranking["docno"].astype(str) == docno] if "docno" in ranking.columns else ranking[:0]
    first = rows.iloc[0].to_dict() if len(rows) else {}
    return {str(name): value for name, value in first.items() if not is_missing(value)}


def _with_texts(frame: pd.DataFrame, docno: str, texts: Mapping[str, Any]) -> pd.DataFrame:
    """Add the texts of a document to the input of a stage: its rows of a ranking, or queries."""
    if "docno" not in frame.columns:
        frame = with_objects(frame, docno=[docno] * len(frame))
    is_it = frame["docno"].astype(str) == docno
    return with_objects(frame, **{name: [text if it else None for it in is_it] for name, text in texts.items()})

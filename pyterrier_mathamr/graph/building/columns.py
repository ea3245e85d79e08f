"""The queries of a graph builder: what they are, where their text is, and which of them it warns of."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import listed
from pyterrier_mathamr.posts import MathPost, PostFormula, placeholder, strip_delimiters
from pyterrier_mathamr.posts.rows import Row, is_blank, text_of

Side = Literal["auto", "query", "document", "both"]
"""Whose graphs are built: with ``auto`` those of the queries where the frame has any, else of the documents."""

Queries = Literal["post", "formula"]
"""What a query is: a text with formulas, or one formula in LaTeX."""

TOPIC_COLUMNS = ("title", "body", "query", "latex")
"""Where the text of a topic is."""

EMPTY_POST = MathPost(text="", formulas=())


def formula_post(row: Row) -> MathPost:
    """Read a query that is one formula: ``latex``, else ``query``, with or without dollars."""
    latex = strip_delimiters(text_of(row, "query" if is_blank(row.get("latex")) else "latex"))
    formula = PostFormula(latex, text_of(row, "formula_id"))
    return MathPost(placeholder(0), (formula,)) if latex or formula.id else EMPTY_POST


def warn_of_second_texts(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """Warn of queries that share a ``qid`` but not their text, since only the first of them is built."""
    found: defaultdict[str, set[tuple[object, ...]]] = defaultdict(set)
    for row in rows:
        text = tuple(row[name] for name in columns)
        if not any(map(is_blank, text)):
            found[row["qid"]].add(text)
    several = [qid for qid, texts in found.items() if len(texts) > 1]
    if several:
        warnings.warn(
            f"{len(several)} qid(s) have several texts, of which only the first is used: {listed(several)}. Give each "
            "query a qid of its own; after a stage that rewrites `query` in one branch of a pipeline, use "
            "pt.rewrite.reset().",
            MathAMRWarning,
            stacklevel=2,
        )


def warn_of_blank_queries(qids: Sequence[str], what: Queries) -> None:
    """Warn once of all queries that find nothing because they are blank or no formula."""
    if qids:
        reason = "are blank" if what == "post" else "have no formula that can be read"
        advice = "text in `query`, or in `title` and `body`" if what == "post" else "LaTeX in `latex` or `query`"
        warnings.warn(
            f"{len(qids)} qid(s) {reason} and find nothing: {listed(qids)}. Give each query {advice}.",
            MathAMRWarning,
            stacklevel=2,
        )

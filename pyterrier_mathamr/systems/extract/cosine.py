"""A scorer of texts by the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.frames import distinct_queries, empty_output, ordered_by_score
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr.explain import Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.model import TextEncoder
from pyterrier_mathamr.posts import document_post, plain_text, query_post
from pyterrier_mathamr.systems.text_columns import TEXT_COLUMNS, check_texts, text_row


class CosineScorer(Transformer):
    """Scores each document of a ranking by the cosine of its text's vector and the query's.

    Formulas are read as ``$latex$``. Each distinct text is encoded once. Rows are ordered by query, descending score
    and docno.

    Example::

        bm25 >> dataset.text_loader(["text"]) >> CosineScorer(TextEncoder("all-MiniLM-L6-v2"))

    Args:
        encoder: from texts to vectors of unit length; needs the extra ``text``.
    """

    label = "cosine"

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank``.

        Args:
            inp: ``qid``, ``docno``, ``query`` (or ``title`` and ``body``), and ``html``, ``text`` or ``markdown``.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
        """
        check_texts(inp, self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        queries = distinct_queries(inp)
        rows = (dict(zip(queries.columns, row, strict=True)) for row in queries.itertuples(index=False, name=None))
        asked = {row["qid"]: plain_text(query_post(row)) for row in rows}
        texts = [_text(dict(zip(inp.columns, row, strict=True))) for row in inp.itertuples(index=False, name=None)]
        scores = self._cosines([asked[qid] for qid in inp["qid"]], texts)
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what the score of a document is: one part, since a vector has no others.

        Args:
            query: a row with the texts of query and document, or a frame of one query.
            docno: the document; by default that of the row.

        Raises:
            AskedError: the row has no text of the document, or no document is named.
        """
        name = next((name for name in TEXT_COLUMNS if name in query), TEXT_COLUMNS[0])
        asked = read_asked(query, docno, self.label, [name])
        texts = plain_text(query_post(asked.query_row())), _text(asked.row)
        score = float(self._cosines([texts[0]], [texts[1]])[0])
        part = Part(self.label, "document", texts[0], "document", texts[1], score, 1.0, score)
        return asked.explained([part])

    def _cosines(self, queries: list[str], texts: list[str]) -> Any:
        """Return the cosine of each query and text: float64 ``[n]``."""
        distinct = list(dict.fromkeys([*queries, *texts]))
        place = {text: row for row, text in enumerate(distinct)}
        vectors = self.encoder.encode(distinct).astype(np.float64)
        left, right = vectors[[place[text] for text in queries]], vectors[[place[text] for text in texts]]
        return (left * right).sum(axis=1)


def _text(row: Mapping[str, Any]) -> str:
    return plain_text(document_post(text_row(row)))

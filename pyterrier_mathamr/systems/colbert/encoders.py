"""`ColBERT` as PyTerrier transformers: texts in, token rows or scores out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.feedback import told_once
from pyterrier_mathamr._common.frames import (
    distinct_queries,
    empty_output,
    join_values,
    ordered_by_score,
    with_objects,
    without_query_rows,
)
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr._common.transformers import ColumnAdder, Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, Part, QueryRow, Reading
from pyterrier_mathamr.model.encoder.maxsim import exact_maxsim
from pyterrier_mathamr.sparse.index import document_post, query_post
from pyterrier_mathamr.systems.language_models import (
    Precision,
    check_documents,
    check_queries,
    check_texts,
    of_document,
    of_documents,
    read_texts,
)

from .network import Embeddings, TextRows

if TYPE_CHECKING:
    from .model import ColBERT


class _TextTransformer(Leaf, Transformer):
    """What the three share: a model and the options of encoding."""

    checks: ClassVar[Mapping[str, Rule]] = {
        "batch_size": COUNT,
        "precision": one_of("auto", "float32", "bfloat16"),
    }
    help_url = "https://ceur-ws.org/Vol-3180/paper-09.pdf"

    def __init__(
        self,
        model: ColBERT,
        *,
        device: str | None = None,
        batch_size: int = 256,
        precision: Precision = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.device, self.batch_size = model, device, batch_size
        self.precision, self.verbose = precision, verbose

    def _rows(self, texts: list[str], side: Any) -> list[TextRows]:
        options: dict[str, Any] = {"device": self.device, "precision": self.precision, "verbose": self.verbose}
        return self.model.encode(texts, side, **options)

    def _queries(self, frame: pd.DataFrame) -> dict[Any, TextRows]:
        """Encode each distinct query; one without text has no rows, float32 ``[0, d]``."""
        rows = distinct_queries(frame).to_dict("records")
        texts = {row["qid"]: self.model.texts.text(query_post(row)).strip() for row in rows}
        asked = {qid: text for qid, text in texts.items() if text}
        encoded = dict(zip(asked, self._rows(list(asked.values()), "query"), strict=True))
        none = TextRows(np.empty((0, self.model.dimensions), np.float32), np.empty(0, np.int64))
        return {qid: encoded.get(qid, none) for qid in texts}

    def _documents(self, rows: list[dict[Any, Any]]) -> list[TextRows]:
        """Encode each document."""
        posts = [document_post(row) for row in rows]
        self.model.warn_lacking(posts)
        return self._rows([self.model.texts.text(post) for post in posts], "document")

    def _encode_documents(self, frame: pd.DataFrame) -> list[Embeddings]:
        """Encode documents, each distinct docno once: float32 ``[n, d]`` for each row."""
        if "docno" not in frame.columns:
            return [found.rows for found in self._documents(frame.to_dict("records"))]
        distinct = frame.drop_duplicates(subset="docno")
        found = dict(zip(distinct["docno"], self._documents(distinct.to_dict("records")), strict=True))
        return [found[docno].rows for docno in frame["docno"]]


class ColBERTDocEncoder(ColumnAdder, _TextTransformer):
    """Encode the text of each document.

    Adds ``doc_embs``, float32 ``[n, d]`` with rows of unit length (tokens in order, ``[CLS]`` last), and ``doc_model``,
    the identity of the model. A document that is in several rows is encoded once.

    Example::

        (colbert.doc_encoder() >> index.indexer(dtype="float16")).index(dataset.get_corpus_iter())
    """

    label = "ColBERT documents"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs`` and ``doc_model`` to documents with ``html``, ``body``, ``text`` or ``markdown``."""
        check_documents(inp, self)
        if inp.empty:
            return empty_output(inp, ["doc_embs", "doc_model"])
        with told_once():
            frame = with_objects(inp, doc_embs=self._encode_documents(inp))
        encoded: pd.DataFrame = frame.assign(doc_model=self.model.name)
        return encoded


class ColBERTQueryEncoder(ColumnAdder, _TextTransformer):
    """Encode each query, once for all rows of a ranking.

    Adds ``query_embs``, float32 ``[q, d]`` with rows of unit length (tokens in order, ``[CLS]`` last; none for a blank
    query), and ``query_model``, the identity of the model: an index of another model's rows refuses them.

    Example::

        colbert.query_encoder() >> index.colbert(num_results=1000)
        bm25 >> colbert.query_encoder() >> index.scorer()
    """

    label = "ColBERT queries"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``query_embs`` and ``query_model`` to rows with ``query``, or ``title`` and ``body``."""
        check_queries(inp, self)
        inp = without_query_rows(inp)
        if inp.empty:
            return empty_output(inp, ["query_embs", "query_model"])
        with told_once():
            found = self._queries(inp)
        frame = join_values(inp, "query_embs", {qid: text.rows for qid, text in found.items()})
        encoded: pd.DataFrame = frame.assign(query_model=self.model.name)
        return encoded


class ColBERTTextScorer(_TextTransformer):
    """Score the text of each document of a ranking by MaxSim, without an index.

    The scores are those of ``index.scorer()`` for the same rows. Each query and each document is encoded once. Rows are
    ordered by query, descending score and docno.

    Example::

        bm25 >> dataset.text_loader(["text"]) >> colbert.text_scorer()
    """

    label = "ColBERT scorer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank`` of a ranking with the texts of documents.

        Args:
            inp: ``qid``, ``docno``, ``query`` (or ``title`` and ``body``), and ``html``, ``text`` or ``markdown`` of
                the document.
        """
        check_texts(inp, self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        with told_once():
            queries, documents = self._queries(inp), self._encode_documents(of_documents(inp))
        codes, qids = pd.factorize(inp["qid"])
        scores = np.empty(len(inp), np.float64)
        for code, qid in enumerate(qids):
            places = np.flatnonzero(codes == code)
            scores[places] = _scores(queries[qid].rows, [documents[place] for place in places])
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say which token of a document each token of a query met, and what it contributes to the score.

        Args:
            query: a row with the texts of a query and a document, or a frame of one query.
            docno: the document; by default that of the row.

        Raises:
            AskedError: a text is missing, or no document is named.
        """
        asked = read_texts(query, docno, self.label)
        row = {**asked.row, "qid": "explained"}
        question = self._queries(pd.DataFrame([row]))["explained"]
        post = document_post(of_document(row))
        answer = self._rows([self.model.texts.text(post)], "document")[0]
        readings = Reading(query_post(asked.query_row())), Reading(post)
        if not len(question.rows):
            return Explanation.of(asked.docno, [], *readings)
        return Explanation.of(asked.docno, self._parts(question, answer), *readings)

    def _parts(self, query: TextRows, document: TextRows) -> list[Part]:
        """Make a part of each token of the query and the one that it met."""
        similarities = query.rows.astype(np.float64) @ document.rows.astype(np.float64).T
        names = self.model.encoder.tokenizer.convert_ids_to_tokens
        asked, found = names(query.ids.tolist()), names(document.ids.tolist())
        met = similarities.argmax(axis=1).tolist()
        parts = []
        for row, (token, place) in enumerate(zip(asked, met, strict=True)):
            value = float(similarities[row, place])
            parts.append(Part(self.label, "word", token, "word", found[place], value, 1.0, value))
        return parts


def _scores(query: Embeddings, documents: list[Embeddings]) -> Any:
    """Score documents against a query: float64 ``[m]``."""
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return exact_maxsim(query, np.concatenate(documents), offsets)

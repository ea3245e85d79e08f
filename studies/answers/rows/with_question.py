"""Rows of systems that read an answer together with its question: what the question says counts for the answer."""

from __future__ import annotations

from pathlib import Path

import pyterrier as pt

from pyterrier_mathamr.experiments.artifacts.jobs import index_documents
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRIndex, index_documents
from pyterrier_mathamr.sparse import STRONG_TOKENS, BM25Index
from studies.answers.definition import AnswerRow
from studies.answers.parts import DEPTH, AnswerParts

from .common import text_model


def _words(parts: AnswerParts) -> pt.Transformer:
    """Rank by BM25 over the question's title and body and the answer."""

    def build(path: Path) -> None:
        indexer = BM25Index(path).indexer("overwrite", tokens=STRONG_TOKENS)
        (parts.threads.with_question() >> indexer).index(parts.shared.answer_documents())

    return BM25Index(parts.stage("threads-bm25", build, tokens=STRONG_TOKENS.to_dict())).retriever(DEPTH)


def _titles(parts: AnswerParts) -> pt.Transformer:
    """Rank by MaxSim over answers that begin with the title of their question."""
    shared, model = parts.shared, text_model(parts)

    def graphs(path: Path) -> None:
        builder = GraphBuilder(store=shared.formulas, verbose=shared.verbose)
        (parts.threads.with_question(body=False) >> builder >> GraphStore(path).indexer("overwrite")).index(
            shared.answer_documents()
        )

    def build(path: Path) -> None:
        store = GraphStore(parts.stage("answers-with-titles-graphs", graphs))
        docnos = [post.id for post in shared.collection.answers()]
        index_documents(docnos, store, model, MathAMRIndex(path), verbose=shared.verbose)

    def made() -> MathAMRIndex:
        return MathAMRIndex(parts.stage("answers-with-titles", build, model=model.identity))

    index = parts.once("answers with titles", made)
    encode = parts.topic_graphs() >> model.query_encoder(device=parts.device)
    return encode >> index.colbert(num_results=DEPTH)


def _similar_questions(parts: AnswerParts) -> pt.Transformer:
    """Rank answers by the cosine of their question and the topic."""
    shared, model = parts.shared, text_model(parts)

    def build(path: Path) -> None:
        docnos = [post.id for post in shared.collection.questions()]
        index_documents(docnos, shared.graphs, model, MathAMRIndex(path), verbose=shared.verbose)

    def made() -> MathAMRIndex:
        return MathAMRIndex(parts.stage("questions-of-text", build, model=model.identity))

    index = parts.once("questions of text", made)
    encode = parts.topic_graphs() >> model.query_encoder(device=parts.device)
    return encode >> index.colbert(num_results=DEPTH) >> parts.threads.answers() % DEPTH


WORDS_ROW = AnswerRow("BM25 with questions", _words, known=False)
TITLES_ROW = AnswerRow("mathamr-plus-text with titles", _titles, known=False)
SIMILAR_ROW = AnswerRow("Similar questions", _similar_questions, known=False)

QUESTION_ROWS = (WORDS_ROW, TITLES_ROW, SIMILAR_ROW)
"""None can search for known items: the text of a test question stands before its own answers."""

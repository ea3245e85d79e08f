"""The baselines of ARQMath: TF-IDF of words, the formula that Tangent finds, and both."""

from __future__ import annotations

from pathlib import Path

import pyterrier as pt

from pyterrier_mathamr.systems import PLAIN_TOKENS, BM25Index, ConvexFusion, TangentAnswers

from .definition import AnswerRow
from .parts import DEPTH, AnswerParts


def _tf_idf(parts: AnswerParts) -> pt.Transformer:
    """Rank by words alone, LaTeX commands among them, with the weights of Terrier's TF-IDF."""
    shared = parts.shared

    def build(path: Path) -> None:
        answers = ({"docno": post.id, "html": post.body} for post in shared.collection.answers())
        BM25Index(path).indexer("overwrite", tokens=PLAIN_TOKENS).index(answers)

    index = BM25Index(parts.stage("plain-words", build, tokens=PLAIN_TOKENS.to_dict()))
    return index.retriever(DEPTH, weighting="tf-idf")


def _tangent(parts: AnswerParts) -> pt.Transformer:
    """Rank by the formula of an answer that is most like the largest one of the topic's title, or else of its body."""
    shared = parts.shared
    store = shared.formulas if parts.known else shared.topic_formulas(parts.of)
    return TangentAnswers(shared.tangent, parts.threads, DEPTH, store=store)


def _both(parts: AnswerParts) -> pt.Transformer:
    """Average both, their scores brought to 0 … 1."""
    return ConvexFusion(parts.ranking(TF_IDF_ROW), parts.ranking(TANGENT_ROW), alpha=0.5, num_results=DEPTH)


TF_IDF_ROW = AnswerRow("TF-IDF", _tf_idf)
TANGENT_ROW = AnswerRow("Tangent answers", _tangent)
BOTH_ROW = AnswerRow("TF-IDF + Tangent answers", _both, against=(TF_IDF_ROW.name, TANGENT_ROW.name))

BASELINES = (TF_IDF_ROW, TANGENT_ROW, BOTH_ROW)
"""Those of the organisers; the third, linked posts, needs links of the topics, which no part of the release has."""

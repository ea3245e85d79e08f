"""The rows of the study: two-step searches, their fusions, and baselines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.fusion import ConvexFusion, ModifiedRRF
from pyterrier_mathamr.sparse import PLAIN_TOKENS, BM25Index
from pyterrier_mathamr.systems import MathSEScore, RankingSVM, TangentAnswers, TimesQQ, TwoStepFeatures
from pyterrier_mathamr.systems.two_step.texts import Form
from studies.answers.definition import AnswerRow
from studies.answers.parts import DEPTH, AnswerParts
from studies.answers.rows.common import BM25_ROW, SINGLE_ROW

from .material import answer_texts, linearised, topic_frame
from .models import answer_model, recipe
from .question_index import candidates, judged_candidates


def _qqsim(parts: AnswerParts) -> pt.Transformer:
    return candidates(parts)


def _math_se(parts: AnswerParts) -> pt.Transformer:
    return judged_candidates(parts) >> MathSEScore(parts.threads)


def _qasim(form: Form) -> Callable[[AnswerParts], pt.Transformer]:
    def make(parts: AnswerParts) -> pt.Transformer:
        return judged_candidates(parts, form) >> qasim_scorer(parts, form) >> TimesQQ()

    return make


def qasim_scorer(parts: AnswerParts, form: Form, model_of: AnswerParts | None = None) -> pt.Transformer:
    """Return the scorer by QASim, whose texts are read from the collection."""
    model = answer_model(model_of or parts, form)
    topics = topic_frame(parts, parts.of)
    if form == "mathamr":
        graphs = linearised(parts)
        questions = {qid: graphs[f"body {qid}"] for qid in topics["qid"]}
        texts = {docno: graphs[f"body {docno}"] for docno in answer_texts(parts)}
    else:
        questions, texts = dict(zip(topics["qid"], topics["query"], strict=True)), answer_texts(parts)

    def score(ranking: pd.DataFrame) -> pd.DataFrame:
        pairs = [(questions[qid], texts[docno]) for qid, docno in zip(ranking["qid"], ranking["docno"], strict=True)]
        return ranking.assign(score=model.scores(pairs))

    return pt.apply.generic(score)


def ranking_svm(parts: AnswerParts) -> RankingSVM:
    """Fit the ranking SVM on the judged candidates of the other years, by the QASim that was trained on them, too."""

    def fit() -> RankingSVM:
        rankings, qrels = [], []
        for year in parts.other_years:
            own = parts.at(of=year)
            topics = topic_frame(own, year).drop(columns="tags")
            rankings.append((judged_candidates(own) >> _features(own, parts))(topics))
            rows = [(row.query_id, row.doc_id, row.relevance) for row in parts.shared.collection.qrels(year)]
            qrels.append(pd.DataFrame(rows, columns=["qid", "docno", "label"]))
        svm = RankingSVM(C=recipe(parts).c, names=TwoStepFeatures.names)
        return svm.fit_ranking(pd.concat(rankings), pd.concat(qrels))

    return parts.once(("SVM-rank", parts.of, parts.seed), fit)


def _features(parts: AnswerParts, model_of: AnswerParts) -> TwoStepFeatures:
    return TwoStepFeatures(parts.threads, qasim_scorer(parts, "raw", model_of))


def _svm(parts: AnswerParts) -> pt.Transformer:
    learned = pt.ltr.apply_learned_model(ranking_svm(parts), form="ltr")
    return judged_candidates(parts) >> _features(parts, parts) >> learned


def _rrf(parts: AnswerParts) -> pt.Transformer:
    return ModifiedRRF([parts.ranking(MATH_SE), parts.ranking(QASIM)])


def _classic_rrf(parts: AnswerParts) -> pt.Transformer:
    return ModifiedRRF([parts.ranking(MATH_SE), parts.ranking(QASIM)], classic=True)


def _amr_svm(parts: AnswerParts) -> pt.Transformer:
    return ModifiedRRF([parts.ranking(SVM), parts.ranking(AMR)], normalise="min-max")


def _tf_idf(parts: AnswerParts) -> pt.Transformer:
    def build(path: Path) -> None:
        answers = parts.shared.answer_documents()
        BM25Index(path).indexer("overwrite", tokens=PLAIN_TOKENS).index(answers)

    return BM25Index(parts.stage("plain-tokens", build)).retriever(DEPTH, weighting="tf-idf")


def _tangent(parts: AnswerParts) -> pt.Transformer:
    return TangentAnswers(parts.shared.tangent, parts.threads, DEPTH, store=parts.topic_trees())


def _tf_idf_tangent(parts: AnswerParts) -> pt.Transformer:
    return ConvexFusion(parts.ranking(TF_IDF), parts.ranking(TANGENT), alpha=0.5, num_results=DEPTH)


QQSIM = AnswerRow("QQSim", _qqsim, (SINGLE_ROW.name,), trained=True, known=False)
_OF_JUDGED = partial(AnswerRow, trained=True, known=False, linked=False)
MATH_SE = _OF_JUDGED("MathSE", _math_se)
QASIM = _OF_JUDGED("QASim · QQSim", _qasim("raw"), ("MathSE", "QQSim"), fitted=True)
RRF = _OF_JUDGED("RRF of MathSE and QASim", _rrf, (MATH_SE.name, QASIM.name), fitted=True)
CLASSIC = _OF_JUDGED("the same, classic RRF", _classic_rrf, (RRF.name,), fitted=True)
SVM = _OF_JUDGED("SVM-rank", _svm, (QASIM.name,), fitted=True)
AMR = _OF_JUDGED("QASim · QQSim of MathAMR", _qasim("mathamr"), (QASIM.name,), fitted=True)
AMR_SVM = _OF_JUDGED("RRF of MathAMR and SVM-rank", _amr_svm, (SVM.name,), fitted=True)
TF_IDF = AnswerRow("TF-IDF", _tf_idf, (BM25_ROW.name,))
TANGENT = AnswerRow("Tangent", _tangent)
TF_IDF_TANGENT = AnswerRow("TF-IDF and Tangent", _tf_idf_tangent, (TF_IDF.name,))

ROWS = (TF_IDF, TANGENT, TF_IDF_TANGENT, QQSIM, MATH_SE, QASIM, RRF, CLASSIC, SVM, AMR, AMR_SVM)

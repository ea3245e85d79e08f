"""Searching for questions: single-vector indexes of the models, their fusion, and the answers of what they find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.systems.two_step import QQSim
from pyterrier_mathamr.systems.two_step.texts import Form, View
from studies.answers.parts import DEPTH, AnswerParts

from .material import linearised, question_texts, topic_frame
from .models import question_model

RAW: tuple[View, ...] = ("title", "head", "tail")


def candidates(parts: AnswerParts, form: Form = "raw") -> pt.Transformer:
    """Return the answers of similar questions, with ``qq_score``; topics get their tags."""
    views: tuple[View, ...] = RAW if form == "raw" else ("title",)
    systems = [question_search(parts, question_model(parts, view, form)) for view in views]
    questions = ModifiedRRF(systems, num_results=DEPTH) if len(systems) > 1 else systems[0]
    return _with_tags(parts) >> questions >> parts.threads.answers()


def judged_candidates(parts: AnswerParts, form: Form = "raw") -> pt.Transformer:
    """Return the candidates that are judged for their topic."""
    year = parts.of
    judged = {(row.query_id, row.doc_id) for row in parts.shared.collection.qrels(year)}

    def keep(ranking: pd.DataFrame) -> pd.DataFrame:
        kept = [pair in judged for pair in zip(ranking["qid"], ranking["docno"], strict=True)]
        rows: pd.DataFrame = ranking[kept].reset_index(drop=True)
        return rows.assign(rank=rows.groupby("qid").cumcount())

    return candidates(parts, form) >> pt.apply.generic(keep)


def question_search(parts: AnswerParts, model: QQSim) -> pt.Transformer:
    """Return a search for questions by one vector each."""
    graphs = linearised(parts) if model.form == "mathamr" else {}

    def add(topics: pd.DataFrame) -> pd.DataFrame:
        texts = [
            graphs.get(f"title {row['qid']}", "") if graphs else model.text(row) for row in topics.to_dict("records")
        ]
        rows = model.encode(texts)
        return with_objects(topics, query_embs=[row[None][: int(np.any(row))] for row in rows])

    return pt.apply.generic(add) >> question_index(parts, model, graphs).single_vector(num_results=DEPTH)


def question_index(parts: AnswerParts, model: QQSim, graphs: Mapping[str, str]) -> MathAMRIndex:
    """Index the questions of the collection by the vector of a model."""

    def build(path: Path) -> None:
        questions = question_texts(parts)
        names = list(questions)
        rows = model.encode(
            [graphs.get(f"title {name}", "") if graphs else questions[name].part(model.view) for name in names]
        )
        documents = ({"docno": name, "doc_embs": row[None]} for name, row in zip(names, rows, strict=True))
        MathAMRIndex(path).indexer("overwrite").index(documents)

    return MathAMRIndex(parts.stage("qqsim-index", build, model=model.identity()))


def _with_tags(parts: AnswerParts) -> pt.Transformer:
    """Add the tags of topics."""
    tags: dict[str, str]
    if parts.known:
        tags = {post.id: " ".join(post.tags) for post in parts.shared.collection.questions()}
    else:
        topics = topic_frame(parts, parts.of)
        tags = dict(zip(topics["qid"], topics["tags"], strict=True))
    return pt.apply.tags(lambda row: tags.get(row["qid"], ""))

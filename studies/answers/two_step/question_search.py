"""How well questions are found, by links: a test question looks for the questions that it is linked with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import known_item_split
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.systems.two_step import QQSim
from pyterrier_mathamr.systems.two_step.texts import Form, View
from studies.answers.parts import AnswerParts

from .material import question_texts
from .models import question_model, recipe
from .question_index import RAW, question_search

if TYPE_CHECKING:
    from studies.answers.definition import Outcome

_CUT = 10


def question_table(outcome: Outcome) -> pd.DataFrame:
    """Measure the searches for questions by MRR@10 of linked questions, the test question itself left out."""
    parts = outcome.parts
    wanted = {kind: linked_questions(parts, kind) for kind in ("duplicate", "all")}
    asked = sorted(set().union(*wanted.values()))
    topics = _topics(parts, asked)
    lines = []
    for name, made in _systems(parts, outcome.seeds):
        values: dict[str, list[float]] = {kind: [] for kind in wanted}
        for make in made:
            found = _ranking(make(), topics)
            for kind, right in wanted.items():
                values[kind].append(mean_reciprocal_rank(found, right))
        line: dict[str, object] = {"system": name, "seeds": str(len(made)) if len(made) > 1 else ""}
        for kind, own in values.items():
            column = f"MRR@{_CUT} of {'duplicates' if kind == 'duplicate' else 'all links'} ({len(wanted[kind])})"
            line[column] = float(np.mean(own))
            line[f"{column} std"] = float(np.std(own, ddof=1)) if len(own) > 1 else None
        lines.append(line)
    return pd.DataFrame(lines)


def linked_questions(parts: AnswerParts, kind: str) -> dict[str, set[str]]:
    """Read what test questions are linked with, in either direction: their ids, to those of the collection."""
    known, found = question_texts(parts), defaultdict[str, set[str]](set)
    for link in parts.shared.collection.links():
        ends = (link.question_id, link.related_id)
        if known.keys() >= set(ends) and ends[0] != ends[1] and kind in ("all", link.kind):
            for asked, other in (ends, ends[::-1]):
                if known_item_split(asked) == "test":
                    found[asked].add(other)
    return dict(found)


def mean_reciprocal_rank(ranking: dict[str, list[str]], right: dict[str, set[str]]) -> float:
    """Compute the mean over questions of 1 / rank of the first right one among ten, 0 where there is none."""
    values = [
        next((1 / rank for rank, docno in enumerate(ranking.get(qid, [])[:_CUT], 1) if docno in docnos), 0.0)
        for qid, docnos in right.items()
    ]
    return float(np.mean(values)) if values else 0.0


def _systems(parts: AnswerParts, seeds: Sequence[int]) -> Iterator[tuple[str, list[Callable[[], pt.Transformer]]]]:
    """Name the searches, and say how each is made for each seed."""
    yield "BM25 of questions", [partial(_bm25, parts)]
    untrained = recipe(parts).questions
    yield "titles, untrained", [lambda: question_search(parts, QQSim.new(untrained, device=parts.device))]
    by_seed = [parts.at(seed=seed) for seed in seeds]
    for view in RAW:
        yield f"QQSim, {view}", [partial(_search, own, (view,)) for own in by_seed]
    yield "QQSim", [partial(_search, own, RAW) for own in by_seed]
    yield "QQSim of MathAMR, title", [partial(_search, own, ("title",), "mathamr") for own in by_seed]


def _search(parts: AnswerParts, views: Sequence[View], form: Form = "raw") -> pt.Transformer:
    systems = [question_search(parts, question_model(parts, view, form)) for view in views]
    return ModifiedRRF(systems) if len(systems) > 1 else systems[0]


def _bm25(parts: AnswerParts) -> pt.Transformer:
    def build(path: Path) -> None:
        questions = parts.shared.collection.questions()
        documents = ({"docno": post.id, "title": post.title, "html": post.body} for post in questions)
        BM25Index(path).indexer("overwrite").index(documents)

    return BM25Index(parts.stage("questions-bm25", build)).retriever(_CUT + 1)


def _topics(parts: AnswerParts, asked: Sequence[str]) -> pd.DataFrame:
    posts = {post.id: post for post in parts.shared.collection.questions() if post.id in set(asked)}
    columns = {
        "qid": list(asked),
        "title": [posts[name].title for name in asked],
        "body": [posts[name].body for name in asked],
    }
    return pd.DataFrame(columns)


def _ranking(system: pt.Transformer, topics: pd.DataFrame) -> dict[str, list[str]]:
    """Search, and leave each question itself out."""
    found = system(topics)
    found = found[found["qid"] != found["docno"]].sort_values(["qid", "rank"])
    return {str(qid): rows["docno"].tolist() for qid, rows in found.groupby("qid")}

"""Further tables of the two-step study: how well questions are found, by links, and whether QASim learns as meant.

A test question looks for the questions that it is linked with. Of QASim, the same with permuted judgments must learn
nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems.experiments.systems import AnswerParts
from mathamr_systems.two_step import QQSim
from mathamr_systems.two_step.similarity import Example, Excerpt, TextForm, split_folds
from pyterrier_mathamr.arqmath import known_item_split
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.sparse import BM25Index
from studies.answers.two_step import (
    RAW,
    ROWS,
    answer_model_path,
    judged_examples,
    question_model,
    question_search,
    question_texts,
    recipe,
)
from studies.study import Outcome, Study

_CUT = 10


def question_table(outcome: Outcome) -> pd.DataFrame:
    """Measure the searches for questions by MRR@10 of linked questions, the test question itself left out."""
    parts = outcome.parts
    wanted = {kind: linked_questions(parts, kind) for kind in ("duplicate", "all")}
    asked = sorted(set().union(*wanted.values()))
    topics = _topics(parts, asked)
    lines = []
    for name, made in _systems(parts, outcome.setting.seeds):
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
    """Read the links of test questions, in either direction: their ids, to ids of the collection."""
    known, found = question_texts(parts), defaultdict[str, set[str]](set)
    for link in parts.shared.collection.links():
        ends = (link.question_id, link.related_id)
        if known.keys() >= set(ends) and ends[0] != ends[1] and kind in ("all", link.kind):
            for asked, other in (ends, ends[::-1]):
                if known_item_split(asked) == "test":
                    found[asked].add(other)
    return dict(found)


def mean_reciprocal_rank(ranking: dict[str, list[str]], right: dict[str, set[str]]) -> float:
    """Compute the mean over questions of 1 / rank of the first right one among ten, 0 if there is none."""
    values = [
        next((1 / rank for rank, docno in enumerate(ranking.get(qid, [])[:_CUT], 1) if docno in docnos), 0.0)
        for qid, docnos in right.items()
    ]
    return float(np.mean(values)) if values else 0.0


def _systems(parts: AnswerParts, seeds: Sequence[int]) -> Iterator[tuple[str, list[Callable[[], pt.Transformer]]]]:
    """Name the searches, with a function that makes each for each seed."""
    yield "tuned BM25 of questions", [partial(_bm25, parts)]
    untrained = recipe(parts).questions
    yield "titles, untrained", [lambda: question_search(parts, QQSim.new(untrained, device=parts.device))]
    by_seed = [parts.at(seed=seed) for seed in seeds]
    for view in RAW:
        yield f"QQSim, {view}", [partial(_search, own, (view,)) for own in by_seed]
    yield "QQSim", [partial(_search, own, RAW) for own in by_seed]
    yield "QQSim of MathAMR, title", [partial(_search, own, ("title",), "mathamr") for own in by_seed]


def _search(parts: AnswerParts, views: Sequence[Excerpt], form: TextForm = "raw") -> pt.Transformer:
    systems = [question_search(parts, question_model(parts, view, form)) for view in views]
    return ModifiedRRF(systems) if len(systems) > 1 else systems[0]


def _bm25(parts: AnswerParts) -> pt.Transformer:
    def build(path: Path) -> None:
        questions = parts.shared.collection.questions()
        documents = ({"docno": post.id, "title": post.title, "html": post.body} for post in questions)
        BM25Index(path, preset="math").indexer("overwrite").index(documents)

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


def sanity_table(outcome: Outcome) -> pd.DataFrame:
    """Compare the least loss on the held-out fold of models that were trained on judgments and on permuted ones."""
    lines = []
    for year in outcome.setting.years:
        of_seeds = [outcome.parts.at(of=year, seed=seed) for seed in outcome.setting.seeds]
        lines.append(
            {
                "trained on": " and ".join(of_seeds[0].other_years),
                "held-out loss, chance": chance(of_seeds[0]),
                "held-out loss": float(np.mean([_least(parts) for parts in of_seeds])),
                "held-out loss, permuted": _least(of_seeds[0], permuted=True),
            }
        )
    return pd.DataFrame(lines)


def chance(parts: AnswerParts) -> float:
    """Compute the cross-entropy of the held-out fold for the mean target of the others."""
    examples = [Example(*example) for example in judged_examples(parts)]
    training, held_out = split_folds(examples, 10)
    mean = float(np.clip(np.mean([example.target for example in training]), 1e-6, 1 - 1e-6))
    targets = np.array([example.target for example in held_out])
    return float(-(targets * np.log(mean) + (1 - targets) * np.log(1 - mean)).mean())


def _least(parts: AnswerParts, *, permuted: bool = False) -> float:
    history = json.loads((answer_model_path(parts, permuted=permuted) / "history.json").read_text())
    return float(min(epoch["validation"] for epoch in history))


QUESTIONS, SANITY = "Questions by links", "Sanity of QASim"


def _more(outcome: Outcome) -> dict[str, pd.DataFrame]:
    return {QUESTIONS: question_table(outcome), SANITY: sanity_table(outcome)}


STUDY = Study(
    "answers/two-step",
    "Questions first, then their answers",
    "answers",
    systems=ROWS,
    published=(("mansouri", ("5.2", "5.3", "5.5", "5.6")),),
    more=_more,
    about={
        QUESTIONS: "Test questions look for the questions that they are linked with, among all others.",
        SANITY: "Cross-entropy on the fold of the judgments that is held out.",
    },
    notes=(
        "QASim and the ranking SVM are trained on one year and rank for the other, both ways. The SVM is fitted on the "
        "topics that its QASim was trained on, as published.",
        "Rows with QASim or MathSE rank only the judged candidates of a topic: measures remove the others first, and "
        "QASim would read some hundred thousand of them. In their fusions, ranks are among judged candidates.",
        "No question of the test part is in any pair that QQSim or QASim was trained on.",
        "Without votes in the collection MathSE is QQSim; without comments and accepted answers these features are 0.",
        "Linked posts cannot be measured: there are no links of topics.",
    ),
)

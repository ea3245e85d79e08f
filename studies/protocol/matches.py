"""How often the engine finds something where it should, and nothing where it should not.

An engine of an ARQMath folder gets questions with known answers, and questions that it has no answer to. For each
share of unrelated posts that a good match must beat (``engine.ranking.GOOD`` is .9), two shares of questions are
counted: with a good match, and with a right post among the good matches.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mathamr_systems.experiments.report import Report
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.engine import EngineSnapshot, SearchEngine
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_html

LEVELS = (0.8, 0.85, 0.9, 0.95, 0.99)
FOUND, RIGHT = "Questions that find a good match", "Questions with a right post among them"
COUNT = 150
"""Questions of each kind that are drawn."""
_WORD = re.compile(r"[A-Za-z]{4,}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class AskedQuestion(NamedTuple):
    """A question of one kind, and the posts that answer it."""

    kind: str
    text: str
    right: frozenset[str] = frozenset()


def run_matches(
    engine: str | Path,
    folder: str | Path,
    workdir: str | Path,
    *,
    foreign: Sequence[str | Path] = (),
    years: Sequence[str] = ("2020", "2022"),
    verbose: bool = True,
) -> Report:
    """Ask an engine questions with and without an answer in it, and count the good matches at each level.

    Args:
        engine: a search engine of the posts of the folder.
        folder: an ARQMath folder.
        workdir: where tables and ``report.md`` are kept.
        foreign: files of questions on other subjects, one a line.
        years: years of topics; only topics with a relevant answer in the folder are used.
        verbose: show progress.
    """
    at, chooser = SearchEngine(engine).snapshot(), random.Random(0)
    questions = [*_answered(at, ARQMathCollection(folder), years, chooser), *_unanswerable(foreign, chooser)]
    rows = [
        (one.kind, *_matches(at, one))
        for one in progress(questions, "asking", "questions", verbose=verbose, total=len(questions))
    ]
    asked = pd.DataFrame(rows, columns=["questions", "best", "right"])
    unrelated = at.record.unrelated
    notes = [
        f"Scores of unrelated {kind} at each of engine.ranking.LEVELS: {', '.join(f'{score:.2f}' for score in scores)}."
        for kind, scores in (("sentences", unrelated.sentences), ("formulas", unrelated.formulas))
    ]
    return Report(
        title="Good matches",
        settings={"engine": Path(engine).name, "model": at.options.model, "posts": len(at), "years": list(years)},
        stages=[],
        tables={FOUND: _shares(asked, "best"), RIGHT: _shares(asked.dropna(subset="right"), "right")},
        about={FOUND: "By the share of unrelated posts that a good match must beat; the engine asks for .9."},
        notes=notes,
        values={"by-question": asked},
    ).write(Path(workdir))


def _answered(
    at: EngineSnapshot, collection: ARQMathCollection, years: Sequence[str], chooser: random.Random
) -> Iterator[AskedQuestion]:
    """Ask topics, titles of questions, sentences, formulas and pairs of words of posts, each with its right posts."""
    for year in years:
        relevant: dict[str, set[str]] = {}
        for judged in collection.qrels(year):
            if judged.relevance >= 2 and judged.doc_id in at:
                relevant.setdefault(judged.query_id, set()).add(judged.doc_id)
        for topic in collection.topics(year):
            if right := frozenset(relevant.get(topic.id, ())):
                yield AskedQuestion("titles of topics", _text(topic.title), right)
                yield AskedQuestion("topics", f"{_text(topic.title)}\n{_text(topic.body)}", right)
    answers: dict[str, set[str]] = {}
    for pair in collection.pairs():
        answers.setdefault(pair.question_id, set()).add(pair.answer_id)
    titles = {post.docno: _text(post.title) for post in at.indexes.posts if post.title}
    for docno in _some(sorted(set(titles) & set(answers)), chooser):
        yield AskedQuestion("titles of posts, for answers", titles[docno], frozenset(answers[docno]))
    for docno in _some(sorted(titles), chooser):
        words = _WORD.findall(re.sub(r"\$[^$]*\$", " ", titles[docno]))
        if len(words) > 2:
            yield AskedQuestion("two words of a title", " ".join(chooser.sample(words, 2)), frozenset([docno]))
    for docno in _some(sorted(at.docnos()), chooser):
        post = at.post(docno)
        if long := [sentence for sentence in post.sentences if len(sentence.split()) > 5]:
            text = plain_text(MathPost(chooser.choice(long), post.formulas))
            yield AskedQuestion("sentences of posts", text, frozenset([docno]))
        if large := [formula.latex for formula in post.formulas if len(formula.latex) > 8]:
            yield AskedQuestion("formulas of posts", f"${chooser.choice(large)}$", frozenset([docno]))


def _unanswerable(foreign: Sequence[str | Path], chooser: random.Random) -> Iterator[AskedQuestion]:
    """Send queries that no post answers: questions on other subjects, and random letters."""
    for file in map(Path, foreign):
        for line in filter(str.strip, file.read_text("utf-8").splitlines()):
            yield AskedQuestion(file.stem, line)
    yield AskedQuestion("random letters", "zzz qqq")
    for _ in range(COUNT):
        words = ("".join(chooser.choices(_LETTERS, k=chooser.randint(3, 8))) for _ in range(chooser.randint(1, 8)))
        yield AskedQuestion("random letters", " ".join(words))


def _text(html: str) -> str:
    return plain_text(post_from_html(html))


def _some(docnos: list[str], chooser: random.Random) -> list[str]:
    return chooser.sample(docnos, min(COUNT, len(docnos)))


def _matches(at: EngineSnapshot, asked: AskedQuestion) -> tuple[float, float]:
    """Return the match of the best post, and of the best right one, NaN where no post is right."""
    question, retriever = at.question(asked.text), at.blend()
    best = at.found(question, 1).matches.max(initial=0.0)
    scores = retriever.score(question, retriever.documents(sorted(asked.right)))
    return float(best), float(at.matches(question, scores).max()) if len(scores) else np.nan


def _shares(asked: pd.DataFrame, column: str) -> pd.DataFrame:
    """Count the questions of each kind whose match reaches each level."""
    rows = [
        (kind, len(of), *(float((of[column] >= level).mean()) for level in LEVELS))
        for kind, of in asked.groupby("questions", sort=False)
    ]
    return pd.DataFrame(rows, columns=["questions", "number", *(f"{level:g}" for level in LEVELS)])

"""Known-item search: the query is a question, and its own answers are relevant.

The split depends on the question's id only. So it is the same on every machine and for every part of the collection,
and no question of validation or test is used for training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import pandas as pd

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.posts import plain_text, post_from_html

from .files.pairs import Pair
from .files.posts import Post

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
_SPLIT = one_of(*SPLITS)


def known_item_split(question_id: DocNo) -> Split:
    """Return the part of a question, by its post id: a tenth each for validation and test, the rest for training."""
    part = int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 10
    return "validation" if part == 0 else "test" if part == 1 else "train"


def split_pairs(pairs: Iterable[Pair], split: Split) -> list[Pair]:
    """Return the pairs whose question belongs to one part.

    Raises:
        ConfigError: there is no such part.
    """
    _SPLIT.check("split", split)
    return [pair for pair in pairs if known_item_split(pair.question_id) == split]


def known_item_qrels(pairs: Iterable[Pair], split: Split = "test") -> pd.DataFrame:
    """Return the judgments of the questions of one part: grade 1 for each of their own answers.

    Args:
        pairs: pairs of question and answer, such as ``ARQMathCollection.pairs()``.
        split: the part.

    Returns:
        Columns ``qid`` (the question's post id), ``docno`` (the answer's) and ``label`` (int, 1), in the order of the
        pairs.

    Raises:
        ConfigError: there is no such part.
    """
    rows = [(pair.question_id, pair.answer_id) for pair in split_pairs(pairs, split)]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "docno"], dtype=str).assign(label=1)
    return frame


def known_item_topics(questions: Iterable[Post], split: Split = "test") -> pd.DataFrame:
    """Return the questions of one part as topics.

    Args:
        questions: the questions, such as ``ARQMathCollection.questions()``.
        split: the part.

    Returns:
        Columns ``qid`` (the question's post id), ``query`` (title and body as plain text, formulas as ``$latex$``),
        ``title`` and ``body`` (HTML with the formula ids), in the order of the questions.

    Raises:
        ConfigError: there is no such part.
    """
    _SPLIT.check("split", split)
    rows = [
        (post.id, plain_text(post_from_html(post.body, post.title)), post.title, post.body)
        for post in questions
        if known_item_split(post.id) == split
    ]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "query", "title", "body"], dtype=str)
    return frame

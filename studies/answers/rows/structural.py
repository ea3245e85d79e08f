"""The row of structural search: words by BM25+, and the formulas of a question by Approach Zero."""

from __future__ import annotations

from pathlib import Path

import pyterrier as pt

from pyterrier_mathamr.sparse import BM25Index, TokenOptions
from pyterrier_mathamr.systems import StructuralSearch
from studies.answers.definition import AnswerRow
from studies.answers.parts import DEPTH, AnswerParts

STRUCTURAL = "Structural search"
WORDS = TokenOptions(stem="porter", bigrams=False, formulas=False)
"""Words alone with Porter's stemmer, as in the runs ``a0porter``; formulas are those of Approach Zero."""


def _structural(parts: AnswerParts) -> pt.Transformer:
    """Rank answers with their question's text in front, by all words and formulas of the topic."""
    shared = parts.shared

    def build(path: Path) -> None:
        answers = shared.answer_documents()
        indexer = BM25Index(path).indexer("overwrite", tokens=WORDS)
        (parts.threads.with_question() >> indexer).index(answers)

    def questions() -> dict[str, str]:
        return {post.id: post.parent_id for post in shared.collection.answers()}

    return StructuralSearch(
        shared.approach0,
        BM25Index(parts.stage("threads-words", build, tokens=WORDS.to_dict())),
        DEPTH,
        questions=parts.once("question of an answer", questions),
        store=parts.topic_trees(),
    )


STRUCTURAL_ROW = AnswerRow(STRUCTURAL, _structural, known=False, settings={"tokens": WORDS.to_dict()})
"""Not a common row: the formulas of all posts are indexed first. Without known items, since their text is in front of
their own answers."""

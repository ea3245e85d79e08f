"""Rows of frames as the texts that a language model reads: formulas as math tokens where its vocabulary has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyterrier_mathamr.posts import MathPost, document_post, plain_text, query_post
from pyterrier_mathamr.systems.math_tokens import math_tokens, post_text
from pyterrier_mathamr.systems.math_vocabulary import MathVocabulary

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PostTexts:
    """Writes posts as a model reads them.

    Attributes:
        math: with math tokens; else formulas are LaTeX between dollars.
        case: math tokens keep their capitals.
    """

    math: bool
    case: bool

    def text(self, post: MathPost) -> str:
        """Write a post."""
        return post_text(post, self.tokens) if self.math else plain_text(post)

    def tokens(self, latex: str) -> list[str]:
        """Write a formula as math tokens."""
        return math_tokens(latex, case=self.case)

    def document(self, row: Row) -> str:
        """Write a document: its title and the first of ``html``, ``body``, ``text`` and ``markdown``."""
        return self.text(document_post(row))

    def query(self, row: Row) -> str:
        """Write a query: ``title`` and ``body``, else ``query``; empty where it is blank."""
        return self.text(query_post(row)).strip()

    def vocabulary(self, posts: Sequence[MathPost], min_count: int) -> MathVocabulary:
        """Learn the math tokens of posts."""
        return MathVocabulary.learn(posts, min_count, self.tokens)

r"""What is wrong with people's posts, told once: gathered over a build, which ends in one warning.

::

    with told_once():                                       the outermost one warns
        tell("b", "the $ is never closed", "$y broken")     anywhere below, also in a part of the build

    PostWarning: 3 problems in 2 posts: 'b': the $ is never closed, in “$y broken”; 'c': …
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from pyterrier_mathamr._common.errors import MathAMRWarning

_SHOWN = 5
_EXCERPT = 60


class Problem(NamedTuple):
    """Something wrong with a post.

    Attributes:
        post: its docno, or the qid of a query.
        what: what is wrong.
        where: the part of the text.
    """

    post: str
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.post!r}: {self.what}, in “{self.where}”"


class PostWarning(MathAMRWarning):
    """Some posts have faults; they were read as far as possible."""

    def __init__(self, problems: tuple[Problem, ...], count: int, posts: int) -> None:
        super().__init__(problems, count, posts)
        self.problems, self.count, self.posts = problems, count, posts

    def __str__(self) -> str:
        shown = "; ".join(map(str, self.problems)) + ("; …" if self.count > len(self.problems) else "")
        return f"{_number(self.count, 'problem')} in {_number(self.posts, 'post')}: {shown}"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


_OPEN: ContextVar[dict[Problem, None] | None] = ContextVar("problems of posts", default=None)


@contextmanager
def told_once() -> Iterator[None]:
    """Gather what is told within, each problem once, and warn of it at the end, also where an error ends it."""
    if _OPEN.get() is not None:
        yield
        return
    found: dict[Problem, None] = {}
    token = _OPEN.set(found)
    try:
        yield
    finally:
        _OPEN.reset(token)
        _warn(found)


@contextmanager
def gathered() -> Iterator[dict[Problem, None]]:
    """Gather what is told within, without a warning."""
    found: dict[Problem, None] = {}
    token = _OPEN.set(found)
    try:
        yield found
    finally:
        _OPEN.reset(token)


class Overheard(NamedTuple):
    """What a worker process warned of, for the process that asked it: texts with their categories, and problems."""

    warnings: list[tuple[str, type[Warning]]]
    problems: dict[Problem, None]

    def repeat(self) -> None:
        """Warn and tell of it here."""
        for text, category in self.warnings:
            warnings.warn(text, category, stacklevel=3)
        for problem in self.problems:
            tell(*problem)


@contextmanager
def overheard() -> Iterator[Overheard]:
    """Keep what is warned of and told within, in place of warning; complete when the block has ended."""
    with warnings.catch_warnings(record=True) as caught, gathered() as problems:
        warnings.simplefilter("always")
        heard = Overheard([], problems)
        yield heard
    heard.warnings.extend((str(warning.message), warning.category) for warning in caught)


def tell(post: str, what: str, where: str) -> None:
    """Tell of a problem of a post; without a :func:`told_once` around it nothing happens."""
    found = _OPEN.get()
    if found is not None:
        found[Problem(post, what, where[:_EXCERPT])] = None


def _warn(found: dict[Problem, None]) -> None:
    if found:
        first = tuple(found)[:_SHOWN]
        posts = len({problem.post for problem in found})
        warnings.warn(PostWarning(first, len(found), posts), stacklevel=4)

r"""The arguments of LaTeX commands, with or without braces: ``\frac12`` has the two of ``\frac{1}{2}``."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyterrier_mathamr.sparse.bm25.lexer import NUMBER

OPEN, CLOSE = "{", "}"
"""Tokens of the two ends of an argument."""

_ONE = r"""
    ^ _ \sqrt \pmod \mathbb \mathbf \mathcal \mathfrak \mathscr \mathsf \mathit \mathtt \boldsymbol \bm \bar \hat \tilde
    \vec \dot \ddot \acute \grave \breve \check \widehat \widetilde \overline \underline \overbrace \underbrace
    \overrightarrow \overleftarrow \boxed \substack \xrightarrow \xleftarrow
    """
_TWO = r"\frac \binom \overset \underset \stackrel"
_ARGUMENTS = dict.fromkeys(_ONE.split(), 1) | dict.fromkeys(_TWO.split(), 2)
_WITH_OPTION = frozenset({r"\sqrt", r"\xrightarrow", r"\xleftarrow"})
_AFTER_DIGIT = re.compile(rf"{NUMBER.pattern}|\.")


@dataclass(slots=True)
class _Level:
    """A part of a formula that is being read.

    Attributes:
        kind: ``argument`` in braces, ``bare`` without them, ``group`` in braces that bound no argument, ``option``.
        missing: how many arguments the last command in it still takes.
    """

    kind: str
    missing: int = 0


def with_arguments(tokens: Sequence[str]) -> list[str]:
    r"""Write braces around each argument and around nothing else."""
    return list(_walk(deque(tokens)))


def _walk(rest: deque[str]) -> Iterator[str]:
    levels = [_Level("formula")]
    before = ""
    while rest:
        token = rest.popleft()
        if token == CLOSE:
            yield from _close_brace(levels)
        elif token == "[" and before in _WITH_OPTION and levels[-1].missing:
            levels.append(_Level("option"))
            yield token
        elif token == "]" and levels[-1].kind == "option":
            levels.pop()
            yield token
        elif token == OPEN:
            argument = levels[-1].missing > 0
            levels[-1].missing -= argument
            levels.append(_Level("argument" if argument else "group"))
            if argument:
                yield OPEN
        else:
            yield from _symbol(token, levels, rest)
        before = token
    for level in reversed(levels):
        if level.kind in ("argument", "bare"):
            yield CLOSE


def _symbol(token: str, levels: list[_Level], rest: deque[str]) -> Iterator[str]:
    """Write a token that is no brace, as an argument if the last command lacks one."""
    if levels[-1].missing:
        levels[-1].missing -= 1
        levels.append(_Level("bare"))
        yield OPEN
        if token[0].isdigit() and len(token) > 1:
            rest.extendleft(reversed(_AFTER_DIGIT.findall(token[1:])))
            token = token[0]
    yield token
    levels[-1].missing = _ARGUMENTS.get(token, 0)
    yield from _end_bare(levels)


def _close_brace(levels: list[_Level]) -> Iterator[str]:
    """End a group or argument, and before it all that its last commands lack; a brace too many is dropped."""
    if all(level.kind not in ("argument", "group") for level in levels):
        return
    while (level := levels.pop()).kind in ("bare", "option"):
        if level.kind == "bare":
            yield CLOSE
    if level.kind == "argument":
        yield CLOSE
    yield from _end_bare(levels)


def _end_bare(levels: list[_Level]) -> Iterator[str]:
    """End arguments without braces whose commands have all of theirs."""
    while levels[-1].kind == "bare" and not levels[-1].missing:
        levels.pop()
        yield CLOSE

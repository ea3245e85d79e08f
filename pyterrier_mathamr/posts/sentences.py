"""Sentences of a post: a few rules over its blocks, in which formulas are single words.

A sentence ends at ``. ? !`` before white space, but not after an abbreviation, a list number or a single capital, nor
before a lower-case letter. A block of formulas only, or one that begins in lower case, continues an open sentence of
the block before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_TOKENS = 120

PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9_])FORMULA_([0-9]{1,9})(?![A-Za-z0-9_])")
"""Matches one placeholder as a whole word; group 1 is the formula's number."""

TOKEN = re.compile(r"FORMULA_\d+|[^\W_]+(?:['’][^\W_]+)*|\S")
"""Matches one token, in which the lengths of sentences and chunks are limited."""

_END = re.compile(r"(?<![.?!…])[.?!…]+[\"'”’»)\]]*(?=\s|$)|(?<=[a-z][a-z])[.?!](?=[A-Z][a-z])")
_WORD_BEFORE = re.compile(r"\S{1,20}$")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[ivxIVX]{1,4}|[a-zA-Z])")
_ONLY_FORMULAS = re.compile(r"(?:FORMULA_\d+|[\W_])+")
_STOPS = frozenset(".?!…")
_ABBREVIATION_LIST = (
    "a.e a.s approx al ca cf ch chap const cor corr def dr e.g eg eq eqn eqs esp et ex exer fig figs i.e i.i.d ie incl "
    "lem lhs mr mrs ms no nos p pg pp prof prop props ref refs rem resp rhs s.t sec sect st thm thms viz vol vs "
    "w.l.o.g w.r.t wlog wrt"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_OPEN_WORDS = frozenset({"and", "get", "gives", "hence", "is", "or", "so", "that", "then", "thus", "where", "with"})


def split_sentences(text: str) -> tuple[str, ...]:
    """Split text into sentences of at most 120 tokens.

    Args:
        text: blocks separated by line ends, formulas as placeholders, which are never split.

    Returns:
        The sentences in order, without white space around them.
    """
    return tuple(
        piece for block in _joined(text) for sentence in _sentences_of(block) for piece in _limited(sentence) if piece
    )


def _joined(text: str) -> Iterator[str]:
    """Join each block with those that continue its last sentence."""
    parts: list[str] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if parts:
            last = parts[-1].rstrip("\"'”’»)]")[-1:]
            formulas = _ONLY_FORMULAS.fullmatch(line) is not None and "FORMULA_" in line
            expects = last == "," or parts[-1].rpartition(" ")[2] in _OPEN_WORDS
            goes_on = last not in _STOPS and (
                formulas or (line[0].islower() and last not in ":;") or (expects and line.startswith("FORMULA_"))
            )
            if not goes_on:
                yield " ".join(parts)
                parts = []
        parts.append(line)
    if parts:
        yield " ".join(parts)


def _sentences_of(block: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(block):
        if _ends_sentence(block, start, end):
            yield block[start : end.end()].strip()
            start = end.end()
    yield block[start:].strip()


def _ends_sentence(block: str, start: int, end: re.Match[str]) -> bool:
    following = block[end.end() : end.end() + 3].lstrip()[:1]
    if following.islower():
        return False
    if not end[0].startswith(".") or end[0].startswith(".."):
        return True
    found = _WORD_BEFORE.search(block, max(start, end.start() - 20), end.start())
    if not found:
        return False
    word = found[0].lstrip("([\"'“‘")
    if word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper()):
        return False
    return not (found.start() == start + (block[start : start + 1] == " ") and _LIST_NUMBER.fullmatch(word))


def _limited(sentence: str) -> Iterator[str]:
    """Split a sentence of more than 120 tokens, if possible at a comma or semicolon of its second half."""
    if len(sentence) <= MAX_TOKENS:  # characters, of which a token has at least one
        yield sentence.strip()
        return
    start = cut = count = 0
    for token in TOKEN.finditer(sentence):
        if count == MAX_TOKENS:
            cut = cut if cut > start else token.start()
            yield sentence[start:cut].strip()
            count = len(TOKEN.findall(sentence, cut, token.start()))
            start = cut
        count += 1
        if count > MAX_TOKENS // 2 and token[0] in (",", ";"):
            cut = token.end()
    yield sentence[start:].strip()

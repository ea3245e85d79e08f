"""Correct frequent errors in the dependency tree of a mathematical sentence, before it is converted.

let X be Y          Y is the complement, "be" its copula   such that          one conjunction
does X converge     "converge" is the head of "does"       Henri Poincaré     adjacent names are one name
List all X          a first word that commands is a verb   at least two       at-least modifies the number
"""

from __future__ import annotations

from .conversion import Conversion
from .lexicon import COMMANDS, CONCLUSIONS

_DO = frozenset({"do", "does", "did"})
_BOUNDS = {
    ("at", "least"): "at-least",
    ("at", "most"): "at-most",
    ("more", "than"): "more-than",
    ("less", "than"): "less-than",
    ("fewer", "than"): "less-than",
}
_REPAIRED = frozenset({"such", "let", *_DO, *CONCLUSIONS, *(first for first, _ in _BOUNDS)})


def repair(c: Conversion) -> None:
    """Correct the tree of a sentence in place."""
    for token, word in enumerate(c.lower[:-1]):
        if word not in _REPAIRED:
            continue
        if word == "such" and c.lower[token + 1] == "that":
            c.relations[token] = c.relations[token + 1] = "mark"
        elif word == "let" and (c.heads[token] < 0 or c.relations[token] in ("advcl", "ccomp", "conj")):
            _let(c, token)
        elif word in _DO and c.relations[token] != "aux":
            _do(c, token)
        elif word in CONCLUSIONS and c.heads[token] < 0:
            _conclusion(c, token)
        elif (word, c.lower[token + 1]) in _BOUNDS and token + 2 < len(c.words) and c.tags[token + 2] == "CD":
            _bound(c, token, token + 2)
    if c.lower and c.lower[0] in COMMANDS and c.tags[0][0] in "NJ":
        _command(c)
    if "NNP" in c.tags or "NNPS" in c.tags:
        _join_names(c)


def _move(c: Conversion, token: int, head: int, relation: str) -> None:
    """Attach a token to another head."""
    if c.heads[token] >= 0:
        c.children[c.heads[token]].remove(token)
    c.heads[token], c.relations[token] = head, relation
    if head >= 0:
        c.children[head] = sorted([*c.children[head], token])


def _let(c: Conversion, let: int) -> None:
    """Make "be" in "let X be Y" the copula of Y, and Y the complement."""
    after = [child for child in c.children[let] if child > let]
    be = next((child for child in after if c.lower[child] == "be" and not c.children[child]), -1)
    said = next((child for child in after if child > be >= 0 and c.relations[child] not in ("punct", "obl")), -1)
    if said >= 0:
        _move(c, be, said, "cop")
        c.relations[said] = "xcomp"


def _conclusion(c: Conversion, adverb: int) -> None:
    """Make the conclusion the head of the adverb: thus, x is y."""
    said = next((child for child in c.children[adverb] if c.relations[child] != "punct"), -1)
    if said >= 0:
        _move(c, said, -1, "root")
        for child in list(c.children[adverb]):
            _move(c, child, said, c.relations[child])
        _move(c, adverb, said, "advmod")


def _do(c: Conversion, do: int) -> None:
    """Make the verb of a question the head of the "does" before it: does X converge."""
    verb = next((i for i in range(do + 2, len(c.words)) if c.tags[i] in ("VB", "VBP") and _below(c, i, do)), -1)
    if verb < 0 or c.lower[verb - 1] == "to" or not c.asks:
        return
    between = c.heads[verb]
    _move(c, verb, c.heads[do], c.relations[do])
    for child in list(c.children[do]):
        relation = c.relations[child]
        if relation in ("nsubj", "obj") and child < do:  # the word that asks
            relation = "obj" if any(do < other < verb for other in c.children[do]) else relation
        _move(c, child, verb, relation)
    _move(c, do, verb, "aux")
    if do < between < verb:
        _move(c, between, verb, "nsubj")


def _bound(c: Conversion, first: int, number: int) -> None:
    """Attach "at least" to its number."""
    c.bounds[number] = _BOUNDS[c.lower[first], c.lower[first + 1]]
    for word in (first, first + 1):
        if _below(c, number, word):
            _move(c, number, c.heads[word], c.relations[word])
        _move(c, word, number, "fixed")


def _below(c: Conversion, token: int, above: int) -> bool:
    while token >= 0 and token != above:
        token = c.heads[token]
    return token >= 0


def _command(c: Conversion) -> None:
    """Read "List all primes" as a command: the first word is a verb, its dependent the object."""
    after = next((i for i, tag in enumerate(c.tags) if i and tag not in ("RB", "PDT")), -1)
    if after < 0 or c.heads[0] >= 0 or not (c.formula[after] or c.tags[after] in ("DT", "PRP", "PRP$")):
        return
    c.tags[0] = "VB"
    for child in c.children[0]:
        if c.relations[child] in ("appos", "compound", "dep", "nmod", "flat", "nsubj", "list", "nmod:unmarked"):
            c.relations[child] = "obj"
            break


def _join_names(c: Conversion) -> None:
    """Attach the words of a name to the one whose head is outside, including words that may be common nouns."""
    names: set[int] = set()
    start = 0
    while start < len(c.words):
        end = start
        while end < len(c.words) and c.tags[end] in ("NNP", "NNPS") and c.words[end][:1].isupper():
            end += 1
        run = range(start, end)
        if len(run) > 1 and any(f"c:{c.lower[i]}" not in c.lemmas for i in run):
            names.update(run)
            outside = [i for i in run if c.heads[i] not in run]
            for i in outside[1:]:
                if not _below(c, outside[0], i):
                    _move(c, i, outside[0], "flat")
        start = max(end, start + 1)
    c.in_names = frozenset(names)

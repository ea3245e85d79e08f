"""`Conversion`: a sentence's dependency tree and the part of an AMR graph that is made of it.

    Prove that FORMULA_0 can not be equal to 2 .        (p / prove-01 :mode imperative
      repairs    errors of the tree                         :ARG0 (y / you)
      nodes      prove, FORMULA_0, equal, 2                 :ARG1 (q / possible-01 :polarity -
      wrappers   can -> possible-01                            :ARG1 (e / equal-01 :ARG1 (f0 / FORMULA_0) :ARG2 2)))
      edges      by relation

A token has an inner node, to which its dependents are attached, and an outer node, which is attached to its head: the
modal, comparison or coordination around it. Function words have neither; their dependents are attached to their head.

The tree of a mathematical sentence often has errors, which are corrected first:

    let X be Y          Y is the complement, "be" its copula   such that          one conjunction
    does X converge     "converge" is the head of "does"       Henri Poincaré     adjacent names are one name
    List all X          a first word that commands is a verb   at least two       at-least modifies the number
"""

from __future__ import annotations

from collections.abc import Mapping

from pyterrier_mathamr.amr.parsing import ParsedPart

from .lexicon import COMMANDS, CONCLUSIONS, SENSES, lemma
from .syntax import Syntax, is_placeholder

_SUBJECTS = frozenset({"nsubj", "nsubj:pass", "csubj", "csubj:pass", "nsubj:outer"})


class Conversion:
    """The tokens of a sentence and its graph."""

    def __init__(self, syntax: Syntax, lemmas: Mapping[str, str]) -> None:
        self.words, self.tags, self.heads, self.relations = syntax
        self.lower = [word.lower().replace("’", "'") for word in self.words]
        self.present = frozenset(self.lower)
        self.lemmas = lemmas
        self.part = ParsedPart()
        self.inner = [-1] * len(self.words)
        self.outer = [-1] * len(self.words)
        self.predicate = [-1] * len(self.words)  # the node of a subject's edge, if it is not the inner node
        self.children: list[list[int]] = [[] for _ in self.words]
        for token, head in enumerate(self.heads):
            if head >= 0:
                self.children[head].append(token)
        self.formula = [word[:8] == "FORMULA_" and is_placeholder(word) for word in self.words]
        self.asks = bool(self.words) and "?" in self.words[-2:]
        self.in_names: frozenset[int] = frozenset()  # words of names of several words, see `repairs`
        self.bounds: dict[int, str] = {}  # "at-least" of a number, see `repairs`
        self.frames: dict[int, int] = {}  # the frame of a person's role or action, by the person's node
        self._shared: dict[str, int] = {}

    # -- the tree ----------------------------------------------------------------------------------------------------

    def lemma(self, token: int) -> str:
        return lemma(self.lower[token], self.tags[token], self.lemmas)

    def child(self, token: int, *relations: str) -> int:
        """Return the first dependent with one of these relations, or -1."""
        for child in self.children[token]:
            if self.relations[child] in relations:
                return child
        return -1

    def subject(self, token: int) -> int:
        for child in self.children[token]:
            if self.relations[child] in _SUBJECTS:
                return child
        return -1

    def marker(self, token: int, relation: str) -> str:
        """Return the word that introduces a phrase or clause (``case`` or ``mark``) in lower case, or nothing."""
        for child in self.children[token]:
            if self.relations[child] == relation and (child < token or relation == "case"):
                return self.lower[child]
        return ""

    def is_verb(self, token: int) -> bool:
        return self.tags[token][0] == "V"

    def label(self, token: int) -> str:
        return self.part.labels[self.inner[token]]

    def has_frame(self, token: int) -> bool:
        """Return whether the token's concept is a frame such as ``prove-01``."""
        label = self.label(token)
        return len(label) > 3 and label[-3] == "-" and label[-2:].isdigit()

    def anchor(self, token: int) -> int:
        """Return the nearest token above that has a node, or -1."""
        head = self.heads[token]
        while head >= 0 and self.inner[head] < 0:
            head = self.heads[head]
        return head

    def joins_clauses(self, token: int) -> bool:
        """Return whether a "where" or "when" is not a question word."""
        return token > 0 and self.lower[token] in ("where", "when") and not self.asks

    # -- the graph ---------------------------------------------------------------------------------------------------

    def role_frame(self, token: int) -> int:
        """Return the node of the role or action by which a person is named, such as an author's, or -1."""
        return self.frames.get(self.inner[token], -1)

    def shared(self, name: str) -> int:
        """Return the one node of a pronoun, or of a symbol typed as text."""
        if name not in self._shared:
            self._shared[name] = self.part.add(name)
        return self._shared[name]

    def edge(self, source: int, role: str, target: int) -> None:
        self.part.edges.append((source, role, target))


def frame(name: str) -> str:
    """Return the frame of a verb: ``prove-01`` for ``prove``."""
    return f"{name}-{SENSES.get(name, '01')}"


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

"""`Conversion`: a sentence's dependency tree and the part of an AMR graph that is made of it.

    Prove that FORMULA_0 can not be equal to 2 .        (p / prove-01 :mode imperative
      repairs    errors of the tree                         :ARG0 (y / you)
      concepts   prove, FORMULA_0, equal, 2                 :ARG1 (q / possible-01 :polarity -
      wrappers   can -> possible-01                            :ARG1 (e / equal-01 :ARG1 (f0 / FORMULA_0) :ARG2 2)))
      roles      the edges, by relation; those of clauses

A token has an inner node, to which its dependents are attached, and an outer node, which is attached to its head: the
modal, comparison or coordination around it. Function words have neither; their dependents are attached to their head.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyterrier_mathamr.amr.merge import Part

from .lemmas import lemma
from .lexicon import SENSES
from .syntax import Syntax
from .tokens import is_placeholder

_SUBJECTS = frozenset({"nsubj", "nsubj:pass", "csubj", "csubj:pass", "nsubj:outer"})


class Conversion:
    """The tokens of a sentence and its graph."""

    def __init__(self, syntax: Syntax, lemmas: Mapping[str, str]) -> None:
        self.words, self.tags, self.heads, self.relations = syntax
        self.lower = [word.lower().replace("’", "'") for word in self.words]
        self.present = frozenset(self.lower)
        self.lemmas = lemmas
        self.part = Part()
        self.inner = [-1] * len(self.words)
        self.outer = [-1] * len(self.words)
        self.predicate = [-1] * len(self.words)  # what the subject attaches to where that is not the inner node
        self.children: list[list[int]] = [[] for _ in self.words]
        for token, head in enumerate(self.heads):
            if head >= 0:
                self.children[head].append(token)
        self.formula = [word[:8] == "FORMULA_" and is_placeholder(word) for word in self.words]
        self.asks = bool(self.words) and "?" in self.words[-2:]
        self.in_names: frozenset[int] = frozenset()  # words of names of several words, see `repairs`
        self.bounds: dict[int, str] = {}  # "at-least" of a number, see `repairs`
        self.frames: dict[int, int] = {}  # the frame of what a person is or does, by the person's node
        self._shared: dict[str, int] = {}

    # -- the tree ----------------------------------------------------------------------------------------------------

    def lemma(self, token: int) -> str:
        """Return the token's lemma."""
        return lemma(self.lower[token], self.tags[token], self.lemmas)

    def child(self, token: int, *relations: str) -> int:
        """Return the first dependent with one of these relations, or -1."""
        for child in self.children[token]:
            if self.relations[child] in relations:
                return child
        return -1

    def subject(self, token: int) -> int:
        """Return the token's subject, or -1."""
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
        """Return whether the token is tagged as a verb."""
        return self.tags[token][0] == "V"

    def label(self, token: int) -> str:
        """Return the concept of the token's inner node."""
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

    def clause_of_relative(self, token: int) -> int:
        """Return the relative clause whose pronoun the token is, or -1."""
        head = self.heads[token]
        return head if head >= 0 and self.relations[head] == "acl:relcl" else -1

    def joins_clauses(self, token: int) -> bool:
        """Return whether a "where" or "when" is no question word."""
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
        """Add an edge."""
        self.part.edges.append((source, role, target))


def frame(name: str) -> str:
    """Return the frame of a verb: ``prove-01`` for ``prove``."""
    return f"{name}-{SENSES.get(name, '01')}"

"""A dependency tree to a part of an AMR graph: first a node for each content word, then wrappers, then the edges.

    Prove that FORMULA_0 can not be equal to 2 .        (p / prove-01 :mode imperative
      words of content   prove, FORMULA_0, equal, 2         :ARG0 (y / you)
      wrappers           can -> possible-01                 :ARG1 (q / possible-01 :polarity -
      edges              by relation, see `roles`              :ARG1 (e / equal-01 :ARG1 (f0 / FORMULA_0) :ARG2 2)))

A token has an inner node, to which what depends on it is attached, and an outer one, which is attached to its head:
the modal, comparison or coordination around it. Function words have neither; what depends on them goes to their head.
"""

from __future__ import annotations

from collections.abc import Mapping

from .lemmas import lemma
from .lexicon import (
    ADJECTIVE_FRAMES,
    ADJECTIVE_NAMES,
    CITIES,
    COMMON_NOUNS,
    COUNTRIES,
    DETERMINERS,
    HAVE_RELATION,
    HAVE_ROLE,
    NOMINAL_FRAMES,
    NUMBER_WORDS,
    ORDINALS,
    PRONOUNS,
    QUESTION_WORDS,
    SENSES,
)
from .merge import Part
from .syntax import Syntax
from .words import is_placeholder

_SILENT = frozenset({"punct", "case", "mark", "cc", "aux", "aux:pass", "cop", "expl", "goeswith", "fixed",
                     "compound:prt", "cc:preconj", "det:predet", "reparandum"})  # fmt: skip
_NAME_PARTS = frozenset({"flat", "compound", "flat:name"})
_SUBJECTS = frozenset({"nsubj", "nsubj:pass", "csubj", "csubj:pass", "nsubj:outer"})
_LONGEST_LABEL = 40


class Conversion:
    """The tokens of a sentence and the graph that is made of them.

    Args:
        syntax: the sentence's analysis.
        lemmas: lemmas by ``letter:word``.
    """

    def __init__(self, syntax: Syntax, lemmas: Mapping[str, str]) -> None:
        self.words, self.tags, self.heads, self.relations = syntax
        self.lower = [word.lower().replace("’", "'") for word in self.words]
        self.lemmas = lemmas
        self.part = Part()
        self.inner = [-1] * len(self.words)
        self.outer = [-1] * len(self.words)
        self.predicate = [-1] * len(self.words)  # what the subject goes to where it is not the inner node
        self.children: list[list[int]] = [[] for _ in self.words]
        for token, head in enumerate(self.heads):
            if head >= 0:
                self.children[head].append(token)
        self.formula = [is_placeholder(word) for word in self.words]
        self.asks = bool(self.words) and "?" in self.words[-2:]
        self._shared: dict[str, int] = {}

    # -- what the tree says ------------------------------------------------------------------------------------------

    def lemma(self, token: int) -> str:
        """The token's lemma."""
        return lemma(self.lower[token], self.tags[token], self.lemmas)

    def child(self, token: int, *relations: str) -> int:
        """The first dependent with one of these relations, or -1."""
        for child in self.children[token]:
            if self.relations[child] in relations:
                return child
        return -1

    def subject(self, token: int) -> int:
        """The token's subject, or -1."""
        for child in self.children[token]:
            if self.relations[child] in _SUBJECTS:
                return child
        return -1

    def marker(self, token: int, relation: str) -> str:
        """The word that introduces a phrase or clause (``case`` or ``mark``), lower case, or nothing."""
        for child in self.children[token]:
            if self.relations[child] == relation and (child < token or relation == "case"):
                return self.lower[child]
        return ""

    def is_verb(self, token: int) -> bool:
        """Whether the token is tagged as a verb."""
        return self.tags[token][0] == "V"

    def label(self, token: int) -> str:
        """The concept of the token's inner node."""
        return self.part.labels[self.inner[token]]

    def has_frame(self, token: int) -> bool:
        """Whether the token's concept is a frame such as ``prove-01``."""
        label = self.label(token)
        return len(label) > 3 and label[-3] == "-" and label[-2:].isdigit()

    def anchor(self, token: int) -> int:
        """The nearest token above that has a node, or -1."""
        head = self.heads[token]
        while head >= 0 and self.inner[head] < 0:
            head = self.heads[head]
        return head

    # -- nodes -------------------------------------------------------------------------------------------------------

    def make_nodes(self) -> None:
        """Give each content word its node."""
        for token in range(len(self.words)):
            if self.inner[token] < 0 and (self.formula[token] or not self._is_silent(token)):
                self.inner[token] = self.outer[token] = self._node(token)
        for token in range(len(self.words)):
            if self.inner[token] < 0 and self._counts_unknown(token) and self.anchor(token) >= 0:
                self.edge(self.inner[self.anchor(token)], ":quant", self.part.add("amr-unknown"))

    def _is_silent(self, token: int) -> bool:
        relation, word, tag = self.relations[token], self.lower[token], self.tags[token]
        if relation in _SILENT:
            return not (relation == "expl" and word != "there" and word != "it" and self.heads[token] < 0)
        if relation == "det":
            return word in DETERMINERS or word == "no"
        if relation == "advmod" and self._joins_clauses(token) and self.heads[max(self.heads[token], 0)] >= 0:
            return True
        if (
            (relation == "advmod" and word in ("not", "n't", "never"))
            or word == "please"
            or (tag == "TO" and self.heads[token] >= 0)
        ):
            return True
        if relation in _NAME_PARTS and self.heads[token] >= 0:
            return self._names(self.heads[token], token)
        if self._counts_unknown(token):
            return True
        if word == "how" and self.heads[token] >= 0 and self._is_many(self.heads[token]):
            return True
        if relation in ("nsubj", "obj", "nsubj:pass", "advmod", "obl") and word in (
            "which",
            "that",
            "who",
            "whom",
            "where",
        ):
            return self.clause_of_relative(token) >= 0
        return not any(map(str.isalnum, word)) and tag not in ("SYM", "NN", "CD") and self.heads[token] >= 0

    def _is_many(self, token: int) -> bool:
        return self.lower[token] in ("many", "much") and self.relations[token] in ("amod", "det")

    def _joins_clauses(self, token: int) -> bool:
        """Whether a "where" or "when" asks nothing."""
        return token > 0 and self.lower[token] in ("where", "when") and not self.asks

    def _counts_unknown(self, token: int) -> bool:
        """Whether the token is the "many" of "how many"."""
        return self._is_many(token) and any(self.lower[child] == "how" for child in self.children[token])

    def _names(self, head: int, token: int) -> bool:
        """Whether a token is a part of the name that its head is."""
        return (
            self.tags[head] in ("NNP", "NNPS") and self.tags[token] in ("NNP", "NNPS", "CD", ",", "HYPH")
            and self._is_name(head) and not self.formula[token]
        )  # fmt: skip

    def _is_name(self, token: int) -> bool:
        word = self.lower[token]
        common = f"c:{word}" in self.lemmas or word in COMMON_NOUNS
        return self.tags[token] in ("NNP", "NNPS") and len(word) > 1 and not common and not self.formula[token]

    def clause_of_relative(self, token: int) -> int:
        """The relative clause whose pronoun the token is, or -1."""
        head = self.heads[token]
        return head if head >= 0 and self.relations[head] == "acl:relcl" else -1

    def _node(self, token: int) -> int:
        word, tag = self.lower[token], self.tags[token]
        if self.formula[token]:
            return self.part.add(self.words[token])
        if word in PRONOUNS and tag[:3] in ("PRP", "NN", "FW", "LS"):
            return self.shared(PRONOUNS[word])
        if word in QUESTION_WORDS and tag[0] == "W" and not self._joins_clauses(token):
            return self.part.add("amr-unknown")
        if self._is_name(token):
            return self._name(token)
        if tag == "CD" or word in NUMBER_WORDS:
            number = NUMBER_WORDS.get(word, word)
            alone = not any(self._has_meaning(child) for child in self.children[token]) and self.heads[token] >= 0
            return self.part.constant(number) if alone else self.part.add(number)
        if tag[0] == "V":
            return self.part.add(self._verb(token))
        name = self.lemma(token)[:_LONGEST_LABEL]
        if tag[0] == "N":
            if name in HAVE_ROLE or name in HAVE_RELATION:
                return self._role_holder(name)
            if name in NOMINAL_FRAMES:
                return self.part.add(frame(NOMINAL_FRAMES[name]))
        elif tag[0] == "J" or tag[:2] == "RB":
            if name in ADJECTIVE_FRAMES and tag[0] == "J":
                return self.part.add(frame(ADJECTIVE_NAMES.get(name, name)))
            if name in ORDINALS and self.relations[token] == "amod":
                node = self.part.add("ordinal-entity")
                self.edge(node, ":value", self.part.constant(ORDINALS[name]))
                return node
            if name.endswith("ically"):
                name = name[:-4]
            elif name.endswith("ly") and len(name) > 5:
                name = name[:-2] if not name.endswith("ily") else name[:-3] + "y"
        return self.part.add(name)

    def _has_meaning(self, token: int) -> bool:
        return self.formula[token] or not self._is_silent(token)

    def _verb(self, token: int) -> str:
        name = self.lemma(token)
        if name == "be":
            return "exist-01" if self.child(token, "expl") >= 0 else "be-01"
        particle = self.child(token, "compound:prt")
        if particle >= 0 and self.lower[particle].isalpha():
            name = f"{name}-{self.lower[particle]}"
        return frame(name[:_LONGEST_LABEL])

    def _name(self, token: int) -> int:
        parts = [child for child in self.children[token] if self.relations[child] in _NAME_PARTS
                 and self._names(token, child)]  # fmt: skip
        words = [self.words[part] for part in sorted([*parts, token]) if self.words[part][0].isalnum()]
        key = words[-1].lower()
        kind = "country" if key in COUNTRIES else "city" if key in CITIES else "person"
        node = self.part.add(kind)
        name = self.part.add("name")
        self.edge(node, ":name", name)
        for i, word in enumerate(words[:8], 1):
            self.edge(name, f":op{i}", self.part.constant(word, quoted(word)))
        return node

    def _role_holder(self, name: str) -> int:
        """A president or wife is a person with the role; see `role_frame`."""
        node = self.part.add("person")
        holds = self.part.add("have-rel-role-91" if name in HAVE_RELATION else "have-org-role-91")
        self.edge(node, ":ARG0-of", holds)
        self.edge(holds, ":ARG2", self.part.add(name))
        return node

    def role_frame(self, token: int) -> int:
        """The node of the role that a person holds, or -1."""
        node = self.inner[token] + 1
        labels = self.part.labels
        return node if node < len(labels) and labels[node].endswith("-role-91") and labels[node - 1] == "person" else -1

    def shared(self, name: str) -> int:
        """The one node of a pronoun."""
        if name not in self._shared:
            self._shared[name] = self.part.add(name)
        return self._shared[name]

    def edge(self, source: int, role: str, target: int) -> None:
        """Add an edge."""
        self.part.edges.append((source, role, target))


def frame(name: str) -> str:
    """Name a frame: ``prove`` is ``prove-01``."""
    return f"{name}-{SENSES.get(name, '01')}"


def quoted(word: str) -> str:
    """Write a word in quotes, as the parts of a name are."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'

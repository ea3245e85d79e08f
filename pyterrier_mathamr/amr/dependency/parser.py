"""`DependencyAmrParser`, the embedded parser: deterministic, no downloads, a few hundred posts a second per core.

sentence -> tokens -> tags and dependency tree (`syntax`) -> nodes, wrappers, edges (`rules`) -> part
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr.amr.parsing import ParsedPart, PartParser

from .conversion import Conversion, repair
from .lexicon import QUESTION_WORDS
from .rules import attach, make_nodes, make_wrappers, share_subject
from .syntax import MAX_TOKENS, Syntax, SyntaxNet, bundled_net, tokenize

_AUXILIARY_STARTS = frozenset({"M", "V"})


class DependencyAmrParser(ByParameters, PartParser):
    """Parses English by a dependency tree and rules from the tree to AMR.

    The weights are loaded when the first sentence is parsed. Each sentence is parsed independently of the others.

    Args:
        net: a network to use instead of the bundled one.

    Example:
        >>> DependencyAmrParser().parse_sentences(["FORMULA_0 converges to FORMULA_1."])
        ['(c / converge-01 :ARG1 (f0 / FORMULA_0) :ARG2 (f1 / FORMULA_1))']
    """

    name = "dependency"

    def __init__(self, net: SyntaxNet | None = None) -> None:
        self._net = net

    def parse_units(self, units: Sequence[Sequence[str]], unit: str = "sentence") -> list[ParsedPart]:
        """Parse ``units`` by sentences, whatever the ``unit``; sentences beyond `MAX_TOKENS` are cut."""
        net = self._net or bundled_net()
        pieces: list[list[str]] = []
        owners: list[int] = []
        for i, tokens in ((i, tokenize(sentence)) for i, sentences in enumerate(units) for sentence in sentences):
            for start in range(0, len(tokens), MAX_TOKENS):
                pieces.append(tokens[start : start + MAX_TOKENS])
                owners.append(i)
        parts = [ParsedPart() for _ in units]
        for owner, syntax in zip(owners, net.analyze(pieces), strict=True):
            parts[owner].extend(part_of_sentence(syntax, net.lemmas))
        return parts


def part_of_sentence(syntax: Syntax, lemmas: Mapping[str, str]) -> ParsedPart:
    """Convert one analyzed sentence."""
    conversion = Conversion(syntax, lemmas)
    repair(conversion)
    make_nodes(conversion)
    root = _root(conversion)
    if root < 0:
        return ParsedPart()
    make_wrappers(conversion)
    root = _ask(conversion, root)
    for token, node in enumerate(conversion.inner):
        if node >= 0 and token != root and conversion.relations[token] != "done":
            head = conversion.anchor(token)
            if conversion.relations[token] != "conj" or head < 0:
                attach(conversion, token, head if head >= 0 else root)
            elif conversion.is_verb(token):
                share_subject(conversion, token, head)
    _mood(conversion, root)
    conversion.part.roots = [conversion.outer[root]]
    return conversion.part


def _root(c: Conversion) -> int:
    """Return the token whose node is the root, or -1 where no token has a node."""
    level = [token for token, head in enumerate(c.heads) if head < 0]
    while level:
        for token in level:
            if c.inner[token] >= 0:
                return token
        level = [child for token in level for child in c.children[token]]
    return -1


def _ask(c: Conversion, root: int) -> int:
    """Invert "What is X?", so that X is the root, (x :domain amr-unknown); return the root."""
    if c.label(root) != "amr-unknown" or c.tags[root][0] != "W":
        return root
    subject = c.subject(root)
    if subject < 0 or c.inner[subject] < 0 or c.outer[root] != c.inner[root]:
        return root
    place = {"where": "be-located-at-91", "when": "be-temporally-at-91"}.get(c.lower[root])
    if place:
        node = c.part.add(place)
        c.edge(node, ":ARG2", c.inner[root])
        c.predicate[root] = c.outer[root] = node
        return root
    holds = c.role_frame(subject)
    if holds >= 0 and c.outer[subject] == c.inner[subject]:
        person = c.inner[subject]
        c.part.labels[person] = "amr-unknown"
        c.part.edges = [edge for edge in c.part.edges if edge != (person, ":ARG0-of", holds)]
        c.edge(holds, ":ARG0", person)
        c.outer[subject], c.inner[root] = holds, -1
    else:
        c.edge(c.inner[subject], ":ARG2" if c.has_frame(subject) else ":domain", c.inner[root])
        c.inner[root] = -1
    return subject


def _mood(c: Conversion, root: int) -> None:
    """Mark commands and yes-no questions."""
    first = next((i for i, word in enumerate(c.lower) if word[0].isalnum() and word not in ("please", "so", "also")), 0)
    begins = root - first < 2 or (c.tags[root] == "VB" and c.lower[root - 1] == ",")  # "Given x, find y"
    bare = c.tags[root] in ("VB", "VBP") and c.subject(root) < 0 and c.child(root, "expl") < 0
    if begins and bare and c.marker(root, "mark") != "to" and not c.asks:
        if c.child(root, "aux") < 0:
            c.edge(c.inner[root], ":mode", c.part.constant("imperative"))
            c.edge(c.inner[root], ":ARG0", c.shared("you"))
        if "please" in c.lower:
            c.edge(c.inner[root], ":polite", c.part.constant("+"))
    elif c.tags[first][0] in _AUXILIARY_STARTS and first != root and not QUESTION_WORDS & set(c.lower):
        if c.relations[first] in ("aux", "cop", "aux:pass") and c.heads[first] == root:
            c.edge(c.outer[root], ":polarity", c.part.add("amr-unknown"))
    elif c.asks and c.tags[root][:2] == "VB" and first == root and c.label(root) == "exist-01":
        c.edge(c.outer[root], ":polarity", c.part.add("amr-unknown"))

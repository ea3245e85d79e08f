"""What a parser is, and a base that merges the parts of a post into one connected graph.

::

    (m / multi-sentence            a single sentence is the root itself; a post without text is (a / amr-empty)
       :snt1 (p / prove-01 ...)
       :snt2 (e / equal-01 ...)
       :math (f3 / FORMULA_3))     a formula that the parser lost
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.posts import PLACEHOLDER, TOKEN, MathPost

from .graph import AmrGraph, encode_penman, spell

CHUNK_TOKENS = 500
"""Longest passage that is parsed at once (MathAMR+, section 3.1)."""

_SNT = re.compile(r":snt\d+")
_JOINS = ("multi-sentence", "document")  # "document" is written by parsers of whole documents


@dataclass(slots=True)
class ParsedPart:
    """A graph under construction: nodes and edges in any order, all of them reachable from the roots.

    Attributes:
        labels: concept or constant of each node.
        constants: the nodes without a variable.
        edges: ``(source, role, target)`` as written.
        roots: one node for each sentence.
        spellings: atoms whose spelling differs from their label, such as names in quotes.
        parser: name of the parser that produced it, where it matters.
    """

    labels: list[str] = field(default_factory=list)
    constants: set[int] = field(default_factory=set)
    edges: list[tuple[int, str, int]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    spellings: dict[int, str] = field(default_factory=dict)
    parser: str = ""

    def add(self, label: str) -> int:
        self.labels.append(label)
        return len(self.labels) - 1

    def constant(self, label: str, spelling: str = "") -> int:
        node = self.add(label)
        self.constants.add(node)
        if spelling:
            self.spellings[node] = spelling
        return node

    def extend(self, other: ParsedPart) -> None:
        shift = len(self.labels)
        self.labels += other.labels
        self.constants.update(node + shift for node in other.constants)
        self.edges += [(source + shift, role, target + shift) for source, role, target in other.edges]
        self.roots += [node + shift for node in other.roots]
        self.spellings.update((node + shift, atom) for node, atom in other.spellings.items())


def part_of(graph: AmrGraph) -> ParsedPart:
    """Convert a parser's graph to a part, whose roots are the sentences below a root that only joins them."""
    constants = {node for node, variable in enumerate(graph.variables) if not variable}
    from_root = [(role, target) for source, role, target in graph.edges if source == 0]
    roots = [0]
    edges = list(graph.edges)
    if graph.labels[0] in _JOINS and from_root and all(_SNT.fullmatch(role) for role, _ in from_root):
        roots = [target for _, target in from_root]
        edges = [edge for edge in edges if 0 not in edge[::2]]
    return ParsedPart(list(graph.labels), constants, edges, roots, dict(graph.spellings))


def _written(
    root: int,
    whole: ParsedPart,
    leaving: Mapping[int, list[tuple[str, int]]],
    bare: set[int],
    formulas: Iterable[int],
    texts: tuple[str, ...],
) -> AmrGraph:
    """Number nodes and edges in writing order, depth first, name the variables, and add the formulas not reached."""
    counts: Counter[str] = Counter()  # of the variables by letter

    def variable(label: str) -> str:
        """Return ``f3`` for FORMULA_3, the first letter of the concept and a number for others."""
        if label.startswith("FORMULA_"):
            return f"f{label[8:]}"
        letter = label[:1].lower()
        if not ("a" <= letter <= "z"):
            letter = "x"
        elif letter == "f":
            letter = "ff"  # f is reserved for formulas
        counts[letter] += 1
        return letter if counts[letter] == 1 else f"{letter}{counts[letter]}"

    order = {root: 0}
    variables = [variable(whole.labels[root])]
    written: list[tuple[int, str, int]] = []

    def follow(edges: Iterable[tuple[str, int]]) -> None:
        """Write some edges of the root with all that is below them."""
        stack = [(0, iter(edges))]
        while stack:
            source, rest = stack[-1]
            for role, node in rest:
                known = node in order
                target = order.setdefault(node, len(order))
                written.append((source, role, target))
                if not known:
                    variables.append("" if node in bare else variable(whole.labels[node]))
                    if node in leaving:
                        stack.append((target, iter(leaving[node])))
                        break
            else:
                stack.pop()

    follow(leaving.get(root, ()))
    for node in formulas:
        if node not in order:
            follow([(":math", node)])
    labels = tuple(whole.labels[node] for node in order)
    taken = set(variables) if whole.spellings else set()
    spellings = tuple(
        sorted((order[node], atom) for node, atom in whole.spellings.items()
               if node in order and atom != spell(whole.labels[node], taken if node in bare else ()))
    )  # fmt: skip
    return AmrGraph(labels, tuple(variables), tuple(written), spellings=spellings, texts=texts)


def _joined(parts: Iterable[ParsedPart], formulas: set[int]) -> tuple[ParsedPart, dict[int, int]]:
    """Concatenate parts with one node for each placeholder; also return the placeholders' nodes."""
    whole = ParsedPart()
    node_of: dict[int, int] = {}  # by the number of the placeholder
    for part in parts:
        new_nodes: list[int] = []
        for node, label in enumerate(part.labels):
            if "FORMULA_" in label:
                match = PLACEHOLDER.fullmatch(label)
                if match and int(match[1]) in formulas:
                    number = int(match[1])
                    if number not in node_of:
                        node_of[number] = whole.add(f"FORMULA_{number}")
                    new_nodes.append(node_of[number])
                    continue
                label = label.replace("FORMULA_", "FORMULA-")
            new = whole.constant(label) if node in part.constants else whole.add(label)
            if node in part.spellings and label == part.labels[node]:
                whole.spellings[new] = part.spellings[node]
            new_nodes.append(new)
        whole.edges += [(new_nodes[source], role, new_nodes[target]) for source, role, target in part.edges]
        whole.roots += [new_nodes[node] for node in part.roots]
    return whole, node_of


@runtime_checkable
class AmrParser(Protocol):
    """A parser of English text with formula placeholders to AMR.

    The ``texts`` of a post's graph may contain the text of each sentence.

    Attributes:
        name: the name in `get_parser`.
    """

    name: str

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse each sentence separately to one Penman text."""
        ...

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Parse a post to one graph in which each of its formulas is exactly one node."""
        ...

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts to the graphs that `parse_post` returns."""
        ...


class PartParser(ABC):
    """An `AmrParser` that only defines how texts become parts; this class cuts posts and merges their parts.

    Attributes:
        unit: the unit of parsing: a sentence, or a passage of sentences of at most 500 tokens.
    """

    name: str
    unit: Literal["sentence", "passage"] = "sentence"

    @abstractmethod
    def parse_units(self, units: Sequence[Sequence[str]], unit: str) -> list[ParsedPart]:
        """Parse ``units``, texts each given as its sentences; each ``unit`` is a ``passage`` or a ``sentence``."""

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse each sentence separately to one Penman text."""
        parts = self.parse_units([[sentence] for sentence in sentences], "sentence")
        numbers = ({int(number) for number in PLACEHOLDER.findall(sentence)} for sentence in sentences)
        return [encode_penman(self.merge([part], own)) for part, own in zip(parts, numbers, strict=True)]

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Parse a post to one graph in which each of its formulas is exactly one node."""
        return self.parse_posts([post])[0]

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts to the graphs that `parse_post` returns."""
        units = [self._units(post.sentences) for post in posts]
        parsed = iter(self.parse_units([unit for own in units for unit in own], self.unit))
        graphs = []
        for post, own in zip(posts, units, strict=True):
            parts, texts = [], list[str]()
            for sentences in own:
                part = next(parsed)
                parts.append(part)
                apart = len(sentences) == len(part.roots)
                texts += sentences if apart else [" ".join(sentences)] * len(part.roots)
            graphs.append(self.merge(parts, range(len(post.formulas)), texts))
        return graphs

    def _units(self, sentences: Sequence[str]) -> list[Sequence[str]]:
        """Group the sentences of a post to the texts that are parsed at once; a longer sentence is a passage itself."""
        if self.unit == "sentence":
            return [[sentence] for sentence in sentences]
        lengths = (len(TOKEN.findall(sentence)) for sentence in sentences)
        return [sentences[run.start : run.stop] for run in runs_within(lengths, CHUNK_TOKENS)]

    def merge(
        self, parts: Sequence[ParsedPart], formulas: Iterable[int], texts: Sequence[str] | None = None
    ) -> AmrGraph:
        """Merge the parts of a post or sentence to a connected graph with one node for each of its formulas.

        Args:
            parts: of the texts of a post or sentence, in order.
            formulas: numbers of the placeholders; any other ``FORMULA_n`` is renamed, and one that no part has is
                attached to the root by ``:math``.
            texts: the text of each root of the parts, in order; kept as the graph's ``texts``.
        """
        numbers = set(formulas)
        whole, node_of = _joined(parts, numbers)
        owners: dict[int, int] = {}  # a root that sentences share belongs to the first of them
        for i, node in enumerate(whole.roots):
            owners.setdefault(node, i)
        roots = list(owners)
        root = roots[0] if len(roots) == 1 else whole.add("multi-sentence" if roots else "amr-empty")
        leaving: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        if len(roots) > 1:
            leaving[root] = [(f":snt{i}", node) for i, node in enumerate(roots, 1)]
        entered = [0] * len(whole.labels)
        for source, role, target in whole.edges:
            if source != target:
                leaving[source].append((role, target))
                entered[target] += 1
        bare = {node for node in whole.constants if node not in leaving and entered[node] < 2 and node != root}
        placed = [
            node_of[number] if number in node_of else whole.add(f"FORMULA_{number}") for number in sorted(numbers)
        ]
        kept = () if texts is None else tuple(texts[i] for i in owners.values())
        return _written(root, whole, leaving, bare, placed, kept)

"""`GraphLayout`: where the formulas and sentences of a graph are, found in one pass over its edges as written.

    (m / multi-sentence            in no sentence
       :snt1 (e / equal-01         root of sentence 0
          :ARG1 (f / FORMULA_0     placeholder 0, in sentence 0
             :opt (o / U!eq …)     OPT of formula 0: all that is written below
             :slt (s / V!x …)))    SLT of formula 0
       :snt2 (m2 / multi-sentence  nested multi-sentence is flattened
          :snt1 (…)                root of sentence 1
          :snt2 (… :ARG0 e)))      root of sentence 2; it mentions e, which is a member of sentences 0 and 2

A graph without ``multi-sentence`` at its root is one sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from pyterrier_mathamr.amr import AmrGraph

from .errors import GraphError, MissingPlaceholderError

SENTENCES = "multi-sentence"
"""The concept that joins sentences."""

_SENTENCE_ROLE = re.compile(r":snt([0-9]{1,9})[0-9]*")
_TREES = (":opt", ":slt")
_PREFIX = "FORMULA_"


class NodeKind(IntEnum):
    """What the label of a node is; it decides on the normalisation and on the modes that omit the node."""

    CONCEPT = 0
    CONSTANT = 1
    OPT = 2
    SLT = 3


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The parts of one graph, as node indices.

    Attributes:
        kinds: what each node is, one :class:`NodeKind` for each.
        placeholders: the node of ``FORMULA_i``, in order of ``i``.
        opts: the nodes of formula ``i``'s operator tree in writing order, root first; empty where it has none.
        slts: those of its symbol layout tree.
        roots: the root of each sentence, in order.
        numbers: for each sentence the ``i`` of the root's ``:snti`` above it; 1 in a graph of one sentence.
        sentences: the AMR nodes of each sentence: those defined in it, root first, then those it only mentions.
    """

    kinds: list[NodeKind]
    placeholders: list[int]
    opts: list[list[int]]
    slts: list[list[int]]
    roots: list[int]
    numbers: list[int]
    sentences: list[list[int]]


def placeholder_number(label: str) -> int:
    """Return the number of a placeholder's label, or -1 for any other label."""
    if not label.startswith(_PREFIX):
        return -1
    digits = label[len(_PREFIX) :]
    is_number = 0 < len(digits) < 10 and digits.isascii() and digits.isdigit()
    return int(digits) if is_number and (digits == "0" or digits[0] != "0") else -1


def layout_of(amr: AmrGraph, formulas: int, graph_id: str = "") -> GraphLayout:
    """Find the formulas and sentences of a graph in one pass over its edges.

    Args:
        amr: the whole graph in writing order, with or without trees.
        formulas: the number of formulas; a label ``FORMULA_i`` with a larger number is a plain concept.
        graph_id: for messages.

    Returns:
        The parts; a formula without trees has its placeholder only.

    Raises:
        MissingPlaceholderError: a formula has no node.
        GraphError: an edge leaves a node before the node is written.
    """
    reader = _Reader(amr, formulas)
    if not reader.read():
        reason = "an edge leaves a node that is not written yet, or a node is never reached; use AmrGraph.arranged()"
        raise GraphError(f"graph {graph_id!r}", reason)
    placeholders = reader.placeholders()
    if -1 in placeholders:
        missing = [i for i, node in enumerate(placeholders) if node < 0]
        names = ", ".join(f"{_PREFIX}{number}" for number in missing[:5])
        raise MissingPlaceholderError(f"graph {graph_id!r} of {formulas} formulas", f"no node for {names}", missing)
    if not reader.roots:
        reader.roots, reader.within = [0], [1]
        reader.sentences = [[node for node, kind in enumerate(reader.kinds) if kind < NodeKind.OPT]]
    return GraphLayout(
        reader.kinds, placeholders, reader.opts, reader.slts, reader.roots, reader.within, reader.sentences
    )


def sentence_numbers(amr: AmrGraph) -> list[int]:
    """Find the ``numbers`` of :func:`layout_of`, and nothing else of it."""
    if amr.labels[0] != SENTENCES:
        return [1]
    joints, numbers = {0: 0}, list[int]()  # multi-sentence nodes with their number in the root
    last, bare = 0, frozenset(amr.mentions)  # nodes are numbered as they are written: a new one is the next
    for index, (source, role, target) in enumerate(amr.edges):
        if target <= last or index in bare:
            continue
        last = target
        if source in joints and (match := _SENTENCE_ROLE.fullmatch(role)):
            number = joints[source] or int(match[1])
            if amr.labels[target] == SENTENCES:
                joints[target] = number
            else:
                numbers.append(number)
    return numbers or [1]


class _Reader:
    """The state of one pass: each node belongs to the list of its sentence or tree, or to none."""

    def __init__(self, amr: AmrGraph, formulas: int) -> None:
        self.amr = amr
        self.kinds = [NodeKind.CONCEPT if variable else NodeKind.CONSTANT for variable in amr.variables]
        numbers = ((node, placeholder_number(label)) for node, label in enumerate(amr.labels) if label[:1] == "F")
        self.numbers = {node: number for node, number in numbers if 0 <= number < formulas}
        self.opts: list[list[int]] = [[] for _ in range(formulas)]
        self.slts: list[list[int]] = [[] for _ in range(formulas)]
        self.roots: list[int] = []
        self.within: list[int] = []
        self.sentences: list[list[int]] = []
        self.own: list[list[int] | None] = [None] * len(amr.labels)
        self.joints = {0: 0} if amr.labels[0] == SENTENCES else {}  # multi-sentence nodes with their number in the root
        if not self.joints:
            self._begin_sentence(0, 1)

    def read(self) -> bool:
        """Follow all edges; tell whether each node is written before the edges that leave it."""
        placed = bytearray(len(self.own))
        placed[0] = 1
        bare = frozenset(self.amr.mentions)
        again: list[tuple[int, int]] = []
        kinds, own, first_tree = self.kinds, self.own, NodeKind.OPT
        special = self.joints.keys() | self.numbers.keys()
        for index, (source, role, target) in enumerate(self.amr.edges):
            if not placed[source]:
                return False
            if placed[target] or index in bare:
                again.append((source, target))
                continue
            placed[target] = 1
            part = own[source]
            if source in special and (source in self.joints or (role in _TREES and kinds[source] < first_tree)):
                self._begin_part(source, role, target)
                if target in self.joints:
                    special.add(target)
            elif part is not None:
                own[target] = part
                part.append(target)
                if kinds[source] >= first_tree:
                    kinds[target] = kinds[source]
        self._mention(again)
        return all(placed)

    def placeholders(self) -> list[int]:
        """Find the first node of each formula outside the trees, -1 where there is none."""
        found = [-1] * len(self.opts)
        for node, number in self.numbers.items():
            if found[number] < 0 and self.kinds[node] < NodeKind.OPT:
                found[number] = node
        return found

    def _begin_sentence(self, node: int, number: int) -> None:
        part = [node]
        self.own[node] = part
        self.roots.append(node)
        self.within.append(number)
        self.sentences.append(part)

    def _begin_part(self, source: int, role: str, target: int) -> None:
        """Begin a sentence below a joint, or a tree below a placeholder; other nodes below a joint have no sentence."""
        if source not in self.joints:
            kind, trees = (NodeKind.OPT, self.opts) if role == ":opt" else (NodeKind.SLT, self.slts)
            part = trees[self.numbers[source]]
            part.append(target)
            self.kinds[target], self.own[target] = kind, part
        elif match := _SENTENCE_ROLE.fullmatch(role):
            number = self.joints[source] or int(match[1])
            if self.amr.labels[target] == SENTENCES:
                self.joints[target] = number
            else:
                self._begin_sentence(target, number)

    def _mention(self, again: list[tuple[int, int]]) -> None:
        """Add to each sentence the nodes that it only mentions."""
        seen: set[tuple[int, int]] = set()
        for source, target in again:
            own = self.own[source]
            if own is None or own is self.own[target] or max(self.kinds[source], self.kinds[target]) >= NodeKind.OPT:
                continue
            if (id(own), target) not in seen:
                seen.add((id(own), target))
                own.append(target)

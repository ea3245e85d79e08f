"""Formula trees: symbol layout trees (SLT, the appearance of a formula) and operator trees (OPT, its meaning).

``x^2+1`` in both forms, nodes numbered depth first, each edge with its label. For people, ``V!x`` is the variable x,
``U!plus`` the operator +, and ``&comma;`` a comma::

    SLT   0 V!x ──a── 1 N!2          a above, b below, o over, u under, n next, w within, e element,
          └────n── 2 + ──n── 3 N!1   c before and above, d before and below

    OPT   0 U!plus ──0── 1 O!SUP ──0── 2 V!𝑥        operand position; always 0 below an unordered (U!) node
          │              └───────1── 3 N!2
          └────────0── 4 N!1
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pyterrier_mathamr._common.drawing import Canvas, TreeNode, paint_tree, palette, placed_tree, shortened, text_width
from pyterrier_mathamr._common.errors import MathAMRError

TreeKind = Literal["slt", "opt", ""]
"""The form of a tree; the empty string infers it from the edge labels."""

Edge = tuple[int, int, str]
"""Parent index, child index, edge label."""

SymbolPair = tuple[str, str, str, str]
"""Ancestor label, descendant label, path between them, place of the ancestor."""

_SLT_LABELS = frozenset("aocnbudew")
_SHOWN = 60  # characters of the source of an error on each side of the caret
_ONE_LINE = str.maketrans("\t\n\r", "   ")
_LARGEST = 400  # nodes of a tree that is drawn; a larger one is shown as text
_DEEPEST = 60  # levels indented; deeper ones stay in the same column, or a chain would fill a square
_WIDTH = 640.0  # of a row of symbols
_LABEL = 32  # characters
_MARGIN = 10.0


class FormulaError(MathAMRError):
    """A formula has no tree, or a table of formulas cannot be read.

    Attributes:
        message: the fault; an error in a table names file and line.
        source: the LaTeX or MathML that was read; empty for a table.
        position: the character of the source to which the message points.
        tried: false for a formula that was skipped because others of its post took too long; it may convert elsewhere.
    """

    message: str
    source: str = ""
    position: int = 0
    tried: bool = True
    template = "{message}{place}"

    @property
    def place(self) -> str:
        """The source around the position, on one line, with a caret below its character."""
        if not self.source:
            return ""
        shown = self.source[max(self.position - _SHOWN, 0) : self.position + _SHOWN].translate(_ONE_LINE)
        return f" (character {self.position})\n  {shown}\n  {' ' * min(self.position, _SHOWN)}^"


@dataclass(frozen=True, slots=True)
class FormulaTree:
    """One formula as a rooted, ordered, labeled tree in the conventions of Tangent-S.

    Args:
        nodes: labels in depth-first order; node 0 is the root.
        edges: ``(parent, child, label)`` in the same order, one for each node but the root.
        partial: part of the source was not understood, and is left out or guessed.
        source: the LaTeX or MathML that was read; not compared.
        kind: ``"slt"`` or ``"opt"``; not compared.
    """

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]
    partial: bool = False
    source: str = field(default="", compare=False, repr=False)
    kind: TreeKind = field(default="", compare=False)

    @property
    def is_slt(self) -> bool:
        """Whether this is a symbol layout tree."""
        if self.kind:
            return self.kind == "slt"
        return any(label in _SLT_LABELS for _, _, label in self.edges) and not any(e[2] == "0" for e in self.edges)

    def children(self) -> list[list[tuple[str, int]]]:
        """List for each node its children as ``(edge label, node index)``, in order."""
        children: list[list[tuple[str, int]]] = [[] for _ in self.nodes]
        for parent, child, label in self.edges:
            children[parent].append((label, child))
        return children

    def tuples(self, window: int = 1, eob: bool = False) -> tuple[SymbolPair, ...]:
        """Compute the symbol pairs of Tangent-S, on which Tangent-CFT and MathAMR are built.

        Args:
            window: the largest distance between the two symbols, in edges; 0 for any distance.
            eob: add the end-of-baseline symbol pairs ``(label, "0!", "n" or "0", place)``.

        Returns:
            The symbol pairs in the order of Tangent-S, which also drops pairs of more than 200 characters.
        """
        slt, children = self.is_slt, self.children()
        order = children  # in which a subtree is searched
        if slt:
            order = [sorted(kids, key=lambda kid: _PUSHED[kid[0]]) if len(kids) > 1 else kids for kids in children]
        pairs: list[SymbolPair] = []
        stack = [(0, _Place(), iter(children[0]))] if self.nodes else []
        while stack:
            node, place, rest = stack[-1]
            edge = next(rest, None)
            if edge is None:
                stack.pop()
                last = "n" if slt else "0"
                if eob and (all(label != "n" for label, _ in children[node]) if slt else not children[node]):
                    _add(pairs, self.nodes[node], place, [("0!", last)])
                continue
            label, child = edge
            _add(pairs, self.nodes[node], place, _descendants(self.nodes, order, child, label, window))
            stack.append((child, place.below(label), iter(children[child])))
        return tuple(pairs)

    def unknown_commands(self) -> tuple[str, ...]:
        r"""List the commands of an operator tree from LaTeX that the converter did not know, such as ``\foo``."""
        if not self.partial:
            return ()
        return tuple(label[2:] for label in dict.fromkeys(self.nodes) if label.startswith("T!\\"))

    def unified(self) -> FormulaTree:
        """Return the tree with types as labels: ``V!x`` becomes ``V!``, an operator without type stays."""
        return FormulaTree(tuple(map(unified_label, self.nodes)), self.edges, self.partial, self.source, self.kind)

    def digest(self) -> str:
        """Compute 32 hexadecimal digits that identify the tree: the formula's visual identity."""
        text = "\x1f".join(self.nodes) + "\x1e" + "\x1f".join(f"{parent}{label}" for parent, _, label in self.edges)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def __str__(self) -> str:
        """Write one node a line, two blanks a level, its edge label before each node."""
        depths, labels = [0] * len(self.nodes), [""] * len(self.nodes)
        for parent, child, label in self.edges:
            depths[child], labels[child] = depths[parent] + 1, f"{label} "
        rows = zip(depths, labels, self.nodes, strict=True)
        return "\n".join("  " * min(depth, _DEEPEST) + label + node for depth, label, node in rows)

    def _repr_html_(self) -> str:
        """Draw a self-contained SVG picture; a very large tree is returned as text."""
        if not 0 < len(self.nodes) <= _LARGEST:
            return f"<pre>{html.escape(str(self))}</pre>"
        colors, kind = palette("light"), "slt" if self.is_slt else "opt"
        nodes, canvas = tree_nodes(self, kind), Canvas()
        placed = placed_tree(nodes, _WIDTH if kind == "slt" else None)
        paint_tree(canvas, nodes, placed, _MARGIN, _MARGIN, colors)
        y, width = placed.height + 2 * _MARGIN, placed.width
        for letter in dict.fromkeys(node.letter for node in nodes if node.letter):
            y += 16
            canvas.text(_MARGIN, y, f"{letter}  {TYPES[letter]}", colors.quiet)
            width = max(width, text_width(f"{letter}  {TYPES[letter]}"))
        return canvas.picture(width + 2 * _MARGIN, y + _MARGIN, colors.ground, f"{kind.upper()}: {self.source}").svg


TYPES = {
    "V": "variable",
    "N": "number",
    "C": "constant",
    "F": "function",
    "O": "operator, operands in order",
    "U": "operator, operands in any order",
    "M": "matrix, vector, set, list or brackets",
    "T": "text",
    "W": "empty",
    "E": "not understood",
    "+": "compound operator",
}
"""The types of symbols, with which labels begin, and their meaning."""

_ESCAPES = {"&comma;": ",", "&quest;": "?", "&lsqb;": "[", "&rsqb;": "]"}
_ESCAPE = re.compile("|".join(_ESCAPES))
_ITALIC = (*range(0x1D434, 0x1D468), *range(0x1D6FC, 0x1D715), 0x210E)  # Latin and small Greek letters
_UPRIGHT = {code: unicodedata.normalize("NFKC", chr(code)) for code in _ITALIC}
_OPERATORS = {
    "eq": "=", "neq": "≠", "lt": "<", "gt": ">", "leq": "≤", "geq": "≥", "approx": "≈", "equivalent": "≡",
    "plus": "+", "minus": "−", "times": "×", "divide": "÷", "factorial": "!", "root": "√", "infinity": "∞",
    "sum": "∑", "product": "∏", "int": "∫", "partialdiff": "∂", "in": "∈", "notin": "∉",
    "union": "∪", "intersect": "∩", "setdiff": "∖", "emptyset": "∅", "and": "∧", "or": "∨",
    "not": "¬", "implies": "⇒", "iff": "⇔", "forall": "∀", "exists": "∃", "maps-to": "↦", "assign": "≔",
    "SUP": "superscript", "SUB": "subscript", "supremum": "sup", "infimum": "inf", "conditional": "given |",
}  # fmt: skip
_COLLECTIONS = {"V": "vector", "L": "list", "S": "set", "M": "matrix"}
_COLLECTION = re.compile(r"([VLSM])-(\d+(?:x\d+)?)$")
_SIZED = re.compile(r"(.*?)(\d+)x(\d+)$")


def readable(label: str) -> tuple[str, str]:
    """Split a label into a key of :data:`TYPES`, empty for symbols without type, and the symbol for people."""
    kind, mark, name = label.partition("!")
    if not (mark and kind in TYPES):
        return "", _plain(label)
    if kind == "+":
        return kind, readable(name)[1]
    if kind == "M":
        if (known := _COLLECTION.match(name)) is not None:  # V-3 is a vector 3
            text = f"{_COLLECTIONS[known[1]]} {known[2].replace('x', '×')}"
        elif (sized := _SIZED.match(name)) is not None:  # ()1x3 are round brackets around 1×3 parts
            text = f"{_plain(sized[1])} {sized[2]}×{sized[3]}".strip()
        else:
            text = "row" if name == "R!" else _plain(name.removeprefix("D-"))
    elif kind in "OUCF":
        text = _OPERATORS.get(name) or _plain(name)
    else:
        text = _plain(name)
    return kind, text


def _plain(text: str) -> str:
    """Undo the escapes of Tangent-S, and write italic letters upright."""
    return _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text).translate(_UPRIGHT)


def symbol_node(
    label: str, title: str, parent: int, role: str, kind: str, length: int = _LABEL, *, again: bool = False
) -> TreeNode:
    """Make a symbol of a formula tree a node to be painted."""
    variable, slash, name = label.rpartition(" / ")
    letter, text = readable(name)
    shown = shortened(f"{variable}{slash}{text}", length) or "·"
    edge = role.removeprefix(":slt-").removeprefix(":op") if parent >= 0 else ""
    return TreeNode(shown, parent, edge, title, kind, letter, again)


def tree_nodes(tree: FormulaTree, kind: str) -> list[TreeNode]:
    """Make all symbols of a tree nodes to be painted."""
    edges = {child: (parent, label) for parent, child, label in tree.edges}
    numbered = ((label, *edges.get(i, (-1, ""))) for i, label in enumerate(tree.nodes))
    return [symbol_node(label, label, parent, role, kind) for label, parent, role in numbered]


def unified_label(label: str) -> str:
    """Return the type of a label, ``V!`` of ``V!x``; a label without a type is its own."""
    return label[:2] if label[1:2] == "!" else label


class FormulaPair(NamedTuple):
    """Both trees of one formula, the symbol layout ``slt`` and the operators ``opt``; ``None`` where there is none."""

    slt: FormulaTree | None
    opt: FormulaTree | None


LONGEST_PAIR = 200
"""Characters of a symbol pair, joined by tabs; a longer one is left out."""
SPELLED_PATH = 5
"""Edges of the longest path that is not run-length encoded."""
_PUSHED = {label: rank for rank, label in enumerate("naboucdwe")}  # order in which an SLT subtree is searched

Children = list[list[tuple[str, int]]]


class _Place:
    """The path from the root to one node, run-length encoded as it grows: ``nnnnna`` is ``5n1a``."""

    __slots__ = ("closed", "label", "length", "run", "written")

    def __init__(self, closed: str | None = "", label: str = "", run: int = 0, length: int = 0) -> None:
        self.closed, self.label, self.run, self.length = closed, label, run, length
        self.written: str | None = None  # several pairs have the same place

    def below(self, label: str) -> _Place:
        """Return the place of a child."""
        if label == self.label:
            return _Place(self.closed, label, self.run + 1, self.length + 1)
        closed = self.closed
        if closed is not None and self.run:
            closed = f"{closed}{self.run}{self.label}"
            closed = closed if len(closed) <= LONGEST_PAIR else None  # every symbol pair from here down is dropped
        return _Place(closed, label, 1, self.length + 1)

    def __str__(self) -> str:
        if self.written is None:
            code = f"{self.closed}{self.run}{self.label}" if self.length else "-"
            if 0 < self.length <= SPELLED_PATH:
                code = "".join(label * int(run) for run, label in zip(code[::2], code[1::2], strict=True))
            self.written = code
        return self.written


def _descendants(
    nodes: tuple[str, ...], children: Children, start: int, label: str, window: int
) -> list[tuple[str, str]]:
    """List the labels of a subtree with the path to them, down to a distance, in the order of a stack."""
    descendants: list[tuple[str, str]] = []
    stack = [(start, label)]
    while stack:
        node, path = stack.pop()
        code = path
        if len(path) > SPELLED_PATH:
            place = _Place()
            for edge in path:
                place = place.below(edge)
            code = str(place)
        descendants.append((nodes[node], code))
        if not window or len(path) < window:
            stack += [(child, path + edge) for edge, child in children[node]]
    return descendants


def _add(pairs: list[SymbolPair], ancestor: str, place: _Place, descendants: list[tuple[str, str]]) -> None:
    """Add the symbol pairs of one node that are not too long."""
    if place.closed is None:
        return
    where = str(place)
    room = LONGEST_PAIR - 3 - len(ancestor) - len(where)
    pairs += [(ancestor, below, path, where) for below, path in descendants if len(below) + len(path) <= room]

r"""Matching of formulas: sub-expressions that are equal, equal up to renaming, or instances of a pattern.

An operator tree becomes *terms*: its distinct sub-expressions, each once, operands before operators. Forms that mean
the same are one: sums, products and chains of equations are flat, ``a>b`` is ``b<a``, ``x^2_i`` is ``x_i^2``. The terms
of ``(x-y)^2=z``::

    0 V!𝑥   1 V!𝑦   2 neg(1)   3 U!plus(0, 2)   4 N!2   5 O!SUP(3, 4)   6 V!𝑧   7 U!eq(5, 6)

Each term has two hashes. Operands in any order have the same *key* where the order has no meaning; a *shape* is a key
without the names of letters. Equal terms have equal keys, terms that are equal up to renaming have equal shapes, and
:func:`unify` matches patterns as follows:

* a **letter** of the pattern matches a letter, one to one;
* a **wildcard**, ``?a``, matches any sub-expression, and equal wildcards equal ones;
* operands of sums, products and other commutative operators match in any order, and a wildcard may match several.

A letter is one Latin or Greek letter, in any font. Not renamed are π, blackboard bold (ℝ), and e with an exponent.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from .opt import RELATIONS
from .tree import FormulaTree

SUM, PRODUCT, NEGATIVE, CHAIN, LINES, POWER, INDEX = (
    "U!plus", "U!times", "neg", "U!and", "O!form-seq", "O!SUP", "O!SUB"
)  # fmt: skip
ASSOCIATIVE = frozenset({SUM, PRODUCT, CHAIN, "U!or", "U!union", "U!intersect"})
"""Operators of any number of operands in any order; a wildcard may match several neighbors of them."""

MOST_STEPS = 2_000  # of one unification: a candidate that needs more does not match
MOST_RUN = 8  # operands of a sum all of whose runs are sub-expressions; of a longer one, runs of up to four operands

_TRANSITIVE = frozenset({"U!eq", "U!equivalent", "U!iff"})
_FLIPPED = {"O!gt": "O!lt", "O!geq": "O!leq", "O!implied-by": "O!implies", "O!much-greater-than": "O!much-less-than"}
_PRODUCTS = frozenset({PRODUCT, "F!⋅"})
_SUMS = frozenset({SUM, "O!minus"})
_E = "V!𝑒"
_EULER = "C!𝑒"  # e with an exponent
_CONSTANTS = frozenset("π")
_SHORT_RUN = 4


class Extent(IntEnum):
    """How much of a formula a sub-expression is, the least first."""

    INSIDE = 0
    SIDE = 1  # of a relation that is a statement
    STATEMENT = 2  # a line, or a relation of a chain
    WHOLE = 3


@lru_cache(maxsize=4096)
def is_letter(label: str) -> bool:
    """Whether a label is a letter that may be renamed."""
    if label[:2] != "V!":
        return False
    name = label[2:].removeprefix("italic-")
    plain = unicodedata.normalize("NFKC", name)
    if len(plain) != 1 or not plain.isalpha() or plain in _CONSTANTS:
        return False
    return len(name) == 1 and "DOUBLE-STRUCK" not in unicodedata.name(name, "")


def is_wildcard(label: str) -> bool:
    """Whether a label is a wildcard, ``?a``."""
    return label[:1] == "?" and len(label) > 1


class Terms:
    """The distinct sub-expressions of one formula, operands before operators; the whole is the last.

    Attributes:
        root: the whole formula.
        lines: lines that were parsed separately; see :func:`read_terms`.
        labels: of the operator or symbol of each.
        args: the numbers of its operands, in the order of writing.
        keys: 64 bits that only equal terms share.
        shapes: 64 bits that only terms share that are equal but for the names of letters.
        sizes: the symbols of each.
        is_open: whether a wildcard is in it.
    """

    def __init__(self) -> None:
        self.root = -1
        self.lines: list[int] = []
        self.labels: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.keys: list[int] = []
        self.shapes: list[int] = []
        self.sizes: list[int] = []
        self.is_open: list[bool] = []
        self._numbers: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.labels)

    def label(self, term: int) -> str:
        return self.labels[term]

    def operands(self, term: int) -> tuple[int, ...]:
        return self.args[term]

    def identity(self, term: int) -> tuple[int, int]:
        return self.shapes[term], self.keys[term]

    def add(self, label: str, args: Sequence[int] = ()) -> int:
        """Return the number of a term, which is added where it is new."""
        name = "V!" if is_letter(label) else label
        shape = _hashed(name, [self.shapes[arg] for arg in args])
        key = _hashed(label, [self.keys[arg] for arg in args])
        number = self._numbers.setdefault((shape, key), len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
            self.args.append(tuple(args))
            self.shapes.append(shape)
            self.keys.append(key)
            self.sizes.append(1 + sum(self.sizes[arg] for arg in args))
            self.is_open.append(is_wildcard(label) or any(self.is_open[arg] for arg in args))
        return number


def _hashed(label: str, below: list[int]) -> int:
    if label[:2] == "U!":
        below.sort()
    text = label.encode("utf-8", "surrogatepass") + b"\x1f" + b"".join(each.to_bytes(8, "big") for each in below)
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def read_terms(tree: FormulaTree, lines: Sequence[FormulaTree] = ()) -> Terms:
    """List the distinct sub-expressions of an operator tree, and of trees of its ``lines``, in linear time."""
    terms = Terms()
    terms.lines = [_TreeReader(terms, each).root() for each in (*lines, tree)]
    terms.root = terms.lines.pop()
    return terms


_QUESTION = re.compile(r"(?<!\\)\?([A-Za-z])")


def with_wildcards(latex: str) -> str:
    r"""Write the wildcards ``?a`` of a typed pattern as ``\qvar{a}``; a question mark before anything else stays."""
    return _QUESTION.sub(r"\\qvar{\1}", latex)


class _TreeReader:
    """Makes terms of the nodes of one tree, operands before operators."""

    def __init__(self, terms: Terms, tree: FormulaTree) -> None:
        self.terms, self.labels = terms, tree.nodes
        self.kids = [[child for _, child in children] for children in tree.children()]
        self.inner = [False] * len(self.kids)  # merged into the parent: the same operator, or a relation of a chain
        self.made = [-1] * len(self.kids)  # the term of each so far
        labels = self.labels
        for node, label in enumerate(labels):
            is_chain = label == CHAIN and self._is_chain(node)
            for place, kid in enumerate(self.kids[node]):
                if label in _SUMS:
                    negated = label == "O!minus" and (place or len(self.kids[node]) == 1)
                    self.inner[kid] = labels[kid] in _SUMS and not negated
                elif label in _PRODUCTS:
                    self.inner[kid] = labels[kid] in _PRODUCTS
                elif is_chain:
                    self.inner[kid] = True
                elif label == LINES or label in ASSOCIATIVE:
                    self.inner[kid] = labels[kid] == label and not (label == CHAIN and self._is_chain(kid))

    def _is_chain(self, node: int) -> bool:
        kids = self.kids[node]
        return len(kids) > 1 and all(self.labels[kid] in RELATIONS and self.kids[kid] for kid in kids)

    def root(self) -> int:
        """Make all terms; return that of the root."""
        for node in range(len(self.kids) - 1, -1, -1):
            if not self.inner[node]:
                self.made[node] = self._term(node)
        return self.made[0]

    def _term(self, node: int) -> int:
        """Make the term of a node whose operands are made."""
        terms, label, kids = self.terms, self.labels[node], self.kids[node]
        if not kids:
            return terms.add(label)
        if label == CHAIN and self.inner[kids[0]] and self.labels[kids[0]] in RELATIONS:
            return self._chain(kids)
        if label in _SUMS or label in _PRODUCTS or label == LINES or label in ASSOCIATIVE:
            args = list(self._operands(node))
            if label in _SUMS:
                is_negation, label = label == "O!minus" and len(kids) == 1, SUM
                if is_negation and len(args) == 1:
                    return args[0]
            elif label in _PRODUCTS:
                label = PRODUCT
            return args[0] if len(args) == 1 and label in ASSOCIATIVE else terms.add(label, args)
        args = [self.made[kid] for kid in kids]
        if label in RELATIONS:
            return self._relation(label, args)
        if label == POWER and terms.labels[args[0]] == _E:
            args[0] = terms.add(_EULER)
        elif label == INDEX and terms.labels[args[0]] == POWER:
            base, power = terms.args[args[0]]
            return terms.add(POWER, (terms.add(INDEX, (base, *args[1:])), power))
        elif label[:2] == "+!":  # the label records whether a subscript came first
            label = "+!"
        return terms.add(label, args)

    def _operands(self, node: int) -> Iterator[int]:
        """Yield the operands of a flat operator, in the order of writing."""
        stack = [(node, False)]
        while stack:
            at, negated = stack.pop()
            if at != node and not self.inner[at]:
                yield self.terms.add(NEGATIVE, (self.made[at],)) if negated else self.made[at]
                continue
            kids, minus = self.kids[at], self.labels[at] == "O!minus"
            stack += [(kid, minus and (place > 0 or len(kids) == 1)) for place, kid in reversed(list(enumerate(kids)))]

    def _relation(self, label: str, args: Sequence[int]) -> int:
        if label in _FLIPPED and len(args) == 2:
            label, args = _FLIPPED[label], args[::-1]
        return self.terms.add(label, args)

    def _chain(self, nodes: Sequence[int]) -> int:
        """Make the term of ``a=b=c<d``: equations in a row are one, and each other relation has both of its sides."""
        relations: list[tuple[str, list[int]]] = []
        for node in nodes:
            label, sides = self.labels[node], [self.made[operand] for operand in self.kids[node]]
            before, shared = relations[-1] if relations else ("", [])
            if shared and len(sides) == 1:
                sides = [shared[-1], *sides]
            if label in _TRANSITIVE and before == label and shared[-1] == sides[0]:
                shared.extend(sides[1:])
            else:
                relations.append((label, sides))
        made = [self._relation(label, sides) for label, sides in relations]
        return made[0] if len(made) == 1 else self.terms.add(CHAIN, made)


MOST_SYMBOLS = 64
"""Symbols of a sub-expression with a structure; a larger one is hardly ever found again."""


def structures(terms: Terms) -> list[int]:
    """Name the sub-expressions with operands without letters, each by 64 bits that it shares with its renamed forms.

    The letters are numbered in the order of their first occurrence, so ``x+x`` and ``x+y`` differ, which a shape does
    not. Where the order of operands has no meaning they are in the order of their shapes. Operands come before
    operators; sub-expressions have 2 to 64 symbols.
    """
    structure_hashes = []
    for root in range(len(terms)):
        if not terms.args[root] or terms.sizes[root] > MOST_SYMBOLS:
            continue
        numbers, written, stack = dict[str, int](), list[str](), [root]
        while stack:
            term = stack.pop()
            label, args = terms.labels[term], terms.args[term]
            if is_letter(label):
                label = f"V!{numbers.setdefault(label, len(numbers))}"
            if label[:2] == "U!":
                args = tuple(sorted(args, key=terms.shapes.__getitem__))
            written.append(f"{label}\x1f{len(args)}")
            stack += reversed(args)
        structure_hashes.append(_hashed("\x1e".join(written), []))
    return structure_hashes


def parts(terms: Terms) -> dict[int, Extent]:
    """List the sub-expressions of a formula, each with the greatest extent that it has.

    A part of the operands of a sum or product, in the order of writing, is a sub-expression, too, and so is the
    equation of any two members of a chain ``a=b=c``. The terms of these are added.
    """
    extents = dict.fromkeys(range(len(terms)), Extent.INSIDE)
    statements = list(_statements(terms, [terms.root, *terms.lines]))
    stated = frozenset(statements)
    for term in range(len(terms)):
        label, args = terms.labels[term], terms.args[term]
        if len(args) < 3:
            continue
        if label in ASSOCIATIVE:
            longest = len(args) - 1 if len(args) <= MOST_RUN else _SHORT_RUN
            for length in range(2, longest + 1):
                for first in range(len(args) - length + 1):
                    extents.setdefault(terms.add(label, args[first : first + length]), Extent.INSIDE)
        elif label in _TRANSITIVE:
            for second in range(1, len(args)):  # of a long chain, each with the first and with its neighbor
                for first in range(second) if len(args) <= MOST_RUN else {0, second - 1}:
                    pair = terms.add(label, (args[first], args[second]))
                    extents.setdefault(pair, Extent.INSIDE)
                    if term in stated:
                        statements.append(pair)
    for term in statements:
        if terms.labels[term] in RELATIONS:
            for side in terms.args[term]:
                extents[side] = max(extents[side], Extent.SIDE)
    for term in statements:
        extents[term] = Extent.STATEMENT
    extents[terms.root] = Extent.WHOLE
    return extents


def _statements(terms: Terms, stack: list[int]) -> Iterator[int]:
    """Find formulas, their lines, and the relations of each."""
    while stack:
        term = stack.pop()
        yield term
        if terms.labels[term] in (LINES, CHAIN):
            stack += terms.args[term]
        elif terms.labels[term] == "O!cases":
            stack += [case for case in terms.args[term] if terms.labels[case] in RELATIONS]


def occurrences(terms: Terms, root: int) -> dict[str, int]:
    """Count how often each symbol and each operator occurs in a term."""
    times = [0] * (root + 1)
    times[root] = 1
    counts = dict[str, int]()
    for term in range(root, -1, -1):
        for arg in terms.args[term]:
            times[arg] += times[term]
        if times[term]:
            counts[terms.labels[term]] = counts.get(terms.labels[term], 0) + times[term]
    return counts


class TermTable(Protocol):
    """Terms that a pattern is unified with; equal terms have the same number."""

    def label(self, term: int) -> str: ...

    def operands(self, term: int) -> tuple[int, ...]: ...  # in the order of writing

    def identity(self, term: int) -> tuple[int, int]: ...  # shape and key


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a wildcard: one term, with an empty label, or operands of an operator in any order."""

    label: str  # of the operator
    terms: tuple[int, ...]  # ascending
    written: tuple[int, ...] = field(compare=False)  # in the order of writing

    @classmethod
    def of(cls, label: str, terms: tuple[int, ...]) -> Value:
        """Make the value of terms in the order of writing."""
        return cls(label, tuple(sorted(terms)), terms)


class Substitution(NamedTuple):
    """The substitution that makes a pattern equal to a term."""

    letters: Mapping[str, int]  # each letter of the pattern, by its label, to the number of a letter
    wildcards: Mapping[str, Value]  # each wildcard, by its label, to its value


class Unified(NamedTuple):
    """The result of a unification, ``None`` for no match, and the number of steps."""

    substitution: Substitution | None
    steps: int


def unify(pattern: Terms, terms: TermTable, term: int, most: int = MOST_STEPS) -> Unified:
    """Find the first substitution that makes the whole pattern equal to a term, within ``most`` steps.

    A step compares two terms, or tries some operands for another: equal ones first, then in the order of writing.
    """
    return _Unification(pattern, terms).run(term, most)


class _Goal(NamedTuple):
    """A match still to be made: the operands of two operators, or two terms."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    operator: str
    rest: _Goal | None
    places: tuple[int, ...] = ()  # of the pattern's operands, near which the formula's are tried first


class _Unification:
    """Depth-first search over a linked list of goals, with a stack of choices: depth is unlimited."""

    def __init__(self, pattern: Terms, terms: TermTable) -> None:
        self.pattern, self.terms = pattern, terms
        self.letters: dict[int, int] = {}
        self.taken: dict[int, int] = {}  # letters of the formula to letters of the pattern
        self.values: dict[int, Value] = {}
        self.trail: list[tuple[dict[int, Any], int]] = []

    def run(self, term: int, most: int) -> Unified:
        goal: _Goal | None = _Goal((self.pattern.root,), (term,), "", None)
        choices: list[tuple[Iterator[_Goal | None], int]] = []
        steps = 0
        while goal is not None:
            ways = self._ways(goal) if goal.operator else self._compared(goal)
            choices.append((ways, len(self.trail)))
            while choices:
                steps += 1
                if steps > most:
                    return Unified(None, steps)
                ways, length = choices[-1]
                while len(self.trail) > length:
                    table, name = self.trail.pop()
                    del table[name]
                try:
                    goal = next(ways)
                except StopIteration:
                    choices.pop()
                else:
                    break
            else:
                return Unified(None, steps)
        labels = self.pattern.labels
        letters = {labels[ours]: theirs for ours, theirs in self.letters.items()}
        return Unified(Substitution(letters, {labels[ours]: value for ours, value in self.values.items()}), steps)

    def _compared(self, goal: _Goal) -> Iterator[_Goal | None]:
        """Compare two terms; yield the remaining goal if they can match."""
        (ours,), (theirs,), _, rest, _ = goal
        pattern, terms, label = self.pattern, self.terms, self.pattern.labels[ours]
        if is_wildcard(label):
            if self._bound(self.values, ours, self._value(theirs)):
                yield rest
            return
        if is_letter(label):
            binds = is_letter(terms.label(theirs)) and self._bound(self.letters, ours, theirs)
            if binds and self._bound(self.taken, theirs, ours):  # one to one
                yield rest
            return
        if not pattern.is_open[ours] and terms.identity(theirs)[0] != pattern.shapes[ours]:
            return
        if terms.label(theirs) != label:
            return
        left, right = pattern.args[ours], terms.operands(theirs)
        if label[:2] == "U!" and left:
            may_take_more = label in ASSOCIATIVE and len(left) < len(right)
            if len(left) == len(right) or (may_take_more and any(is_wildcard(pattern.labels[one]) for one in left)):
                places = sorted(range(len(left)), key=lambda place: self._rank(left[place]))
                yield _Goal(tuple(left[place] for place in places), right, label, rest, tuple(places))
        elif len(left) == len(right):
            for one, other in zip(reversed(left), reversed(right), strict=True):
                rest = _Goal((one,), (other,), "", rest)
            yield rest

    def _rank(self, ours: int) -> tuple[int, int]:
        """Order operands: first operands without wildcards, the largest first, and last plain wildcards."""
        if is_wildcard(self.pattern.labels[ours]):
            return 2, 0
        return int(self.pattern.is_open[ours]), -self.pattern.sizes[ours]

    def _ways(self, goal: _Goal) -> Iterator[_Goal | None]:
        """List the ways to match one operand of a commutative operator of the pattern; wildcards come last."""
        left, right, operator, rest, places = goal
        if not is_wildcard(self.pattern.labels[left[0]]):
            for place in self._tried(left[0], right, places[0]):
                after = _after(left[1:], (*right[:place], *right[place + 1 :]), operator, rest, places[1:])
                yield _Goal((left[0],), (right[place],), "", after)
            return
        place = next((place for place, ours in enumerate(left) if ours in self.values), 0)
        ours, others = left[place], (*left[:place], *left[place + 1 :])
        places = (*places[:place], *places[place + 1 :])
        if ours in self.values:
            left_over = self._without(right, self.values[ours], operator)
            if left_over is not None and len(left_over) >= len(others) and bool(left_over) == bool(others):
                yield _after(others, left_over, operator, rest, places)
            return
        most = len(right) - len(others) if operator in ASSOCIATIVE else 1
        for length in range(1 if others else len(right), most + 1):
            for first in range(len(right) - length + 1):
                run = right[first : first + length]
                value = self._value(run[0]) if length == 1 else Value.of(operator, run)
                if self._bound(self.values, ours, value):
                    yield _after(others, (*right[:first], *right[first + length :]), operator, rest, places)

    def _tried(self, ours: int, right: Sequence[int], first: int) -> list[int]:
        """List the places of operands that may match, each operand once: the equal one, then those near a place."""
        pattern, terms = self.pattern, self.terms
        same, others, seen = list[int](), list[int](), set[int]()
        for place, theirs in enumerate(right):
            if theirs in seen:
                continue
            seen.add(theirs)
            shape, key = terms.identity(theirs)
            if key == pattern.keys[ours]:
                same.append(place)
            elif (
                terms.label(theirs) == pattern.labels[ours] if pattern.is_open[ours] else shape == pattern.shapes[ours]
            ):
                others.append(place)
        return same + sorted(others, key=lambda place: abs(place - first))

    def _without(self, right: tuple[int, ...], value: Value, operator: str) -> tuple[int, ...] | None:
        """Remove the operands of ``value`` from others, or return ``None`` if any is missing."""
        left_over = list(right)
        if value.label == operator:
            for term in value.terms:
                if term not in left_over:
                    return None
                left_over.remove(term)
            return tuple(left_over)
        place = next((place for place, term in enumerate(right) if self._value(term) == value), None)
        return None if place is None else (*right[:place], *right[place + 1 :])

    def _value(self, term: int) -> Value:
        label, operands = self.terms.label(term), self.terms.operands(term)
        return Value.of(label, operands) if label in ASSOCIATIVE and operands else Value.of("", (term,))

    def _bound(self, table: dict[int, Any], name: int, value: Any) -> bool:
        """Give a name a value, unless it has another."""
        if name in table:
            return bool(table[name] == value)
        table[name] = value
        self.trail.append((table, name))
        return True


def _after(
    left: tuple[int, ...], right: tuple[int, ...], operator: str, rest: _Goal | None, places: tuple[int, ...]
) -> _Goal | None:
    """Return the goal for an operator's remaining operands, followed by the rest."""
    return _Goal(left, right, operator, rest, places) if left else rest

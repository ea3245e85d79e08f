"""A regular expression as a machine whose steps can be counted.

`re` gives no count, and a time is not a property of an input. So the tests run each expression of the package a second
time, by backtracking over the tree that `re` itself parsed it to, and count one step for each character, assertion and
branch tried, from each place where a search begins. That is what `re` does, in Python. That the machine is honest is
checked at each use: it must find the spans that `re` finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from re import _constants as op  # type: ignore[attr-defined]  # isort: skip
from re import _parser  # type: ignore[attr-defined]  # isort: skip

Then = Callable[[int], int]  # goes on from a place: gives where the match ends, or -1


class TooMuchWorkError(Exception):
    """More steps than a test allows."""


class Budget:
    """Steps made, and how many may be."""

    def __init__(self, most: float = float("inf")) -> None:
        self.steps, self.most = 0, most

    def step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self.most:
            raise TooMuchWorkError(f"more than {self.most:,} steps")


class _Run:
    """One attempt at a match: the text, the groups so far."""

    def __init__(self, text: str, budget: Budget) -> None:
        self.text, self.budget = text, budget
        self.groups: dict[int, tuple[int, int]] = {}


Node = Callable[[_Run, int, Then], int]
_SINGLE = {op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN}
_REPEATS = {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}


def _category(name: Any, plain: bool) -> Callable[[str], bool]:
    kind = str(name).removeprefix("CATEGORY_").lower()
    wanted = not kind.startswith("not_")
    test = {"digit": str.isdecimal, "space": str.isspace, "word": lambda c: c.isalnum() or c == "_"}[
        kind.removeprefix("not_")
    ]
    return lambda c: (test(c) and not (plain and ord(c) > 127)) == wanted


def _character(code: Any, value: Any, flags: int, plain: bool) -> Callable[[str], bool]:
    """The test of a single character."""
    if code is op.ANY:
        return lambda c: bool(flags & re.DOTALL) or c != "\n"
    if code in (op.LITERAL, op.NOT_LITERAL):
        tests, negated = [(code, value)], code is op.NOT_LITERAL
    else:
        negated = value[0][0] is op.NEGATE
        tests = value[negated:]
    ranges = [(a, a) if kind is not op.RANGE else a for kind, a in tests if kind is not op.CATEGORY]
    categories = [_category(a, plain) for kind, a in tests if kind is op.CATEGORY]

    def inside(c: str) -> bool:
        cases = {c, c.lower(), c.upper()} if flags & re.IGNORECASE else {c}
        found = any(low <= ord(d) <= high for d in cases if len(d) == 1 for low, high in ranges)
        return (found or any(test(c) for test in categories)) != negated

    return cache(inside)


def _at(code: Any, flags: int) -> Callable[[str, int], bool]:
    def word(text: str, i: int) -> bool:
        return 0 <= i < len(text) and (text[i].isalnum() or text[i] == "_")

    lines = bool(flags & re.MULTILINE)
    return {
        op.AT_BEGINNING: lambda t, i: i == 0 or (lines and t[i - 1] == "\n"),
        op.AT_BEGINNING_STRING: lambda t, i: i == 0,
        op.AT_END: lambda t, i: i == len(t) or (t[i] == "\n" and (lines or i == len(t) - 1)),
        op.AT_END_STRING: lambda t, i: i == len(t),
        op.AT_BOUNDARY: lambda t, i: word(t, i - 1) != word(t, i),
        op.AT_NON_BOUNDARY: lambda t, i: word(t, i - 1) == word(t, i),
    }[code]


def _sequence(items: Any, flags: int, plain: bool) -> Node:
    nodes = [_node(code, value, flags, plain) for code, value in items]

    def run(state: _Run, at: int, then: Then, first: int = 0) -> int:
        if first == len(nodes):
            return then(at)
        return nodes[first](state, at, lambda i: run(state, i, then, first + 1))

    return run


def _repeat(code: Any, value: Any, flags: int, plain: bool) -> Node:
    least, most, body = value
    if len(body) == 1 and body[0][0] in _SINGLE:
        test = _character(*body[0], flags, plain)

        def single(state: _Run, at: int, then: Then) -> int:
            text, end = state.text, at
            if code is op.MIN_REPEAT:
                while True:
                    if end - at >= least and (found := then(end)) >= 0:
                        return found
                    state.budget.step()
                    if end - at == most or end == len(text) or not test(text[end]):
                        return -1
                    end += 1
            while end - at < most and end < len(text) and test(text[end]):
                end += 1
            state.budget.step(end - at + 1)
            for stop in range(end, at + least - 1, -1):
                state.budget.step()
                if (found := then(stop)) >= 0:
                    return found
                if code is op.POSSESSIVE_REPEAT:
                    break
            return -1

        return single
    inner = _sequence(body, flags, plain)

    def group(state: _Run, at: int, then: Then, done: int = 0) -> int:
        state.budget.step()
        if done >= least and code is op.MIN_REPEAT and (found := then(at)) >= 0:
            return found
        if done < most:

            def again(i: int) -> int:
                return -1 if i == at and done >= least else group(state, i, then, done + 1)

            if (found := inner(state, at, again)) >= 0:
                return found
        return then(at) if done >= least and code is not op.MIN_REPEAT else -1

    if code is not op.POSSESSIVE_REPEAT:
        return group

    def possessive(state: _Run, at: int, then: Then) -> int:
        end = group(state, at, lambda i: i)
        return -1 if end < 0 else then(end)

    return possessive


def _node(code: Any, value: Any, flags: int, plain: bool) -> Node:
    if code in _SINGLE:
        test = _character(code, value, flags, plain)

        def character(state: _Run, at: int, then: Then) -> int:
            state.budget.step()
            return then(at + 1) if at < len(state.text) and test(state.text[at]) else -1

        return character
    if code in _REPEATS:
        return _repeat(code, value, flags, plain)
    if code is op.AT:
        holds = _at(value, flags)

        def place(state: _Run, at: int, then: Then) -> int:
            state.budget.step()
            return then(at) if holds(state.text, at) else -1

        return place
    if code is op.BRANCH:
        branches = [_sequence(branch, flags, plain) for branch in value[1]]

        def one_of(state: _Run, at: int, then: Then) -> int:
            for branch in branches:
                if (end := branch(state, at, then)) >= 0:
                    return end
            return -1

        return one_of
    if code is op.SUBPATTERN:
        number, added, removed, body = value
        inside = _sequence(body, (flags | added) & ~removed, plain)

        def subpattern(state: _Run, at: int, then: Then) -> int:
            before = state.groups.get(number)

            def closed(end: int) -> int:
                state.groups[number] = (at, end)
                return then(end)

            found = inside(state, at, closed)
            if found < 0 and before is None:
                state.groups.pop(number, None)
            elif found < 0:
                state.groups[number] = before  # type: ignore[assignment]
            return found

        return subpattern
    if code in (op.ASSERT, op.ASSERT_NOT):
        direction, body = value
        looked, back = _sequence(body, flags, plain), body.getwidth()[0] if direction < 0 else 0

        def assertion(state: _Run, at: int, then: Then) -> int:
            state.budget.step()
            holds = at >= back and looked(state, at - back, lambda i: i) >= 0
            return then(at) if holds == (code is op.ASSERT) else -1

        return assertion
    if code is op.ATOMIC_GROUP:
        atom = _sequence(value, flags, plain)
        return lambda state, at, then: then(end) if (end := atom(state, at, lambda i: i)) >= 0 else -1
    if code is op.GROUPREF:

        def same(state: _Run, at: int, then: Then) -> int:
            start, end = state.groups.get(value, (0, -1))
            state.budget.step(max(end - start, 0) + 1)
            return then(at + end - start) if end >= 0 and state.text.startswith(state.text[start:end], at) else -1

        return same
    if code is op.GROUPREF_EXISTS:
        number, yes, no = value
        one, other = _sequence(yes, flags, plain), _sequence(no or [], flags, plain)
        return lambda state, at, then: (one if number in state.groups else other)(state, at, then)
    raise NotImplementedError(str(code))


@cache
def _machine(pattern: re.Pattern[Any]) -> Node:
    tree = _parser.parse(
        pattern.pattern, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    return _sequence(tree, pattern.flags, isinstance(pattern.pattern, bytes))


def spans(pattern: re.Pattern[Any], text: str, at: int, budget: Budget, how: str) -> Iterator[tuple[int, int]]:
    """Find what ``pattern`` matches, counting: once at a place ("match", "fullmatch"), or wherever it does."""
    machine, whole, empty_at = _machine(pattern), how == "fullmatch", -1
    while at <= len(text):
        budget.step()
        start, barred = at, empty_at  # no second empty match where one was

        def accept(end: int, start: int = start, barred: int = barred) -> int:
            return -1 if (whole and end < len(text)) or end == start == barred else end

        end = machine(_Run(text, budget), start, accept)
        if end >= 0:
            yield start, end
            empty_at = end if end == start else -1
        if how != "search":
            return
        at = end if end >= 0 else at + 1

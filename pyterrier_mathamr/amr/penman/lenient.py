"""`decode_leniently`: read Penman text of other programs, with repairs that are counted by name.

Text that the strict reader accepts is read by it; other text is repaired first (`repair`). Then lower-cased files are
restored: ``:arg0-of`` to ``:ARG0-of``, and ``formula_0`` to ``FORMULA_0`` where no placeholder is upper case.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from pyterrier_mathamr.amr.errors import PenmanError
from pyterrier_mathamr.amr.graph import AmrGraph

from .atoms import is_role, is_symbol
from .reader import decode_penman
from .repair import Repairer

_ARGUMENT = re.compile(r":arg([0-9]*)(-of)?", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"formula_[0-9]+", re.IGNORECASE)


class LenientGraph(NamedTuple):
    """A graph, and the number of repairs of its text by name; empty for a graph that needed none."""

    graph: AmrGraph
    repairs: Counter[str]


def decode_leniently(text: str, *, first_line: int = 1) -> LenientGraph:
    """Read one graph, and repair it where it is not Penman notation.

    Args:
        text: the record with its comment lines.
        first_line: line number of the text in its file, for messages.

    Returns:
        The graph of the repaired text, and the repairs.

    Raises:
        PenmanError: there is no graph in the text.
    """
    repairs: Counter[str] = Counter()
    try:
        graph = decode_penman(text, first_line=first_line)
        if not (
            all(map(is_symbol, filter(None, graph.variables))) and all(is_role(role) for _, role, _ in graph.edges)
        ):
            raise PenmanError("a control character that cannot be written", first_line, 0, "")
    except PenmanError:
        clean, repairs = _repaired(text, first_line)
        graph = decode_penman(clean, first_line=first_line)
        if not any(graph.labels):
            raise PenmanError("no concept in the graph", first_line, 0, text.partition("\n")[0]) from None
    graph = _roles_in_capitals(graph, repairs)
    return LenientGraph(_placeholders_in_capitals(graph, repairs), repairs)


def _repaired(text: str, first_line: int) -> tuple[str, Counter[str]]:
    """Repair the graph and keep the comment lines before it."""
    comments: list[str] = []
    repairs: Counter[str] = Counter()
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith("#"):
            comments.append(" ".join(bare.splitlines()))
            continue
        start = line.find("(")
        if line[:start].strip() if start >= 0 else bare:
            repairs["text before the graph left out"] += 1
        if start >= 0:
            repairer = Repairer("\n".join([line[start:], *lines[number + 1 :]]))
            clean = repairer.repaired()
            return "\n".join([*comments, clean]), repairs + repairer.repairs
    raise PenmanError("no bracket that opens a graph", first_line, 0, lines[0])


def _roles_in_capitals(graph: AmrGraph, repairs: Counter[str]) -> AmrGraph:
    """Restore the case of roles: ``:ARG0-of``, and lower case for others that are all upper case."""
    spelled: dict[str, str] = {}
    for role in {role for _, role, _ in graph.edges}:
        argument = _ARGUMENT.fullmatch(role)
        if argument:
            spelled[role] = f":ARG{argument[1]}{(argument[2] or '').lower()}"
        elif role.isupper():
            spelled[role] = role.lower()
    changed = sum(spelled.get(role, role) != role for _, role, _ in graph.edges)
    if not changed:
        return graph
    repairs["the case of a role"] += changed
    edges = tuple((source, spelled.get(role, role), target) for source, role, target in graph.edges)
    return replace(graph, edges=edges)


def _placeholders_in_capitals(graph: AmrGraph, repairs: Counter[str]) -> AmrGraph:
    """Restore ``formula_0`` to upper case where the whole record is lower-cased."""
    found = {node for node, label in enumerate(graph.labels) if _PLACEHOLDER.fullmatch(label)}
    if not found or any(graph.labels[node].startswith("FORMULA_") for node in found):
        return graph
    repairs["the case of a placeholder"] += len(found)
    labels = tuple(label.upper() if node in found else label for node, label in enumerate(graph.labels))
    spellings = tuple((node, atom) for node, atom in graph.spellings if node not in found)
    return replace(graph, labels=labels, spellings=spellings)

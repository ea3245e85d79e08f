"""How a formula store looks on disk: its tables, and the bytes of a tree."""

from __future__ import annotations

import hashlib
from typing import Any

from .tree import FormulaTree

FORMAT_VERSION = 1
"""Number of the format, kept as SQLite's ``user_version``; a store under construction has 0."""

SCHEMA = """
CREATE TABLE formula (id PRIMARY KEY, slt INTEGER, opt INTEGER, visual_id) WITHOUT ROWID;
CREATE TABLE tree (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE progress (place INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER NOT NULL, rows INTEGER NOT NULL,
                       done INTEGER NOT NULL);
"""

_UNIT, _FIELD = "\x1f", "\x1e"  # between labels, between parts: neither can occur in XML


def encode(tree: FormulaTree) -> bytes:
    """Write a tree as UTF-8: kind, ``!`` when partial, labels, edge labels, and how far up each parent is."""
    distances = (str(child - parent) for parent, child, _ in tree.edges)
    parts = (
        tree.kind + "!" * tree.partial,
        _UNIT.join(tree.nodes),
        "".join(label for _, _, label in tree.edges),
        _UNIT.join("" if distance == "1" else distance for distance in distances),
    )
    return _FIELD.join(parts).encode("utf-8", "surrogatepass")


def decode(body: bytes) -> FormulaTree:
    """Read what :func:`encode` wrote."""
    head, nodes, labels, distances = body.decode("utf-8", "surrogatepass").split(_FIELD)
    steps = [int(distance or 1) for distance in distances.split(_UNIT)] if labels else []
    edges = tuple(
        (child - step, child, label)
        for child, step, label in zip(range(1, len(labels) + 1), steps, labels, strict=True)
    )
    return FormulaTree(tuple(nodes.split(_UNIT)), edges, head[3:] == "!", "", "slt" if head[:3] == "slt" else "opt")


def tree_number(body: bytes) -> int:
    """Number a tree by its content: 63 bits of its digest, so that a build needs no index to find it again.

    Among the 20 million distinct trees of the whole collection, two share a number with a probability of 2 in 100,000.
    """
    return int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "big") >> 1


def number_of(text: str) -> Any:
    """Give an id as SQLite keeps it: as an integer where that loses nothing, half the bytes of text."""
    return (
        int(text)
        if text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0") and len(text) < 19
        else text
    )

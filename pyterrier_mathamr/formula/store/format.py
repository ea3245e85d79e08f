"""How a formula store looks on disk: its tables, and the bytes of a tree."""

from __future__ import annotations

import hashlib

from pyterrier_mathamr.formula.tree import FormulaTree
from pyterrier_mathamr.store import Kind

FILE = "formulas.sqlite"
KIND = Kind(
    type="formula_store",
    version=2,
    files=(FILE,),
    rebuild="FormulaStore.build('{path}', slt_tables, opt_tables, overwrite=True)",
)

SCHEMA = (
    "CREATE TABLE formula (id PRIMARY KEY, slt INTEGER, opt INTEGER, visual_id) WITHOUT ROWID",
    "CREATE TABLE tree (number INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE progress (place INTEGER PRIMARY KEY, rows INTEGER NOT NULL, done INTEGER NOT NULL)",
)
"""The tables; ``progress`` says which rows of the official tables a build has put in."""

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


def decode(body: bytes, number: int) -> FormulaTree:
    """Read what :func:`encode` wrote.

    Args:
        body: the bytes of a tree.
        number: what it is stored under.

    Raises:
        ValueError: they are not those that were stored under this number, or make no tree.
    """
    if tree_number(body) != number:
        raise ValueError("another tree")
    head, text, labels, distances = body.decode("utf-8", "surrogatepass").split(_FIELD)
    nodes = tuple(text.split(_UNIT))
    steps = [int(distance or 1) for distance in distances.split(_UNIT)] if labels else []
    if not len(nodes) - 1 == len(labels) == len(steps):
        raise ValueError("no tree")
    edges = tuple(
        (child - step, child, label) for child, (step, label) in enumerate(zip(steps, labels, strict=True), 1)
    )
    if any(not 0 <= parent < child for parent, child, _ in edges):
        raise ValueError("no tree")
    return FormulaTree(nodes, edges, head[3:] == "!", "", "slt" if head[:3] == "slt" else "opt")


def tree_number(body: bytes) -> int:
    """Number a tree by its content: 63 bits of its digest, so that a build needs no index to find it again.

    Among the 20 million distinct trees of the whole collection, two share a number with a probability of 2 in 100,000.
    """
    return int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "big") >> 1


def number_of(text: str) -> int | str | bytes:
    """Give an id as SQLite keeps it: as an integer where that loses nothing, half the bytes of text."""
    if text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0") and len(text) < 19:
        return int(text)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, which SQLite has no text for
        return text.encode("utf-8", "surrogatepass")
    return text


def text_of(value: object) -> str:
    """Give the id that :func:`number_of` was given."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)

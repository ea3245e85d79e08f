"""The SQLite file of a formula store: its tables, the bytes of a tree, and reading."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula.tree import FormulaTree
from pyterrier_mathamr.store import DamagedError, Kind, SqliteFile, id_text, in_batches, optional_number, sqlite_id

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
"""The tables; ``progress`` counts the rows of the official tables that a build has added."""

NUMBER_BITS = 63
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
    """Read what :func:`encode` wrote."""
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
    """Number a tree by its content, 63 bits of its digest, so that a build finds it without an index."""
    return int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "big") >> (64 - NUMBER_BITS)


class StoreFile(SqliteFile):
    """The file of a formula store, open for reading."""

    SCHEMA = SCHEMA

    def rows(self, ids: Iterable[FormulaId]) -> Iterator[tuple[FormulaId, int | None, int | None, str]]:
        """Look up formulas, each once, in the order of ``ids``: id, numbers of both trees, visual id."""
        for batch in in_batches(dict.fromkeys(ids)):
            keys = {fid: sqlite_id(fid) for fid in batch}
            query = "SELECT id, slt, opt, visual_id FROM formula WHERE id IN ({})"
            found = {row[0]: row[1:] for row in self.query(query, [*keys.values()])}
            for fid, key in keys.items():
                if key in found:
                    slt, opt, visual = found[key]
                    try:
                        yield fid, optional_number(slt), optional_number(opt), "" if visual is None else id_text(visual)
                    except ValueError as error:
                        raise self._damaged(fid) from error

    def trees(self, wanted: Mapping[int, FormulaId]) -> dict[int | None, FormulaTree]:
        """Look up trees by number."""
        trees: dict[int | None, FormulaTree] = {}
        for batch in in_batches(sorted(wanted)):
            bodies = dict(self.query("SELECT number, body FROM tree WHERE number IN ({})", batch))
            for number in batch:
                try:
                    trees[number] = decode(bodies[number], number)
                except (KeyError, ValueError, TypeError) as error:
                    raise self._damaged(wanted[number]) from error
        return trees

    def _damaged(self, formula: FormulaId) -> DamagedError:
        return DamagedError(self.path, f"the data of formula {formula!r:.80} is damaged")

"""What an index of Approach Zero keeps of expressions: their paths, and for each path the list of where it occurs.

path_offsets  int64  [k + 1]   path ``i`` has the postings ``path_offsets[i]:path_offsets[i + 1]``
path_roots    int32  [p]       the root end of each, ascending for each path
path_widths   uint8  [p]       how many leaves it has there
…                              and the arrays of :class:`~.sectors.Sectors`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.sparse.expressions import expression_fields, merging
from pyterrier_mathamr.sparse.index import UNBOUNDED
from pyterrier_mathamr.sparse.texts import read_texts, text_arrays, text_fields
from pyterrier_mathamr.store import Array, DamagedError, Field, Kind, Part, Rows

from .paths import FormulaPaths, formula_paths
from .sectors import Sectors, combined, packed
from .tree import canonical_tree

INDEXED_SHARE = 0.2
"""Paths that end above no more than this share of a formula's leaves are not indexed."""

_LEAF_BYTES = 2000  # of memory for the paths of a leaf that are not packed yet

_FIELDS = (
    Field("roots", "int64", "x+1", cuts="r"),
    Field("sectors", "int64", "r+1", cuts="p"),
    Field("paths", "int32", "p", below="k"),
    Field("widths", "uint8", "p"),
    Field("entries", "int64", "p+1", cuts="e"),
    Field("symbols", "int32", "e", below="y"),
    Field("firsts", "uint8", "e"),
    Field("counts", "uint8", "e"),
    Field("operators", "int32", "e", below="f"),
    Field("leaves", "int32", "x"),
    Field("path_keys", "uint64", "k"),
    *text_fields("symbol_names", "y"),
    *text_fields("operator_names", "f"),
    Field("path_offsets", "int64", "k+1", cuts="p"),
    Field("path_roots", "int32", "p", below="r"),
    Field("path_widths", "uint8", "p"),
)
_NAMES = ("symbol_names", "operator_names")
_ARRAYS = tuple(name for name in Sectors.__slots__ if name not in _NAMES)


@dataclass(frozen=True, slots=True, eq=False)
class PathLists:
    """The paths of ``x`` expressions, and the postings of each path.

    Attributes:
        of: the paths, expression by expression.
        offsets: int64 ``[k + 1]``.
        roots: int32 ``[p]``.
        widths: uint8 ``[p]``.
    """

    of: Sectors
    offsets: Rows
    roots: npt.NDArray[np.int32]
    widths: npt.NDArray[np.uint8]

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Open what a part has."""
        names = {name: read_texts(part, name) for name in _NAMES}
        for name, texts in names.items():
            if not all(map(lt, texts, islice(texts, 1, None))):
                raise DamagedError(part.path, f"{name} do not ascend")
        found: dict[str, Any] = {**names, **{name: part[name] for name in _ARRAYS}}
        if part["firsts"].max(initial=0) > 63:
            raise DamagedError(part.path, "firsts are no leaves")
        sectors = Sectors(**found)
        if bool(np.any(sectors.path_keys[1:] <= sectors.path_keys[:-1])):
            raise DamagedError(part.path, "path_keys do not ascend")
        return cls(sectors, part["path_offsets"], part["path_roots"], part["path_widths"])

    @classmethod
    def of_sectors(cls, sectors: Sectors) -> Self:
        """List where each path occurs."""
        order = np.argsort(sectors.paths, kind="stable")  # stable: root ends stay ascending for each path
        roots = np.repeat(np.arange(len(sectors.sectors) - 1, dtype=np.int32), np.diff(sectors.sectors))
        found = np.bincount(sectors.paths, minlength=len(sectors.path_keys))
        offsets = np.concatenate([[0], np.cumsum(found)]).astype(np.int64)
        return cls(sectors, offsets, roots[order], sectors.widths[order])

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several; a number of -1 leaves an expression out."""
        return cls.of_sectors(combined([piece.of for piece in pieces], numbers, size))

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""
        found = {name: getattr(self.of, name) for name in _ARRAYS}
        for name in _NAMES:
            found |= text_arrays(name, getattr(self.of, name))
        return found | {"path_offsets": self.offsets, "path_roots": self.roots, "path_widths": self.widths}


class PathListsBuilder:
    """Takes the paths of expressions, one after another."""

    def __init__(self) -> None:
        self._formulas = list[FormulaPaths]()
        self.nbytes = 0
        """The memory that is taken, about."""

    def add(self, pair: FormulaPair) -> None:
        """Take the paths of an expression; one without operator tree has none."""
        paths = FormulaPaths(0, [], {})
        if pair.opt is not None:
            paths = formula_paths(canonical_tree(pair.opt), INDEXED_SHARE)
        self._formulas.append(paths)
        self.nbytes += _LEAF_BYTES * min(paths.size, 64)

    def payload(self) -> PathLists:
        """Return them, packed."""
        return PathLists.of_sectors(packed(self._formulas))


APPROACH0 = Kind(
    type="sparse_index",
    format="mathamr_approach0",
    version=1,
    fields=expression_fields(*_FIELDS),
    merge=merging(PathLists),
    rebuild="ApproachZeroIndex('{path}').indexer(mode='overwrite').index(posts)",
    part_bytes=UNBOUNDED,
)

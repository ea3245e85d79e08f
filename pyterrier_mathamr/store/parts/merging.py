"""Which parts are merged, and how most kinds merge them.

Small parts are merged as they accumulate, in tiers, as Lucene does it: as soon as the last eight parts are of one tier
or below, they become one, which may complete the eight of the next tier. So an artifact has about eight parts for each
power of eight between the smallest and a full part, and one for each full part; each byte is rewritten once a tier::

    1 1 1 1 1 1 1 1  →  8        8 8 8 8 8 8 8 8  →  64        64 8 8 1 1 1
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.store.files import Array
from pyterrier_mathamr.store.kind import Content

from .ids import Rows, id_keys
from .part import Part

_FACTOR = 8
_AT_ONCE = 4096
_SMALLEST = 1 << 16  # bytes; all parts below are of the lowest tier


def parts_to_merge(sizes: Sequence[int], full: int) -> range | None:
    """Choose the neighbours to merge now."""
    last = len(sizes)
    while last and 2 * sizes[last - 1] < full:
        first = last - 1
        while first and 2 * sizes[first - 1] < full and _tier(sizes[first - 1]) <= _tier(sizes[last - 1]):
            first -= 1
        if last - first >= _FACTOR and len(run := runs_within(sizes[first:last], full)[0]) > 1:
            return range(first, first + len(run))
        last = first
    return None


def _tier(size: int) -> int:
    return 0 if size < _SMALLEST else 1 + int(math.log(size / _SMALLEST, _FACTOR))


def merged(parts: Sequence[Part]) -> Content:
    """Make one part of several by their kind's function.

    Raises:
        DamagedError: a file of theirs was changed, which a new checksum would hide.
    """
    kind = parts[0].kind
    for part in parts:
        if fault := next(part.faults(), None):
            raise fault
    if kind.merge is None:
        raise TypeError(f"parts of {kind.name} are not merged")
    return kind.merge(parts)


class LiveIds(Collection[str]):
    """The ids of several parts in order, without deleted rows, read when they are asked for.

    Args:
        parts: in order.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(part.alive)) for part in self._parts)

    def __iter__(self) -> Iterator[str]:
        for part in self._parts:
            for start in range(0, len(part), _AT_ONCE):
                yield from part.ids.texts(start + np.flatnonzero(part.alive[start : start + _AT_ONCE]))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(part.find(id_keys([name]))[0] >= 0 for part in self._parts)


def merge_ragged(parts: Sequence[Part]) -> Content:
    """Concatenate parts without their deleted rows.

    For kinds whose arrays are ``[m, …]``, or ``[r, …]`` with offsets ``[m+1]`` that cut ``r``.
    """
    kind = parts[0].kind
    pieces = {field.name: [parts[0][field.name][:0]] for field in kind.fields}
    for part in parts:
        for name, piece in _live_pieces(part):
            pieces[name].append(piece)
    offsets = {field.name for field in kind.fields if field.cuts}
    arrays = {name: _ends(found) if name in offsets else np.concatenate(found) for name, found in pieces.items()}
    return Content(LiveIds(parts), arrays, parts[0].meta.details)


def _live_pieces(part: Part) -> Iterator[tuple[str, Array]]:
    """Yield the live rows of each array of a part as slices, with its name; lengths in place of offsets."""
    runs = np.flatnonzero(np.diff(part.alive, prepend=False, append=False)).reshape(-1, 2)  # of rows: start, end
    fields = part.kind.fields
    cuts = {"m": runs, **{field.cuts: part[field.name][runs] for field in fields if field.cuts}}
    for field in fields:
        array = part[field.name]
        for start, end in cuts["m" if field.cuts else field.shape.split()[0]].tolist():
            yield field.name, np.diff(array[start : end + 1]) if field.cuts else array[start:end]


def _ends(lengths: Sequence[Array]) -> Array:
    """Return the offsets of rows of these lengths: int64, one more than there are rows."""
    return np.cumsum(np.concatenate([np.zeros(1, dtype=np.int64), *lengths]), dtype=np.int64)


def ranges(starts: Rows, lengths: Rows) -> Rows:
    """Return the integers of each range ``[start, start + length)``, end to end."""
    ends = np.cumsum(lengths)
    steps = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    found: Rows = steps + np.repeat(starts - (ends - lengths), lengths)
    return found

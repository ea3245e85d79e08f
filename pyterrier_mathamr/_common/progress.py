"""Progress bars in the form PyTerrier chose for the user's environment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], desc: str, unit: str, *, verbose: bool, total: int | None = None) -> Iterable[T]:
    """Wrap ``items`` in a ``pt.tqdm`` bar.

    Args:
        items: any iterable.
        desc: what is done, shown before the bar.
        unit: what one item is, shown in the rate (``doc``, ``formula``).
        verbose: ``False`` returns ``items`` unchanged.
        total: the number of items where ``items`` has no ``len``.
    """
    if not verbose:
        return items
    import pyterrier as pt

    bar: Iterable[T] = pt.tqdm(items, desc=desc, unit=unit, total=total)
    return bar

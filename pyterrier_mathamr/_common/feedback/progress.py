"""Progress bars in the form PyTerrier chose for the user's environment.

::

    building graphs:  80%|████████  | 1985/2466 graphs [00:21<00:05, 92.3 graphs/s]      with a total
    building graphs: 1985 graphs [00:21, 92.3 graphs/s]                                  without
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from itertools import chain, islice
from typing import IO, Any, TypeVar

T = TypeVar("T")

_WITH_TOTAL = "{l_bar}{bar}| {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
_WITHOUT = "{desc}: {n_fmt}{unit} [{elapsed}, {rate_noinv_fmt}{postfix}]"


def progress(
    items: Iterable[T],
    desc: str,
    unit: str,
    *,
    verbose: bool,
    total: int | None = None,
    beside: Callable[[], str] | None = None,
) -> Iterable[T]:
    """Show a bar while ``items`` are iterated over; none for a single item, of which it would tell nothing."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    if not verbose or (total is not None and total <= 1):
        return items
    if total is None:
        return _from_the_second(items, desc, unit, beside)
    return _bar(items, desc, unit, beside, total=total, bar_format=_WITH_TOTAL)


@contextmanager
def byte_progress(desc: str, total: int, *, verbose: bool) -> Iterator[Callable[[int], object]]:
    """Show a bar of bytes if the work takes more than a second."""
    if not verbose:
        yield lambda size: None
        return
    import pyterrier as pt

    with pt.tqdm(total=total, desc=desc, unit="B", unit_scale=True, dynamic_ncols=True, delay=1) as bar:
        yield bar.update


@contextmanager
def counted_progress(desc: str, unit: str, total: int, *, verbose: bool) -> Iterator[Callable[[int], object]]:
    """Show a bar of what is told to be done, from its beginning; none for a single item."""
    if not verbose or total <= 1:
        yield lambda count: None
        return
    import pyterrier as pt

    with pt.tqdm(total=total, desc=desc, unit=f" {unit}", bar_format=_WITH_TOTAL, dynamic_ncols=True) as bar:
        yield bar.update


def count_lines(file: IO[bytes]) -> int:
    """Count the lines of a file that are not blank, for a total."""
    return sum(not line.isspace() for line in file)


def _from_the_second(items: Iterable[T], desc: str, unit: str, beside: Callable[[], str] | None) -> Iterator[T]:
    """Yield the items; how many there are shows with the second, before which there is no bar."""
    rest = iter(items)
    yield from islice(rest, 1)
    for second in islice(rest, 1):
        yield from _bar(chain([second], rest), desc, unit, beside, initial=1, bar_format=_WITHOUT)


def _bar(items: Iterable[T], desc: str, unit: str, beside: Callable[[], str] | None, **options: Any) -> Iterable[T]:
    import pyterrier as pt

    bar: Any = pt.tqdm(items, desc=desc, unit=f" {unit}", dynamic_ncols=True, **options)
    return bar if beside is None else _with_postfix(bar, beside)


def _with_postfix(bar: Any, beside: Callable[[], str]) -> Iterator[Any]:
    for item in bar:
        bar.set_postfix_str(beside(), refresh=False)
        yield item

"""Where long builds run: processes of this machine, or a cluster. The results come in the order of one process.

::

    items, read a few ahead ──▶ worker: work(item) ──▶ results in the order of the items ──▶ the caller writes them
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from .processes import Processes
from .ray_cluster import RayCluster

__all__ = ["Executor", "Processes", "RayCluster"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Does pieces of work at the same time: :class:`Processes` or :class:`RayCluster`."""

    @property
    def slots(self) -> int:
        """How many items are worked on at a time."""
        ...

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Map a function over items."""
        ...

    def doing(self) -> str:
        """Say which node has done how much, for a line of progress; nothing on one machine."""
        ...

    def sees(self, file: Path) -> bool:
        """Whether all workers read the same bytes at the path of a small file as this process."""
        ...

"""The processes that read the posts of a new engine: they start, which takes a second, while the posts are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyterrier_mathamr._common.running.executors import Executor
from pyterrier_mathamr._common.running.started import StartedProcesses
from pyterrier_mathamr.amr import DependencyAmrParser, get_parser
from pyterrier_mathamr.graph.building.parallel import processes_for
from pyterrier_mathamr.posts import Document

from .posts import AT_ONCE
from .worker import prepare

_MANY = 8 * AT_ONCE  # posts; fewer are read before a process has started


@contextmanager
def readers(
    documents: Iterator[Document], parser: str, workers: int | None
) -> Iterator[tuple[Iterator[Document], Executor]]:
    """Yield posts, and where they are read once they are stored; there it starts as soon as there are many posts."""
    executor = processes_for(get_parser(parser), workers)
    if executor.slots == 1 or parser != DependencyAmrParser.name:
        yield documents, executor
        return
    with StartedProcesses(executor, prepare) as started:
        yield _telling(documents, started.start), started


def _telling(documents: Iterator[Document], act: Callable[[], None]) -> Iterator[Document]:
    """Pass on documents, and do something once there are many."""
    for number, document in enumerate(documents, 1):
        if number == _MANY:
            act()
        yield document

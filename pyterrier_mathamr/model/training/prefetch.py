"""Batches made ahead in a background thread, so that the model does not wait for them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Prefetch(Generic[A, B]):
    """Iterate over ``make(item)`` for each item in order, two items ahead.

    Args:
        make: called in one background thread, in order, so that it may draw from one source of chance.
        items: what is made into batches.
        ahead: batches held ready.

    Attributes:
        waited: seconds the consumer waited for a batch so far.
    """

    def __init__(self, make: Callable[[A], B], items: Sequence[A], ahead: int = 2) -> None:
        self._make, self._items, self._ahead = make, items, ahead
        self.waited = 0.0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[B]:
        worker, pending = ThreadPoolExecutor(1), deque[Future[B]]()
        try:
            for item in self._items:
                pending.append(worker.submit(self._make, item))
                if len(pending) > self._ahead:
                    yield self._next(pending)
            while pending:
                yield self._next(pending)
        finally:
            worker.shutdown(cancel_futures=True)  # of those that nobody asks for only the one under way is made

    def _next(self, pending: deque[Future[B]]) -> B:
        start = time.perf_counter()
        batch = pending.popleft().result()
        self.waited += time.perf_counter() - start
        return batch

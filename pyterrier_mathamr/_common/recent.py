"""The results of a stage's recent calls, for transformers that call it again with the same query (adaptive re-ranking).

::

    graph of "Is $x^2$ convex?"  ──QueryEncoder──▶  computed, and kept by content: model, device, graphs of the call
    the same under another qid   ──QueryEncoder──▶  a copy of what was kept
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any

MOST_QUERIES = 256
"""Queries whose results a stage keeps: a collection's topics, of about 100 KB each."""


class Recent:
    """The results of recent calls by content, safe for threads; a copy or pickle of it is empty.

    A call is kept as a whole, not query by query: vectors may depend on the other queries of a batch in their last
    bits, and the same call must return the same bytes whatever was asked before.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Sequence[Any]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Sequence[Any] | None:
        """Return the results of a call; ``None`` if they are not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, results: Sequence[Any]) -> None:
        """Keep the results of a call, one for each query, instead of the least recently used ones."""
        if len(results) > MOST_QUERIES:
            return
        with self._lock:
            self._kept[key] = results
            while sum(map(len, self._kept.values())) > MOST_QUERIES:
                self._kept.popitem(last=False)

    def __reduce__(self) -> tuple[type[Recent], tuple[()]]:
        return Recent, ()

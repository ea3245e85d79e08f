"""The answers of the page, computed in processes that are ended when a request is too slow.

::

    server ──▶ SeparateAnswers ──┬── searches   processes for search, explain and graph  ──▶ Answers ──▶ SearchEngine
                                 └── small      processes for preview, post and settings ──▶ Answers ──▶ SearchEngine

The process of the server opens no index and loads no model. Whatever a question does to a library, the server answers
others meanwhile, and ends on request.
"""

from __future__ import annotations

import queue
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import gathered, ignored_warnings
from pyterrier_mathamr._common.running.processes import usable_cores
from pyterrier_mathamr._common.running.worker import OverLimitError, Worker

if TYPE_CHECKING:
    from .answers import Answers

SYSTEMS: Mapping[str, str] = {"blend": "BM25 + MathAMR+", "bm25": "BM25", "mathamr": "MathAMR+"}
"""The systems that can be shown: name on the command line to name on the page."""

SECONDS = 10.0
"""CPU time that a request may take."""

QUICK = frozenset({"preview", "post", "settings"})
"""Requests that need milliseconds."""

SEARCHES, SMALL = max(2, min(4, usable_cores())), 2
"""Processes of each kind; they start when they are needed, and each has the model and the opened indexes."""


class SeparateAnswers:
    """The requests of :class:`~.answers.Answers`, answered by it in other processes.

    Args:
        path: the folder of the engine.
        systems: shown side by side: ``blend``, ``bm25`` and ``mathamr``; the others are compared with the first.
        link: a template of the address of a post, with ``{path}``, ``{file}``, ``{line}``, ``{name}`` or ``{docno}``;
            by default none.
        title: the name of the collection; by default the name of the engine's folder.
        about: a sentence about the collection.
    """

    def __init__(
        self, path: Path, systems: Sequence[str] = ("blend",), link: str | None = None, title: str = "", about: str = ""
    ) -> None:
        served: _Served = str(path.absolute()), tuple(systems), link, title, about
        self._searches = _Processes(SEARCHES, served, "search", "$x$")
        self._small = _Processes(SMALL, served, "preview", "$x$")

    def __call__(self, request: str, *args: object) -> Any:
        """Answer a request, named as the method of ``Answers``."""
        return (self._small if request in QUICK else self._searches)(request, *args)

    def warm_up(self) -> None:
        """Start the processes, and open everything that a first request would wait for.

        One process of each kind starts first, and the others after it, so that the first question does not share the
        cores with them.
        """
        with ThreadPoolExecutor(1) as pool:
            small = [pool.submit(self._small.open, 1, *request) for request in (("settings",), ("preview", "$x$"))]
            self._searches.open(SEARCHES, "search", "$x$")
            self._searches.open(SEARCHES, "search", "$x$", "formulas")
            self._searches.open(SEARCHES, "search", "$x$")  # now by codes
            for answered in small:
                answered.result()

    def close(self) -> None:
        """End the processes; requests that wait raise :class:`OverLimitError`."""
        self._searches.close()
        self._small.close()


_Served = tuple[str, tuple[str, ...], str | None, str, str]
"""The path and the other arguments of :class:`~.answers.Answers`."""


class _Processes:
    """Some processes; each request uses a free one, the most recently used first.

    A process that was ended starts again before its request is refused.
    """

    def __init__(self, count: int, served: _Served, *opening: str) -> None:
        self._served, self._opening = served, opening
        self._all = [Worker(answer, seconds=SECONDS) for _ in range(count)]
        self._free: queue.LifoQueue[Worker[..., Any]] = queue.LifoQueue()
        self._closed = False
        for process in self._all:
            self._free.put(process)

    def __call__(self, request: str, *args: object) -> Any:
        process = self._free.get()
        try:
            if self._closed:
                raise OverLimitError("the server ends")
            return process(self._served, request, *args)
        except OverLimitError:
            if not self._closed:
                with suppress(MathAMRError):
                    process(self._served, *self._opening)  # or the next request would wait for a new process
            raise
        finally:
            self._free.put(process)

    def open(self, count: int, request: str, *args: object) -> None:
        """Send a request to some processes, one after the other, in the order in which requests use them.

        They stay free for others, which wait for the process that is being opened: it answers sooner than another.
        """
        for process in list(reversed(self._all))[:count]:
            if self._closed:
                raise OverLimitError("the server ends")
            process(self._served, request, *args)

    def close(self) -> None:
        self._closed = True
        for process in self._all:
            process.stop()


def answer(served: _Served, request: str, *args: object) -> Any:
    from pyterrier_mathamr.formula import one_text  # not for the process of the server

    try:
        # faults of a typed query do not belong into a server's log
        with one_text(), gathered(), ignored_warnings(MathAMRWarning):
            return _answers(*served)(request, *args)
    except MathAMRError:
        raise
    except Exception as error:
        error.add_note(traceback.format_exc())  # for the log of the server
        raise


@lru_cache(maxsize=1)
def _answers(path: str, *options: Any) -> Answers:
    from pyterrier_mathamr.engine.search_engine import SearchEngine

    from .answers import Answers

    return Answers(SearchEngine(path), *options)

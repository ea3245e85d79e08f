"""Trials in a fork of this process, and what became of them.

A fork that is killed, hangs or crashes harms nobody. This process itself computes nothing: a library's threads do not
survive a fork.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FAULTS = ("lost", "silently wrong", "unnamed")


@dataclass
class Tally:
    """The outcomes of the trials of one sort.

    ``old`` and ``new``: the whole artifact before or after; ``named``: an error of the package; ``harmless``: what was
    read is right although a byte was changed; ``unnoticed``: it is not, and only ``verify()`` finds it. The rest are
    faults: neither old nor new, wrong where that must be found, an error without a name, a hang or a crash.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, outcome: str, what: str) -> None:
        """Count one trial."""
        self.counts["tried"] += 1
        self.counts[outcome] += 1
        if outcome in FAULTS:
            self.faults.append(f"{outcome}: {what}")


@dataclass
class Answer:
    """How a child ended: ``value``, ``named``, ``unnamed``, ``killed`` or ``hang``, and its result or message."""

    how: str
    value: Any = None


def in_child(work: Callable[[], Any], seconds: float = 60, before: Callable[[], None] | None = None) -> Answer:
    """Do some work in a fork of this process, bounded in time and memory."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(work, into, before)
    os.close(into)
    data, deadline = b"", time.monotonic() + seconds
    while select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not (piece := os.read(out, 1 << 20)):
            break
        data += piece
    hung = time.monotonic() >= deadline
    if hung:
        os.kill(child, signal.SIGKILL)
    os.close(out)
    _, status = os.waitpid(child, 0)
    if hung:
        return Answer("hang", f"longer than {seconds} s")
    if os.WIFSIGNALED(status):
        return Answer("killed", os.WTERMSIG(status))
    return pickle.loads(data)


def _be_child(work: Callable[[], Any], into: int, before: Callable[[], None] | None) -> None:
    from pyterrier_mathamr._common.errors import MathAMRError

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        warnings.simplefilter("ignore")
        if before:
            before()
        answer = Answer("value", work())
    except MathAMRError as error:
        answer = Answer("named", (type(error).__name__, str(error)[:300]))
    except BaseException as error:
        answer = Answer("unnamed", f"{type(error).__name__}: {error}"[:300])
    data = memoryview(pickle.dumps(answer))
    while data:
        data = data[os.write(into, data) :]
    os._exit(0)


def canonical(value: object) -> str:
    """A value as JSON, so that equal values are equal texts."""
    return json.dumps(value, default=lambda item: item.tolist() if hasattr(item, "tolist") else repr(item))

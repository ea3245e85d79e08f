"""Kills before each operation on files and at random instants, and the leftovers that they leave."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from children import Tally, in_child
from subjects import ALL, Subject

FILE_EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "sqlite3.connect"}


def _kill_at(count: int, below: Path) -> Callable[[], None]:
    """Have this process killed before its ``count``-th operation on files below a folder."""
    left = [count]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in FILE_EVENTS and str(arguments[0]).startswith(str(below)):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return lambda: sys.addaudithook(hook)


def _kill_after(seconds: float) -> None:
    """Have this process killed after a time."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(1e-4, seconds))


def count_operations(subject: Subject, action: str) -> int:
    """How many operations on files an action makes."""
    base, work = subject.actions[action]
    path, seen = subject.fresh(base), [0]

    def count() -> None:
        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in FILE_EVENTS and str(arguments[0]).startswith(str(subject.trial)):
                seen[0] += 1

        sys.addaudithook(hook)

    def counted() -> int:
        work(path)
        return seen[0]

    return int(in_child(counted, before=count).value)


def kills(subject: Subject, action: str, step: int = 1, random_kills: int = 0, seed: int = 0) -> Tally:
    """Kill an action before each ``step``-th operation on files and at random instants; then run it again.

    After the kill the path must hold the old or the new whole, after the second run the new one, and nothing else must
    be next to it. The module names the actions that succeed when they are run again although the new whole is there.
    """
    base, work = subject.actions[action]
    tally, chance = Tally(), random.Random(seed)
    old, new = subject.state(subject.fresh(base)), subject.after(action)
    assert old != new or action == "compact"
    path = subject.fresh(base)
    started = time.monotonic()
    in_child(partial(work, path))
    whole = time.monotonic() - started
    points: list[int | float] = list(range(0, count_operations(subject, action), step))
    points += [chance.uniform(0, whole) for _ in range(random_kills)]
    for point in points:
        path = subject.fresh(base)
        if isinstance(point, int):
            in_child(partial(work, path), before=_kill_at(point, subject.trial))
        else:
            in_child(partial(work, path), before=partial(_kill_after, point))
        found = subject.state(path)
        if found not in (old, new):
            outcome = "unnamed" if found.startswith("unnamed") else "lost"
            tally.add(outcome, f"{action} killed at {point}: {found[:300]}")
            continue
        again = found == old or action in getattr(subject.module, "REPEATS", ())
        fault = fault_of_another_run(subject, action, path, new) if again else ""
        if fault:
            tally.add("lost", f"{action} killed at {point} {fault}")
        else:
            tally.add("new" if found == new else "old", "")
    return tally


def fault_of_another_run(subject: Subject, action: str, path: Path, new: str) -> str:
    """Run an action again that was stopped: it must end in the new whole, and nothing else may be next to that."""
    answer = in_child(partial(subject.actions[action][1], path))
    if answer.how != "value" or (found := subject.state(path)) != new:
        return f"and run again: {answer if answer.how != 'value' else found[:300]}"
    left = sorted(entry.name for entry in subject.trial.iterdir() if entry.name.startswith("."))
    left += subject.marks(path) if action == "compact" else []
    return f"and run again leaves {left}" if left else ""


def leftovers(subject: Subject) -> Tally:
    """Another job finds what one that was killed left: it refuses it, or makes its own artifact and nothing else."""
    tally = Tally()
    base, work = subject.actions["create"]
    path = subject.fresh("nothing")
    assert in_child(partial(subject.module.build, path, ALL, "create", 1)).how == "value"
    other = subject.state(path)
    total = count_operations(subject, "create")
    for point in range(total // 4, total, max(1, total // 8)):
        for mode in ("create", "overwrite"):
            path = subject.fresh(base)
            in_child(partial(work, path), before=_kill_at(point, subject.trial))
            if subject.state(path) != "nothing":
                continue
            answer = in_child(partial(subject.module.build, path, ALL, mode, 1))
            found, what = subject.state(path), f"{mode} after another job was killed at {point}: {answer}"
            if answer.how == "value":
                tally.add("new" if found == other else "silently wrong", what)
            elif answer.how == "named":
                tally.add("named" if found == "nothing" else "lost", what)
            else:
                tally.add("unnamed", what)
    return tally

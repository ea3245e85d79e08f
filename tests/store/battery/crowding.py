"""Two writers, full disks, read-only folders, few open files."""

from __future__ import annotations

import os
import resource
import signal
from functools import partial

from children import Tally, canonical, in_child
from kills import fault_of_another_run
from subjects import Subject


def writers(subject: Subject) -> Tally:
    """A second writer is refused by name while a first one holds the artifact, and readers go on."""
    from pyterrier_mathamr.store.files import writer_lock

    tally = Tally()
    for action, (base, work) in subject.actions.items():
        path = subject.fresh(base)
        before = subject.state(path)
        with writer_lock(path):
            answer = in_child(partial(work, path))
            same = subject.state(path) == before
        refused = answer.how == "named" and answer.value[0] == "WriteError" and str(os.getpid()) in answer.value[1]
        outcome = "old" if refused and same else "unnamed" if not refused else "lost"
        tally.add(outcome, f"{action} during another writer's job: {answer}")
    return tally


def full_disk(subject: Subject, action: str, limits: tuple[int, ...]) -> Tally:
    """No file may grow beyond a limit: the action ends with a named error and the old whole, or with the new one.

    After the first error it is run again with enough space, and ends with the new one.
    """
    tally, (base, work), new = Tally(), subject.actions[action], subject.after(action)
    for limit in limits:
        path = subject.fresh(base)
        old = subject.state(path)
        answer = in_child(partial(work, path), before=partial(_bound_files, limit))
        found = subject.state(path)
        marked = subject.marks(path) if action == "compact" else []
        what = f"{action} with files of at most {limit} bytes: {answer}"
        if answer.how not in ("value", "named") or found.startswith("unnamed"):
            tally.add("unnamed", what)
        elif found not in (old, new) or (answer.how == "value" and (found != new or marked)):
            tally.add("lost", what)
        elif answer.how == "value" or found != old:
            tally.add("new", what)
        else:
            fault = "" if tally.counts["old"] else fault_of_another_run(subject, action, path, new)
            tally.add("lost" if fault else "old", f"{what} {fault}")
    return tally


def appends(subject: Subject, times: int, open_files: int) -> Tally:
    """Append one document at a time where few files may be open."""
    tally = Tally()
    if "append" not in subject.actions:
        return tally
    path = subject.fresh("nothing")

    def grow() -> str:
        subject.module.build(path, range(1))
        for i in range(1, times):
            subject.module.build(path, range(i, i + 1), "append")
        return canonical(subject.module.read(path))

    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (open_files, open_files))
    answer = in_child(grow, seconds=3600, before=limit)
    at_once = subject.trial / "at-once"
    in_child(lambda: subject.module.build(at_once, range(times)))
    same = answer.how == "value" and answer.value == subject.state(at_once)
    outcome = "new" if same else "silently wrong" if answer.how == "value" else "unnamed"
    tally.add(outcome, f"{times} appends with {open_files} open files: {str(answer)[:300]}")
    return tally


def _bound_files(limit: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def permissions(subject: Subject) -> Tally:
    """A folder that may not be written: a named error, and what was there stays."""
    tally = Tally()
    for action, (base, work) in subject.actions.items():
        path = subject.fresh(base)
        before = subject.state(path)
        for place in (subject.trial, *subject.trial.rglob("*")):
            place.chmod(0o555 if place.is_dir() else 0o444)
        answer = in_child(partial(work, path), before=_be_nobody)
        for place in (subject.trial, *subject.trial.rglob("*")):
            place.chmod(0o755 if place.is_dir() else 0o644)
        same = subject.state(path) == before
        tally.add("old" if answer.how == "named" and same else "unnamed", f"{action} in a read-only folder: {answer}")
    return tally


def _be_nobody() -> None:
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)

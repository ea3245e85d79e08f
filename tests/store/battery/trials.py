"""The trials: kills and what they leave, damage, two writers, full disks, read-only folders, few open files."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from subjects import ALL, Subject, Tally, canonical, in_child

FILE_EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "sqlite3.connect"}


def _at_each_operation(below: Path, call: Callable[[], None]) -> None:
    """Call something before each operation of this process on files below a folder."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in FILE_EVENTS and str(arguments[0]).startswith(str(below)):
            call()

    sys.addaudithook(hook)


def _kill_at(count: int, below: Path) -> Callable[[], None]:
    """Have this process killed before its ``count``-th operation on files below a folder."""
    left = [count]

    def kill_when_due() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: _at_each_operation(below, kill_when_due)


def _kill_after(seconds: float) -> None:
    """Have this process killed after a time."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(1e-4, seconds))


def count_operations(subject: Subject, action: str) -> int:
    """How many operations on files an action makes."""
    base, work = subject.actions[action]
    path, seen = subject.fresh(base), []

    def counted() -> int:
        _at_each_operation(subject.trial, lambda: seen.append(None))
        work(path)
        return len(seen)

    return int(in_child(counted).value)


def kills(subject: Subject, action: str, step: int = 1, random_kills: int = 0, seed: int = 0) -> Tally:
    """Kill an action before each ``step``-th operation on files and at random instants; then run it again.

    After the kill the path must hold the old or the new whole, after the second run the new one, and nothing else must
    be next to it. The artifact names the actions that succeed when they are run again although the new whole is there.
    """
    base, work = subject.actions[action]
    tally, chance = Tally(), random.Random(seed)
    old, new = subject.before(action), subject.after(action)
    assert old != new or action == "compact"
    started = time.monotonic()
    points: list[int | float] = list(range(0, count_operations(subject, action), step))
    whole = time.monotonic() - started
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
        again = found == old or action in subject.artifact.REPEATS
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
    assert in_child(partial(subject.artifact.build, path, ALL, "create", 1)).how == "value"
    other = subject.state(path)
    total = count_operations(subject, "create")
    for point in range(total // 4, total, max(1, total // 8)):
        for mode in ("create", "overwrite"):
            path = subject.fresh(base)
            in_child(partial(work, path), before=_kill_at(point, subject.trial))
            if subject.state(path) != "nothing":
                continue
            answer = in_child(partial(subject.artifact.build, path, ALL, mode, 1))
            found, what = subject.state(path), f"{mode} after another job was killed at {point}: {answer}"
            if answer.how == "value":
                tally.add("new" if found == other else "silently wrong", what)
            elif answer.how == "named":
                tally.add("named" if found == "nothing" else "lost", what)
            else:
                tally.add("unnamed", what)
    return tally


def _files(path: Path) -> list[Path]:
    return sorted(file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


def damage(subject: Subject, flips: int, most_files: int, seed: int = 0) -> dict[str, Tally]:
    """Flip bits, and truncate and remove ``most_files`` files at most; read without and with ``verify()``.

    Without it a flip may be read over, but never end in a hang, a crash or an error without a name; ``verify()`` finds
    each.
    """
    chance = random.Random(seed)
    tallies = {"flips, read": Tally(), "flips, verified": Tally(), "truncated": Tally(), "removed": Tally()}
    base = "marked" if "compact" in subject.actions else "old"
    wanted = subject.state(subject.fresh(base))
    files = [file.relative_to(subject.trial) for file in _files(subject.trial / "it")]
    sizes = [max(1, (subject.trial / file).stat().st_size) for file in files]
    for number in range(flips):
        path = subject.fresh(base)
        name = chance.choice(files) if number % 2 else chance.choices(files, sizes)[0]
        data = bytearray((subject.trial / name).read_bytes())
        if not data:
            continue
        where, bit = chance.randrange(len(data)), chance.randrange(8)
        data[where] ^= 1 << bit
        (subject.trial / name).write_bytes(data)
        what = f"{name}, byte {where} bit {bit}"
        tallies["flips, read"].add(_read(subject, path, wanted, wrong="unnoticed"), what)
        tallies["flips, verified"].add(*_verified(subject, path, what))
    for file in chance.sample(files, min(most_files, len(files))):
        for sort in ("truncated", "removed"):
            size = (subject.folder / "bases" / base / file).stat().st_size
            for cut in {0, size // 2, size - 1} if sort == "truncated" else {0}:
                path = subject.fresh(base)
                if sort == "removed":
                    (subject.trial / file).unlink()
                else:
                    os.truncate(subject.trial / file, cut)
                if cut != size or sort == "removed":
                    tallies[sort].add(_read(subject, path, wanted), f"{file} {sort} at {cut}")
    return tallies


def exchanges(subject: Subject, most: int, seed: int = 0) -> Tally:
    """Replace at most ``most`` files, and artifacts within an artifact, by those of another one.

    It may be read over, as a flip may; ``verify()`` finds each.
    """
    tally = Tally()
    other = subject.folder / "other"
    answer = in_child(partial(subject.artifact.build, other, range(5), "create", 1))
    assert answer.how == "value", answer
    whole = subject.fresh("old")
    members = [meta.parent for meta in whole.rglob("pt_meta.json") if meta.parent != whole]
    places = [file.relative_to(whole) for file in (*_files(whole), *members)]
    for place in random.Random(seed).sample(places, min(most, len(places))):
        path = subject.fresh("old")
        mine, theirs = path / place, other / place
        if not theirs.exists() or (mine.is_file() and mine.read_bytes() == theirs.read_bytes()):
            continue
        if mine.is_dir():
            shutil.rmtree(mine)
            shutil.copytree(theirs, mine)
        else:
            shutil.copyfile(theirs, mine)
        tally.add(*_verified(subject, path, f"{place} of another one"))
    return tally


def _verified(subject: Subject, path: Path, what: str) -> tuple[str, str]:
    """Verify an artifact that was changed: the outcome, and what was done to it."""
    checked = in_child(lambda: subject.artifact.open(path).verify(), before=_bounded)
    return {"value": "silently wrong", "named": "named"}.get(checked.how, "unnamed"), f"{what}: {checked}"


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def _read(subject: Subject, path: Path, wanted: str, wrong: str = "silently wrong") -> str:
    answer = in_child(lambda: canonical(subject.artifact.read(path)), before=_bounded)
    if answer.how == "value":
        return "harmless" if answer.value == wanted else wrong
    return "named" if answer.how == "named" else "unnamed"


def writers(subject: Subject) -> Tally:
    """A second writer is refused by name while a first one holds the artifact, and readers go on."""
    from pyterrier_mathamr.store.files import writer_lock

    tally = Tally()
    for action, (base, work) in subject.actions.items():
        before = subject.before(action)
        path = subject.fresh(base)
        with writer_lock(path):
            answer = in_child(partial(work, path))
            same = subject.state(path) == before
        refused = answer.how == "named" and answer.value[0] == "WriteError" and str(os.getpid()) in answer.value[1]
        outcome = "old" if refused and same else "unnamed" if not refused else "lost"
        tally.add(outcome, f"{action} during another writer's job: {answer}")
    return tally


def full_disk(subject: Subject, action: str, limits: list[int]) -> Tally:
    """No file may grow beyond a limit: the action ends with a named error and the old whole, or with the new one.

    After the first error it is run again with enough space, and ends with the new one.
    """
    tally, (base, work), old, new = Tally(), subject.actions[action], subject.before(action), subject.after(action)
    for limit in limits:
        path = subject.fresh(base)
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
        subject.artifact.build(path, range(1))
        for i in range(1, times):
            subject.artifact.build(path, range(i, i + 1), "append")
        return canonical(subject.artifact.read(path))

    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (open_files, open_files))
    answer = in_child(grow, seconds=3600, before=limit)
    at_once = subject.trial / "at-once"
    in_child(lambda: subject.artifact.build(at_once, range(times)))
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
        before = subject.before(action)
        path = subject.fresh(base)
        _allow(subject.trial, 0o555, 0o444)
        answer = in_child(partial(work, path), before=_be_nobody)
        _allow(subject.trial, 0o755, 0o644)
        same = subject.state(path) == before
        tally.add("old" if answer.how == "named" and same else "unnamed", f"{action} in a read-only folder: {answer}")
    return tally


def _allow(folder: Path, of_folders: int, of_files: int) -> None:
    for place in (folder, *folder.rglob("*")):
        place.chmod(of_folders if place.is_dir() else of_files)


def _be_nobody() -> None:
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)

"""The artifacts under trial, and trials in a fork of this process with what became of them.

A fork that is killed, hangs or crashes harms nobody. This process itself computes nothing: a library's threads do not
survive a fork.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import select
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from artifact_modules import NAMES as NAMES
from artifact_modules import load

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


OLD, ALL = range(8), range(12)


class Subject:
    """One artifact with the states that it can be in.

    Args:
        name: of it.
        folder: where trials are made.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.artifact, self.folder = load(name), folder
        self.trial = folder / "trial"
        self._known: dict[str, str] = {}  # states before and after undisturbed actions
        modes, compacts = self.artifact.MODES, ("compact",) * self.artifact.COMPACTS
        chosen = (*modes, "delete", *compacts) if "append" in modes and self.artifact.DELETES else modes
        every: dict[str, tuple[str, Callable[[Path], Any]]] = {
            "create": ("nothing", lambda path: self.artifact.build(path, ALL)),
            "append": ("old", lambda path: self.artifact.build(path, range(8, 12), "append")),
            "overwrite": ("old", lambda path: self.artifact.build(path, OLD, "overwrite", 1)),
            "delete": ("old", lambda path: self.artifact.open(path).delete(self.artifact.DELETED)),
            "compact": ("marked", lambda path: self.artifact.open(path).compact()),
        }
        self.actions = {action: every[action] for action in chosen}
        (folder / "bases" / "nothing").mkdir(parents=True)
        self._make("old", lambda path: self.artifact.build(path, OLD))
        if "compact" in chosen:
            self._make("marked", lambda path: self._build_marked(path))
        self._import_what_is_used()

    def _import_what_is_used(self) -> None:
        """Import the libraries that building and reading import, so that no fork has to."""
        path = self.fresh("nothing")

        def used() -> list[str]:
            self.artifact.build(path, OLD)
            self.artifact.read(path)
            return list(sys.modules)

        for name in in_child(used).value:
            if name not in sys.modules:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)

    def _build_marked(self, path: Path) -> None:
        self.artifact.build(path, OLD)
        self.artifact.open(path).delete(self.artifact.DELETED)

    def _make(self, base: str, build: Callable[[Path], Any]) -> None:
        place = self.folder / "bases" / base
        place.mkdir(parents=True)
        answer = in_child(lambda: build(place / "it"))
        assert answer.how == "value", (base, answer)

    def fresh(self, base: str) -> Path:
        """Put a base in place for one trial."""
        shutil.rmtree(self.trial, ignore_errors=True)
        shutil.copytree(self.folder / "bases" / base, self.trial)
        return self.trial / "it"

    def state(self, path: Path) -> str:
        """All that can be read of an artifact, as one text."""
        answer = in_child(lambda: canonical(self.artifact.read(path)))
        if answer.how == "named" and answer.value[0] == "NotBuiltError":
            return "nothing"
        return answer.value if answer.how == "value" else f"{answer.how}: {answer.value}"

    def marks(self, path: Path) -> list[str]:
        """The files that mark rows as deleted, whose bytes are there until the artifact is compacted."""
        return sorted(file.name for file in path.rglob("deleted-*.bin"))

    def before(self, action: str) -> str:
        """The state before an action."""
        base, _ = self.actions[action]
        if base not in self._known:
            self._known[base] = self.state(self.fresh(base))
        return self._known[base]

    def after(self, action: str) -> str:
        """The state after an undisturbed action."""
        if action not in self._known:
            base, work = self.actions[action]
            path = self.fresh(base)
            answer = in_child(lambda: work(path))
            assert answer.how == "value", (action, answer)
            self._known[action] = self.state(path)
        return self._known[action]

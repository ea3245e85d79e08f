"""The artifacts under trial: how each is built and read, and the states that it can be in."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from children import canonical, in_child

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from artifact_modules import NAMES as NAMES
from artifact_modules import load

OLD, ALL = range(8), range(12)


class Subject:
    """One artifact with the states that it can be in.

    Args:
        name: of its module.
        folder: where trials are made.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.module, self.folder = load(name), folder
        self.trial = folder / "trial"
        self.actions: dict[str, tuple[str, Callable[[Path], Any]]] = {}
        modes = getattr(self.module, "MODES", ("create", "append", "overwrite"))
        deletes = "append" in modes and getattr(self.module, "DELETES", True)
        compacts = ("compact",) if getattr(self.module, "COMPACTS", True) else ()
        chosen = (*modes, "delete", *compacts) if deletes else modes
        every = {
            "create": ("nothing", lambda path: self.module.build(path, ALL)),
            "append": ("old", lambda path: self.module.build(path, range(8, 12), "append")),
            "overwrite": ("old", lambda path: self.module.build(path, OLD, "overwrite", 1)),
            "delete": ("old", lambda path: self.module.open(path).delete(self.deletable(path))),
            "compact": ("marked", lambda path: self.module.open(path).compact()),
        }
        self.actions = {action: every[action] for action in chosen}
        (folder / "bases" / "nothing").mkdir(parents=True)
        self._make("old", lambda path: self.module.build(path, OLD))
        if "compact" in chosen:
            self._make("marked", lambda path: self._build_marked(path))
        self._import_what_is_used()

    def _import_what_is_used(self) -> None:
        """Import the libraries that building and reading import, so that no fork has to."""
        path = self.fresh("nothing")

        def used() -> list[str]:
            self.module.build(path, OLD)
            self.module.read(path)
            return list(sys.modules)

        for name in in_child(used).value:
            if name not in sys.modules:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)

    def deletable(self, path: Path) -> list[str]:
        """Two ids that are there, of the kind that the artifact deletes by."""
        return list(getattr(self.module, "DELETED", ["d1", "d6"]))

    def _build_marked(self, path: Path) -> None:
        self.module.build(path, OLD)
        self.module.open(path).delete(self.deletable(path))

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
        answer = in_child(lambda: canonical(self.module.read(path)))
        if answer.how == "named" and answer.value[0] == "NotBuiltError":
            return "nothing"
        return answer.value if answer.how == "value" else f"{answer.how}: {answer.value}"

    def marks(self, path: Path) -> list[str]:
        """The files that mark rows as deleted, whose bytes are there until the artifact is compacted."""
        return sorted(file.name for file in path.rglob("deleted-*.bin"))

    def after(self, action: str) -> str:
        """The state after an undisturbed action."""
        base, work = self.actions[action]
        path = self.fresh(base)
        answer = in_child(lambda: work(path))
        assert answer.how == "value", (action, answer)
        return self.state(path)

"""``--watch`` for months: whatever is done to the notes, the engine has them in the end, and nothing loops."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyterrier_mathamr.engine import SearchEngine, sources
from pyterrier_mathamr.engine.sources import watch
from pyterrier_mathamr.posts import DocumentError, source_entries
from tests.engine.conftest import built, written

pytest.importorskip("watchfiles")
EDITS = 4


class StoppedError(Exception):
    """Ends a watch."""


class Follower:
    """An update in the place of an engine's: it reads all notes, and writes into the engine's folder and beside it.

    Attributes:
        notes: the texts that it has read last, by file.
        calls: how often it was called.
        faults: the errors that it met.
    """

    def __init__(self, folder: Path, engine: Path) -> None:
        self.folder, self.engine = folder, engine
        self.notes: dict[str, str] = {}
        self.calls, self.faults, self.stopped = 0, list[str](), False
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        try:
            watch([self.folder], self.engine, self.update)
        except StoppedError:
            return

    def update(self) -> None:
        if self.stopped:
            raise StoppedError
        self.calls += 1
        try:
            entries = list(source_entries(self.folder))
            posts = [(entry.key, list(entry.documents())) for entry in entries if not isinstance(entry, DocumentError)]
            self.notes = {key: " ".join(getattr(post, "html", "") for post in found) for key, found in posts}
            self._write()
        except (DocumentError, FileNotFoundError) as error:
            self.faults.append(str(error))

    def _write(self) -> None:
        lock = self.engine.with_name(f".{self.engine.name}.lock")
        lock.touch()
        self.engine.mkdir(exist_ok=True)
        (self.engine / f"state-{self.calls}").touch()
        lock.unlink()

    def has(self, name: str, text: str) -> bool:
        return text in self.notes.get(name, "")


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def removed(folder: Path) -> bool:
    """Whether a folder is gone, after an attempt to remove it: an update may write into it meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    """A follower of a folder that contains its engine."""
    monkeypatch.setattr(sources, "_QUIET", 0.1)
    monkeypatch.setattr(sources, "_CHECKED", 100)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("first")
    follower = Follower(folder, folder / "my.engine")
    follower.thread.start()
    until(lambda: follower.calls > 0, "the watch begins with an update")
    yield follower
    follower.stopped = True
    folder.mkdir(exist_ok=True)
    (folder / "a.md").write_text("last")
    follower.thread.join(20)
    assert not follower.thread.is_alive()


def test_edits_in_place_slow_or_by_renaming_are_read_whole_and_do_not_loop(follower: Follower) -> None:
    whole = "{} A line of the beginning.\n\nA line of the end {}."
    for i in range(EDITS):
        (follower.folder / "a.md").write_text(whole.format("quick", i))
        with open(follower.folder / "slow.tex", "w") as file:
            file.write(whole.format("slow", i)[:20])
            file.flush()
            time.sleep(0.05)
            file.write(whole.format("slow", i)[20:])
        (follower.folder / ".new").write_text(whole.format("renamed", i))
        os.replace(follower.folder / ".new", follower.folder / "renamed.md")
        for name in ("a.md", "slow.tex", "renamed.md"):
            until(lambda name=name, i=i: follower.has(name, f"the end {i}"), f"{name} {i}: {follower.notes}")
    time.sleep(0.5)  # what an update writes is no reason for another one
    calls = follower.calls
    time.sleep(1)
    assert follower.calls == calls < 4 * EDITS
    assert follower.faults == []


def test_a_folder_that_is_replaced_is_watched_on(follower: Follower) -> None:
    folder, old = follower.folder, follower.folder.with_name("old")
    for i in range(EDITS):
        if i % 2:
            until(lambda: removed(folder), "removed")
            folder.mkdir()  # perhaps with the same number of its inode
            (folder / "a.md").write_text(f"made again {i}")
        else:
            folder.rename(old)
            if i % 4:
                until(lambda: bool(follower.faults), "a folder that is gone is named")
            shutil.copytree(old, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))  # comes and goes
            shutil.rmtree(old)
            (folder / "a.md").write_text(f"made again {i}")
        until(lambda i=i: follower.has("a.md", f"made again {i}"), f"replaced {i}")
        (folder / "a.md").write_text(f"edited {i}")
        until(lambda i=i: follower.has("a.md", f"edited {i}"), f"edited {i}")
    assert all("o such f" in fault or "has no notes" in fault for fault in follower.faults)


def test_a_thousand_files_at_once_in_new_folders_are_all_read(follower: Follower) -> None:
    for i in range(1_000):
        path = follower.folder / f"deep{i % 7}" / f"n{i}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {i}")
    until(lambda: len(follower.notes) == 1_001, f"{len(follower.notes)} files")
    (follower.folder / "deep3" / "n3.txt").write_text("changed")
    until(lambda: follower.has("deep3/n3.txt", "changed"), "a file of a new folder is watched")
    shutil.rmtree(follower.folder / "deep3")
    until(lambda: len(follower.notes) < 1_000, "removed")


def test_an_engine_in_the_watched_folder_follows_it(tmp_path: Path) -> None:
    folder = written(tmp_path / "notes", {"a.tex": r"A ring $x$. \input{b}", "b.tex": "A field $y$."})
    engine = built(folder / "my.engine", folder / "a.tex")
    found: list[str] = []

    def update() -> None:
        found.append(str(engine.update()))
        if len(found) > 1:
            raise StoppedError

    def change() -> None:
        until(lambda: bool(found), "the watch begins with an update")
        (folder / "b.tex").write_text("A limit $z$.")

    threading.Thread(target=change, daemon=True).start()
    with pytest.raises(StoppedError):
        watch(engine.sources(), engine.path, update)
    assert found == ["0 new, 0 changed, 0 deleted, 2 unchanged", "0 new, 2 changed, 0 deleted, 0 unchanged"]
    assert "limit" in " ".join(engine.post(docno).text for docno in SearchEngine(engine.path).docnos())
    with pytest.raises(DocumentError, match="no such folder"):
        watch([tmp_path / "gone"], engine.path, update)

"""The cache: several processes at once, kills, changed bytes, and files that are not a cache."""

import hashlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.store import Cache, FormatError, NotBuiltError, OtherArtifactError, StoreError, WriteError

DATA = Path(__file__).parent.parent / "data"


def key(i: int) -> bytes:
    return hashlib.sha256(str(i).encode()).digest()[:16]


def value(i: int) -> bytes:
    return f"value {i} ".encode() * (i % 50)


VALUES = {key(i): value(i) for i in range(300)}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "new" / "cache")
    made.add(VALUES)
    return made


def test_values_come_back_by_key_and_the_first_one_stays(cache: Cache) -> None:
    assert cache.get([*VALUES, key(999)]) == VALUES
    cache.add({key(1): b"another", key(1000): b"new"})
    assert cache.get([key(1), key(1000)]) == {key(1): value(1), key(1000): b"new"}
    assert len(cache) == 301
    cache.verify()


def test_where_nothing_was_kept_nothing_is_found_and_nothing_made(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "cache")
    cache.add({})
    assert (cache.get([key(1)]), len(cache), bool(cache)) == ({}, 0, True)
    with pytest.raises(NotBuiltError):
        cache.verify()
    assert not cache.path.parent.exists()


def test_a_value_that_was_changed_is_missing_until_it_is_added_again(cache: Cache) -> None:
    data = cache.path.read_bytes()
    place = data.index(b"value 49 value 49") + 6
    cache.path.write_bytes(data[:place] + b"5" + data[place + 1 :])
    with pytest.warns(MathAMRWarning, match="1 values were changed"):
        found = cache.get([*VALUES])
    assert found == {k: v for k, v in VALUES.items() if k != key(49)}
    assert len(list(cache.faults())) == 1
    with pytest.raises(StoreError, match=r"entry \d+ was changed.*only a cache: remove it"):
        cache.verify()
    cache.add({key(49): value(49)})
    assert cache.get([*VALUES]) == VALUES
    cache.verify()


def test_any_byte_that_is_changed_gives_right_values_or_fewer_or_an_error_with_a_name(tmp_path: Path) -> None:
    cache, few = Cache(tmp_path / "cache"), dict(islice(VALUES.items(), 60))
    cache.add(few)
    data = cache.path.read_bytes()
    outcomes = set()
    for place in [*range(100), *range(100, len(data), 97)]:
        cache.path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)
            try:
                assert cache.get([*few]).items() <= few.items()
                cache.add({key(2000): b"x"})
                faults = list(cache.faults())
            except StoreError as error:
                assert str(cache.path) in str(error)  # noqa: PT017 - it may raise or not
                outcomes.add("error")
            else:
                assert cache.get([*few]) == few or faults
                outcomes.add("faults" if faults else "values")
    assert outcomes == {"error", "faults", "values"}


@pytest.mark.parametrize("content", [b"thesis " * 999, b"x", "database", "folder", "earlier"])
def test_a_file_that_is_not_a_cache_is_refused_and_not_touched(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "cache"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "folder":
        shutil.copytree(DATA / "parses-format-1", path)
    elif content == "earlier":
        shutil.copyfile(DATA / "text-vectors-format-1.sqlite", path)
    else:
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE thesis (text)")
    before = path.read_bytes() if path.is_file() else sorted(path.iterdir())
    for use in (lambda: Cache(path).get([key(1)]), lambda: Cache(path).add(VALUES), Cache(path).verify):
        with pytest.raises(OtherArtifactError, match="a cache can be removed"):
            use()
    assert before == (path.read_bytes() if path.is_file() else sorted(path.iterdir()))


def test_another_format_is_refused_and_this_one_opens(cache: Cache) -> None:
    assert Cache(DATA / "cache-format-2.sqlite").get([b"key"]) == {b"key": b"value"}
    with sqlite3.connect(cache.path) as file:
        file.execute("PRAGMA user_version = 3")
    with pytest.raises(FormatError, match="format 3"):
        cache.get([key(1)])


def test_a_full_disk_and_a_place_that_cannot_be_written_are_named_and_leave_what_was_there(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "cache", Path("/proc/cache")):
        with pytest.raises(WriteError, match="cannot be"):
            Cache(path).add(VALUES)
    real = sqlite3.connect

    def small(*arguments: object, **options: object) -> sqlite3.Connection:
        file = real(*arguments, **options)  # type: ignore[call-overload]
        file.execute(f"PRAGMA max_page_count = {cache.path.stat().st_size // 4096 + 1}")
        return file

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", small)
        with pytest.raises(WriteError, match="full"):
            cache.add({key(i): b"x" * 5000 for i in range(400, 500)})
    assert cache.get([*VALUES, key(400)]) == VALUES
    cache.verify()


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_cache import key, value, Cache
cache = Cache(sys.argv[2])
for start in range(int(sys.argv[3]), 10**6, 20):
    cache.add({key(i): value(i) for i in range(start, start + 20)})
    print(start + 20, flush=True)
"""


def test_processes_write_at_the_same_time_and_a_kill_loses_nothing_that_was_added(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(path)]
    starts = (0, 10, 100_000)  # two of them add the same
    jobs = [subprocess.Popen([*command, str(start)], stdout=subprocess.PIPE, text=True) for start in starts]
    for job in jobs:
        assert job.stdout is not None
        job.stdout.readline()
    time.sleep(0.3)
    for job in jobs:
        job.send_signal(signal.SIGKILL)
    cache = Cache(path)
    for start, job in zip(starts, jobs, strict=True):
        added = [int(line) for line in job.communicate()[0].splitlines()]
        done = range(start, max(added, default=start + 20))
        assert cache.get([key(i) for i in done]) == {key(i): value(i) for i in done}
    cache.verify()

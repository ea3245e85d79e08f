"""What the operating system refuses is no damage: nothing is replaced or discarded because of it."""

import errno
import os
import resource
from pathlib import Path

import pytest

from pyterrier_mathamr.store import DamagedError, StoreError, UnavailableError, job
from pyterrier_mathamr.store.saved import saved_faults, write_saved

REFUSALS = [errno.EMFILE, errno.ENFILE, errno.EACCES, errno.ENOMEM]
DAMAGES = [errno.EIO, errno.EISDIR]


@pytest.mark.parametrize("number", [*REFUSALS, *DAMAGES])
def test_a_manifest_that_the_system_does_not_open_is_called_what_it_is(toy, path, monkeypatch, number) -> None:
    toy.build(path, range(4))
    before = toy.read(path)

    def refuse(self: Path) -> bytes:
        raise OSError(number, os.strerror(number), str(self))

    wanted: type[StoreError] = UnavailableError if number in REFUSALS else DamagedError
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(wanted, match=os.strerror(number)) as found:
            toy.read(path)
        assert ("overwrite" in str(found.value)) == (wanted is DamagedError)
        if wanted is UnavailableError:
            with pytest.raises(UnavailableError):
                toy.build(path, range(2), "overwrite")
    assert toy.read(path) == before


def test_too_many_open_files_are_named_and_the_artifact_is_whole(toy, path) -> None:
    toy.build(path, range(60))
    wanted, limits = toy.read(path), resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(free := os.open(path, os.O_RDONLY))  # the number of the next file
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
        with pytest.raises(UnavailableError, match=r"Too many open files.*ulimit -n"):
            toy.read(path)
        faults = list(toy.Toy(path).faults())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert {type(fault) for fault in faults} == {UnavailableError}
    assert toy.read(path) == wanted


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize("what", ["read_signed", "StoredPart"])
def test_unfinished_work_that_cannot_be_opened_now_is_kept(toy, path, monkeypatch, number, what) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "part-000000")

    with monkeypatch.context() as patch:
        patch.setattr(job.Job, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            toy.build(path, range(6))
    with monkeypatch.context() as patch:
        patch.setattr(job, what, refuse)
        with pytest.raises(UnavailableError):
            toy.build(path, range(6))
    assert toy.Toy(path).unfinished() == 6
    toy.build(path, range(6))


def test_weights_that_may_not_be_read_are_not_called_damaged(tmp_path, monkeypatch) -> None:
    write_saved(tmp_path / "weights.json", "Ensemble", {"weights": [1.0]})

    def refuse(self: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert [type(fault) for fault in saved_faults(tmp_path / "weights.json")] == [UnavailableError]

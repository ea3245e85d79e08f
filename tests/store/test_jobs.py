"""Jobs: by mode, resumed, refused, two at a time; and what changes without one."""

import errno
import json
import warnings

import numpy as np
import pytest
from folder_bytes import folder_bytes
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.store import (
    DamagedError,
    DuplicateIdError,
    NotBuiltError,
    UnfinishedJobError,
    UnknownIdError,
    WriteError,
    files,
)
from pyterrier_mathamr.store import parts as parts_module
from pyterrier_mathamr.store.parts import parts_to_merge


def names(toy, path) -> list[str]:
    return list(toy.Toy(path).snapshot())


def stop_after(toy, path, ids, fingerprint=None, mode="create") -> KeyboardInterrupt:
    """Write parts of two, then be interrupted."""
    with pytest.raises(KeyboardInterrupt) as caught, toy.Toy(path).job(mode, fingerprint or {}) as job:
        job.rows_done(ids)
        for start in range(0, len(ids), 2):
            job.add(toy.content(ids[start : start + 2]))
        raise KeyboardInterrupt
    return caught.value


def test_modes(toy, path) -> None:
    toy.build(path, range(5))
    with pytest.raises(WriteError, match=r"mode='overwrite'"):
        toy.build(path, range(5))
    toy.build(path, range(5, 8), "append")
    assert names(toy, path) == [f"d{i}" for i in range(8)]
    toy.build(path, range(2), "overwrite", seed=1)
    assert names(toy, path) == ["d0", "d1"]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["it"]
    assert len([entry for entry in path.iterdir() if entry.name.startswith("part-")]) == 1


def test_ids_come_once(toy, path) -> None:
    toy.build(path, range(5))
    before = folder_bytes(path)
    with pytest.raises(DuplicateIdError, match="'d3'"), toy.Toy(path).job("append", {}) as job:
        job.add(toy.content(["new"]))
        job.add(toy.content(["d3"]))
    with pytest.raises(DuplicateIdError, match="'x'"), toy.Toy(path).job("append", {}, resume=False) as job:
        job.add(toy.content(["x", "y", "x"]))
    assert folder_bytes(path) == before


def test_a_stopped_job_reports_the_finished_work_and_resumes_to_the_same_bytes(toy, path, tmp_path) -> None:
    ids = [f"d{i}" for i in range(40)]
    error = stop_after(toy, path, ids[:20], {"options": "none"})
    assert error.__notes__ == [f"20 finished rows are kept in {path.parent / '.it.job'}"]
    assert toy.Toy(path).unfinished() == 20
    with pytest.raises(NotBuiltError, match="20 rows"):
        toy.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        toy.build(path, range(40))
    toy.build(tmp_path / "undisturbed", range(40))
    assert folder_bytes(path) == folder_bytes(tmp_path / "undisturbed")
    assert toy.Toy(path).unfinished() == 0


@pytest.mark.parametrize(
    ("fingerprint", "rows", "seed", "message"),
    [
        ({"options": "other"}, range(12), 0, "options: other, not none"),
        ({"options": "none", "sources": ["A"]}, range(12), 0, "sources: "),
        ({"options": "none"}, range(12), 1, "row 'd0'"),
        ({"options": "none"}, range(6, 12), 0, "rows: .*'d0'"),
    ],
)
def test_another_jobs_leftovers_are_refused_and_kept(toy, path, fingerprint, rows, seed, message) -> None:
    stop_after(toy, path, [f"d{i}" for i in range(6)], fingerprint)
    kept = folder_bytes(path.parent / ".it.job")
    with pytest.raises(UnfinishedJobError, match=message) as caught:
        toy.build(path, rows, "create", seed)
    assert "--fresh" in str(caught.value)
    assert {name for name in folder_bytes(path.parent / ".it.job") if "part-" in name} >= {
        n for n in kept if "part-" in n
    }
    toy.Toy(path).discard()
    toy.build(path, rows, "create", seed)
    assert names(toy, path) == [f"d{i}" for i in rows]


def test_without_resume_another_jobs_work_is_discarded(toy, path) -> None:
    toy.build(path, range(2))
    stop_after(toy, path, ["a", "b"], {"options": "other"}, "overwrite")
    with pytest.raises(UnfinishedJobError, match="options: other, not none"):
        toy.build(path, range(3), "overwrite")
    with toy.Toy(path).job("overwrite", {"options": "none"}, resume=False) as job:
        job.add(toy.content(["c"]))
        job.commit({})
    assert names(toy, path) == ["c"]


def test_a_publication_whose_last_sync_fails_is_there(toy, path, monkeypatch) -> None:
    toy.build(path, range(2))
    with toy.Toy(path).job("append", {}) as job:
        job.add(toy.content(["x"]))
        synced = files.sync_folder

        def fail_after_the_swap(folder) -> None:
            synced(folder)
            if "part-000001" in (path / "pt_meta.json").read_text():
                raise OSError(5, "Input/output error")

        monkeypatch.setattr(files, "sync_folder", fail_after_the_swap)
        with pytest.warns(MathAMRWarning, match="a power cut may undo it"):
            job.commit({})
    assert names(toy, path) == ["d0", "d1", "x"]


def test_an_append_goes_on_only_with_what_it_was_appended_to(toy, path) -> None:
    toy.build(path, range(3))
    stop_after(toy, path, ["x", "y"], {"options": "none"}, "append")
    toy.Toy(path).delete(["d1"])
    with pytest.raises(UnfinishedJobError, match="base"):
        toy.build(path, range(3, 6), "append")
    with pytest.raises(UnfinishedJobError):
        toy.Toy(path).compact()
    assert toy.Toy(path).unfinished() == 2


def test_an_overwrite_discards_what_was_to_be_appended_to_what_it_replaces(toy, path, monkeypatch) -> None:
    toy.build(path, range(3))
    write, written = parts_module.write_arrays, []

    def full_disk(file, arrays):
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(file)
        return write(file, arrays)

    monkeypatch.setattr(parts_module, "write_arrays", full_disk)
    with pytest.raises(WriteError, match="No space left"):
        toy.build(path, range(3, 9), "append")
    monkeypatch.undo()
    assert toy.Toy(path).unfinished() == 2
    assert names(toy, path) == ["d0", "d1", "d2"]
    toy.build(path, range(20, 22), "overwrite")
    assert names(toy, path) == ["d20", "d21"]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["it"]
    toy.Toy(path).verify()


@pytest.mark.parametrize("mode", ["create", "append"])
def test_an_overwrite_refuses_the_unfinished_work_of_a_new_artifact(toy, path, mode) -> None:
    stop_after(toy, path, ["x", "y"], {"options": "none"}, mode)
    with pytest.raises(UnfinishedJobError, match=f"mode: {mode}, not overwrite"):
        toy.build(path, range(3), "overwrite")
    assert toy.Toy(path).unfinished() == 2


def test_a_note_that_cannot_be_read_counts_as_none(toy, path) -> None:
    for i, text in enumerate(["", "{}", "[" * 100_000, "null"]):
        stop_after(toy, path.with_name(str(i)), ["d0", "d1"], {"options": "none"})
        (path.parent / f".{i}.job" / "job.json").write_text(text)
        with pytest.warns(MathAMRWarning, match="unfinished work is discarded"):
            toy.build(path.with_name(str(i)), range(6))
        assert names(toy, path.with_name(str(i))) == [f"d{i}" for i in range(6)]


def test_a_damaged_part_of_unfinished_work_is_made_again(toy, path) -> None:
    stop_after(toy, path, [f"d{i}" for i in range(6)], {"options": "none"})
    part = sorted((path.parent / ".it.job" / "parts").iterdir())[1] / "arrays.safetensors"
    data = bytearray(part.read_bytes())
    data[-1] ^= 1
    part.write_bytes(data)
    with pytest.warns(MathAMRWarning, match="computed again"):
        toy.build(path, range(6))
    assert names(toy, path) == [f"d{i}" for i in range(6)]
    toy.Toy(path).verify()


def test_a_job_that_keeps_nothing_leaves_nothing(toy, path) -> None:
    for options in ({"resume": False}, {}):
        with pytest.raises(ZeroDivisionError), toy.Toy(path).job("create", {}, **options) as job:
            if options:
                job.add(toy.content(["a"]))
            raise ZeroDivisionError
    assert list(path.parent.iterdir()) == []


def test_a_second_writer_learns_who_holds_the_artifact_and_readers_continue(toy, path) -> None:
    toy.build(path, range(3))
    opened = toy.Toy(path).snapshot()
    with toy.Toy(path).job("overwrite", {}) as job:
        with pytest.raises(WriteError, match=r"process \d+ on .* for \d+ s"):
            toy.build(path, range(3, 5), "append")
        with pytest.raises(WriteError, match="being written"):
            toy.Toy(path).delete(["d1"])
        job.add(toy.content(["new"]))
        job.commit({})
    assert list(opened) == ["d0", "d1", "d2"]
    assert opened.parts[0]["rows"].shape[1] == 4
    assert names(toy, path) == ["new"]


def test_a_missing_file_is_damage_also_to_who_adds(toy, path) -> None:
    toy.build(path, range(3))
    (path / "part-000000" / "ids.npids").unlink()
    with pytest.raises(DamagedError, match=r"ids\.npids: it cannot be read"):
        toy.build(path, range(3, 5), "append")


def test_deleting_marks_and_compacting_frees(toy, path) -> None:
    toy.build(path, range(20))
    whole = toy.read(path)[2]
    before = sum(map(len, folder_bytes(path).values()))
    with pytest.raises(UnknownIdError, match="'nobody'"):
        toy.Toy(path).delete(["d3", "nobody"])
    toy.Toy(path).delete(["d3", "d4"])
    toy.Toy(path).delete(["d17"])
    kept = [f"d{i}" for i in range(20) if i not in (3, 4, 17)]
    assert toy.read(path)[1:] == [kept, {name: whole[name] for name in kept}]
    artifact = toy.Toy(path)
    assert (len(artifact), "d3" in artifact, "d5" in artifact) == (17, False, True)
    toy.build(path, range(3, 4), "append", seed=1)
    assert names(toy, path) == [*kept, "d3"]
    artifact.compact()
    assert names(toy, path) == [*kept, "d3"]
    assert sum(map(len, folder_bytes(path).values())) < before
    assert len(artifact.snapshot().parts) == 1
    artifact.verify()
    artifact.delete([*kept, "d3"])
    assert (len(artifact), names(toy, path)) == (0, [])


def test_merging_keeps_order_content_and_marks(toy, path) -> None:
    toy.build(path, range(3))
    for i in range(3, 36):
        toy.build(path, range(i, i + 1), "append")
        if i == 20:
            toy.Toy(path).delete(["d7", "d20"])
    expected = [f"d{i}" for i in range(36) if i not in (7, 20)]
    assert names(toy, path) == expected
    assert len(toy.Toy(path).snapshot().parts) <= 8
    toy.build(path.parent / "whole", range(36))
    whole = toy.read(path.parent / "whole")[2]
    assert toy.read(path)[2] == {name: whole[name] for name in expected}


def test_scratch_files_live_as_long_as_their_job(toy, path) -> None:
    for place in (path, path.parent / "other"):
        with pytest.raises(KeyboardInterrupt) as caught, toy.Toy(place).job("create", {"a": 1}) as job:
            job.scratch("table").write_text("half")
            raise KeyboardInterrupt
        assert str(path.parent / f".{place.name}.job") in caught.value.__notes__[0]
    with pytest.raises(UnfinishedJobError, match="a: 1, not 2"), toy.Toy(place).job("create", {"a": 2}):
        pass
    with toy.Toy(path).job("create", {"a": 1}) as job:
        assert job.scratch("table").read_text() == "half"
        job.add(toy.content(["a"]))
        job.commit({})
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".other.job", "it"]


def test_rows_are_found_across_parts_and_pyterrier_reads_the_manifest(toy, path) -> None:
    toy.build(path, range(3))
    toy.build(path, range(3, 9), "append")
    snapshot = toy.Toy(path).snapshot()
    rows = snapshot.find(["d8", "d0", "d8", "d4"])
    assert snapshot.ids(rows) == ["d8", "d0", "d8", "d4"]
    assert snapshot.ids(np.array([], dtype=np.int64)) == []
    with pytest.raises(UnknownIdError, match="'a', 'b'"):
        snapshot.find(["a", "d1", "b"])
    meta = json.loads((path / "pt_meta.json").read_text())
    assert (meta["type"], meta["format"], meta["package_hint"]) == ("toy", "mathamr", "pyterrier-mathamr")
    assert (meta["count"], meta["format_version"], meta["details"]) == (9, 3, {"made": "by a test"})


FULL = 64 << 20


def grow(sizes: list[int], full: int = FULL) -> tuple[list[int], int]:
    """Add parts one by one and merge as the store does; the sizes at the end, and the bytes written."""
    parts: list[int] = []
    written = 0
    for size in sizes:
        parts.append(size)
        written += size
        while run := parts_to_merge(parts, full):
            assert len(run) > 1
            merged = sum(parts[run.start : run.stop])
            assert merged <= full
            parts[run.start : run.stop] = [merged]
            written += merged
    return parts, written


@pytest.mark.parametrize(
    ("size", "count", "most_parts", "most_rewritten"),
    [
        (3_000, 1000, 20, 60),  # the smallest are rewritten more often, but never beyond 64 KiB
        (1 << 20, 2000, 2000 / 32 + 20, 4),
        (40 << 20, 30, 30, 1),  # full parts are not touched
    ],
)
def test_many_parts_become_a_few_and_each_byte_is_rewritten_a_few_times(
    size, count, most_parts, most_rewritten
) -> None:
    parts, written = grow([size] * count)
    assert sum(parts) == size * count
    assert len(parts) <= most_parts
    assert written <= most_rewritten * size * count


@given(st.lists(st.integers(0, 1000), max_size=200), st.integers(1, 1000))
def test_any_sizes_end(sizes, full) -> None:
    parts, _ = grow(sizes, full)
    assert sum(parts) == sum(sizes)

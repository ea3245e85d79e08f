"""Files: arrays that safetensors reads, what no file may do to whoever reads it, and what identifies a file or row."""

import errno
import hashlib
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from pyterrier_mathamr.store import DamagedError, WriteError, file_fingerprint, job, row_fingerprint, writing
from pyterrier_mathamr.store.files import map_arrays, parse_object, write_arrays

DTYPES = st.sampled_from(["<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "i1", "<u8", "<u4", "<u2", "u1"])
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_side=0, max_dims=3, max_side=5)))


@settings(max_examples=30)
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), ARRAYS, max_size=5))
def test_arrays_come_back_and_safetensors_reads_them_too(tmp_path_factory, arrays) -> None:
    path = tmp_path_factory.mktemp("files") / "arrays"
    written = write_arrays(path, arrays)
    assert written == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    if not arrays:
        return
    for read in (map_arrays(path), load_file(path)):
        assert set(read) == set(arrays)
        for name, array in arrays.items():
            assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(read[name], array)
    assert all(array.flags.aligned for array in map_arrays(path).values())


@given(st.binary(max_size=200))
def test_no_file_of_bytes_does_more_than_raise_a_named_error(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("files") / "arrays"
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        map_arrays(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [10**18], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2**61, 8], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
        {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1]},
        [],
        None,
    ],
)
def test_an_array_that_does_not_lie_inside_its_file_is_damage(tmp_path, entry) -> None:
    header = json.dumps({"a": entry}).encode()
    (tmp_path / "arrays").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
    with pytest.raises(DamagedError, match="header"):
        map_arrays(tmp_path / "arrays")


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 100_000, '{"a": NaN}', "1" * 5000, '{"a": ', "\xff", "[]", ""])
def test_json_that_is_not_an_object_is_damage(tmp_path, text) -> None:
    with pytest.raises(DamagedError):
        parse_object(text.encode("latin-1"), tmp_path)


def test_a_failed_write_names_the_artifact(tmp_path) -> None:
    with pytest.raises(WriteError, match=r"it: .*No space left") as caught, writing(tmp_path / "it"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert isinstance(caught.value.__cause__, OSError)


def test_a_file_is_known_by_its_content_and_a_large_one_by_its_size_time_and_ends(tmp_path, monkeypatch) -> None:
    (tmp_path / "one").write_text("posts")
    (tmp_path / "two").write_text("posts")
    (tmp_path / "other").write_text("postz")
    one, two, other = (file_fingerprint(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two != other
    monkeypatch.setattr(job, "_WHOLE", 100)
    monkeypatch.setattr(job, "_END", 40)
    file = tmp_path / "posts"
    seen = []
    for text, time in [("a" * 200, 1), ("b" + "a" * 199, 1), ("a" * 199 + "b", 1), ("a" * 201, 1), ("a" * 200, 2)]:
        file.write_text(text)
        os.utime(file, (time, time))
        seen.append(str(file_fingerprint(file)))
    assert len(set(seen)) == 5


def test_a_row_is_known_by_its_values() -> None:
    one = {"docno": "1", "text": "x", "score": 1.5}
    assert row_fingerprint(one) == row_fingerprint(dict(reversed(one.items())))
    others = [{**one, "text": "y"}, {**one, "score": 1.25}, {**one, "title": ""}, {"docno": "1", "text": "x"}]
    assert len({row_fingerprint(row) for row in (one, *others)}) == 5
    assert 0 <= row_fingerprint({"text": "\ud800"}) < 1 << 64

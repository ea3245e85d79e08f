"""The files of an index: damage is named, and every format that was ever written is still read."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pyterrier as pt
import pytest
from index_folders import contents
from lz4.frame import LZ4FrameFile

from pyterrier_mathamr import index as room
from pyterrier_mathamr.index import (
    IndexCorruptError,
    IndexFile,
    IndexFormatError,
    MathAMRIndex,
)

DATA = Path(__file__).parents[1] / "data"


def test_a_changed_cut_or_missing_file_is_named(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    rows = index.path / "shard-000000" / IndexFile.ROWS.filename
    good = rows.read_bytes()
    rows.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(IndexCorruptError, match=r"rows\.npy"):
        MathAMRIndex(index.path).verify()
    rows.write_bytes(good[:-4])
    with pytest.raises(IndexCorruptError, match="bytes"):
        len(MathAMRIndex(index.path))
    rows.unlink()
    with pytest.raises(IndexCorruptError, match="missing"):
        len(MathAMRIndex(index.path))
    rows.write_bytes(good)
    assert len(MathAMRIndex(index.path)) == 2
    (index.path / "pt_meta.json").write_text("{")
    with pytest.raises(IndexCorruptError, match="JSON"):
        len(MathAMRIndex(index.path))


@pytest.mark.parametrize("version", [0, room.FORMAT_VERSION + 1])
def test_a_format_this_release_does_not_read_is_refused_and_says_what_to_do(tmp_path, documents, version):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    meta = index.path / "pt_meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "format_version": version}))
    with pytest.raises(IndexFormatError, match=f"index format {version}, but this release reads 1 to 2"):
        len(MathAMRIndex(index.path))


def test_a_shard_name_cannot_lead_outside_the_index(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2]))
    meta = json.loads((index.path / "pt_meta.json").read_text())
    meta["shards"][0]["name"] = "../x/shard-000000"
    (index.path / "pt_meta.json").write_text(json.dumps(meta))
    with pytest.raises(IndexCorruptError):
        len(MathAMRIndex(index.path))


def test_the_kept_index_of_format_1_is_still_read(topics):
    index = pt.Artifact.load(str(DATA / "index-format-1"))
    index.verify()
    assert isinstance(index, MathAMRIndex)
    assert index.model == "a model"
    docs = {doc["docno"]: doc for doc in index.get_corpus_iter()}
    assert docs["2"]["formula_ids"] == ["f1", ""]
    np.testing.assert_array_equal(docs["1"]["doc_embs"], np.array([[0.6, 0.8]], np.float32))
    query = topics([1]).assign(query_embs=[np.array([[1.0, 0.0]])])
    found = index.colbert()(query)
    assert found["docno"].tolist() == ["2", "1", "drei"]
    assert found["score"].tolist() == pytest.approx([1.0, 0.6, -0.6])


def test_the_kept_index_of_format_2_is_still_read():
    index = pt.Artifact.load(str(DATA / "index-format-2"))
    index.verify()
    docs = {doc["docno"]: doc for doc in index.get_corpus_iter()}
    assert docs["2"]["formula_ids"] == ["f1", ""]
    np.testing.assert_array_equal(docs["1"]["doc_embs"], np.array([[0.6, 0.8]], np.float16))


def test_the_kept_formula_index_of_format_1_is_still_read():
    index = pt.Artifact.load(str(DATA / "formula-index-format-1"))
    index.verify()
    found = list(index.get_corpus_iter())
    assert [(row["docno"], row["post_id"], row["visual_id"]) for row in found] == [("f1", "2", "v1"), ("f2", "3", "")]
    np.testing.assert_array_equal(found[1]["formula_vec"], [0.0, 1.0])


def test_the_files_of_the_kept_index_are_those_of_the_format():
    """A file that is added or dropped changes the format: raise FORMAT_VERSION, and keep an index of the old one."""
    for name, layout in (
        ("index-format-1", "documents"),
        ("index-format-2", "documents"),
        ("formula-index-format-1", "formulas"),
    ):
        kept = {path.name for path in (DATA / name / "shard-000000").iterdir()}
        assert kept == {file.filename for file in IndexFile.of(layout)}


def test_a_package_is_unpacked_and_loaded_elsewhere(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1, 3]))
    package = index.build_package(str(tmp_path / "x.tar.lz4"), verbose=False)
    with LZ4FrameFile(package) as data, tarfile.open(fileobj=data) as tar:
        tar.extractall(tmp_path / "elsewhere", filter="data")
    index.path.rename(tmp_path / "moved")
    loaded = pt.Artifact.load(str(tmp_path / "elsewhere"))
    assert isinstance(loaded, MathAMRIndex)
    loaded.verify()
    frame = topics([2])
    assert loaded.colbert()(frame).equals(MathAMRIndex(tmp_path / "moved").colbert()(frame))
    assert str(tmp_path).encode() not in b"".join(contents(tmp_path / "elsewhere").values())

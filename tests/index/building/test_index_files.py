"""The files of an index: damage is named, the format of today opens, and every older one is refused by name."""

import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pyterrier as pt
import pytest
from folder_bytes import folder_bytes
from lz4.frame import LZ4FrameFile

from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.store import DamagedError, FormatError
from pyterrier_mathamr.store.manifest import signed

DATA = Path(__file__).parents[2] / "data"
KEPT = {"index-format-3": (MathAMRIndex, "float32"), "index-format-3-float16": (MathAMRIndex, "float16")}
OLD = ("index-format-1", "index-format-2", "formula-index-format-1")


def rewritten(index, name, change):
    """Change one array of the first part in its file, but not the manifest."""
    file = next(index.path.glob("part-*/arrays.safetensors"))
    data = bytearray(file.read_bytes())
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])[name]
    first, last = (8 + length + place for place in entry["data_offsets"])
    array = np.frombuffer(bytes(data[first:last]), index.snapshot().parts[0][name].dtype).copy()
    change(array)
    data[first:last] = array.tobytes()
    file.write_bytes(data)
    return MathAMRIndex(index.path)


def put(place, value):
    def change(array):
        array[place] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "scans"),
    [
        ("offsets", put(1, 0), (True, False)),  # a document without rows
        ("offsets", put(1, 2**40), (True, False)),
        ("offsets", put(-1, 7), (True, False)),
        ("scales", put(0, np.nan), (True,)),
        ("code_bounds", put(1, -1.0), (True,)),
    ],
)
def test_numbers_that_lead_into_arrays_are_checked_before_a_search(
    monkeypatch, tmp_path, documents, topics, name, change, scans
):
    index = rewritten(MathAMRIndex(tmp_path / "x").index(documents([2, 1, 3])), name, change)
    for of_codes in scans:
        monkeypatch.setattr("pyterrier_mathamr.index.search.folder._codes_pay", lambda *of, pays=of_codes: pays)
        with pytest.raises(DamagedError, match="part-000000"):
            MathAMRIndex(index.path).colbert()(topics([2]))
    with pytest.raises(DamagedError, match="changed"):
        index.verify()


def test_texts_that_are_none_are_refused_where_they_are_read(tmp_path, documents, topics):
    docs = [{**documents([2])[0], "formula_ids": ["f1"]}]
    for number, change in enumerate((put(0, 0xFF), put(0, ord("{")))):
        index = rewritten(MathAMRIndex(tmp_path / str(number)).index(docs), "formula_ids", change)
        assert len(index.colbert()(topics([2]))) == 1
        for reading in (
            lambda of=index: list(of.get_corpus_iter()),
            lambda of=index: of.explain({"query_embs": np.ones((1, 8))}, "d0"),
        ):
            with pytest.raises(DamagedError, match=r"UTF-8|JSON"):
                reading()


def test_a_changed_part_is_not_merged_into_one_that_looks_sound(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1, 3]))
    index.indexer("append").index(documents([1], name="e"))
    before = folder_bytes(rewritten(index, "document_vectors", put(0, 0.5)).path)
    with pytest.raises(DamagedError, match="changed"):
        index.compact()
    assert folder_bytes(index.path) == before


def test_a_length_of_rows_that_is_none_is_refused_on_opening(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    file = index.path / "pt_meta.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    for number in (float("nan"), 1e400, -1.0, "1", None):
        content["parts"][0]["details"]["max_norm"] = number
        file.write_bytes(signed(content))
        with pytest.raises(DamagedError):
            len(MathAMRIndex(index.path))


@pytest.mark.parametrize("name", KEPT)
def test_the_kept_indexes_of_todays_format_open(topics, name):
    """A change of the files needs a new number and a decision: raise the version, and keep an index of the old one."""
    kind, dtype = KEPT[name]
    index = pt.Artifact.load(str(DATA / name))
    index.verify()
    assert isinstance(index, kind)
    assert (index.model, index.snapshot().meta.dtype) == ("a model", dtype)
    docs = {doc["docno"]: doc for doc in index.get_corpus_iter()}
    assert list(docs) == ["2", "1", "drei"]
    assert docs["2"]["formula_ids"] == ["f1", ""]
    np.testing.assert_array_equal(docs["1"]["doc_embs"], np.array([[0.6, 0.8]], dtype).astype(np.float32))
    found = index.colbert()(topics([1]).assign(query_embs=[np.array([[1.0, 0.0]])]))
    assert found["docno"].tolist() == ["2", "1", "drei"]
    assert found["score"].tolist() == pytest.approx([1.0, 0.6, -0.6], abs=1e-3)


def test_the_kept_formula_index_of_todays_format_opens():
    index = pt.Artifact.load(str(DATA / "formula-index-format-3"))
    index.verify()
    found = list(index.get_corpus_iter())
    assert [(row["docno"], row["post_id"], row["visual_id"]) for row in found] == [("f1", "2", "v1"), ("f2", "3", "")]
    np.testing.assert_array_equal(found[1]["formula_vec"], [0.0, 1.0])


@pytest.mark.parametrize("name", OLD)
def test_an_older_format_is_refused_with_the_command_that_rebuilds_it(name):
    index = pt.Artifact.load(str(DATA / name))
    command = "MathAMRFormulaIndex" if isinstance(index, MathAMRFormulaIndex) else "mathamr index GRAPHS MODEL"
    with pytest.raises(FormatError, match=rf"format {name[-1]}, this release reads 3. Rebuild it: {command}.*{name}"):
        len(index)


def test_an_index_of_an_older_format_is_replaced_but_not_added_to(tmp_path, documents):
    shutil.copytree(DATA / "index-format-1", tmp_path / "x")
    index = MathAMRIndex(tmp_path / "x")
    for mode in ("create", "append"):
        with pytest.raises(FormatError):
            index.indexer(mode).index(documents([1]))
    index.indexer("overwrite").index(documents([1]))
    assert sorted(path.name for path in index.path.iterdir()) == ["part-000000", "pt_meta.json"]
    assert len(index) == 1


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
    assert str(tmp_path).encode() not in b"".join(folder_bytes(tmp_path / "elsewhere").values())


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_a_scale_that_is_not_a_positive_number_is_refused(tmp_path, documents, topics, dtype):
    for number, scale in enumerate((np.nan, np.inf, 0.0, -1.0)):
        index = MathAMRIndex(tmp_path / str(number))
        index.indexer(dtype=dtype).index(documents([2, 3]))
        index = rewritten(index, "row_scales", put(0, scale))
        with pytest.raises(DamagedError, match="the scale of a row is not a positive number"):
            index.colbert()(topics([2]))

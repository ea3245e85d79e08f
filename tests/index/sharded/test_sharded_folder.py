"""The folder of an index in parts: its manifest names the parts and what they were."""

import shutil

import pandas as pd
import pyterrier as pt
import pytest
from click.testing import CliRunner
from sharded_parts import asked, cut, drawn, index_here

from pyterrier_mathamr.cli import main
from pyterrier_mathamr.index import EmbeddingError, MathAMRIndex, MathAMRIndexError, ShardedIndex
from pyterrier_mathamr.store import (
    META,
    DamagedError,
    DuplicateIdError,
    FormatError,
    NotBuiltError,
    OtherArtifactError,
    StoreError,
    signed,
)

DOCUMENTS = drawn(seed=8, documents=60, copies=30)
QUERIES = asked(seed=9, queries=4)


@pytest.fixture
def folder(tmp_path):
    """Three parts, joined."""
    cut(tmp_path / "parts", DOCUMENTS, [10, 50])
    ShardedIndex.join(tmp_path / "parts")
    return tmp_path / "parts"


def verified(path):
    result = CliRunner().invoke(main, ["verify", str(path)])
    return result.exit_code, result.output


def test_a_folder_of_parts_is_an_artifact_that_finds_what_one_index_finds(folder, tmp_path):
    assert type(pt.Artifact.load(folder)) is ShardedIndex
    assert pt.Artifact.load(folder) == ShardedIndex(folder)
    whole = MathAMRIndex(tmp_path / "whole").index(DOCUMENTS)
    pd.testing.assert_frame_equal(index_here(folder).colbert()(QUERIES), whole.colbert()(QUERIES), check_exact=True)
    assert verified(folder) == (0, f"ok   {folder}: sharded_index.mathamr, 90 rows in 3 parts\n")
    ShardedIndex(folder).verify()


def test_parts_merged_in_their_order_are_the_index_of_all_at_once(tmp_path):
    for part, some in enumerate((DOCUMENTS[:10], DOCUMENTS[10:50], DOCUMENTS[50:])):
        MathAMRIndex(tmp_path / "parts" / f"part-{part:06d}").index(some)
    merged = ShardedIndex.join(tmp_path / "parts").merge(tmp_path / "merged")
    whole = MathAMRIndex(tmp_path / "whole").index(DOCUMENTS)
    files = {path.relative_to(whole.path): path.read_bytes() for path in whole.path.rglob("*") if path.is_file()}
    assert files == {of: (merged.path / of).read_bytes() for of in files}


def test_a_part_that_was_changed_missing_or_damaged_is_named(folder):
    part = MathAMRIndex(folder / "part-000001")
    part.delete([next(part.get_corpus_iter())["docno"]])
    with pytest.raises(MathAMRIndexError, match="part-000001"):
        index_here(folder).colbert()(QUERIES)
    code, output = verified(folder)
    assert code == 1
    assert "part-000001: it is not the part that" in output
    ShardedIndex.join(folder)
    assert len(index_here(folder)) == len(DOCUMENTS) - 1
    assert verified(folder)[0] == 0
    file = next((folder / "part-000002").rglob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert verified(folder)[0] == 1
    with pytest.raises(DamagedError):
        ShardedIndex(folder).verify()
    shutil.rmtree(folder / "part-000002")
    with pytest.raises(NotBuiltError, match="part-000002"):
        index_here(folder).colbert()(QUERIES)
    code, output = verified(folder)
    assert code == 1
    assert "part-000002" in output


def test_only_parts_that_belong_together_are_joined(tmp_path):
    with pytest.raises(NotBuiltError, match="part-000000"):
        ShardedIndex.join(tmp_path)
    cut(tmp_path, DOCUMENTS[:20], [10])
    MathAMRIndex(tmp_path / "part-000002").index(DOCUMENTS[3:4])
    with pytest.raises(DuplicateIdError, match=DOCUMENTS[3]["docno"]):
        ShardedIndex.join(tmp_path)
    assert not (tmp_path / META).exists()
    wide = {"docno": "wide", "doc_embs": DOCUMENTS[0]["doc_embs"].repeat(2, axis=1)}
    MathAMRIndex(tmp_path / "part-000002").indexer("overwrite").index([wide])
    with pytest.raises(EmbeddingError, match="16 dimensions"):
        ShardedIndex.join(tmp_path)


def test_a_folder_without_an_index_in_parts_is_refused(folder, tmp_path):
    with pytest.raises(NotBuiltError):
        len(ShardedIndex(tmp_path / "nothing"))
    with pytest.raises(OtherArtifactError, match=r"multi_vector_index\.mathamr, not a sharded_index"):
        len(ShardedIndex(folder / "part-000000"))
    meta = (folder / META).read_text()
    for text, error in (("", StoreError), (meta.replace("part-000001", "part-000003"), DamagedError)):
        (folder / META).write_text(text)
        with pytest.raises(error):
            len(ShardedIndex(folder))
        assert verified(folder)[0] == 1
    about = {"type": "sharded_index", "format": "mathamr"}
    (folder / META).write_bytes(signed({**about, "format_version": 99}))
    with pytest.raises(FormatError, match="--parts"):
        len(ShardedIndex(folder))
    entry = {"name": "../other", "identity": "0", "documents": 1}
    (folder / META).write_bytes(signed({**about, "format_version": 1, "details": {"parts": [entry]}}))
    with pytest.raises(DamagedError, match="impossible name"):
        len(ShardedIndex(folder))


def test_documents_are_added_to_parts_and_removed_from_them(folder):
    index = ShardedIndex(folder)
    with pytest.raises(MathAMRIndexError, match=r"ShardedIndex\.join"):
        index.index(DOCUMENTS)
    with pytest.raises(MathAMRIndexError, match=r"ShardedIndex\.join"):
        index.delete([DOCUMENTS[0]["docno"]])
    first, *_, last = index.parts()
    gone = next(first.get_corpus_iter())["docno"]
    first.delete([gone])
    last.indexer("append").index([{**DOCUMENTS[0], "docno": "new"}])
    names = {entry["docno"] for entry in index_here(ShardedIndex.join(folder).path).get_corpus_iter()}
    assert names == {document["docno"] for document in DOCUMENTS} - {gone} | {"new"}

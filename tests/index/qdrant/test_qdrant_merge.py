"""Collections that become one, with what ``MathAMRIndex.merge`` promises."""

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.index import (
    EmbeddingError,
    MathAMRIndex,
    ModelMismatchError,
    QdrantError,
    QdrantFormulaIndex,
    QdrantIndex,
)
from pyterrier_mathamr.store import DuplicateIdError, WriteError


def collection(folder, name, posts, **options):
    index = QdrantIndex(folder, name)
    index.indexer(**options).index(posts)
    return index


def test_a_merged_collection_finds_what_one_finds_that_was_filled_at_once(tmp_path, posts, judge_index, topics):
    parts = [
        collection(tmp_path / "one", "a", posts[:30], model="mini@1"),
        collection(tmp_path / "one", "b", posts[30:31], model="mini@1"),
        collection(tmp_path / "two", "c", posts[31:], model="mini@1"),
    ]
    merged = QdrantIndex.merge(tmp_path / "one", "all", *parts)
    assert (len(merged), merged.model) == (len(posts), "mini@1")
    frame = topics([3, 1, 6])
    for strategy in ("colbert", "single_vector"):
        expected = getattr(judge_index, strategy)(num_results=20)(frame)
        pd.testing.assert_frame_equal(getattr(merged, strategy)(num_results=20)(frame), expected, check_exact=True)
    found = {doc["docno"]: doc for doc in merged.get_corpus_iter()}
    for post in posts:
        np.testing.assert_array_equal(found[post["docno"]]["doc_embs"], post["doc_embs"])
        assert found[post["docno"]].get("formula_ids") == post.get("formula_ids")
    assert [len(part) for part in parts] == [30, 1, len(posts) - 31]


def test_a_failed_merge_leaves_no_collection(tmp_path, posts, documents):
    one = collection(tmp_path / "q", "a", posts[:3], model="mini@1")
    two = collection(tmp_path / "q", "b", posts[2:5])
    refused = [
        (DuplicateIdError, two),
        (ModelMismatchError, collection(tmp_path / "q", "c", posts[5:6], model="large@2")),
        (EmbeddingError, collection(tmp_path / "q", "d", documents([2], d=3, name="narrow"))),
        (QdrantError, QdrantFormulaIndex(tmp_path / "q", "e")),
        (QdrantError, MathAMRIndex(tmp_path / "folder").index(posts[6:8])),
        (QdrantError, QdrantIndex(tmp_path / "q", "nothing")),
    ]
    for error, other in refused:
        with pytest.raises(error):
            QdrantIndex.merge(tmp_path / "q", "new", one, other)
        assert not QdrantIndex(tmp_path / "q", "new").built()
    with pytest.raises(WriteError, match="already"):
        QdrantIndex.merge(tmp_path / "q", "b", one)
    assert len(QdrantIndex.merge(tmp_path / "q", "none")) == 0
    assert len(QdrantIndex.merge(tmp_path / "q", "new", one)) == 3

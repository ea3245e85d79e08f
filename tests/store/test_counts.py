"""Printed, an artifact names its folder and lists its contents; its `repr` stays the call that rebuilds it."""

from pathlib import Path

import numpy as np
import pytest

from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.feedback import counted, size_of
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, QdrantIndex, ShardedIndex
from pyterrier_mathamr.index.parts import DType
from pyterrier_mathamr.sparse import BM25Index, TangentIndex

POSTS = [{"docno": "a", "text": "We have $x^2=1$ and $x^2=1$."}, {"docno": "b", "text": "So $y$."}]
VECTORS = [
    {"docno": "a", "doc_embs": np.eye(4, dtype=np.float32)[:3], "formula_ids": ["a#0", "a#1"], "doc_model": "tiny"},
    {"docno": "b", "doc_embs": np.eye(4, dtype=np.float32)[:2], "formula_ids": ["b#0"], "doc_model": "tiny"},
]


BY_TINY = "vectors of 4 dimensions as float32, by tiny, "


@pytest.mark.parametrize(
    ("kind", "build", "counts"),
    [
        (BM25Index, lambda index: index.index(POSTS), "2 documents, "),
        (TangentIndex, lambda index: index.index(POSTS), "3 formulas, 2 expressions, "),
        (MathAMRIndex, lambda index: index.index(VECTORS), f"2 documents, 5 {BY_TINY}"),
        (MathAMRFormulaIndex, lambda index: index.index(VECTORS), f"3 formulas, 3 {BY_TINY}"),
        (GraphStore, lambda store: (GraphBuilder() >> store.indexer()).index(POSTS), "2 graphs, "),
    ],
)
def test_an_artifact_prints_what_it_holds_or_that_it_is_not_built(kind, build, counts: str, tmp_path: Path) -> None:
    printed = str(kind(tmp_path / "x"))
    assert printed.startswith(f"{kind.__name__}(x): there is no finished ")
    assert str(tmp_path) not in printed
    artifact = build(kind(tmp_path / "it"))
    assert repr(artifact) == f"{kind.__name__}({str(tmp_path / 'it')!r})"
    assert str(artifact).startswith(f"{kind.__name__}(it): {counts}")
    size = sum(file.stat().st_size for file in (tmp_path / "it" / "part-000000").iterdir())
    assert str(artifact).endswith(size_of(size))


@pytest.mark.parametrize(
    ("width", "dtype", "rows"),
    [
        (8, None, "8 dimensions as float32"),
        (8, "int8", "8 dimensions as int8"),
        (255, None, "255 dimensions as float32"),
        (256, None, "256 dimensions as int8 (the default from 256)"),
        (256, "float16", "256 dimensions as float16"),
    ],
)
def test_an_index_prints_how_its_rows_are_stored(width: int, dtype: DType | None, rows: str, tmp_path: Path) -> None:
    documents = [{"docno": "a", "doc_embs": np.eye(3, width, dtype=np.float32)}]
    index = MathAMRIndex(tmp_path / "it")
    index.indexer(dtype=dtype).index(documents)
    assert str(index).startswith(f"MathAMRIndex(it): 1 document, 3 vectors of {rows}, ")
    sharded = ShardedIndex([index.path], Processes(1))
    assert str(sharded).startswith(f"ShardedIndex(it): 1 document in 1 part, {rows}, ")


def test_a_collection_of_qdrant_prints_how_its_rows_are_stored(tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client")
    collection = QdrantIndex(tmp_path / "it", "some")
    assert str(collection).startswith("QdrantIndex(it: collection some): there is no such collection")
    assert str(collection.index(VECTORS)) == "QdrantIndex(it: collection some): 2 documents, 4 dimensions as float32"


def test_numbers_are_written_with_their_unit() -> None:
    assert [counted(count, "post") for count in (0, 1, 6164)] == ["0 posts", "1 post", "6,164 posts"]
    assert [size_of(count) for count in (0, 999, 1000, 34_700_000)] == ["0 bytes", "999 bytes", "1.0 kB", "34.7 MB"]

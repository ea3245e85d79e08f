"""Printed, an artifact lists its contents; its `repr` stays the call that rebuilds it."""

from pathlib import Path

import numpy as np
import pytest

from pyterrier_mathamr._common.feedback import counted, size_of
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.sparse import BM25Index, TangentIndex

POSTS = [{"docno": "a", "text": "We have $x^2=1$ and $x^2=1$."}, {"docno": "b", "text": "So $y$."}]
VECTORS = [
    {"docno": "a", "doc_embs": np.eye(4, dtype=np.float32)[:3], "formula_ids": ["a#0", "a#1"], "doc_model": "tiny"},
    {"docno": "b", "doc_embs": np.eye(4, dtype=np.float32)[:2], "formula_ids": ["b#0"], "doc_model": "tiny"},
]


@pytest.mark.parametrize(
    ("build", "counts"),
    [
        (lambda path: BM25Index(path).index(POSTS), "2 documents, "),
        (lambda path: TangentIndex(path).index(POSTS), "3 formulas, 2 expressions, "),
        (lambda path: MathAMRIndex(path).index(VECTORS), "2 documents, 5 vectors of 4 dimensions, by tiny, "),
        (lambda path: MathAMRFormulaIndex(path).index(VECTORS), "3 formulas, 3 vectors of 4 dimensions, by tiny, "),
        (lambda path: (GraphBuilder() >> GraphStore(path).indexer()).index(POSTS), "2 graphs, "),
    ],
)
def test_an_artifact_prints_what_it_holds(build, counts: str, tmp_path: Path) -> None:
    artifact = build(tmp_path / "it")
    begin = f"{type(artifact).__name__}({str(tmp_path / 'it')!r})"
    assert repr(artifact) == begin
    assert str(artifact).startswith(f"{begin}: {counts}")
    size = sum(file.stat().st_size for file in (tmp_path / "it" / "part-000000").iterdir())
    assert str(artifact).endswith(size_of(size))


def test_an_unbuilt_artifact_prints_that_it_is_not_built(tmp_path: Path) -> None:
    for kind in (BM25Index, TangentIndex, MathAMRIndex, MathAMRFormulaIndex, GraphStore):
        assert str(kind(tmp_path / "x")).startswith(f"{kind(tmp_path / 'x')!r}: {tmp_path / 'x'}: ")


def test_numbers_are_written_with_their_unit() -> None:
    assert [counted(count, "post") for count in (0, 1, 6164)] == ["0 posts", "1 post", "6,164 posts"]
    assert [size_of(count) for count in (0, 999, 1000, 34_700_000)] == ["0 bytes", "999 bytes", "1.0 kB", "34.7 MB"]

"""PyTerrier's pictures of pipelines need no network (sockets are disabled in all tests)."""

import warnings

import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.fusion import ZScoreFusion

GRAPHS = mathamr.GraphBuilder()
BM25 = mathamr.BM25Index("index.bm25").retriever()
INDEX = mathamr.MathAMRIndex("index.mathamr")
ENCODE = GRAPHS >> mathamr.MathAMR.from_pretrained("mathamr-plus-mini").query_encoder()
PIPELINES = {
    "ours only": (GRAPHS, "GraphBuilder"),
    "cut": (BM25 % 10 >> ENCODE >> INDEX.scorer(), "10"),
    "weighted sum": (BM25 + 0.25 * (ENCODE >> INDEX.colbert()), "0.25"),
    "fusion": (ZScoreFusion(BM25 % 100, ENCODE >> INDEX.colbert()), "z-score fusion"),
    "a function first": (pt.apply.query(lambda row: row["query"]) >> BM25, "BM25"),
    "indexing": (GRAPHS >> mathamr.GraphStore("graphs").indexer(), "GraphStore"),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_is_drawn_without_a_network(name: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTERRIER_HOME", str(tmp_path))  # no index of an earlier download
    monkeypatch.setattr(pt.documentation, "_cached_objects_inv", None)
    pipeline, shown = PIPELINES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = pipeline._repr_html_()
    assert picture is not None
    assert shown in picture

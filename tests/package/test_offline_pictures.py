"""Pictures of our stages need no network (sockets are disabled in all tests); those of PyTerrier's look up a link."""

import warnings

import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr

GRAPHS = mathamr.GraphBuilder()
BM25 = mathamr.BM25Index("index.bm25").retriever()
INDEX = mathamr.MathAMRIndex("index.mathamr")
ENCODE = GRAPHS >> mathamr.MathAMR.from_pretrained("mathamr-plus-mini").query_encoder()
PIPELINES = {
    "a stage": (GRAPHS, "GraphBuilder"),
    "searching": (BM25 >> ENCODE >> INDEX.scorer(), "BM25"),
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

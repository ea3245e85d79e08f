"""Help shows the parameters of what is called, not ``*args``."""

import inspect

from pyterrier_mathamr import BM25Index, GraphBuilder, MathAMRIndex, QdrantIndex, TangentIndex
from pyterrier_mathamr.sparse.bm25_search import BM25Retriever


def test_a_method_that_constructs_has_the_parameters_of_the_class_and_says_what_it_returns() -> None:
    shown = inspect.signature(BM25Index("x.bm25").retriever)
    assert list(shown.parameters) == ["num_results", "k1", "b", "query_weights", "delta", "weighting", "verbose"]
    assert shown.parameters["num_results"].default == 1000
    assert shown.return_annotation is BM25Retriever
    assert list(inspect.signature(TangentIndex("x.tangent").indexer).parameters)[:3] == ["mode", "pairs", "store"]


def test_a_class_has_the_parameters_of_its_constructor_for_those_who_read_new_first() -> None:
    for kind in (GraphBuilder, MathAMRIndex, BM25Index, QdrantIndex):
        own = list(inspect.signature(kind.__init__).parameters)[1:]
        assert list(kind.__signature__.parameters) == own  # type: ignore[attr-defined]
        assert "args" not in own


def test_an_instance_is_called_with_the_parameters_of_its_call() -> None:
    assert list(inspect.signature(MathAMRIndex("x.mathamr")).parameters) == ["inp"]

"""A qid has one text: where it has more, the user is told that only the first is built."""

import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.graph import GraphBuilder

TWO = ["What is $x$?", "What is a group?"]


@pytest.mark.parametrize("docnos", [{}, {"docno": ["d1", "d2"]}])
def test_a_second_text_of_a_qid_is_reported_and_the_first_is_built(docnos: dict[str, list[str]]) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q1"], "query": TWO, **docnos})
    with pytest.warns(MathAMRWarning, match=r"1 qid\(s\) have several texts.*'q1'"):
        built = GraphBuilder()(frame)
    assert [graph.text for graph in built["query_graph"]] == ["What is FORMULA_0?"] * 2


@pytest.mark.parametrize(
    "frame",
    [
        {"qid": ["q1", "q1"], "query": [TWO[0], TWO[0]]},
        {"qid": ["q1", "q2"], "query": TWO},
        {"qid": ["q1", "q1"], "query": [TWO[0], None], "docno": ["d1", "d2"]},
    ],
    ids=["the same text twice", "two queries", "a row without text, as after + of two systems"],
)
def test_one_text_for_each_qid_is_nothing_to_report(
    frame: dict[str, list[str]], recwarn: pytest.WarningsRecorder
) -> None:
    GraphBuilder()(pd.DataFrame(frame))
    assert not [warning for warning in recwarn if issubclass(warning.category, MathAMRWarning)]

"""The record of a graph in a store: all fields, small, and nothing of it lost."""

import json
from dataclasses import dataclass, replace

import pytest
from graph_examples import one_sentence, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph import store as record_file
from pyterrier_mathamr.graph.store import graph_of, record_of

EVERYTHING = r"""# ::id x ::snt a b
(a / "and" :op1 (b / "GMT"~e.4 :ARG0~e.1 c~e.2) :op1 (c / 漢-字) :op2 "a \"quoted\" b" :op3 - :mod-of b :empty )"""


@pytest.mark.parametrize(
    "graph",
    [
        whole(),
        one_sentence(),
        MathAMRGraph(decode_penman("(a / amr-empty)")),
        MathAMRGraph(decode_penman(EVERYTHING), (), "154"),
        MathAMRGraph(decode_penman("(a / b)"), ("\ud835\udc65", "\ud835"), "\udc65"),
    ],
    ids=["whole", "small", "empty", "spellings, mentions and alignments", "surrogates"],
)
def test_a_graph_comes_back_from_its_record(graph):
    assert graph_of(record_of(graph)) == graph


def test_the_record_is_the_one_drawn_in_the_file():
    graph = MathAMRGraph(decode_penman("(e / equal-01 :ARG1 (f / FORMULA_0) :polarity -)"), ("7",), "154")
    amr = {
        "labels": ["equal-01", "FORMULA_0", "-"],
        "variables": "e f ",
        "edges": [[1, 2], [":ARG1", ":polarity"], [1, 1]],
    }
    assert json.loads(record_of(graph)) == {"amr": amr, "formula_ids": ["7"], "id": "154"}


@settings(max_examples=40)
@given(st.lists(st.text(), min_size=1), st.lists(st.text()), st.text())
def test_texts_of_any_characters_come_back(labels, formula_ids, name):
    amr = decode_penman("(a / and" + "".join(f" :op{i} (b{i} / b)" for i in range(1, len(labels))) + ")")
    graph = MathAMRGraph(replace(amr, labels=tuple(labels)), tuple(formula_ids), name)
    assert graph_of(record_of(graph)) == graph


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.text(), st.integers(0, 9))))
def test_edges_of_any_order_come_back(edges):
    amr = decode_penman("(a / a" + "".join(f" :op{i} (a{i} / a)" for i in range(9)) + ")")
    graph = MathAMRGraph(replace(amr, edges=tuple(edges)))
    assert graph_of(record_of(graph)) == graph


@dataclass(frozen=True, slots=True)
class GraphOfTomorrow(MathAMRGraph):
    texts: tuple[str, ...] = ()
    spans: tuple[tuple[int, tuple[str, ...]], ...] = ()


def test_a_field_that_is_added_with_a_default_is_kept_and_old_records_are_read(monkeypatch):
    old = record_of(whole())
    monkeypatch.setattr(record_file, "MathAMRGraph", GraphOfTomorrow)
    assert graph_of(old).texts == ()
    assert record_of(graph_of(old)) == old
    graph = replace(graph_of(old), texts=("a", "b"), spans=((1, ("x", "y")),))
    assert graph_of(record_of(graph)) == graph

"""The graph of a post as Penman text with metadata, and where its parts lie."""

import contextlib
from dataclasses import replace

import penman
import pytest
from graph_examples import whole
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.amr import AmrError, AmrGraph, PenmanError, decode_penman
from pyterrier_mathamr.graph import GraphBuilder, GraphError, MathAMRGraph
from pyterrier_mathamr.graph.structure import MissingPlaceholderError, NodeKind, layout_of
from pyterrier_mathamr.posts import post_from_text


@pytest.mark.parametrize("indent", [None, -1, 3])
def test_reading_what_was_written_gives_the_graph(indent):
    assert MathAMRGraph.from_penman(whole().to_penman(indent)) == whole()


def test_the_text_begins_with_id_and_formula_map_and_is_what_penman_reads():
    text = whole().to_penman(2)
    assert text.splitlines()[:2] == [
        "# ::id 154",
        '# ::formula_map {"FORMULA_0": "11", "FORMULA_1": "", "FORMULA_2": "13"}',
    ]
    graph = penman.decode(text)
    assert graph.metadata["id"] == "154"
    assert ("f", ":opt", "t0") in [tuple(edge) for edge in graph.edges()]
    assert len(graph.instances()) == len([name for name in whole().amr.variables if name])


def test_other_metadata_is_kept_and_without_a_map_placeholders_from_zero_on_are_formulas():
    text = "# ::id 1\n# ::snt Is it so?\n(a / amr-empty)"
    graph = MathAMRGraph.from_penman(text)
    assert graph.amr.metadata == (("snt", "Is it so?"),)
    assert graph.to_penman() == text
    unmapped = "(a / and :op1 (f / FORMULA_0) :op2 (g / FORMULA_1) :op3 (h / FORMULA_999999999))"
    assert MathAMRGraph.from_penman(unmapped).formula_ids == ("", "")


@pytest.mark.parametrize(
    "name", ["A.301", "ü", " a b ", "a ::b", '"x"', "line\nbreak", "tab\t", "::", "\u2028", "漢字"]
)
def test_an_id_of_any_characters_comes_back(name):
    graph = MathAMRGraph(decode_penman("(f / FORMULA_0)"), (name,), name)
    assert MathAMRGraph.from_penman(graph.to_penman()) == graph


@pytest.mark.parametrize(
    ("formula_map", "reason"),
    [
        ("{", "JSON"),
        ("[1]", "not an object"),
        ('{"x": "1"}', "not a placeholder"),
        ('{"FORMULA_99999999": "1"}', "1 nodes"),
    ],
)
def test_a_damaged_map_is_refused_with_its_reason(formula_map, reason):
    with pytest.raises(GraphError, match=reason):
        MathAMRGraph.from_penman(f"# ::formula_map {formula_map}\n(f / FORMULA_0)")
    with pytest.raises(PenmanError):
        MathAMRGraph.from_penman("# ::id 1\n(a / b :c (d / e)")


def test_the_parts_of_a_graph_match_its_text():
    amr = whole().amr
    layout = layout_of(amr, 3)
    names = [[amr.labels[node] for node in nodes] for nodes in layout.sentences]
    assert names == [
        ["equal-01", "FORMULA_0", "-"],
        ["quick", "run-01"],
        ["solve-01", "FORMULA_1", "equal-01"],  # it mentions the first sentence's equal-01
    ]
    assert [amr.labels[node] for node in layout.roots] == ["equal-01", "quick", "solve-01"]
    assert [amr.labels[node] for node in layout.placeholders] == ["FORMULA_0", "FORMULA_1", "FORMULA_2"]
    assert [amr.labels[node] for node in layout.opts[0]] == ["U!eq", "V!𝑥", "N!2"]
    assert [amr.labels[node] for node in layout.slts[0]] == ["V!x", "=", "N!2"]
    assert (layout.opts[2], layout.slts[2]) == ([], [])
    assert layout.kinds.count(NodeKind.OPT) == 7
    assert layout.kinds.count(NodeKind.SLT) == 7
    assert [amr.labels[i] for i, kind in enumerate(layout.kinds) if kind is NodeKind.CONSTANT] == ["-"]


@pytest.mark.parametrize(
    "text", ["(a / amr-empty)", "(m / multi-sentence)", "(m / multi-sentence :mod (a / b) :ARG0 -)"]
)
def test_a_graph_without_sentence_edges_is_one_sentence_of_all_its_nodes(text):
    amr = decode_penman(text)
    layout = layout_of(amr, 0)
    assert layout.roots == [0]
    assert sorted(layout.sentences[0]) == list(range(len(amr.labels)))


def test_a_mentioned_node_is_a_member_once_and_stays_in_its_own_sentence():
    amr = decode_penman(
        "(m / multi-sentence :snt1 (a / ask-01 :ARG1 b) :snt2 (c / claim-01 :ARG1 (b / be-01 :ARG1 (d / dog))))"
    )
    names = [[amr.labels[node] for node in nodes] for nodes in layout_of(amr, 0).sentences]
    assert names == [["ask-01", "be-01"], ["claim-01", "be-01", "dog"]]
    twice = decode_penman("(m / multi-sentence :snt1 (a / ask-01) :snt2 (b / be-01 :ARG0 a :ARG1 a))")
    assert layout_of(twice, 0).sentences == [[1], [2, 1]]


@pytest.mark.parametrize("label", ["FORMULA_01", "FORMULA_", "FORMULA_x", "FORMULA_²", "FORMULA_7", "formula_0"])
def test_a_label_that_only_looks_like_a_placeholder_is_a_concept(label):
    amr = AmrGraph(("and", "FORMULA_0", label), ("a", "f", "g"), ((0, ":op1", 1), (0, ":op2", 2)))
    assert layout_of(amr, 1).placeholders == [1]
    in_tree = decode_penman("(a / and :op1 (f / FORMULA_0 :slt (t / FORMULA_1)) :op2 (g / FORMULA_1))")
    assert layout_of(in_tree, 2).placeholders == [1, 3]


def test_a_placeholder_without_a_node_is_named():
    with pytest.raises(MissingPlaceholderError, match=r"'154' of 4 formulas: no node for FORMULA_3"):
        layout_of(whole().amr, 4, "154")


def test_nodes_out_of_writing_order_are_refused_and_arranged_ones_accepted():
    amr = AmrGraph(("a", "c", "b"), ("x", "y", "z"), ((2, ":ARG0", 1), (0, ":ARG0", 2)))
    with pytest.raises(GraphError, match="arranged"):
        layout_of(amr, 0, "1")
    assert layout_of(amr.arranged(), 0).sentences == [[0, 1, 2]]


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d e", ""]), min_size=3, max_size=3),
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([":ARG0", ":op1", "no role", ":a b"]), st.integers(0, 3)),
        max_size=5,
    ),
    st.sets(st.integers(0, 4)),
    st.lists(st.tuples(st.sampled_from(["id", "snt", "a b"]), st.sampled_from(["x", "x\ny", " ::y"])), max_size=2),
)
def test_a_graph_is_refused_by_its_check_exactly_where_it_cannot_be_written(variables, edges, mentions, metadata):
    edges = tuple(edge for edge in edges if ("r", *variables)[edge[0]])  # none from a constant
    amr = AmrGraph(("w", "x", "y", "z"), ("r", *variables), edges, tuple(metadata))
    graph = MathAMRGraph(replace(amr, mentions=tuple(i for i in sorted(mentions) if i < len(edges))))
    refused = []
    for write in (graph.check, graph.to_penman):
        with contextlib.suppress(AmrError):
            write()
            continue
        refused.append(write)
    assert len(refused) in (0, 2)


def test_a_graph_prints_penman_that_reads_back_and_draws_itself_in_a_notebook():
    [graph] = GraphBuilder().build({"a 1": post_from_text("We have $x^2=1$.")})
    assert str(graph) == repr(graph)
    assert str(graph).startswith("# ::id a 1\n(")
    assert "\n" in str(graph).partition("(")[2]
    assert MathAMRGraph.from_penman(str(graph)).amr == graph.amr
    assert graph._repr_svg_().startswith("<svg")
    long = MathAMRGraph(replace(graph.amr, labels=("a",), variables=("a",), edges=()))
    assert str(long) == "(a / a)"

"""Virtual nodes and their edges, in all conditions of the paper, and the tensors made of them."""

import time

import pytest
from graph_examples import one_sentence, whole

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import AmrGraph, decode_penman
from pyterrier_mathamr.graph import (
    GraphError,
    GraphTensors,
    MathAMRGraph,
    VirtualKind,
    Vocabulary,
    graph_tensors,
)
from pyterrier_mathamr.graph.structure import auxiliary_edges, document_order, layout_of

VOCABULARY = Vocabulary.build([whole(), one_sentence()], min_number_count=1, min_role_count=1)


def named(tensors, inverse=False):
    """The edges of tensors as (source, relation, target), without inverses unless asked for."""
    names = [VOCABULARY.relations[i] for i in tensors.relations]
    edges = zip(tensors.edges[0].tolist(), names, tensors.edges[1].tolist(), strict=True)
    return [(s, name, t) for s, name, t in edges if inverse or not name.endswith("*")]


def test_the_hierarchy_of_one_sentence_and_one_formula_worked_by_hand():
    # nodes: 0 equal-01, 1 FORMULA_0, 2 U!eq, 3 V!x, 4 N!2, 5 V!x, 6 =, 7 N!2; 8 formula, 9 sentence, 10 document
    tensors = graph_tensors(one_sentence(), VOCABULARY)
    assert [VOCABULARY.nodes[i] for i in tensors.nodes] == [
        *("equal-01", "[FORMULA]", "U!eq", "V!x", "N!2", "V!x", "=", "N!2"),
        *("VIRTUAL_FORMULA", "VIRTUAL_SENTENCE", "VIRTUAL_DOCUMENT"),
    ]
    assert named(tensors) == [
        *((0, ":ARG1", 1), (1, ":opt", 2), (2, ":op0", 3), (2, ":op0", 4)),
        *((1, ":slt", 5), (5, ":slt-n", 6), (6, ":slt-n", 7)),
        *((8, ":virtual_formula", node) for node in (2, 3, 4, 5, 6, 7)),
        *((9, ":virtual_sentence", node) for node in (0, 1)),
        *((10, ":virtual_document", node) for node in (8, 9, 0)),
    ]
    assert tensors.virtual.tolist() == [8, 9, 10]
    assert tensors.kinds.tolist() == [VirtualKind.FORMULA, VirtualKind.SENTENCE, VirtualKind.DOCUMENT]


def test_every_edge_has_its_inverse_in_the_second_half_and_a_formula_without_trees_joins_its_placeholder():
    tensors = graph_tensors(whole(), VOCABULARY)
    joined = [t for s, name, t in named(tensors) if (s, name) == (tensors.virtual[2], ":virtual_formula")]
    assert joined == [whole().amr.labels.index("FORMULA_2")]
    inverted = MathAMRGraph(decode_penman("(q / quick :ARG1-of (r / run-01))"))
    assert named(graph_tensors(inverted, VOCABULARY))[0] == (1, ":ARG1", 0)
    edges = named(tensors, inverse=True)
    half = len(edges) // 2
    assert [(t, name + "*", s) for s, name, t in edges[:half]] == edges[half:]


@pytest.mark.parametrize(("mode", "kept"), [("opt", "UVNO"), ("slt", "V=NM&"), ("none", "")])
def test_a_mode_selects_from_a_graph_that_has_both(mode, kept):
    selected = graph_tensors(whole(), VOCABULARY, formulas=mode)
    if mode == "none":
        # the same AMR, but a graph built without trees still has its formulas
        assert selected.kinds.tolist() == [1, 1, 1, 2]
        assert len(selected.nodes) == len(whole("none").amr.labels) + 4
        return
    assert selected == graph_tensors(whole(mode), VOCABULARY)


def test_no_edge_leads_to_a_node_that_a_mode_left_out():
    for mode in ("opt", "slt", "none"):
        for virtual_nodes in ("hierarchy", "none", "global"):
            tensors = graph_tensors(whole(), VOCABULARY, formulas=mode, virtual_nodes=virtual_nodes)
            assert 0 <= tensors.edges.min() <= tensors.edges.max() < len(tensors.nodes)
            assert tensors.virtual.max() < len(tensors.nodes)


def test_without_virtual_nodes_placeholders_and_roots_represent_the_post_and_a_global_one_is_joined_to_every_node():
    tensors, layout = graph_tensors(whole(), VOCABULARY, virtual_nodes="none"), layout_of(whole().amr, 3)
    assert tensors.virtual.tolist() == [*layout.placeholders, *layout.roots]
    assert tensors.kinds.tolist() == [0, 0, 0, 1, 1, 1]
    assert len(tensors.nodes) == len(whole().amr.labels)
    assert not [name for _, name, _ in named(tensors) if "virtual" in name]
    tensors, size = graph_tensors(whole(), VOCABULARY, virtual_nodes="global"), len(whole().amr.labels)
    assert tensors.kinds.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert tensors.virtual[-1] == size
    assert [(s, t) for s, name, t in named(tensors) if name == ":virtual_document"] == [(size, i) for i in range(size)]


def test_a_graph_of_one_node_has_vectors_and_edges():
    graph = MathAMRGraph(decode_penman("(a / amr-empty)"))
    assert len(graph_tensors(graph, VOCABULARY, virtual_nodes="none").relations) == 0
    tensors = graph_tensors(graph, VOCABULARY)
    assert tensors.kinds.tolist() == [1, 2]
    assert sorted(named(tensors)) == [
        (1, ":virtual_sentence", 0),
        (2, ":virtual_document", 0),
        (2, ":virtual_document", 1),
    ]


def test_auxiliary_edges_join_neighbors_ends_or_all_in_the_order_of_the_text():
    chain = [(2, 0), (0, 1)]
    assert auxiliary_edges([2, 0, 1], "none") == []
    assert auxiliary_edges([2, 0, 1], "sequential") == chain
    assert auxiliary_edges([2, 0, 1], "circular") == [*chain, (1, 2)]
    assert auxiliary_edges([2, 0, 1], "full") == [(2, 0), (2, 1), (0, 1)]
    assert auxiliary_edges([1, 0], "circular") == [(1, 0), (0, 1)]
    assert [auxiliary_edges([0], name) for name in ("sequential", "circular", "full")] == [[], [], []]
    # formulas 0, 1, 2 and sentences 3, 4, 5; FORMULA_2 hangs at the root
    assert document_order(layout_of(whole().amr, 3), 3) == [3, 0, 4, 5, 1, 2]


@pytest.mark.parametrize(("auxiliary", "count"), [("none", 0), ("sequential", 5), ("circular", 6), ("full", 15)])
def test_auxiliary_edges_are_added_to_the_hierarchy_and_never_touch_the_document(auxiliary, count):
    plain = named(graph_tensors(whole(), VOCABULARY))
    tensors = graph_tensors(whole(), VOCABULARY, auxiliary=auxiliary)
    extra = [edge for edge in named(tensors) if edge[1] == ":auxiliary_vn"]
    assert len(extra) == count
    assert [edge for edge in named(tensors) if edge[1] != ":auxiliary_vn"] == plain
    assert all(tensors.virtual[-1] not in (s, t) for s, _, t in extra)


@pytest.mark.parametrize(
    "options",
    [
        {"formulas": "all"}, {"virtual_nodes": "full"}, {"auxiliary": "ring"},
        {"auxiliary": "full", "virtual_nodes": "global"},
    ],
)  # fmt: skip
def test_unknown_conditions_are_refused(options):
    with pytest.raises(ConfigError) as caught:
        graph_tensors(whole(), VOCABULARY, **options)
    assert caught.value.option == next(iter(options))


def test_equal_tensors_have_equal_hashes_a_changed_one_differs_and_arrays_must_fit_together():
    a, b = graph_tensors(whole(), VOCABULARY), graph_tensors(whole(), VOCABULARY)
    assert (a == b, hash(a) == hash(b)) == (True, True)
    assert a != graph_tensors(whole(), VOCABULARY, auxiliary="full")
    with pytest.raises(GraphError, match="relations"):
        GraphTensors(a.nodes, a.edges, a.relations[1:], a.virtual, a.kinds)
    with pytest.raises(GraphError, match="kinds"):
        GraphTensors(a.nodes, a.edges, a.relations, a.virtual, a.kinds[1:])


def test_the_layout_of_a_long_post_is_found_in_time_linear_in_its_sentences() -> None:
    def seconds(sentences: int) -> float:
        labels, edges = ["multi-sentence"], []
        for number in range(sentences):
            first = len(labels)
            labels += ["thing", f"FORMULA_{number}", "x"]
            edges += [(0, f":snt{number + 1}", first), (first, ":math", first + 1), (first + 1, ":opt", first + 2)]
        amr = AmrGraph(tuple(labels), tuple(f"v{node}" for node in range(len(labels))), tuple(edges))
        start = time.process_time()
        layout = layout_of(amr, sentences)
        assert len(layout.roots) == sentences
        assert layout.placeholders == list(range(2, 3 * sentences + 1, 3))
        return time.process_time() - start

    few, many = (min(seconds(sentences) for _ in range(2)) for sentences in (500, 8_000))
    assert many < 100 * max(few, 0.005)  # 16 times as long; quadratic work would need 250 times as long

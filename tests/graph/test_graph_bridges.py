"""Graphs are converted to penman and torch-geometric, and back."""

import penman
import pyterrier as pt
import pytest
import torch
from torch_geometric.data import Batch, Data

from pyterrier_mathamr.amr import AmrError, AmrGraph, PenmanError, decode_penman
from pyterrier_mathamr.graph import GraphBuilder, GraphError, MathAMRGraph

TEXT = """# ::id 7
# ::formula_map {"FORMULA_0": "x7"}
(e / equal-01~e.2 :ARG1 (f / FORMULA_0 :opt (o / V!x) :slt (s / V!x :slt-n (t / =))) :polarity - :ARG2-of f)"""


def test_graphs_of_posts_come_back_unchanged() -> None:
    posts = pt.get_dataset("irds:arqmath/sample/task2").get_corpus_iter(verbose=False)
    graphs = [row["graph"] for row in GraphBuilder().build_rows([*posts][::3])]
    assert len(graphs) > 90
    for graph in graphs:
        assert AmrGraph.from_penman(graph.amr.to_penman()) == graph.amr
    batch = Batch.from_data_list([graph.to_pyg() for graph in graphs])
    assert [MathAMRGraph.from_pyg(data) for data in batch.to_data_list()] == graphs


def test_data_has_labels_edges_and_kinds_of_nodes() -> None:
    data = MathAMRGraph.from_penman(TEXT).to_pyg()
    assert data.labels == ("equal-01", "FORMULA_0", "V!x", "V!x", "=", "-")
    assert data.node_type.tolist() == [0, 0, 2, 3, 3, 1]
    assert data.edge_index.tolist() == [[0, 1, 1, 3, 0, 0], [1, 2, 3, 4, 5, 1]]
    roles = [data.roles[number] for number in data.edge_type.tolist()]
    assert roles == [":ARG1", ":opt", ":slt", ":slt-n", ":polarity", ":ARG2-of"]
    assert (data.num_nodes, data.num_edges, data.id, data.formula_ids) == (6, 6, "7", ("x7",))
    assert data.validate()
    single = MathAMRGraph.from_penman("(a / b)")
    assert single.to_pyg().edge_index.shape == (2, 0)
    assert MathAMRGraph.from_pyg(single.to_pyg()) == single


def test_common_roles_give_edge_types_that_several_graphs_share() -> None:
    graphs = [MathAMRGraph.from_penman(text) for text in ("(a / b :x (c / d))", "(a / b :y (c / d) :x 1)")]
    roles = [":x", ":y", ":z"]
    assert [graph.to_pyg(roles).edge_type.tolist() for graph in graphs] == [[0], [1, 0]]
    assert [MathAMRGraph.from_pyg(graph.to_pyg(roles)) for graph in graphs] == graphs
    with pytest.raises(GraphError, match=":y"):
        graphs[1].to_pyg([":x"])


@pytest.mark.parametrize("name", ["labels", "roles", "edge_index", "latex"])
def test_data_without_an_attribute_or_with_edges_out_of_range_is_refused(name: str) -> None:
    data = MathAMRGraph.from_penman(TEXT).to_pyg()
    del data[name]
    with pytest.raises(GraphError, match=name):
        MathAMRGraph.from_pyg(data)
    data = MathAMRGraph.from_penman(TEXT).to_pyg()
    data.edge_index = data.edge_index + 1
    with pytest.raises(AmrError):
        MathAMRGraph.from_pyg(data)
    data.edge_type = torch.full_like(data.edge_type, 99)
    with pytest.raises(GraphError):
        MathAMRGraph.from_pyg(data)
    with pytest.raises(GraphError):
        MathAMRGraph.from_pyg(Data())


def test_a_graph_of_triples_gets_the_tree_that_penman_finds() -> None:
    triples = [("b", ":instance", "bark-01"), ("d", ":instance", "dog"), ("b", ":ARG0", "d"), ("d", ":mod", "old")]
    for top in "bd":
        graph = penman.Graph(triples, top=top, metadata={"id": "7"})
        assert AmrGraph.from_penman(graph) == decode_penman(penman.encode(graph))


def test_a_graph_that_a_program_changed_keeps_its_triples() -> None:
    graph = penman.decode("(w / want-01 :ARG0 (b / boy :mod (y / young)) :ARG1 (g / go-01 :ARG0 b :ARG1 b))")
    graph.triples.remove(("y", ":instance", "young"))  # which closed the nodes y and b
    graph.triples.append(("b", ":quant", "3"))
    graph.triples.append(("g", ":polarity", "-"))
    found = AmrGraph.from_penman(graph)
    assert sorted(found.to_penman().triples, key=str) == sorted([*graph.triples, ("y", ":instance", None)], key=str)


def test_deep_graphs_come_back_unchanged() -> None:
    deep = decode_penman("".join(f"(n{i} / b :x{'-of' * (i % 2)} " for i in range(5_000)) + "1" + ")" * 5_000)
    assert AmrGraph.from_penman(deep.to_penman()) == deep
    assert MathAMRGraph.from_pyg(MathAMRGraph(deep).to_pyg()).amr == deep


def test_what_is_no_graph_is_a_named_error() -> None:
    apart = penman.Graph([("a", ":instance", "b"), ("c", ":instance", "d")])
    with pytest.raises(AmrError, match="disconnected"):
        AmrGraph.from_penman(apart)
    with pytest.raises(PenmanError):
        AmrGraph.from_penman(penman.Graph([("a b", ":instance", "c")]))
    with pytest.raises(AmrError, match="no triples"):
        AmrGraph.from_penman(penman.Graph())
    with pytest.raises(AmrError, match="cannot be a role"):
        AmrGraph(("a", "b"), ("x", "y"), ((0, "no role", 1),)).to_penman()

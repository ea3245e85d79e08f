"""Data that is not a graph is refused, with the first faulty edge."""

import pytest

from pyterrier_mathamr.amr import AmrError, AmrGraph


@pytest.mark.parametrize("edge", [(0, ":op1", 2), (2, ":op1", 0), (-1, ":op1", 0), (0, ":op1", -1), (1, ":op1", 0)])
def test_an_edge_leads_from_a_variable_to_a_node(edge):
    with pytest.raises(AmrError, match=f"edge .{edge[0]}, ':op1', {edge[2]}"):
        AmrGraph(("and", "2"), ("a", ""), ((0, ":quant", 1), edge))


@pytest.mark.parametrize(("labels", "variables"), [((), ()), (("a",), ("",)), (("a",), ("a", "b"))])
def test_a_graph_has_a_root_with_a_variable_and_as_many_labels_as_variables(labels, variables):
    with pytest.raises(AmrError):
        AmrGraph(labels, variables, ())


def test_a_variable_may_have_edges_to_every_node():
    assert AmrGraph(("and", "2"), ("a", ""), ((0, ":quant", 1), (0, ":op1", 0))).triples()[1] == (0, ":op1", 0)

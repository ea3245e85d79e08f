"""The relational layer against PyTorch Geometric's, a plain loop, and finite differences."""

import pickle

import pytest
import torch
import torch_geometric
from torch_geometric.nn import FastRGCNConv, RGCNConv

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import ModelError, RelationalGraphConv
from pyterrier_mathamr.model.rgcn import RelationPlan

JUDGES = [FastRGCNConv] if torch_geometric.typing.WITH_PYG_LIB else [FastRGCNConv, RGCNConv]
"""With pyg-lib installed RGCNConv's mean divides by all neighbors, so it cannot judge there."""


def graph(nodes: int = 30, edges: int = 120, relations: int = 9, width: int = 8, dtype=torch.float32):
    """Random states and edges; the last relation and the last node have none, some edges come twice."""
    chance = torch.Generator().manual_seed(3)
    index = torch.randint(nodes - 1, (2, edges), generator=chance)
    kinds = torch.randint(relations - 1, (edges,), generator=chance)
    index[:, 1], kinds[1] = index[:, 0], kinds[0]
    return torch.randn(nodes, width, generator=chance, dtype=dtype), index, kinds


def plain(layer, x, index, kinds, attributes=None):
    """Equation 2.4 as a loop over nodes, relations and neighbors."""
    weights = layer.weight if layer.comp is None else torch.einsum("rb,bio->rio", layer.comp, layer.weight)
    rows = []
    for i in range(len(x)):
        total = torch.zeros(layer.out_channels, dtype=x.dtype)
        for r in range(layer.num_relations):
            near = [j for j, t, k in zip(*index.tolist(), kinds.tolist(), strict=True) if t == i and k == r]
            for j in near:
                state = x[j] if attributes is None else x[j] + attributes[r]
                total = total + (state @ weights[r]) / (len(near) if layer.aggr == "mean" else 1)
        if layer.root is not None:
            total = total + x[i] @ layer.root
        rows.append(total if layer.bias is None else total + layer.bias)
    return torch.stack(rows)


def results_of(layer, run, x, with_attributes: bool) -> list[torch.Tensor]:
    """The output of one call and all gradients."""
    layer.zero_grad()
    states = x.clone().requires_grad_()
    attributes = torch.linspace(-1, 1, 72, dtype=x.dtype).view(9, 8).requires_grad_()
    output = run(states, attributes if with_attributes else None)
    output.cos().sum().backward()
    grads = [parameter.grad.clone() for parameter in layer.parameters()]
    return [output, states.grad, *grads, *([attributes.grad] if with_attributes else [])]


def assert_same(results: list[list[torch.Tensor]], atol: float) -> None:
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, atol=atol, rtol=0)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("aggr", ["mean", "add"])
@pytest.mark.parametrize("bases", [None, 4])
@pytest.mark.parametrize("out", [8, 5])
def test_parameters_outputs_and_gradients_equal_pytorch_geometric_s(judge, aggr, bases, out) -> None:
    x, index, kinds = graph()
    ours, theirs = RelationalGraphConv(8, out, 9, bases, aggr=aggr), judge(8, out, 9, bases, aggr=aggr)
    theirs.load_state_dict(ours.state_dict())
    assert_same(
        [results_of(each, lambda x, _, conv=each: conv(x, index, kinds), x, False) for each in (ours, theirs)], 1e-5
    )


@pytest.mark.parametrize("options", [{}, {"aggr": "add"}, {"root_weight": False, "bias": False}])
@pytest.mark.parametrize("with_attributes", [False, True])
def test_outputs_and_gradients_equal_the_plain_loop(options, with_attributes) -> None:
    x, index, kinds = graph(dtype=torch.float64)
    layer = RelationalGraphConv(8, 6, 9, 3, **options).double()
    runs = (
        lambda x, attributes: layer(x, index, kinds, attributes=attributes),
        lambda x, attributes: plain(layer, x, index, kinds, attributes),
    )
    assert_same([results_of(layer, run, x, with_attributes) for run in runs], 1e-12)


@pytest.mark.parametrize("tile", [2, 32])
@pytest.mark.parametrize("aggr", ["mean", "add"])
@pytest.mark.parametrize("targets", [None, [17, 3, 4]])
def test_rows_in_tiles_as_on_a_gpu_and_results_for_some_nodes_are_the_same_numbers(tile, aggr, targets) -> None:
    x, index, kinds = graph(dtype=torch.float64)
    layer = RelationalGraphConv(8, 6, 9, 3, aggr=aggr).double()
    some = None if targets is None else torch.tensor(targets)
    plans = [RelationPlan.build(index, kinds, len(x), x.dtype, some, tile=rows) for rows in (1, tile)]
    assert all(size % tile == 0 for size in plans[1].sizes)
    runs = [
        lambda x, attributes, plan=plan: layer(x, index, kinds, attributes=attributes, plan=plan, targets=some)
        for plan in plans
    ]
    runs.append(lambda x, attributes: layer(x, index, kinds, attributes=attributes)[... if targets is None else some])
    results = [results_of(layer, run, x, True) for run in runs]
    assert_same(results[:2], 1e-12)
    assert_same(results[1:], 1e-12)


@pytest.mark.parametrize("tile", [1, 32])
def test_a_graph_without_edges_keeps_only_root_and_bias(tile) -> None:
    layer = RelationalGraphConv(4, 4, 3, 2)
    x = torch.randn(5, 4, requires_grad=True)
    edges, kinds = torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.long)
    output = layer(x, edges, kinds, plan=RelationPlan.build(edges, kinds, 5, tile=tile))
    output.sum().backward()
    torch.testing.assert_close(output, x @ layer.root + layer.bias)
    assert not layer.comp.grad.any()


def test_weights_composed_for_inference_follow_the_parameters() -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9, 4).eval()
    with torch.no_grad():
        before = layer(x, index, kinds)
        layer.train().eval()
        with torch.autocast("cpu", torch.bfloat16):  # these are not kept for a call without
            assert layer(x, index, kinds).dtype == torch.bfloat16
        assert torch.equal(layer(x, index, kinds), before)
        layer.weight.mul_(2)
        after = layer(x, index, kinds)
        layer.load_state_dict(RelationalGraphConv(8, 8, 9, 4).state_dict())
        loaded = layer(x, index, kinds)
    torch.testing.assert_close(loaded, layer(x, index, kinds))
    assert not torch.allclose(before, after)
    torch.testing.assert_close(pickle.loads(pickle.dumps(layer))(x, index, kinds), loaded)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)  # changes no counter of versions
    for _ in range(2):
        layer.train()(x, index, kinds).sum().backward()
        optimizer.step()
        with torch.no_grad():
            kept = layer.eval()(x, index, kinds)
        torch.testing.assert_close(kept, layer(x, index, kinds))


def test_wrong_shapes_and_aggregations_are_refused() -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9)
    for wrong, named in (
        ((x[:, :4], index, kinds), "x has shape"),
        ((x, index.T, kinds), "edge_index"),
        ((x, index, kinds[1:]), "edge_type"),
    ):
        with pytest.raises(ModelError, match=named):
            layer(*wrong)
    with pytest.raises(ConfigError, match="aggr"):
        RelationalGraphConv(8, 8, 9, aggr="max")


def test_whole_numbers_too_large_to_carry_their_place_are_sorted_all_the_same(monkeypatch) -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9, 4)
    usual = layer(x, index, kinds)
    monkeypatch.setattr("pyterrier_mathamr.model.rgcn._BITS", 8)
    assert torch.equal(layer(x, index, kinds), usual)

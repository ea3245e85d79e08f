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


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("aggr", ["mean", "add"])
@pytest.mark.parametrize("bases", [None, 4])
@pytest.mark.parametrize("out", [8, 5])
def test_outputs_and_gradients_equal_pytorch_geometric_s(judge, aggr, bases, out) -> None:
    x, index, kinds = graph()
    ours, theirs = RelationalGraphConv(8, out, 9, bases, aggr=aggr), judge(8, out, 9, bases, aggr=aggr)
    theirs.load_state_dict(ours.state_dict())
    results = []
    for layer in (ours, theirs):
        states = x.clone().requires_grad_()
        output = layer(states, index, kinds)
        output.sin().sum().backward()
        results.append([output, states.grad, *(parameter.grad for parameter in layer.parameters())])
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [{}, {"aggr": "add"}, {"root_weight": False, "bias": False}])
@pytest.mark.parametrize("with_attributes", [False, True])
def test_outputs_and_gradients_equal_the_plain_loop(options, with_attributes) -> None:
    x, index, kinds = graph(dtype=torch.float64)
    layer = RelationalGraphConv(8, 6, 9, 3, **options).double()
    results = []
    for run in (layer, lambda *inputs, attributes: plain(layer, *inputs, attributes)):
        layer.zero_grad()
        states = x.clone().requires_grad_()
        attributes = torch.linspace(-1, 1, 72, dtype=torch.float64).view(9, 8).requires_grad_()
        output = run(states, index, kinds, attributes=attributes if with_attributes else None)
        output.cos().sum().backward()
        grads = [parameter.grad.clone() for parameter in layer.parameters()]
        results.append([output, states.grad, *grads, *([attributes.grad] if with_attributes else [])])
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("tile", [2, 4, 32])
@pytest.mark.parametrize("aggr", ["mean", "add"])
@pytest.mark.parametrize("targets", [None, [17, 3, 4]])
def test_rows_in_tiles_as_on_a_gpu_give_the_same_numbers(tile, aggr, targets) -> None:
    x, index, kinds = graph(dtype=torch.float64)
    layer = RelationalGraphConv(8, 6, 9, 3, aggr=aggr).double()
    wanted = None if targets is None else torch.tensor(targets)
    results = []
    for rows in (1, tile):
        layer.zero_grad()
        states = x.clone().requires_grad_()
        attributes = torch.linspace(-1, 1, 72, dtype=torch.float64).view(9, 8).requires_grad_()
        plan = RelationPlan.build(index, kinds, len(x), x.dtype, wanted, tile=rows)
        output = layer(states, index, kinds, attributes=attributes, plan=plan, targets=wanted)
        output.cos().sum().backward()
        results.append([output, states.grad, attributes.grad, *(p.grad.clone() for p in layer.parameters())])
    assert all(size % tile == 0 for size in plan.sizes)
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("tile", [1, 32])
def test_a_graph_without_edges_keeps_only_root_and_bias(tile) -> None:
    layer = RelationalGraphConv(4, 4, 3, 2)
    x = torch.randn(5, 4, requires_grad=True)
    edges, kinds = torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.long)
    output = layer(x, edges, kinds, plan=RelationPlan.build(edges, kinds, 5, tile=tile))
    output.sum().backward()
    torch.testing.assert_close(output, x @ layer.root + layer.bias)
    assert not layer.comp.grad.any()


def test_composed_weights_kept_for_inference_follow_the_parameters() -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9, 4)
    with torch.no_grad():
        before = layer(x, index, kinds)
        layer.weight.mul_(2)
        after = layer(x, index, kinds)
        layer.load_state_dict(RelationalGraphConv(8, 8, 9, 4).state_dict())
        loaded = layer(x, index, kinds)
    torch.testing.assert_close(loaded, layer(x, index, kinds))
    assert not torch.allclose(before, after)
    torch.testing.assert_close(pickle.loads(pickle.dumps(layer))(x, index, kinds), loaded)


def test_weights_composed_under_autocast_are_not_kept_for_a_call_without() -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9, 4).eval()
    with torch.no_grad():
        plain = layer(x, index, kinds)
        layer.train().eval()
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x, index, kinds).dtype == torch.bfloat16
        assert torch.equal(layer(x, index, kinds), plain)


def test_a_fused_optimizer_between_two_evaluations_is_noticed() -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9, 4)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    for _ in range(2):
        layer.train()(x, index, kinds).sum().backward()
        optimizer.step()
        with torch.no_grad():
            kept = layer.eval()(x, index, kinds)
        torch.testing.assert_close(kept, layer(x, index, kinds))


def test_parameters_have_pytorch_geometric_s_names_and_shapes() -> None:
    for bases in (None, 4):
        ours, theirs = RelationalGraphConv(8, 5, 9, bases), RGCNConv(8, 5, 9, bases)
        assert {k: v.shape for k, v in ours.state_dict().items()} == {
            k: v.shape for k, v in theirs.state_dict().items()
        }


def test_wrong_shapes_and_aggregations_are_refused() -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9)
    with pytest.raises(ModelError, match="x has shape"):
        layer(x[:, :4], index, kinds)
    with pytest.raises(ModelError, match="edge_index"):
        layer(x, index.T, kinds)
    with pytest.raises(ModelError, match="edge_type"):
        layer(x, index, kinds[1:])
    with pytest.raises(ConfigError, match="aggr"):
        RelationalGraphConv(8, 8, 9, aggr="max")


def test_whole_numbers_too_large_to_carry_their_place_are_sorted_all_the_same(monkeypatch) -> None:
    x, index, kinds = graph()
    layer = RelationalGraphConv(8, 8, 9, 4)
    usual = layer(x, index, kinds)
    monkeypatch.setattr("pyterrier_mathamr.model.rgcn._BITS", 8)
    assert torch.equal(layer(x, index, kinds), usual)


def test_results_for_some_nodes_equal_the_results_for_all() -> None:
    torch.manual_seed(5)
    layer = RelationalGraphConv(8, 12, 9, 4)
    x, attributes = torch.randn(20, 8), torch.randn(9, 8)
    edges, relations = torch.randint(20, (2, 90)), torch.randint(9, (90,))
    targets = torch.tensor([17, 3, 4])
    whole = layer(x, edges, relations, attributes=attributes)
    some = layer(x, edges, relations, attributes=attributes, targets=targets)
    torch.testing.assert_close(some, whole[targets])
    wanted = torch.autograd.grad(whole[targets].square().sum(), layer.parameters())
    found = torch.autograd.grad(some.square().sum(), layer.parameters())
    torch.testing.assert_close(found, wanted)

"""The encoder against equations 3.1 and 3.3 written out, and its invariances."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.nn import FastRGCNConv

from pyterrier_mathamr.graph import GraphTensors, collate
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.model.encoding import tensors_of
from pyterrier_mathamr.model.networks import Encoder, ProjectionHead


def make(config, vocabulary) -> Encoder:
    torch.manual_seed(5)
    return Encoder(config, len(vocabulary.nodes), len(vocabulary.relations)).eval()


def shuffled(graph: GraphTensors, seed: int) -> GraphTensors:
    """The same graph with its nodes numbered, and its edges written, in another order."""
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(graph.nodes))
    place = np.argsort(order).astype(np.int32)
    edges = chance.permutation(len(graph.relations))
    return GraphTensors(
        graph.nodes[order], place[graph.edges][:, edges], graph.relations[edges], place[graph.virtual], graph.kinds
    )


def norm(x, module):
    """LayerNorm written out."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + module.eps).sqrt() * module.weight + module.bias


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


def without_attributes(config, vocabulary):
    """An encoder whose attributes of relations, which equation 2.4 does not have, are zeros."""
    encoder = make(config, vocabulary)
    with torch.no_grad():
        encoder.attributes.zero_()
    return encoder


def test_the_encoder_equals_equations_3_1_and_3_3_with_pytorch_geometric_s_layer(small, graphs, vocabulary) -> None:
    config = small.replace(layers=3)
    encoder = without_attributes(config, vocabulary)
    batch = collate(list(tensors_of(list(graphs.values())[:5], vocabulary, config)))
    h = encoder.initial(batch)
    for layer in encoder.layers:
        judge = FastRGCNConv(16, 16, len(vocabulary.relations), 4)
        judge.load_state_dict(layer.conv.state_dict())
        h = h + gelu(judge(norm(h, layer.norm), batch.edge_index, batch.edge_type))
    head: ProjectionHead = encoder.head
    inner = gelu(norm(h[batch.virtual] @ head.inner.weight.T + head.inner.bias, head.inner_norm))
    z = norm(inner @ head.outer.weight.T + head.outer.bias, head.outer_norm)
    torch.testing.assert_close(encoder(batch), z / z.norm(dim=1, keepdim=True), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("virtual_nodes", "initialisation", "learned"),
    [
        *itertools.product(["hierarchy"], ["zero", "random", "mean"], ["none", "embedding"]),
        ("hierarchy", "mean", "projection"),
        ("hierarchy", "mean", "typed_projection"),
        ("global", "mean", "embedding"),
        ("none", "zero", "none"),
    ],
)
def test_batch_company_and_the_order_of_nodes_do_not_change_a_post(
    small, graphs, vocabulary, virtual_nodes, initialisation, learned
) -> None:
    config = small.replace(virtual_nodes=virtual_nodes, initialisation=initialisation, learned=learned)
    encoder = make(config, vocabulary)
    made = list(tensors_of(list(graphs.values())[:8], vocabulary, config))
    with torch.no_grad():
        together = encoder(collate(made))
        separate = torch.cat([encoder(collate([graph])) for graph in made])
        other = encoder(collate([shuffled(graph, seed) for seed, graph in enumerate(made)]))
    torch.testing.assert_close(together, separate, atol=1e-5, rtol=0)
    torch.testing.assert_close(together, other, atol=1e-5, rtol=0)


def test_every_row_has_unit_length_and_every_parameter_a_gradient(small, graphs, vocabulary) -> None:
    encoder = make(small, vocabulary)
    rows = encoder(collate(list(tensors_of(list(graphs.values()), vocabulary, small))))
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(len(rows)))
    (rows * torch.linspace(-1, 1, rows.numel()).view_as(rows)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())


def test_attributes_of_relations_change_the_encoding(small, graphs, vocabulary) -> None:
    batch = collate(list(tensors_of(list(graphs.values())[:2], vocabulary, small)))
    with_table, without = make(small, vocabulary), without_attributes(small, vocabulary)
    without.load_state_dict(
        {name: w for name, w in with_table.state_dict().items() if name != "attributes"}, strict=False
    )
    assert not torch.allclose(with_table(batch), without(batch))


def test_any_convolution_of_pytorch_geometric_can_take_the_layer_s_place(small, graphs, vocabulary) -> None:
    ours = without_attributes(small, vocabulary)
    plugged = make(small.replace(conv=FastRGCNConv), vocabulary)
    plugged.load_state_dict({name: w for name, w in ours.state_dict().items() if name != "attributes"})
    batch = collate(list(tensors_of(list(graphs.values())[:3], vocabulary, small)))
    torch.testing.assert_close(plugged(batch), ours(batch), atol=1e-5, rtol=0)


@pytest.mark.parametrize("config", [MathAMRConfig.paper_experiments(), MathAMRConfig.paper_benchmark()])
def test_the_parameters_match_the_paper_s_equations(config) -> None:
    """Counted for Table 4.3's 20,000 labels and 532 relations: 2.52 M and 6.08 M; see also docs/training.md.

    Tables 4.14 and 4.20 give 7.917 M and 5.654 M, which do not follow from Tables 4.3, 4.5 and 4.18: with 64 bases the
    first needs about 104,000 labels, and the second has room for the coefficients of about 143 relations.
    """
    labels, relations, d, bases = 20_000, 532, 64, config.bases
    layer = bases * d * d + relations * bases + d * d + d + 2 * d  # bases, coefficients, root, bias, LayerNorm
    head = d * d + d + 2 * d + 32 * d + 32 + 2 * 32
    wanted = labels * d + 3 * d + relations * d + 4 * layer + head
    assert sum(p.numel() for p in Encoder(config, labels, relations).parameters()) == wanted

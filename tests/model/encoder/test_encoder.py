"""The encoder against equations 3.1 and 3.3 written out, its invariances, and first states worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import FastRGCNConv

from pyterrier_mathamr.graph import GraphBatch, GraphTensors, collate
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.model.encoding import tensors_of
from pyterrier_mathamr.model.networks import Encoder, InitialState


def make(config, vocabulary, *, attributes: bool = True) -> Encoder:
    """An encoder, perhaps with zeros for the attributes of relations, which equation 2.4 does not have."""
    torch.manual_seed(5)
    encoder = Encoder(config, len(vocabulary.nodes), len(vocabulary.relations)).eval()
    if not attributes:
        torch.nn.init.zeros_(encoder.attributes)
    return encoder


@pytest.fixture(scope="module")
def batch(graphs, vocabulary, small) -> GraphBatch:
    return collate(list(tensors_of(list(graphs.values())[:5], vocabulary, small)))


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


def test_the_encoder_equals_equations_3_1_and_3_3_with_pytorch_geometric_s_layer(small, batch, vocabulary) -> None:
    encoder = make(small.replace(layers=3), vocabulary, attributes=False)
    h = encoder.initial(batch)
    for layer in encoder.layers:
        judge = FastRGCNConv(16, 16, len(vocabulary.relations), 4)
        judge.load_state_dict(layer.conv.state_dict())
        h = h + gelu(judge(norm(h, layer.norm), batch.edge_index, batch.edge_type))
    head = encoder.head
    inner = gelu(norm(h[batch.virtual] @ head.inner.weight.T + head.inner.bias, head.inner_norm))
    z = norm(inner @ head.outer.weight.T + head.outer.bias, head.outer_norm)
    rows = encoder(batch)
    torch.testing.assert_close(rows, z / z.norm(dim=1, keepdim=True), atol=1e-5, rtol=0)
    assert not torch.allclose(make(small.replace(layers=3), vocabulary)(batch), rows)  # attributes count
    plugged = make(small.replace(layers=3, conv=FastRGCNConv), vocabulary)
    plugged.load_state_dict({name: w for name, w in encoder.state_dict().items() if name != "attributes"})
    torch.testing.assert_close(plugged(batch), rows, atol=1e-5, rtol=0)


def test_every_row_has_unit_length_and_every_parameter_a_gradient(small, graphs, vocabulary) -> None:
    encoder = make(small, vocabulary)
    rows = encoder(collate(list(tensors_of(list(graphs.values()), vocabulary, small))))
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(len(rows)))
    (rows * torch.linspace(-1, 1, rows.numel()).view_as(rows)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())


@pytest.mark.parametrize(
    ("virtual_nodes", "initialisation", "learned"),
    [
        ("hierarchy", "zero", "none"),
        ("hierarchy", "random", "embedding"),
        ("hierarchy", "mean", "none"),
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


# Nodes 0, 1, 2 are content, 3 is a formula's, 4 a sentence's, 5 the document's virtual node.
FORWARD = [(3, 0), (3, 1), (4, 2), (5, 3), (5, 4), (5, 0), (3, 4)]  # the last is an auxiliary edge
EDGES = torch.tensor([*FORWARD, *((b, a) for a, b in FORWARD)]).T
BATCH = GraphBatch(
    nodes=torch.tensor([0, 1, 2, 3, 3, 3]),
    edge_index=EDGES,
    edge_type=torch.zeros(len(FORWARD) * 2, dtype=torch.long),
    virtual=torch.tensor([3, 4, 5]),
    kinds=torch.tensor([0, 1, 2]),
    offsets=torch.tensor([0, 3]),
    is_virtual=torch.tensor([False, False, False, True, True, True]),
    node_offsets=torch.tensor([0, 6]),
)
LABELS = torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 4.0], [99.0, 99.0]])
MEANS = torch.tensor([[2.0, 1.0], [5.0, 4.0], [8 / 3, 5 / 3]])  # of 0 and 1; of 2; of formula, sentence and 0


def begin(initialisation: str, learned: str) -> tuple[InitialState, torch.Tensor]:
    torch.manual_seed(0)
    module = InitialState(MathAMRConfig(hidden=2, initialisation=initialisation, learned=learned), 4)
    with torch.no_grad():
        module.labels.weight.copy_(LABELS)
    return module, module(BATCH)


def test_first_states_are_labels_zeros_random_vectors_by_kind_and_means_of_members() -> None:
    for initialisation in ("zero", "random", "mean"):
        assert torch.equal(begin(initialisation, "none")[1][:3], LABELS[:3])
    assert not begin("zero", "none")[1][3:].any()
    module, state = begin("zero", "embedding")
    assert not state[3:].any()
    with torch.no_grad():
        module.kinds.copy_(torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    assert module(BATCH)[3:, 0].tolist() == [1.0, 2.0, 3.0]

    fixed, state = begin("random", "none")
    assert "kinds" in dict(fixed.named_buffers())
    assert len(torch.unique(state[3:], dim=0)) == 3
    assert "kinds" in dict(begin("random", "embedding")[0].named_parameters())

    module, state = begin("mean", "none")
    torch.testing.assert_close(state[3:], MEANS)
    assert not module(replace(BATCH, edge_index=EDGES[:, :0]))[3:].any()  # no members
    module, state = begin("mean", "projection")
    formula, sentence = module.maps[0](MEANS[0]), module.maps[0](MEANS[1])
    document = module.maps[0]((formula + sentence + LABELS[0]) / 3)
    torch.testing.assert_close(state[3:], torch.stack([formula, sentence, document]))
    module, state = begin("mean", "typed_projection")
    torch.testing.assert_close(state[4], module.maps[1](MEANS[1]))


def test_retrieval_nodes_that_are_content_nodes_keep_their_label_s_state() -> None:
    module, _ = begin("mean", "embedding")
    rows, kinds = torch.tensor([0, 2]), torch.tensor([0, 1])
    state = module(replace(BATCH, virtual=rows, kinds=kinds, is_virtual=torch.zeros(6, dtype=torch.bool)))
    torch.testing.assert_close(state, module.labels(BATCH.nodes))


@pytest.mark.parametrize(
    ("learned", "more"), [("none", 0), ("embedding", 3 * 64), ("projection", 4160), ("typed_projection", 3 * 4160)]
)
def test_learned_parts_cost_as_much_as_in_the_paper_s_table_4_14(learned, more) -> None:
    def size(name: str) -> int:
        module = InitialState(MathAMRConfig(initialisation="mean", learned=name), 10)
        return sum(parameter.numel() for parameter in module.parameters())

    assert size(learned) - size("none") == more

"""Attention over the members of virtual nodes, against the equation as loops."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import collate, graph_tensors
from pyterrier_mathamr.model import Encoder, InitialState, MathAMRConfig, MemberAttention, Trainer

ATTENTION = {"initialisation": "mean", "aggregation": "attention"}
EDGES = torch.tensor([[0, 1, 2, 2, 3, 4, 0], [3, 3, 4, 4, 5, 5, 5]])  # node 2 is a member of 4 by two edges
TARGETS, KINDS = torch.tensor([3, 4, 5, 6]), torch.tensor([0, 1, 2, 0])  # node 6 has no members


def plain(attention: MemberAttention, state: torch.Tensor) -> torch.Tensor:
    """The equation as written, one member at a time."""
    width, table = state.size(1), []
    for target, kind in zip(TARGETS.tolist(), KINDS.tolist(), strict=True):
        sources = [s for s, t in EDGES.T.tolist() if t == target]
        powers = []
        for s in sources:
            centred = state[s] - state[s].mean()
            normal = centred / torch.sqrt((centred**2).mean() + 1e-5)
            powers.append(math.exp(float(attention.keys[kind] @ normal) / math.sqrt(width)))
        row = torch.zeros(width, dtype=state.dtype)
        for s, power in zip(sources, powers, strict=True):
            row = row + power / sum(powers) * state[s]
        table.append(row)
    return torch.stack(table)


@pytest.fixture
def attention() -> MemberAttention:
    torch.manual_seed(0)
    module = MemberAttention(4).double()
    torch.nn.init.normal_(module.keys, std=3.0)
    return module


def test_attention_equals_its_equation(attention) -> None:
    state = torch.randn(7, 4, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(attention(state, EDGES, TARGETS, KINDS), plain(attention, state))


def test_gradients_are_those_of_finite_differences(attention) -> None:
    state = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)

    def through(keys, nodes):
        return torch.func.functional_call(attention, {"keys": keys}, (nodes, EDGES, TARGETS, KINDS))

    assert torch.autograd.gradcheck(through, (attention.keys, state))


def test_keys_begin_at_the_mean_and_are_pulled_away_from_it() -> None:
    fresh, state = MemberAttention(4), torch.randn(7, 4)
    means = torch.stack([state[[0, 1]].mean(0), state[2], state[[3, 4, 0]].mean(0), torch.zeros(4)])
    found = fresh(state, EDGES, TARGETS, KINDS)
    torch.testing.assert_close(found, means)
    (found**2).sum().backward()
    assert fresh.keys.grad[0].abs().max() > 0


def test_large_states_and_keys_stay_finite(attention) -> None:
    with torch.no_grad():
        attention.keys.mul_(1e4)
    assert torch.isfinite(attention(torch.randn(7, 4, dtype=torch.float64) * 1e6, EDGES, TARGETS, KINDS)).all()


def test_without_attention_the_state_has_no_keys_and_with_zero_keys_it_is_the_mean() -> None:
    torch.manual_seed(0)
    mean = InitialState(MathAMRConfig(hidden=4, initialisation="mean"), 5)
    torch.manual_seed(0)
    with_keys = InitialState(MathAMRConfig(hidden=4, **ATTENTION), 5)
    assert set(with_keys.state_dict()) - set(mean.state_dict()) == {"attention.keys"}
    virtual = torch.tensor([3, 4, 5])
    batch = (torch.tensor([0, 1, 2, 4, 4, 4]), EDGES, virtual, torch.tensor([0, 1, 2]), torch.arange(6) > 2)
    torch.testing.assert_close(with_keys(*batch), mean(*batch))


def test_vectors_depend_on_neither_the_batch_nor_the_order_of_nodes(graphs, vocabulary, small) -> None:
    torch.manual_seed(0)
    encoder = Encoder(small.replace(**ATTENTION), len(vocabulary.nodes), len(vocabulary.relations)).eval()
    torch.nn.init.normal_(encoder.initial.attention.keys, std=3.0)
    tensors = [graph_tensors(graphs[f"q{i}"], vocabulary) for i in range(4)]
    with torch.no_grad():
        together = encoder(collate(tensors))
        alone = torch.cat([encoder(collate([one])) for one in tensors])
        batch = collate(tensors)
        order = torch.randperm(len(batch.nodes), generator=torch.Generator().manual_seed(1))
        place = torch.argsort(order)
        batch.nodes, batch.is_virtual = batch.nodes[order], batch.is_virtual[order]
        batch.edge_index, batch.virtual = place[batch.edge_index], place[batch.virtual]
        shuffled = encoder(batch)
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    torch.testing.assert_close(together, shuffled, atol=1e-5, rtol=0)
    assert not torch.allclose(F.cosine_similarity(together[:1], together[1:2]), torch.ones(1))


def test_a_model_trains_with_attention_and_its_keys_move(graphs, pairs, small) -> None:
    model = Trainer(small.replace(**ATTENTION, layers=0, epochs=2), device="cpu").fit(pairs, graphs, verbose=False)
    assert model.weights()["initial.attention.keys"].abs().max() > 0


def test_attention_needs_members_to_begin_with() -> None:
    with pytest.raises(ConfigError, match="initialisation='zero'"):
        MathAMRConfig(aggregation="attention")
    assert MathAMRConfig(**ATTENTION).aggregation == "attention"

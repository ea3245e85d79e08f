"""First states of virtual nodes, each of the paper's conditions worked by hand."""

from dataclasses import replace

import pytest
import torch

from pyterrier_mathamr.graph import GraphBatch
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.model.networks import InitialState

# Nodes 0, 1, 2 are content, 3 is a formula's, 4 a sentence's, 5 the document's virtual node.
NODES = torch.tensor([0, 1, 2, 3, 3, 3])
VIRTUAL, KINDS = torch.tensor([3, 4, 5]), torch.tensor([0, 1, 2])
IS_VIRTUAL = torch.tensor([False, False, False, True, True, True])
FORWARD = [(3, 0), (3, 1), (4, 2), (5, 3), (5, 4), (5, 0), (3, 4)]  # the last is an auxiliary edge
EDGES = torch.tensor([*FORWARD, *((b, a) for a, b in FORWARD)]).T
TYPES, ENDS = torch.zeros(len(FORWARD) * 2, dtype=torch.long), torch.tensor([0, 3])
BATCH = GraphBatch(NODES, EDGES, TYPES, VIRTUAL, KINDS, ENDS, IS_VIRTUAL, torch.tensor([0, 6]))


def begin(initialisation: str, learned: str) -> tuple[InitialState, torch.Tensor]:
    torch.manual_seed(0)
    module = InitialState(MathAMRConfig(hidden=2, initialisation=initialisation, learned=learned), 4)
    with torch.no_grad():
        module.labels.weight.copy_(torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 4.0], [99.0, 99.0]]))
    return module, module(BATCH)


# Formula: mean of nodes 0 and 1. Sentence: node 2. Document: mean of formula, sentence and node 0.
MEANS = torch.tensor([[2.0, 1.0], [5.0, 4.0], [8 / 3, 5 / 3]])


def test_content_nodes_have_the_state_of_their_label() -> None:
    for initialisation in ("zero", "random", "mean"):
        _, state = begin(initialisation, "none")
        assert state[:3].tolist() == [[1.0, 0.0], [3.0, 2.0], [5.0, 4.0]]


def test_zero_begins_with_zeros_and_the_learned_vector_follows_its_kind() -> None:
    assert not begin("zero", "none")[1][3:].any()
    module, state = begin("zero", "embedding")
    assert not state[3:].any()
    with torch.no_grad():
        module.kinds.copy_(torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    assert module(BATCH)[3:, 0].tolist() == [1.0, 2.0, 3.0]


def test_random_vectors_differ_by_kind_and_learn_only_where_asked() -> None:
    fixed, state = begin("random", "none")
    assert "kinds" in dict(fixed.named_buffers())
    assert len(torch.unique(state[3:], dim=0)) == 3
    learned, _ = begin("random", "embedding")
    assert "kinds" in dict(learned.named_parameters())


def test_means_are_only_of_members_and_the_document_s_of_the_virtual_nodes_below() -> None:
    torch.testing.assert_close(begin("mean", "none")[1][3:], MEANS)


def test_projections_map_the_mean_by_one_matrix_or_one_for_each_kind() -> None:
    module, state = begin("mean", "projection")
    formula, sentence = module.maps[0](MEANS[0]), module.maps[0](MEANS[1])
    document = module.maps[0]((formula + sentence + torch.tensor([1.0, 0.0])) / 3)
    torch.testing.assert_close(state[3:], torch.stack([formula, sentence, document]))
    module, state = begin("mean", "typed_projection")
    torch.testing.assert_close(state[4], module.maps[1](MEANS[1]))
    assert len(module.maps) == 3


@pytest.mark.parametrize(
    ("learned", "more"), [("none", 0), ("embedding", 3 * 64), ("projection", 4160), ("typed_projection", 3 * 4160)]
)
def test_learned_parts_cost_as_much_as_in_the_paper_s_table_4_14(learned, more) -> None:
    def size(name: str) -> int:
        module = InitialState(MathAMRConfig(initialisation="mean", learned=name), 10)
        return sum(parameter.numel() for parameter in module.parameters())

    assert size(learned) - size("none") == more


def test_a_virtual_node_without_members_is_zero() -> None:
    module, _ = begin("mean", "none")
    state = module(replace(BATCH, edge_index=EDGES[:, :0]))
    assert not state[3:].any()


def test_retrieval_nodes_that_are_content_nodes_keep_their_label_s_state() -> None:
    module, _ = begin("mean", "embedding")
    rows, kinds = torch.tensor([0, 2]), torch.tensor([0, 1])
    state = module(replace(BATCH, virtual=rows, kinds=kinds, is_virtual=torch.zeros(6, dtype=torch.bool)))
    torch.testing.assert_close(state, module.labels(NODES))

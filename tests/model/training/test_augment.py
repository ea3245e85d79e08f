"""Masks and dropped edges never touch virtual nodes."""

import pytest
import torch

from pyterrier_mathamr.graph import MASK_ID, collate
from pyterrier_mathamr.model import TrainingOptions
from pyterrier_mathamr.model.encoding import tensors_of
from pyterrier_mathamr.model.trainer import augment


@pytest.fixture
def batch(graphs, vocabulary, small):
    return collate(list(tensors_of(list(graphs.values()), vocabulary, small)))


def noisy(batch, node_mask=0.5, edge_dropout=0.5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return augment(batch, TrainingOptions(node_mask=node_mask, edge_dropout=edge_dropout), generator)


def edges_of(batch) -> set[tuple[int, int, int]]:
    return set(zip(*batch.edge_index.tolist(), batch.edge_type.tolist(), strict=True))


def structural(batch) -> set[tuple[int, int, int]]:
    """The edges that touch a virtual node."""
    return {(a, b, r) for a, b, r in edges_of(batch) if batch.is_virtual[a] or batch.is_virtual[b]}


def test_virtual_nodes_and_their_edges_survive_the_strongest_noise(batch) -> None:
    result = noisy(batch, node_mask=1.0, edge_dropout=0.999999)
    assert torch.equal(result.nodes[batch.is_virtual], batch.nodes[batch.is_virtual])
    assert (result.nodes[~batch.is_virtual] == MASK_ID).all()
    assert edges_of(result) == structural(batch)


def test_an_edge_and_its_inverse_are_dropped_independently(batch) -> None:
    left = edges_of(noisy(batch))
    ordinary = edges_of(batch) - structural(batch)
    forward = {(a, b, r) for a, b, r in ordinary if r % 2 == 0}
    fates = {((a, b, r) in left, (b, a, r + 1) in left) for a, b, r in forward}
    assert fates == {(True, True), (True, False), (False, True), (False, False)}


def test_rates_are_those_asked_for(batch) -> None:
    masked = (
        sum((noisy(batch, seed=s).nodes[~batch.is_virtual] == MASK_ID).float().mean().item() for s in range(20)) / 20
    )
    kept = sum(len(edges_of(noisy(batch, edge_dropout=0.1, seed=s)) - structural(batch)) for s in range(20)) / 20
    assert masked == pytest.approx(0.5, abs=0.03)
    assert kept / len(edges_of(batch) - structural(batch)) == pytest.approx(0.9, abs=0.02)


def test_no_noise_changes_nothing_and_the_given_batch_never_changes(batch) -> None:
    nodes, edges = batch.nodes.clone(), edges_of(batch)
    same = noisy(batch, 0.0, 0.0)
    noisy(batch)
    assert torch.equal(same.nodes, nodes)
    assert edges_of(same) == edges == edges_of(batch)
    assert torch.equal(batch.nodes, nodes)

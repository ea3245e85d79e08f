"""Masks and dropped edges never touch virtual nodes; a dropped sentence goes with all that is only in it."""

import dataclasses

import pytest
import torch

from pyterrier_mathamr.graph import MASK_ID, MathAMRGraph, VirtualKind, Vocabulary, collate, graph_tensors
from pyterrier_mathamr.model import augment, drop_sentences
from pyterrier_mathamr.model.tensors import tensors_of


@pytest.fixture
def batch(graphs, vocabulary, small):
    return collate(tensors_of(list(graphs.values()), vocabulary, small, len(graphs), False))


def noisy(batch, node_mask=0.5, edge_dropout=0.5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return augment(batch, MASK_ID, node_mask=node_mask, edge_dropout=edge_dropout, generator=generator)


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


def test_the_same_seed_gives_the_same_noise(batch) -> None:
    assert edges_of(noisy(batch, seed=3)) == edges_of(noisy(batch, seed=3)) != edges_of(noisy(batch, seed=4))


POST = """# ::formula_map {"FORMULA_0": "1", "FORMULA_1": "2", "FORMULA_2": "3"}
(m / multi-sentence
  :snt1 (s / see-01 :ARG0 (i / person) :ARG1 (f0 / FORMULA_0 :opt (a / U!plus :op0 (b / V!x)) :slt (d / V!x)))
  :snt2 (t / take-01 :ARG0 i :ARG1 (f1 / FORMULA_1 :slt (o / V!y)))
  :snt3 (u / use-01 :ARG1 (f2 / FORMULA_2)))"""
"""Sentences 1 and 2 share a person; formula 2 has no tree."""

ALL = {"multi-sent", "VIRTUAL_DOCUMENT"}  # as the vocabulary has it
FIRST = {"see-01", "U!plus", "V!x"}
SECOND = {"take-01", "V!y"}
THIRD = {"use-01"}


def test_a_dropped_sentence_goes_with_its_formulas_and_what_no_other_sentence_has() -> None:
    graph = MathAMRGraph.from_penman(POST)
    vocabulary = Vocabulary.build([graph])
    whole = collate([graph_tensors(graph, vocabulary)] * 40)
    batch, kept = drop_sentences(whole, 0.6, torch.Generator().manual_seed(0))
    wanted = set()
    for number in range(40):
        rows = kept[7 * number : 7 * number + 7].tolist()  # three formulas, three sentences, the document
        assert rows[:3] == rows[3:6]
        assert rows[6]
        assert any(rows[:3])
        labels = [vocabulary.nodes[i] for i in batch.nodes[batch.node_offsets[number] : batch.node_offsets[number + 1]]]
        parts = [part for part, stays in zip((FIRST, SECOND, THIRD), rows, strict=False) if stays]
        shared = {"person"} if rows[0] or rows[1] else set()
        names = {"[FORMULA]", "VIRTUAL_FORMULA", "VIRTUAL_SENTENCE"}
        assert set(labels) == ALL.union(names, shared, *parts)
        assert labels.count("[FORMULA]") == labels.count("VIRTUAL_FORMULA") == sum(rows[:3])
        wanted.add(tuple(rows[:3]))
    assert len(wanted) == 7  # every mixture but the empty one
    assert torch.equal(batch.kinds, whole.kinds[kept])
    assert batch.is_virtual[batch.virtual].all()
    assert batch.offsets.tolist() == [sum(kept[: 7 * number].tolist()) for number in range(41)]


def test_text_features_of_dropped_rows_go_along(batch) -> None:
    features = torch.arange(len(batch.virtual)).half().unsqueeze(1)
    fewer, kept = drop_sentences(dataclasses.replace(batch, features=features), 0.5, torch.Generator().manual_seed(2))
    assert fewer.features.flatten().tolist() == torch.nonzero(kept).flatten().tolist()


def test_edges_between_what_stays_stay_as_they_were(batch) -> None:
    fewer, kept = drop_sentences(batch, 0.5, torch.Generator().manual_seed(2))
    again, _ = drop_sentences(batch, 0.5, torch.Generator().manual_seed(2))
    assert edges_of(again) == edges_of(fewer)
    assert not kept.all()
    old = {int(a): int(b) for a, b in zip(batch.virtual[kept], fewer.virtual, strict=True)}
    between = {(old[a], old[b], r) for a, b, r in edges_of(batch) if a in old and b in old}
    assert between == {(a, b, r) for a, b, r in edges_of(fewer) if fewer.is_virtual[a] and fewer.is_virtual[b]}
    assert fewer.edge_index.max() < fewer.nodes.numel()


def test_one_sentence_of_each_post_always_stays(batch) -> None:
    fewer, _ = drop_sentences(batch, 1.0, torch.Generator().manual_seed(0))
    sentences = [
        (fewer.kinds[a:b] == VirtualKind.SENTENCE).sum().item()
        for a, b in zip(fewer.offsets[:-1].tolist(), fewer.offsets[1:].tolist(), strict=True)
    ]
    assert sentences == [1] * len(batch)
    same, kept = drop_sentences(batch, 0.0, torch.Generator())
    assert kept.all()
    assert edges_of(same) == edges_of(batch)

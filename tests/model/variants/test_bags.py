"""Rows that are bags of words: sums worked by hand, lengths of labels, directions that posts have in common."""

import math

import numpy as np
import pytest
import torch
from text_encoders import Table

from pyterrier_mathamr.graph import MASK_ID, collate, graph_tensors
from pyterrier_mathamr.graph.structure import NodeKind
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, Trainer
from pyterrier_mathamr.model.networks import COMMON, bags_of, network, weighted_labels


@pytest.fixture(scope="module")
def config(small) -> MathAMRConfig:
    return small.replace(features="words", word_residual=True, hidden=12, layers=0)


@pytest.fixture(scope="module")
def untrained(graphs, config) -> MathAMR:
    return MathAMR.untrained(config, list(graphs.values()), text=Table())


@pytest.fixture(scope="module")
def posts(graphs, vocabulary):
    return [graph_tensors(graph, vocabulary) for graph in graphs.values()]


def slow_bags(graph, vectors):
    """The same sums, written as loops over the arrays of one graph."""
    virtual = {int(node): int(kind) for node, kind in zip(graph.virtual, graph.kinds, strict=True)}
    bags = {node: np.zeros(vectors.shape[1]) for node in virtual}
    for source, target in graph.edges.T.tolist():
        if target in virtual and source not in virtual and virtual[target] != 2:
            bags[target] += vectors[graph.nodes[source]]
    whole = np.sum([bags[node] for node in virtual], axis=0)
    return np.array([whole if kind == 2 else bags[node] for node, kind in virtual.items()])


def test_a_bag_is_the_sum_of_its_nodes_and_the_document_s_that_of_all_bags(posts, vocabulary):
    vectors = np.random.default_rng(0).normal(size=(len(vocabulary.nodes), 5))
    bags = bags_of(torch.from_numpy(vectors), collate(posts)).numpy()
    assert bags == pytest.approx(np.concatenate([slow_bags(post, vectors) for post in posts]), abs=1e-9)


def test_an_untrained_model_is_the_projected_sum_without_the_directions_that_all_bags_share(graphs, untrained):
    weights = untrained.weights()
    assert set(weights) == {"initial.labels.weight", "bags.project.weight"}
    project, labels = weights["bags.project.weight"], weights["initial.labels.weight"]
    tensors = [graph_tensors(graph, untrained.vocabulary) for graph in graphs.values()]
    rows = slow_bags(tensors[0], labels.double().numpy()) @ project.numpy().T
    [encoded] = untrained.encode([graphs["q0"]])
    assert encoded == pytest.approx(rows / np.linalg.norm(rows, axis=1, keepdims=True), abs=1e-5)
    assert project @ project.T == pytest.approx(torch.eye(len(project)), abs=1e-5)
    batch = collate(tensors)
    bags, kinds = torch.nn.functional.normalize(bags_of(labels, batch), dim=1), batch.kinds
    balanced = torch.cat([bags[kinds == kind] / (kinds == kind).sum().sqrt() for kind in range(3)])
    shared = torch.linalg.svd(balanced.double()).Vh[:COMMON].float()
    assert (project @ shared.T).abs().max() < 1e-3


def test_the_length_of_a_label_grows_with_its_rarity_and_each_has_a_direction(posts, vocabulary):
    group, person, show = (vocabulary.node_id(word, NodeKind.CONCEPT) for word in ("group", "person", "show-01"))
    vectors = torch.nn.functional.normalize(torch.randn(len(vocabulary.nodes), 6), dim=1)
    labels = weighted_labels(vectors, posts, seed=1)
    with_group = sum(group in post.nodes for post in posts)
    rarity = math.log((len(posts) + 1) / (with_group + 0.5)) / math.log((len(posts) + 1) / (len(posts) + 0.5))
    assert labels[group].norm() / labels[person].norm() == pytest.approx(rarity, rel=1e-3)
    assert torch.cosine_similarity(labels[group], vectors[group], dim=0) == pytest.approx(1)
    labels, again = (weighted_labels(torch.zeros(len(vocabulary.nodes), 6), posts, seed=1) for _ in range(2))
    assert torch.equal(labels, again)
    assert labels[group].norm() > 0.1
    assert abs(torch.cosine_similarity(labels[group], labels[show], dim=0)) < 0.99
    assert 0 < labels[MASK_ID].norm() < 0.1


def test_the_graph_gets_its_share_by_training(posts, config, vocabulary):
    torch.manual_seed(0)
    encoder = network(config.replace(layers=1), len(vocabulary.nodes), len(vocabulary.relations))
    batch = collate(posts[:6])
    rows = encoder(batch)
    labels = encoder.initial.labels.weight
    assert torch.allclose(rows, torch.nn.functional.normalize(encoder.bags.project(bags_of(labels, batch)), dim=1))
    rows[:, 0].sum().backward()
    assert encoder.bags.share.grad.abs().min() > 0
    assert encoder.head.outer.weight.grad.abs().max() == 0
    with torch.no_grad():
        encoder.bags.share += 0.5
    assert (encoder(batch) - rows).norm(dim=1).min() > 1e-3


def test_training_on_bags_finds_the_answers_of_a_topic_and_masks_leave_every_row_a_direction(graphs, pairs, config):
    def rows_of(**changes) -> list[np.ndarray]:
        model = Trainer(config.replace(**changes), device="cpu", text=Table()).fit(pairs, graphs, verbose=False)
        return model.encode([graphs[f"{kind}{i}"] for kind in "qa" for i in range(24)])

    last = np.stack([rows[-1] for rows in rows_of(epochs=6)])
    scores, same = last[:24] @ last[24:].T, np.arange(24)[:, None] % 8 == np.arange(24) % 8
    assert scores[same].mean() > scores[~same].mean() + 0.2
    assert all(np.isfinite(rows).all() for rows in rows_of(node_mask=1.0, epochs=1))

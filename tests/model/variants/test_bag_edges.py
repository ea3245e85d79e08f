"""Bags with logarithmic counts and labelled edges, against loops; labels that no vocabulary has."""

import dataclasses
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import MASK_ID, NodeKind, Vocabulary, collate, graph_tensors, layout_of
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder, Trainer
from pyterrier_mathamr.model.variants.bags import _members, bags_of, edge_terms, weighted_edges

BUCKETS = 1 << 20


class Letters:
    """A text encoder whose vectors are drawn from the text alone."""

    def encode(self, texts):
        return np.array([np.random.default_rng([*text.encode(), 1]).normal(size=12) for text in texts])


@pytest.fixture
def config(small) -> MathAMRConfig:
    bags = small.replace(features="words", word_vectors="encoded", word_residual=True, hidden=12, layers=0)
    return bags.replace(bag_counts="logarithmic", bag_edges=64)


def edges_of(graph, vocabulary):
    """The hash of each labelled edge, by the row of its formula."""
    batch = collate([graph_tensors(graph, vocabulary)])
    hashes, rows = edge_terms(batch, *_members(batch), BUCKETS)
    return [sorted(hashes[rows == row].tolist()) for row in range(graph.n_formulas)]


def edge_names(graph):
    """``label|role|label`` for each edge of both trees of each formula."""
    layout = layout_of(graph.amr, graph.n_formulas, graph.id)
    formula_of = {n: i for i, trees in enumerate(zip(layout.opts, layout.slts)) for tree in trees for n in tree}  # noqa: B905
    names = ["FORMULA" if label.startswith("FORMULA_") else label for label in graph.amr.labels]
    found = [[] for _ in layout.opts]
    for source, role, target in graph.amr.edges:
        if target in formula_of:
            found[formula_of[target]].append(f"{names[source]}|{role}|{names[target]}")
    return found


def test_the_edges_of_a_formula_are_the_labelled_edges_of_its_trees(graphs, vocabulary):
    hash_of, name_of = defaultdict(set), defaultdict(set)
    for graph in graphs.values():
        for hashes, names in zip(edges_of(graph, vocabulary), edge_names(graph), strict=True):
            assert len(hashes) == len(names)
            assert Counter(Counter(hashes).values()) == Counter(Counter(names).values())
            for name in set(names):
                hash_of[name].add(tuple(hashes))
                for hashed in hashes:
                    name_of[hashed].add(name)
    for name, seen in hash_of.items():  # one hash is in all formulas that have the edge
        assert set.intersection(*map(set, seen)), name
    assert len(name_of) == len(hash_of)


def test_a_masked_node_has_no_edges(graphs, vocabulary):
    graph = graphs["q0"]
    tensors = graph_tensors(graph, vocabulary)
    plus = vocabulary.node_id("U!plus", NodeKind.OPT)
    nodes = np.where(tensors.nodes == plus, MASK_ID, tensors.nodes).astype(np.int32)
    batch = collate([dataclasses.replace(tensors, nodes=nodes)])
    hashes, _ = edge_terms(batch, *_members(batch), BUCKETS)
    assert len(hashes) == sum("U!plus" not in name for names in edge_names(graph) for name in names)


def test_logarithmic_counts_are_those_of_each_row_and_of_the_whole_document(graphs, vocabulary):
    batch = collate([graph_tensors(graph, vocabulary) for graph in graphs.values()])
    generator = torch.Generator().manual_seed(1)
    labels = torch.randn(len(vocabulary.nodes), 5, generator=generator, dtype=torch.float64)
    edges = torch.randn(64, 5, generator=generator, dtype=torch.float64)
    node, row = _members(batch)
    hashes, edge_row = edge_terms(batch, node, row, 64)
    expected = torch.zeros(len(batch.kinds), 5, dtype=torch.float64)
    for vectors, terms, rows in ((labels, batch.nodes[node], row), (edges, hashes, edge_row)):
        counts = Counter()
        for term, of in zip(terms.tolist(), rows.tolist(), strict=True):
            document = int(batch.offsets[torch.searchsorted(batch.offsets, of, right=True)]) - 1
            counts[term, of] += 1
            counts[term, document] += 1
        for (term, of), count in counts.items():
            expected[of] += (1 + math.log(count)) * vectors[term]
    assert torch.allclose(bags_of(labels, batch, edges, logarithmic=True), expected)


def test_edges_start_as_long_as_they_are_rare(graphs, vocabulary):
    posts = [graph_tensors(graph, vocabulary) for graph in graphs.values()]
    vectors = weighted_edges((BUCKETS // 64, 6), posts, seed=1)
    found = Counter(hashed for graph in posts for hashed in _hashes(graph, len(vectors)))
    (common, most), *_, (rare, least) = found.most_common()
    ratio = math.log((len(posts) + 1) / (most + 0.5)) / math.log((len(posts) + 1) / (least + 0.5))
    assert vectors[common].norm() / vectors[rare].norm() == pytest.approx(ratio, rel=1e-3)


def _hashes(graph, buckets):
    batch = collate([graph])
    return set(edge_terms(batch, *_members(batch), buckets)[0].tolist())


def test_a_trained_model_keeps_its_edges_in_its_files(graphs, pairs, config, tmp_path):
    model = Trainer(config.replace(epochs=2), text=TextEncoder(Letters())).fit(pairs, graphs)
    model.save(tmp_path / "model")
    again = MathAMR.from_pretrained(tmp_path / "model")
    assert again.weights()["bags.edges"].shape == (64, 12)
    for graph in graphs.values():
        assert again.encode([graph])[0] == pytest.approx(model.encode([graph])[0], abs=1e-5)
    begun = MathAMR.untrained(config, [graphs[name] for name in sorted(graphs)], text=TextEncoder(Letters()))
    assert (again.weights()["bags.edges"] - begun.weights()["bags.edges"]).abs().max() > 1e-3


@pytest.mark.parametrize(("option", "value"), [("bag_counts", "logarithmic"), ("bag_edges", 8)])
def test_options_of_bags_need_bags(option, value):
    with pytest.raises(ConfigError, match="without word_residual"):
        MathAMRConfig(**{option: value})


def test_unknown_labels_share_some_ids_by_their_hash(graphs, tmp_path):
    some = [graphs[name] for name in sorted(graphs)]
    vocabulary = Vocabulary.build(some, unknown=8)
    names = [f"word{i}" for i in range(200)]
    ids = [vocabulary.node_id(name, NodeKind.CONSTANT) for name in names]
    assert set(ids) == set(range(len(vocabulary.nodes) - 8, len(vocabulary.nodes)))
    assert all(vocabulary.is_unknown(number) for number in ids)
    assert vocabulary.coverage(some) == 1
    vocabulary.save(tmp_path / "vocabulary.json.gz")
    again = Vocabulary.load(tmp_path / "vocabulary.json.gz")
    assert again == vocabulary
    assert [again.node_id(name, NodeKind.CONSTANT) for name in names] == ids
    assert Vocabulary.build(some).node_id("word1", NodeKind.CONSTANT) == 0


def test_known_labels_keep_their_ids_and_unknown_ones_have_no_spelling(graphs):
    some = [graphs[name] for name in sorted(graphs)]
    vocabulary = Vocabulary.build(some, size=20, unknown=4)
    assert len(vocabulary.nodes) == 20
    assert vocabulary.nodes[:16] == Vocabulary.build(some, size=16).nodes
    assert vocabulary.coverage(some) == Vocabulary.build(some, size=16).coverage(some) < 1
    assert vocabulary.spellings(some)[-4:] == [""] * 4
    with pytest.raises(ConfigError, match="below vocabulary_size"):
        MathAMRConfig(vocabulary_size=20, unknown_labels=20)

"""Rows of formulas that start from the vectors of In+Out: means worked by hand, an untrained model, training."""

import numpy as np
import pytest
from test_bags import Letters

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.graph import MathAMRGraph, VirtualKind, collate, graph_tensors
from pyterrier_mathamr.graph.mathamr import attach_formulas
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, ModelError, TextEncoder, Trainer
from pyterrier_mathamr.model.features import tensors_of
from pyterrier_mathamr.model.in_out import InOut
from pyterrier_mathamr.model.networks import network


@pytest.fixture
def text():
    return TextEncoder(Letters())


@pytest.fixture
def config(small) -> MathAMRConfig:
    return small.replace(
        features="words",
        word_vectors="encoded",
        word_residual=True,
        hidden=12,
        layers=0,
        formula_vectors="in-out-mini",
    )


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_a_formula_has_the_mean_of_its_nodes_in_both_graphs_and_other_rows_nothing(graphs, vocabulary, config):
    graph = graphs["q0"]
    (post,) = tensors_of([graph], vocabulary, config)
    model, expected = InOut.from_pretrained("in-out-mini"), []
    for pair in graph.trees():
        layout, operators = (
            unit(model.encode([tree], kind, distinct=False)[0].mean(axis=0))
            for tree, kind in ((pair.slt, "slt"), (pair.opt, "opt"))
        )
        expected.append(unit(np.concatenate([layout, operators])))
    assert post.features.shape == (len(post.kinds), 200)
    formulas = post.kinds == VirtualKind.FORMULA
    assert post.features[formulas] == pytest.approx(np.array(expected), abs=1e-3)
    assert not post.features[~formulas].any()


def test_a_formula_without_trees_and_a_post_without_formulas_have_zeros(vocabulary, config):
    tree = trees_from_latex("x+1").slt
    plain = MathAMRGraph.from_penman("(p / prime)")
    amr = MathAMRGraph.from_penman("(p / prime :ARG1 (f / FORMULA_0) :ARG2 (g / FORMULA_1))").amr
    pairs = [trees_from_latex("x+1")._replace(slt=tree, opt=None), trees_from_latex("")]
    half = MathAMRGraph(attach_formulas(amr, pairs), ("1", "2"))
    first, second = tensors_of([plain, half], vocabulary, config)
    assert not first.features.any()
    lengths = np.linalg.norm(second.features.astype(float), axis=1)
    assert lengths == pytest.approx([1, 0, 0, 0], abs=1e-3)
    assert not second.features[0, 100:].any()


def test_an_untrained_formula_is_the_sum_of_its_bag_and_its_vector(graphs, config, text):
    some = list(graphs.values())
    model = MathAMR.untrained(config, some, text=text)
    plain = MathAMR.untrained(config.replace(formula_vectors="none"), some, text=text)
    project = model.weights()["formulas.project"].numpy()
    assert project @ project.T == pytest.approx(np.eye(len(project)), abs=1e-5)
    (post,) = tensors_of(some[:1], model.vocabulary, config)
    formulas = post.kinds == VirtualKind.FORMULA
    rows, bags = model.encode(some[:1])[0], plain.encode(some[:1])[0]
    assert rows[~formulas] == pytest.approx(bags[~formulas], abs=1e-6)
    vectors = unit(post.features[formulas].astype(np.float32) @ project.T)
    assert rows[formulas] == pytest.approx(unit(bags[formulas] + vectors), abs=1e-5)


@pytest.mark.parametrize("layers", [0, 1])
def test_training_does_not_change_the_vectors_and_a_file_keeps_them(graphs, pairs, config, text, tmp_path, layers):
    model = Trainer(config.replace(layers=layers), text=text).fit(pairs, graphs, checkpoint=tmp_path / "run")
    project = model.weights()["formulas.project"].numpy()
    assert project @ project.T == pytest.approx(np.eye(len(project)), abs=1e-5)  # as it was before training
    model.save(tmp_path / "model")
    some = list(graphs.values())[:6]
    opened = MathAMR.from_pretrained(tmp_path / "model")
    assert opened.identity == model.identity
    for kept, rows in zip(opened.encode(some), model.encode(some), strict=True):
        assert np.array_equal(kept, rows)
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-5)


def test_graphs_without_the_vectors_are_refused(graphs, vocabulary, config):
    encoder = network(config, len(vocabulary.nodes), len(vocabulary.relations))
    with pytest.raises(ModelError, match="encode graphs with"):
        encoder(collate([graph_tensors(graph, vocabulary) for graph in graphs.values()]))


def test_the_vectors_are_refused_without_bags():
    with pytest.raises(ConfigError, match="'none' without word_residual"):
        MathAMRConfig(formula_vectors="in-out-mini")
    assert MathAMRConfig(features="words", word_residual=True, formula_vectors="in-out-mini").text.word_residual

"""``reads``: the parts of a graph that change a model's vectors, and no more than these are built."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.graph.structure import NodeKind, layout_of
from pyterrier_mathamr.model import MathAMR, MathAMRConfig

POSTS = [
    {"docno": "1", "text": r"Every bounded sequence converges. The limit $\lim_{n} x_n = 2$ exists, and $y > 0$."},
    {"docno": "2", "text": r"Suppose a group acts on the set. Its order $p^k + 1$ divides another number."},
]
SMALL = MathAMRConfig(layers=1, hidden=16, projection=8, bases=4, vocabulary_size=200, min_role_count=1)
MODELS = {
    "mathamr-plus-text": None,
    "mathamr-plus-mini": None,
    "the thesis'": SMALL,
    "operator trees": SMALL.replace(formulas="opt"),
    "no formulas": SMALL.replace(formulas="none"),
    "text and layers": SMALL.replace(features="text"),
}


@pytest.fixture(scope="module")
def graphs() -> list[MathAMRGraph]:
    return [row["graph"] for row in GraphBuilder().build_rows(POSTS)]


def model_of(name: str, graphs: list[MathAMRGraph]) -> MathAMR:
    config = MODELS[name]
    if config is None:
        return MathAMR.from_pretrained(name)
    model = MathAMR.untrained(config, graphs)
    shares = {name: torch.ones_like(weight) for name, weight in model.weights().items() if name == "text.share"}
    return MathAMR(config, model.vocabulary, {**model.weights(), **shares})  # before training they are 0


def changed(graph: MathAMRGraph, part: str) -> MathAMRGraph:
    """A graph of the same form in which one part says something else, in labels that models know."""
    if part == "text":
        texts = tuple(f"Another thing. {text}" for text in graph.sentence_texts)
        return replace(graph, sentence_texts=texts, text=" ".join(texts))
    kinds = layout_of(graph.amr, graph.n_formulas).kinds
    of_trees = (NodeKind.OPT, NodeKind.SLT)
    others = ("N!2", "U!plus") if part == "trees" else ("group", "set")
    labels = [
        others[label == others[0]]
        if (kind in of_trees) == (part == "trees") and not label.startswith(("FORMULA_", "multi-sentence"))
        else label
        for label, kind in zip(graph.amr.labels, kinds, strict=True)
    ]
    return replace(graph, amr=replace(graph.amr, labels=tuple(labels)))


@pytest.mark.parametrize("name", MODELS)
def test_vectors_change_with_the_parts_that_a_model_reads_and_need_no_others(name: str, graphs) -> None:
    model = model_of(name, graphs)
    before = model.encode(graphs)
    parts = ("text", "trees", "amr")
    after = model.encode([changed(graphs[0], part) for part in parts])
    depends = {part for part, rows in zip(parts, after, strict=True) if not np.allclose(before[0], rows, atol=1e-4)}
    assert depends == model.reads
    read = [row["graph"] for row in GraphBuilder(reads=model.reads).build_rows(POSTS)]
    for whole, part in zip(before, model.encode(read), strict=True):
        np.testing.assert_allclose(whole, part, atol=1e-5)


def test_what_is_not_read_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DependencyAmrParser, "parse_units", lambda *_: pytest.fail("parsed"))
    for row in GraphBuilder(reads={"text"}).build_rows(POSTS):
        graph = row["graph"]
        assert not any(trees.opt or trees.slt for trees in graph.trees())
        assert set(graph.amr.labels) <= {"multi-sentence", "sentence", "FORMULA_0", "FORMULA_1"}
    assert all(row["graph"].trees()[0].opt for row in GraphBuilder(reads={"trees"}).build_rows(POSTS))

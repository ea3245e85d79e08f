"""Tensors on disk: narrow where they can be, the same when they come back."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from graph_examples import one_sentence, whole

from pyterrier_mathamr.graph import GraphError, GraphTensors, TensorStore, Vocabulary, graph_tensors
from pyterrier_mathamr.graph.tensor_store import TENSORS
from pyterrier_mathamr.store import (
    DamagedError,
    FormatError,
    UnknownIdError,
)

DATA = Path(__file__).parents[2] / "data"

VOCABULARY = Vocabulary.build([whole(), one_sentence()], min_role_count=1)
ITEMS = [
    ("a", graph_tensors(whole(), VOCABULARY)),
    ("b", graph_tensors(one_sentence(), VOCABULARY, auxiliary="full")),
    ("c", graph_tensors(one_sentence(), VOCABULARY, virtual_nodes="none")),
]


def with_features(tensors, width):
    """The tensors with a row of numbers for each vector."""
    rows = len(tensors.virtual)
    features = np.arange(rows * width, dtype=np.float16).reshape(rows, width)
    return dataclasses.replace(tensors, features=features)


def tensors(nodes, edges, relations):
    """Tensors without vectors, of arrays given in full."""
    return GraphTensors(
        np.array(nodes, dtype=np.int32),
        np.array(edges, dtype=np.int32).reshape(2, -1),
        np.array(relations, dtype=np.int16),
        np.zeros(0, dtype=np.int32),
        np.zeros(0, dtype=np.int8),
    )


def test_written_tensors_come_back_by_row_and_by_id(tmp_path):
    store = TensorStore.build(tmp_path / "t", ITEMS)
    assert (len(store), store.ids) == (3, ["a", "b", "c"])
    assert list(store) == [item for _, item in ITEMS]
    assert store["b"] == ITEMS[1][1]
    assert store.get_many(["c", "a", "c"]) == [ITEMS[2][1], ITEMS[0][1], ITEMS[2][1]]
    assert store[-1] == ITEMS[2][1]
    assert store["a"].nodes.dtype == np.int32
    assert store["a"].relations.dtype == np.int16
    [part] = store.snapshot().parts
    assert part["sources"].nbytes == sum(len(graph.relations) for graph in store) // 2 * 2, "half of the edges"
    assert part["nodes"].nbytes == sum(len(graph.nodes) for graph in store) * 2, "small numbers take two bytes"
    for row in (3, -4):
        with pytest.raises(IndexError):
            store[row]
    with pytest.raises(UnknownIdError, match="'zz'"):
        store["zz"]


def test_parts_are_bounded_in_bytes_and_read_as_one(tmp_path, monkeypatch):
    small = dataclasses.replace(TENSORS, part_bytes=600)
    monkeypatch.setattr("pyterrier_mathamr.graph.tensor_store.TENSORS", small)
    monkeypatch.setattr(TensorStore, "KIND", small)
    wide = tensors([70_000, 1], [[0, 1], [1, 0]], [4, 5])
    items = [*((f"{name}{i}", graph) for i in range(10) for name, graph in ITEMS), ("wide", wide)]
    store = TensorStore.build(tmp_path / "t", items)
    assert len(store.snapshot().parts) > 3
    assert all(sum(part[field.name].nbytes for field in TENSORS.fields) < 1000 for part in store.snapshot().parts)
    assert list(store) == [graph for _, graph in items]
    assert store.get_many(["wide", "a7", "c0"]) == [wide, ITEMS[0][1], ITEMS[2][1]]


def test_edges_without_mirror_images_are_kept_unchanged(tmp_path):
    odd = tensors([1, 2], [[0, 0, 1], [1, 1, 0]], [4, 5, 7])
    same = tensors([1, 2], [[0, 1], [1, 0]], [4, 4])
    wide = tensors([70_000, 1], [[0, 1], [1, 0]], [4, 5])  # widens the array with all that it holds
    items = [("odd", odd), ITEMS[0], ("wide", wide), ("same", same)]
    assert list(TensorStore.build(tmp_path / "t", items)) == [graph for _, graph in items]


def test_an_edge_to_a_node_that_is_not_there_is_reported(tmp_path):
    wrong = tensors([1, 2], [[0, 9], [1, 0]], [4, 5])
    negative = tensors([1, 2], [[0, -1], [1, 0]], [4, 7])
    store = TensorStore.build(tmp_path / "t", [("wrong", wrong), ("negative", negative)])
    for name in ("wrong", "negative"):
        with pytest.raises(DamagedError, match="names nodes that it does not have"):
            store[name]


def test_a_store_of_this_format_opens_and_one_of_a_format_before_is_refused():
    with pytest.raises(FormatError, match=r"format before 3.*training .* writes it again"):
        len(TensorStore(DATA / "tensor-store-format-2"))
    store = TensorStore(DATA / "tensor-store-format-3")
    store.verify()
    assert store.ids == ["1", "2", "3"]
    assert [len(graph.nodes) for graph in store.get_many(store.ids)] == [len(graph.nodes) for graph in store]


def test_text_features_come_back_and_a_store_without_them_has_none(tmp_path):
    assert TensorStore.build(tmp_path / "none", ITEMS)["a"].features is None
    items = [(name, with_features(tensors, 5)) for name, tensors in ITEMS]
    store = TensorStore.build(tmp_path / "some", items)
    assert [store[name] for name, _ in items] == [tensors for _, tensors in items]
    assert store["b"] != ITEMS[1][1]
    with pytest.raises(GraphError, match="another width"):
        TensorStore.build(tmp_path / "mixed", [*items, ("d", ITEMS[0][1])])
    with pytest.raises(GraphError, match="another width"):
        TensorStore.build(store.path, [("d", ITEMS[0][1])], mode="append")
    assert TensorStore.build(store.path, [("d", items[0][1])], mode="append").ids == ["a", "b", "c", "d"]
    assert (store["d"], len(store)) == (items[0][1], 4)

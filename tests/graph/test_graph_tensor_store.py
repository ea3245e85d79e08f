"""Tensors on disk: narrow where they can be, the same when they come back."""

import dataclasses
import json
import pickle
import shutil

import numpy as np
import pytest
from graph_examples import one_sentence, whole

from pyterrier_mathamr.graph import (
    DamagedStoreError,
    DuplicateIdError,
    GraphTensors,
    NotBuiltError,
    StoreExistsError,
    StoreFormatError,
    TensorsError,
    TensorStore,
    UnknownIdError,
    Vocabulary,
    graph_tensors,
)

VOCABULARY = Vocabulary.build([whole(), one_sentence()])
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


def test_what_was_written_comes_back_by_row_and_by_id(tmp_path):
    store = TensorStore.build(tmp_path / "t", ITEMS)
    assert (len(store), store.ids) == (3, ["a", "b", "c"])
    assert list(store) == [item for _, item in ITEMS]
    assert store["b"] == ITEMS[1][1]
    assert store[-1] == ITEMS[2][1]
    assert store["a"].nodes.dtype == np.int32
    assert store["a"].relations.dtype == np.int16


def test_the_sizes_of_all_graphs_are_known_without_reading_them(tmp_path):
    store = TensorStore.build(tmp_path / "t", ITEMS)
    assert store.node_counts.tolist() == [len(item.nodes) for _, item in ITEMS]
    assert store.edge_counts.tolist() == [len(item.relations) for _, item in ITEMS]
    assert store.virtual_counts.tolist() == [7, 3, 2]


def test_small_numbers_take_two_bytes_and_half_of_the_edges_is_kept(tmp_path):
    store = TensorStore.build(tmp_path / "t", ITEMS)
    total_edges, total_nodes = int(store.edge_counts.sum()), int(store.node_counts.sum())
    assert (tmp_path / "t" / "sources.bin").stat().st_size == total_edges // 2 * 2
    assert (tmp_path / "t" / "nodes.bin").stat().st_size == total_nodes * 2


def test_a_large_number_widens_the_column_with_all_that_it_holds(tmp_path):
    wide = tensors([70_000, 1], [[0, 1], [1, 0]], [4, 5])
    store = TensorStore.build(tmp_path / "t", [ITEMS[0], ("wide", wide), ITEMS[1]])
    assert list(store) == [ITEMS[0][1], wide, ITEMS[1][1]]


def test_edges_without_mirror_images_are_kept_as_they_are(tmp_path):
    odd = tensors([1, 2], [[0, 0, 1], [1, 1, 0]], [4, 5, 7])
    same = tensors([1, 2], [[0, 1], [1, 0]], [4, 4])
    store = TensorStore.build(tmp_path / "t", [("odd", odd), ("same", same)])
    assert list(store) == [odd, same]


def test_a_store_of_nothing_is_a_store(tmp_path):
    store = TensorStore.build(tmp_path / "t", [])
    assert (len(store), store.ids, list(store)) == (0, [], [])


def test_unknown_rows_and_ids_are_errors(tmp_path):
    store = TensorStore.build(tmp_path / "t", ITEMS)
    with pytest.raises(IndexError, match="row 3"):
        store[3]
    with pytest.raises(IndexError):
        store[-4]
    with pytest.raises(UnknownIdError, match="'zz'"):
        store["zz"]


def test_a_build_that_fails_leaves_what_was_there(tmp_path):
    TensorStore.build(tmp_path / "t", ITEMS)
    with pytest.raises(DuplicateIdError, match="'a'"):
        TensorStore.build(tmp_path / "t", [ITEMS[0], ITEMS[0]], overwrite=True)
    assert TensorStore(tmp_path / "t").ids == ["a", "b", "c"]
    assert [file.name for file in tmp_path.iterdir()] == ["t"]


def test_a_store_is_replaced_only_on_demand(tmp_path):
    TensorStore.build(tmp_path / "t", ITEMS)
    with pytest.raises(StoreExistsError):
        TensorStore.build(tmp_path / "t", ITEMS[:1])
    assert TensorStore.build(tmp_path / "t", ITEMS[:1], overwrite=True).ids == ["a"]


def test_the_same_tensors_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        TensorStore.build(tmp_path / name, ITEMS)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


@pytest.mark.parametrize("name", ["nodes.bin", "targets.bin", "relations.bin", "kinds.bin"])
def test_a_file_cut_short_is_reported_on_opening(tmp_path, name):
    TensorStore.build(tmp_path / "t", ITEMS)
    file = tmp_path / "t" / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DamagedStoreError, match=name):
        TensorStore(tmp_path / "t")


def test_what_is_no_store_or_of_another_format_is_refused(tmp_path):
    with pytest.raises(NotBuiltError):
        TensorStore(tmp_path / "nothing")
    TensorStore.build(tmp_path / "t", ITEMS)
    shutil.copytree(tmp_path / "t", tmp_path / "u")
    (tmp_path / "u" / "meta.json").write_text('{"version": 7}')
    with pytest.raises(StoreFormatError, match="format 7"):
        TensorStore(tmp_path / "u")


def test_text_features_come_back_and_a_store_without_them_has_none(tmp_path):
    assert TensorStore.build(tmp_path / "none", ITEMS)["a"].features is None
    assert not (tmp_path / "none" / "features.bin").exists()
    items = [(name, with_features(tensors, 5)) for name, tensors in ITEMS]
    store = TensorStore.build(tmp_path / "some", items)
    assert [store[name] for name, _ in items] == [tensors for _, tensors in items]
    assert store["b"] != ITEMS[1][1]
    with pytest.raises(TensorsError, match="another width"):
        TensorStore.build(tmp_path / "mixed", [*items, ("d", ITEMS[0][1])])
    (tmp_path / "some" / "features.bin").write_bytes(b"")
    with pytest.raises(DamagedStoreError, match=r"features\.bin"):
        TensorStore(tmp_path / "some")


def test_a_store_of_the_first_format_is_read(tmp_path):
    TensorStore.build(tmp_path / "t", ITEMS)
    meta = json.loads((tmp_path / "t" / "meta.json").read_text())
    del meta["features"]
    (tmp_path / "t" / "meta.json").write_text(json.dumps({**meta, "version": 1}))
    assert list(TensorStore(tmp_path / "t")) == [tensors for _, tensors in ITEMS]


def test_a_store_survives_a_worker_process(tmp_path):
    store = TensorStore.build(tmp_path / "t", ITEMS)
    assert pickle.loads(pickle.dumps(store))["c"] == ITEMS[2][1]

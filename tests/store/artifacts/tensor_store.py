"""A store of the arrays of graphs."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from pyterrier_mathamr.graph import GraphTensors, TensorStore
from pyterrier_mathamr.graph.tensor_store import TENSORS

open = TensorStore
PART = 2


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    items = [(f"d{i}", _tensors(i + 1, seed)) for i in rows]
    with patch("pyterrier_mathamr.graph.tensor_store.TENSORS", replace(TENSORS, part_bytes=PART * 60)):
        TensorStore.build(path, items, mode=mode)  # type: ignore[arg-type]


def _tensors(number: int, seed: int) -> GraphTensors:
    """Three nodes, two edges and their inverses, two vectors with features."""
    return GraphTensors(
        np.array([number, number + seed, 1], dtype=np.int32),
        np.array([[0, 1, 1, 2], [1, 2, 0, 1]], dtype=np.int32),
        np.array([4, 6, 5, 7], dtype=np.int16),
        np.array([1, 2], dtype=np.int32),
        np.array([0, 1], dtype=np.int8),
        np.full((2, 4), number + seed, dtype=np.float16),
    )


def read(path: Path) -> object:
    store = TensorStore(path)
    return {
        "ids": store.ids,
        "graphs": [_shown(graph) for graph in store],
        "found": [_shown(graph) for graph in store.get_many(store.ids)],
    }


def _shown(graph: GraphTensors) -> list[Any]:
    return [getattr(graph, name).tolist() for name in graph.__slots__ if getattr(graph, name) is not None]

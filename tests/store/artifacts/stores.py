"""Stores of graphs, of their arrays, of posts, and of the state of a training run."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from artifact_modules import Artifact

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.engine import posts
from pyterrier_mathamr.graph import GraphStore, GraphTensors, MathAMRGraph, TensorStore
from pyterrier_mathamr.graph.tensor_store import TENSORS
from pyterrier_mathamr.model.checkpoints import Checkpoint, TrainingState
from pyterrier_mathamr.posts import Document


class Graphs(Artifact, name="graph_store"):
    KIND = "pyterrier_mathamr.graph:GraphStore"

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        graphs = (
            {"docno": f"d{i}", "graph": MathAMRGraph(decode_penman(f"(a / thing-{seed} :quant {i})"), (), f"d{i}")}
            for i in numbers
        )
        GraphStore(path).indexer(mode, shard_size=2).index(graphs)  # type: ignore[arg-type]

    def read(self, path: Path) -> object:
        store = GraphStore(path)
        ids = store.ids()
        joined = store.loader()(pd.DataFrame({"docno": ids}))
        return {
            "graphs": [(row["docno"], row["graph"].to_penman()) for row in store.get_corpus_iter()],
            "found": [graph.to_penman() for graph in store.get_many(ids)],
            "joined": [graph.to_penman() for graph in joined["graph"]] if ids else [],
            "absent": "absent" in store,
        }


class Tensors(Artifact, name="tensor_store"):
    KIND = "pyterrier_mathamr.graph:TensorStore"

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        items = [(f"d{i}", self._tensors(i + 1, seed)) for i in numbers]
        with patch("pyterrier_mathamr.graph.tensor_store.TENSORS", replace(TENSORS, part_bytes=2 * 60)):
            TensorStore.build(path, items, mode=mode)  # type: ignore[arg-type]

    def _tensors(self, number: int, seed: int) -> GraphTensors:
        """Three nodes, two edges and their inverses, two vectors with features."""
        return GraphTensors(
            np.array([number, number + seed, 1], dtype=np.int32),
            np.array([[0, 1, 1, 2], [1, 2, 0, 1]], dtype=np.int32),
            np.array([4, 6, 5, 7], dtype=np.int16),
            np.array([1, 2], dtype=np.int32),
            np.array([0, 1], dtype=np.int8),
            np.full((2, 4), number + seed, dtype=np.float16),
        )

    def read(self, path: Path) -> object:
        store = TensorStore(path)
        return {
            "ids": store.ids,
            "graphs": [self._shown(graph) for graph in store],
            "found": [self._shown(graph) for graph in store.get_many(store.ids)],
        }

    def _shown(self, graph: GraphTensors) -> list[Any]:
        return [getattr(graph, name).tolist() for name in graph.__slots__ if getattr(graph, name) is not None]


class Posts(Artifact, name="post_store"):
    KIND = "pyterrier_mathamr.engine.posts:PostStore"

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        posts._PART = 2
        documents = (Document(f"d{i}", f"Title {i}", f"text {seed}") for i in numbers)
        posts.PostStore(path).write(documents, mode, {"seed": seed})  # type: ignore[arg-type]

    def read(self, path: Path) -> object:
        return list(posts.PostStore(path))


class Training(Artifact, name="training_checkpoint"):
    """One part, replaced as a whole at each save."""

    KIND = "pyterrier_mathamr.model.checkpoints:Checkpoint"
    MODES = ("create", "overwrite")
    RUN = {"pairs": "x"}  # noqa: RUF012

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        tensors = {f"d{i}": torch.full((4,), float(seed * 1000 + i)) for i in numbers}
        Checkpoint(path).save(self.RUN, TrainingState(tensors, {}, {}, ()))

    def read(self, path: Path) -> object:
        found = Checkpoint(path).read(self.RUN)
        return found and {name: tensor.tolist() for name, tensor in found.model.items()}

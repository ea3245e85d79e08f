"""The arrays of the training graphs, made once for a run and then read from disk by memory map.

::

    <checkpoint>/tensors-<16 digits>.mathamr    a TensorStore; the digits stand for vocabulary, conditions and ids

Where there is no checkpoint, the store is a temporary one, and gone with the process.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, TensorStore, Vocabulary
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.tensors import stream_tensors
from pyterrier_mathamr.model.variants.text import TextEncoder

from .distributed import Ranks


class Graphs(Protocol):
    """Graphs by id: a ``GraphStore`` or a mapping."""

    def __getitem__(self, key: str, /) -> MathAMRGraph: ...

    def __contains__(self, key: object, /) -> bool: ...


class Tensors(Protocol):
    """The arrays of graphs by id: a ``TensorStore``."""

    def __getitem__(self, key: str, /) -> GraphTensors: ...

    def get_many(self, ids: Sequence[str], /) -> list[GraphTensors]:
        """Read graphs in the order of ``ids``."""
        ...


class TrainingFiles:
    """Where a run keeps its arrays.

    Args:
        checkpoint: the folder of the run; a temporary one where not given.
        ranks: the processes that train together; the first makes the arrays.
    """

    def __init__(self, checkpoint: Path | None, ranks: Ranks) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._ranks = ranks
        if checkpoint is None and ranks.rank == 0:
            self._temporary = tempfile.TemporaryDirectory(prefix="mathamr-training-")
        self._folder = ranks.first(lambda: checkpoint or Path(self._temporary.name))  # type: ignore[union-attr]

    def tensors(
        self,
        names: Sequence[str],
        graphs: Graphs,
        vocabulary: Vocabulary,
        config: MathAMRConfig,
        verbose: bool,
        text: TextEncoder | None = None,
    ) -> TensorStore:
        """Open the arrays of some graphs; they are made where they are not there.

        Args:
            names: distinct ids.
            graphs: the graph of each.
            vocabulary: gives the ids of labels and relations.
            config: the conditions of the graphs.
            verbose: show progress.
            text: the encoder of a model with text features.
        """
        conditions: list[str] = [config.formulas, config.virtual_nodes, config.auxiliary]
        if config.features == "text":
            conditions += [text.name if text else config.text_model]
        digest = hashlib.sha256(json.dumps([vocabulary.hash, conditions, list(names)]).encode()).hexdigest()
        store = TensorStore(self._folder / f"tensors-{digest[:16]}.mathamr")

        def build() -> None:
            if store.built():
                store.verify()  # a wrong byte would be trained on, or end a GPU
                return
            made = stream_tensors((graphs[name] for name in names), vocabulary, config, len(names), verbose, text)
            TensorStore.build(store.path, zip(names, made, strict=True))

        self._ranks.first(build)
        return store

    def __enter__(self) -> TrainingFiles:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()

"""The arrays of the training graphs, made once for a run and then read from disk by memory map.

::

    <checkpoint>/tensors-<16 digits>/    a TensorStore; the digits stand for vocabulary, conditions and ids

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

from .config import MathAMRConfig
from .ranks import Ranks
from .tensors import stream_tensors
from .text import TextEncoder


class Graphs(Protocol):
    """Graphs by id: a ``GraphStore`` or a mapping."""

    def __getitem__(self, key: str, /) -> MathAMRGraph: ...

    def __contains__(self, key: object, /) -> bool: ...


class Tensors(Protocol):
    """The arrays of graphs by id: a ``TensorStore`` or a mapping."""

    def __getitem__(self, key: str, /) -> GraphTensors: ...


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
        path = self._folder / f"tensors-{digest[:16]}"

        def build() -> None:
            if not path.exists():
                made = stream_tensors((graphs[name] for name in names), vocabulary, config, len(names), verbose, text)
                TensorStore.build(path, zip(names, made, strict=True))

        self._ranks.first(build)
        return TensorStore(path)

    def __enter__(self) -> TrainingFiles:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()

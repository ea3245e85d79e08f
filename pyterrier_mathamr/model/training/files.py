"""The graphs and tensors that a run reads.

::

    <checkpoint>/tensors-<16 digits>.mathamr    a TensorStore of all graphs, built once and then memory-mapped; the
                                                digits identify vocabulary, conditions and ids
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pyterrier_mathamr._common.frames import listed
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, TensorStore, Vocabulary
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.inputs.tensors import stream_tensors
from pyterrier_mathamr.model.loop import ProcessGroup
from pyterrier_mathamr.model.variants.text import TextEncoder


class Graphs(Protocol):
    """Graphs by id: a ``GraphStore`` or a mapping."""

    def __getitem__(self, key: str, /) -> MathAMRGraph: ...

    def __contains__(self, key: object, /) -> bool: ...


class Tensors(Protocol):
    """The tensors of graphs by id: a ``TensorStore``."""

    def __getitem__(self, key: str, /) -> GraphTensors: ...

    def get_many(self, ids: Sequence[str], /) -> list[GraphTensors]:
        """Read graphs in the order of ``ids``."""
        ...


def require_graphs(names: Iterable[str], graphs: Graphs) -> None:
    """Raise TrainingError if posts have no graph."""
    if missing := [name for name in names if name not in graphs]:
        posts = f"{len(missing)} post(s) of the pairs have no graph: {listed(missing)}"
        raise TrainingError(f"{posts}. Build their graphs first.")


def open_tensors(
    folder: Path,
    group: ProcessGroup,
    names: Sequence[str],
    graphs: Graphs,
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    text: TextEncoder | None = None,
    verbose: bool = False,
) -> TensorStore:
    """Open the tensors of some graphs, after building them if necessary."""
    conditions: list[str] = [config.formulas, config.virtual_nodes, config.auxiliary]
    if config.text.features == "text":
        conditions += [text.name if text else config.text.text_model]
    if config.text.formula_vectors != "none":
        conditions += [config.text.formula_vectors]
    digest = hashlib.sha256(json.dumps([vocabulary.hash, conditions, list(names)]).encode()).hexdigest()
    store = TensorStore(folder / f"tensors-{digest[:16]}.mathamr")

    def build() -> None:
        if store.built():
            store.verify()  # a wrong index would spoil training or crash a GPU
            return
        made = stream_tensors(
            (graphs[name] for name in names),
            vocabulary,
            config,
            len(names),
            verbose and group.rank == 0,
            text,
        )
        TensorStore.build(store.path, zip(names, made, strict=True))

    group.first(build)
    return store

"""The files of a run, and what it reads its graphs from.

::

    <checkpoint>/tensors-<16 digits>.mathamr    a TensorStore of all graphs, built once and then memory-mapped; the
                                                digits identify vocabulary, conditions and ids
    <checkpoint>/state, history.json, .csv      the training state, see checkpoint.py
    <checkpoint>/losses.png                     with the extra ``plots``

Without a checkpoint there are only the tensors, in a temporary folder.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from pyterrier_mathamr._common.frames import listed
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, TensorStore, Vocabulary
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.inputs.tensors import stream_tensors
from pyterrier_mathamr.model.variants.text import TextEncoder
from pyterrier_mathamr.store import writer_lock

from .checkpoint import Checkpoint, TrainingState
from .distributed import ProcessGroup
from .history import PICTURE, EpochRecord, can_draw, draw_losses


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


class RunFiles:
    """The folder of a run, locked while the context is open."""

    def __init__(self, checkpoint: str | Path | None, group: ProcessGroup) -> None:
        self._checkpoint = None if checkpoint is None else Checkpoint.of(Path(checkpoint))
        self._group, self._open, self._saved = group, ExitStack(), 0

    def __enter__(self) -> RunFiles:
        folder = Path() if self._checkpoint is None else self._checkpoint.folder
        if self._group.rank == 0:
            if self._checkpoint is None:
                folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="mathamr-training-")))
            else:
                self._open.enter_context(writer_lock(folder.absolute()))
        self._folder = self._group.first(lambda: folder)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Unlock the folder, and remove a temporary one."""
        if self._checkpoint is not None and self._saved and isinstance(error, KeyboardInterrupt):
            error.add_note(f"the training state after epoch {self._saved} is kept in {self._checkpoint.folder}")
        self._open.close()

    def tensors(
        self,
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
        store = TensorStore(self._folder / f"tensors-{digest[:16]}.mathamr")

        def build() -> None:
            if store.built():
                store.verify()  # a wrong index would spoil training or crash a GPU
                return
            made = stream_tensors(
                (graphs[name] for name in names),
                vocabulary,
                config,
                len(names),
                verbose and self._group.rank == 0,
                text,
            )
            TensorStore.build(store.path, zip(names, made, strict=True))

        self._group.first(build)
        return store

    def state(self, run: Mapping[str, Any]) -> TrainingState | None:
        """Read the training state, if there is one; see :meth:`Checkpoint.read`."""
        state = None if self._checkpoint is None else self._checkpoint.read(run)
        self._saved = len(state.history) if state else 0
        return state

    def save(self, run: Mapping[str, Any], state: TrainingState) -> None:
        """Save the training state, if there is a checkpoint; see :meth:`Checkpoint.save`."""
        if self._checkpoint is not None and self._group.rank == 0:
            self._checkpoint.save(run, state)
            self._saved = len(state.history)

    def draw(self, history: Sequence[EpochRecord]) -> None:
        """Draw the losses, if there is a checkpoint and matplotlib is installed."""
        if self._checkpoint is not None and self._group.rank == 0 and can_draw():
            draw_losses(history, self._folder / PICTURE)

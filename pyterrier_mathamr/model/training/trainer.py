"""Contrastive training on question-answer pairs (MathAMR+, section 3.4).

Same data, configuration and number of threads give the same bytes on a CPU of the same kind (docs/exactness.md): the
shuffle, masks and drops of an epoch come from a generator seeded by (seed, epoch, batch), so a run that was killed goes
on to the same result.

Started by ``torchrun``, several processes train one model on batches that are as many times larger; the first of them
writes the checkpoint, in a folder that all of them see::

    torchrun --nproc-per-node 2 -m pyterrier_mathamr train GRAPH_STORE SOURCES -o MODEL
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from pyterrier_mathamr.graph import Vocabulary
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.devices import choose_device
from pyterrier_mathamr.model.errors import MissingGraphError, TrainingError
from pyterrier_mathamr.model.mathamr import MathAMR
from pyterrier_mathamr.model.variants.score_weights import trained_config
from pyterrier_mathamr.model.variants.start import first_encoder, starting_weights
from pyterrier_mathamr.model.variants.text import TextEncoder

from .checkpoint import Checkpoint, Snapshot
from .curve import CURVE, can_draw, draw_losses
from .distributed import Ranks, local_device
from .history import EpochRecord
from .pairs import Pair
from .training_data import TrainingData
from .training_files import Graphs, Tensors, TrainingFiles
from .training_loop import TrainingRun


class Trainer:
    """Train a model from pairs and graphs.

    Args:
        config: model and training options; the paper's experiments where not given.
        device: ``cpu``, ``cuda``, …; the best there is where not given.
        text: the text encoder for ``features="words"`` or ``"text"``, such as one with a cache; the configuration's
            ``text_model`` where not given.

    Attributes:
        history: one :class:`EpochRecord` for each epoch of the last ``fit``.

    Example::

        trainer = mathamr.Trainer(mathamr.MathAMRConfig(beta=0.3))
        model = trainer.fit(pairs, graph_store, checkpoint="runs/first")
        model.save("my-model")
    """

    def __init__(
        self, config: MathAMRConfig | None = None, *, device: str | None = None, text: TextEncoder | None = None
    ) -> None:
        self.config, self.text = config or MathAMRConfig(), text
        self.device = choose_device(local_device(device))
        self.history: tuple[EpochRecord, ...] = ()

    def __repr__(self) -> str:
        return f"Trainer({self.config!r}, device={str(self.device)!r})"

    def fit(
        self,
        pairs: Iterable[Pair] | pd.DataFrame,
        graphs: Graphs,
        *,
        validation: Iterable[Pair] | pd.DataFrame | None = None,
        first: Iterable[Pair] | pd.DataFrame | None = None,
        negatives: Mapping[str, Sequence[str]] | None = None,
        never: Mapping[str, Iterable[str]] | None = None,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        start: MathAMR | None = None,
        snapshot_every: float = 600.0,
        verbose: bool = True,
    ) -> MathAMR:
        """Train, and give the model of the epoch with the lowest validation loss.

        Args:
            pairs: (question id, answer id), or a frame with ``qid`` and ``docno``.
            graphs: the graph of every id in the pairs.
            validation: pairs for early stopping; where not given, ``validation_share`` of the questions.
            first: pairs of other domains, trained on in the first ``first_epochs`` epochs in place of ``pairs``.
            negatives: hard negatives by question id, of which ``hard_negatives`` are drawn for each pair and epoch.
            never: by question id, what is no negative besides its known answers, such as those of linked questions.
            checkpoint: a folder for the state, the history, the arrays of the graphs and, with the extra ``plots``, a
                picture of the losses; a run found there goes on to the same result, wherever it was killed.
            fresh: begin anew, whatever run is found there.
            start: a model whose vocabulary and weights training starts from.
            snapshot_every: seconds after which the state is also saved within an epoch.
            verbose: show a progress bar for each epoch.

        Returns:
            The trained model, with the vocabulary of ``start``, or else one built from the training graphs.

        Raises:
            TrainingError: too few pairs; MissingGraphError: posts without graph; ConfigError: an option lacks its data;
            NonFiniteLossError: a loss is no number; UnfinishedJobError: the folder holds another run; LockedError:
            another process trains there; DamagedError: its state was changed; WriteError: it cannot be written.
        """
        data = TrainingData.read(self.config, pairs, validation, first, negatives, never)
        names = _with_graphs(graphs, data.posts())
        folder = None if checkpoint is None else Path(checkpoint)
        text = self.text or TextEncoder(self.config.text_model, device=str(self.device), verbose=verbose)
        kept = None if folder is None else Checkpoint.of(folder)
        with (
            Ranks(self.device) as ranks,
            kept.held() if kept and ranks.rank == 0 else nullcontext(),
            TrainingFiles(folder, ranks) as files,
        ):
            vocabulary = start.vocabulary if start else ranks.first(lambda: self._vocabulary(graphs, data.trained()))
            identity = _run_identity(self.config, vocabulary, data, start, ranks.size)
            snapshot = None if kept is None or fresh else kept.read(identity)

            def tensors() -> Tensors:
                return files.tensors(names, graphs, vocabulary, self.config, verbose and ranks.rank == 0, text)

            weights = start.weights() if start else None
            if start is None and snapshot is None:
                weights = self._weights(ranks, graphs, tensors, vocabulary, data.trained(), text)
            run = TrainingRun(self.config, vocabulary, self.device, weights, ranks=ranks, verbose=verbose)
            try:
                for snapshot in run.epochs(data, tensors, snapshot, snapshot_every):  # noqa: B020 - goes on from it
                    self.history = snapshot.history
                    if kept is not None and ranks.rank == 0:
                        kept.save(identity, snapshot)
            except KeyboardInterrupt as error:
                if snapshot is not None:
                    error.add_note(f"the training state after epoch {len(snapshot.history)} is kept in {folder}")
                raise
        if folder is not None and snapshot is not None and ranks.rank == 0 and can_draw():
            draw_losses(snapshot.history, folder / CURVE)
        return self._model(snapshot, vocabulary)

    def _model(self, snapshot: Snapshot | None, vocabulary: Vocabulary) -> MathAMR:
        """Make the model of the best epoch."""
        if snapshot is None:
            raise TrainingError("no epoch was trained.")
        self.history, best = snapshot.history, snapshot.best
        weights = {
            name.removeprefix("encoder."): tensor for name, tensor in best.items() if name.startswith("encoder.")
        }
        return MathAMR(trained_config(self.config, best), vocabulary, weights, text=self.text)

    def _vocabulary(self, graphs: Graphs, names: Sequence[str]) -> Vocabulary:
        """Count the labels of the training graphs, each post once; validation posts stay unseen."""
        return Vocabulary.build(
            (graphs[name] for name in names),
            size=self.config.vocabulary_size,
            min_number_count=self.config.min_number_count,
            min_role_count=self.config.min_role_count,
        )

    def _weights(
        self,
        ranks: Ranks,
        graphs: Graphs,
        tensors: Callable[[], Tensors],
        vocabulary: Vocabulary,
        names: Sequence[str],
        text: TextEncoder,
    ) -> dict[str, Tensor] | None:
        """Make the weights of a model that starts from a text encoder, seen on the training posts alone."""
        config = self.config
        if config.features == "lookup":
            return None
        made = tensors() if config.features == "text" or config.word_residual else None
        arrays = () if made is None else (made[name] for name in names)
        trained = (graphs[name] for name in names)
        begun = ranks.first(lambda: starting_weights(config, vocabulary, trained, arrays, text))
        return {**first_encoder(config, vocabulary).state_dict(), **begun}


def _with_graphs(graphs: Graphs, names: list[str]) -> list[str]:
    """Give the names, or refuse posts without a graph, before anything is trained."""
    missing = [name for name in names if name not in graphs]
    if missing:
        raise MissingGraphError(missing)
    return names


def _run_identity(
    config: MathAMRConfig,
    vocabulary: Vocabulary,
    data: TrainingData,
    start: MathAMR | None,
    processes: int,
) -> dict[str, Any]:
    """Say what a run is, so that a checkpoint is never continued by another one."""
    return {
        **config.choices(),
        "vocabulary": vocabulary.hash,
        "pairs": data.digest,
        "number of processes": processes,
        "starting model": start.identity if start else "",
    }

"""Contrastive training on question-answer pairs (MathAMR+, section 3.4).

On CPUs of the same kind, the same data, configuration and number of threads give the same bytes (docs/exactness.md):
the shuffle, masks and drops of an epoch come from generators seeded by (seed, epoch, batch), so an interrupted run
resumes to the same result.

Started by ``torchrun``, several processes train one model on correspondingly larger batches; the first one writes the
checkpoint, in a folder that all of them see::

    torchrun --nproc-per-node 2 -m pyterrier_mathamr train GRAPH_STORE SOURCES -o MODEL
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from pyterrier_mathamr.graph import Vocabulary
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.inputs.tensors import vocabulary_of
from pyterrier_mathamr.model.mathamr import MathAMR
from pyterrier_mathamr.model.variants.score_weights import trained_config
from pyterrier_mathamr.model.variants.starting_weights import random_network, starting_weights
from pyterrier_mathamr.model.variants.text import TextEncoder

from .checkpoint import TrainingState
from .data import Pairs, TrainingData
from .distributed import ProcessGroup, local_device
from .files import Graphs, RunFiles, Tensors, require_graphs
from .history import EpochRecord
from .training_loop import TrainingLoop


class Trainer:
    """Train a model from pairs and graphs.

    Args:
        config: model and training options; those of the paper's experiments if not given.
        device: ``cpu``, ``cuda``, …; a GPU if there is one and none is given.
        text: the text encoder for ``features="words"`` or ``"text"``, such as one with a cache; the configuration's
            ``text_model`` if not given.

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
        self.device = local_device(device)
        self.history: tuple[EpochRecord, ...] = ()

    def __repr__(self) -> str:
        return f"Trainer({self.config!r}, device={str(self.device)!r})"

    def fit(
        self,
        pairs: Pairs,
        graphs: Graphs,
        *,
        validation: Pairs | None = None,
        first: Pairs | None = None,
        negatives: Mapping[str, Sequence[str]] | None = None,
        never: Mapping[str, Iterable[str]] | None = None,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        start: MathAMR | None = None,
        save_every: float = 600.0,
        verbose: bool = True,
    ) -> MathAMR:
        """Train, and return the model of the epoch with the lowest validation loss.

        Args:
            pairs: (question id, answer id), or a frame with ``qid`` and ``docno``.
            graphs: the graph of every id in the pairs.
            validation: pairs for early stopping; ``validation_share`` of the questions if not given.
            first: pairs of other domains, trained on in the first ``first_epochs`` epochs in place of ``pairs``.
            negatives: hard negatives by question id, of which ``hard_negatives`` are drawn for each pair and epoch.
            never: by question id, documents that are no negatives besides its known answers, such as those of linked
                questions.
            checkpoint: a folder for the training state, the history, the tensors of the graphs and, with the extra
                ``plots``, a picture of the losses. A run that was interrupted there is resumed, to the same result.
            fresh: discard a run that was interrupted at ``checkpoint``.
            start: a model whose vocabulary and weights training starts from.
            save_every: seconds after which the training state is also saved within an epoch.
            verbose: show a progress bar for each epoch.

        Returns:
            The trained model, with the vocabulary of ``start``, or else one built from the training graphs.

        Raises:
            TrainingError: too few pairs, posts without a graph, or a loss that is NaN or infinite. ConfigError: an
            option lacks its data. UnfinishedJobError: the folder holds another run. LockedError: another process
            trains there. DamagedError: the training state was changed. WriteError: the folder cannot be written.
        """
        data = TrainingData.read(self.config, pairs, validation, first, negatives, never)
        require_graphs(data.posts(), graphs)
        text = self.text or TextEncoder(self.config.text.text_model, device=str(self.device), verbose=verbose)
        with ProcessGroup(self.device) as group, RunFiles(checkpoint, group) as files:
            vocabulary = start.vocabulary if start else group.first(lambda: self._vocabulary(graphs, data.trained()))
            run = self._identity(vocabulary, data, start, group.size)
            state = None if fresh else files.state(run)
            tensors = functools.partial(files.tensors, data.posts(), graphs, vocabulary, self.config, text, verbose)
            weights = None if state else self._weights(start, group, graphs, tensors, vocabulary, data.trained(), text)

            def save(state: TrainingState) -> None:
                self.history = state.history
                files.save(run, state)

            loop = TrainingLoop(self.config, vocabulary, self.device, weights, group=group, verbose=verbose)
            state = loop.train(data, tensors, state, save, save_every)
            files.draw(state.history)
        return self._model(state, vocabulary)

    def _vocabulary(self, graphs: Graphs, names: Sequence[str]) -> Vocabulary:
        """Count the labels of the training graphs, each post once; validation posts remain unseen."""
        return vocabulary_of((graphs[name] for name in names), self.config)

    def _identity(
        self, vocabulary: Vocabulary, data: TrainingData, start: MathAMR | None, processes: int
    ) -> dict[str, Any]:
        """Identify the run, so that no other run resumes from its checkpoint."""
        return {
            **self.config.choices(),
            "vocabulary": vocabulary.hash,
            "pairs": data.digest,
            "number of processes": processes,
            "starting model": start.identity if start else "",
        }

    def _weights(
        self,
        start: MathAMR | None,
        group: ProcessGroup,
        graphs: Graphs,
        tensors: Callable[[], Tensors],
        vocabulary: Vocabulary,
        names: Sequence[str],
        text: TextEncoder,
    ) -> dict[str, Tensor] | None:
        """Return the weights of ``start``, or compute those that a text encoder provides, from training posts."""
        config = self.config
        if start or config.text.features == "lookup":
            return start.weights() if start else None
        made = tensors() if config.text.features == "text" or config.text.word_residual else None
        arrays = () if made is None else (made[name] for name in names)
        trained = (graphs[name] for name in names)
        begun = group.first(lambda: starting_weights(config, vocabulary, trained, arrays, text))
        return {**random_network(config, vocabulary).state_dict(), **begun}

    def _model(self, state: TrainingState, vocabulary: Vocabulary) -> MathAMR:
        """Build the model of the best epoch."""
        self.history, prefix = state.history, "encoder."
        weights = {name.removeprefix(prefix): tensor for name, tensor in state.best.items() if name.startswith(prefix)}
        return MathAMR(trained_config(self.config, state.best), vocabulary, weights, text=self.text)

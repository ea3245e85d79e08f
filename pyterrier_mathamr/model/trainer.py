"""Contrastive training on question-answer pairs (MathAMR+, section 3.4).

On CPUs of the same kind, the same data, configuration and number of threads give the same bytes (docs/how-it-works.md):
the shuffle, masks and drops of an epoch come from generators seeded by (seed, epoch, batch), so an interrupted run
resumes to the same result.

Started by ``torchrun``, several processes train one model on correspondingly larger batches; the first one writes the
checkpoint, in a folder that all of them see::

    torchrun --nproc-per-node 2 -m pyterrier_mathamr train GRAPH_STORE SOURCES -o MODEL

A batch, and the share of each process, with about the same number of nodes each::

    graphs  [ B questions | B answers | H hard negatives ]
              └────── nodes masked, edges dropped ─────┘
    work    [ process 0      | process 1      | … ]
              └ parts of at most ``node_budget`` nodes ──encode──▶ rows of all ──losses──▶ gradients

The tensors of all graphs are built once, in the folder of the run (``tensors-<16 digits>.mathamr``; the digits identify
vocabulary, conditions and ids), and then memory-mapped. Validation batches have no noise, so their losses are
comparable between runs.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import listed
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import MASK_ID, GraphBatch, TensorStore, Vocabulary, collate

from .checkpoints import EpochRecord
from .config import MathAMRConfig, TrainingOptions
from .encoding import tensors_of, vocabulary_of
from .loop import ProcessGroup, RunFolder, TrainingLoop, Validation, local_device, prefetch
from .losses import Contrast, ContrastiveLoss, trained_config
from .mathamr import MathAMR
from .networks import random_network, starting_weights
from .pairs import (
    Pair,
    PairAnswers,
    PairBatch,
    PairGraphs,
    Pairs,
    TrainingData,
    batches_of,
    generator_of,
    require_graphs,
)
from .text_encoder import TextEncoder


class Trainer:
    """Train a model from pairs and graphs.

    Args:
        config: model and training options; by default the paper's experiments.
        device: ``cpu``, ``cuda``, …; by default a GPU if there is one.
        text: the text encoder for ``features="words"`` or ``"text"``, such as one with a cache; by default the
            configuration's ``text_model``.

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
        graphs: PairGraphs,
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
            validation: pairs for early stopping; by default ``validation_share`` of the questions.
            first: pairs of other domains, trained on in the first ``first_epochs`` epochs instead of ``pairs``.
            negatives: hard negatives by question id; ``hard_negatives`` are drawn for each pair and epoch.
            never: documents by question id that are not negatives, in addition to its known answers, such as the
                answers of linked questions.
            checkpoint: a folder for the training state, the history, the tensors of the graphs and, with the extra
                ``plots``, a picture of the losses. A run that was interrupted there is resumed, to the same result.
            fresh: discard a run that was interrupted at ``checkpoint``.
            start: a model that provides the vocabulary and the initial weights.
            save_every: seconds after which the training state is also saved within an epoch.
            verbose: show a progress bar for each epoch.

        Returns:
            The trained model, with the vocabulary of ``start``, or else one built from the training graphs.

        Raises:
            TrainingError: too few pairs, posts without a graph, or a loss that is NaN or infinite. ConfigError: an
            option lacks its data. UnfinishedJobError: the folder holds another run. WriteError: another process
            trains there. DamagedError: the training state was changed. WriteError: the folder cannot be written.
        """
        config, data = self.config, TrainingData.read(self.config, pairs, validation, first, negatives, never)
        require_graphs(data.posts(), graphs)
        text = self.text or TextEncoder(config.text.text_model, device=str(self.device), verbose=verbose)
        names = data.trained()  # validation posts remain unseen by the vocabulary and the starting weights
        with ProcessGroup(self.device) as group, RunFolder(checkpoint, group) as folder:
            if start:
                vocabulary = start.vocabulary
            else:
                vocabulary = group.first(lambda: vocabulary_of((graphs[name] for name in names), config))
            run = {
                **config.choices(),
                "vocabulary": vocabulary.hash,
                "pairs": data.digest,
                "number of processes": group.size,
                "starting model": start.identity if start else "",
            }
            state = folder.begin(run, fresh=fresh)
            tensors = functools.partial(
                open_tensors, folder.path, group, data.posts(), graphs, vocabulary, config, text, verbose
            )
            weights = start.weights() if start and state is None else None
            if state is None and start is None and config.text.features != "lookup":
                stored = tensors() if config.text.features == "text" or config.text.word_residual else None
                arrays = () if stored is None else (stored[name] for name in names)
                trained = (graphs[name] for name in names)
                initial = group.first(lambda: starting_weights(config, vocabulary, trained, arrays, text))
                weights = {**random_network(config, vocabulary).state_dict(), **initial}
            training = PairTraining(config, vocabulary, data, group, weights)
            loop = training.loop(verbose)
            try:
                if state is None or not loop.finished(state.history):
                    training.tensors = tensors()
                state = loop.train(folder, save_every)
            finally:
                self.history = loop.history
            folder.draw(state.history)
        prefix = "encoder."
        best = {name.removeprefix(prefix): tensor for name, tensor in state.best.items() if name.startswith(prefix)}
        return MathAMR(trained_config(config, state.best), vocabulary, best, text=self.text)


def open_tensors(
    folder: Path,
    group: ProcessGroup,
    names: Sequence[str],
    graphs: PairGraphs,
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    text: TextEncoder | None = None,
    verbose: bool = False,
) -> TensorStore:
    """Open the tensors of some graphs, after building them if necessary."""
    conditions: list[str] = [config.formulas, config.virtual_nodes, config.auxiliary]
    if config.text.features == "text":
        conditions += [text.name if text else config.text.text_model]
    digest = hashlib.sha256(json.dumps([vocabulary.hash, conditions, list(names)]).encode()).hexdigest()
    store = TensorStore(folder / f"tensors-{digest[:16]}.mathamr")

    def build() -> None:
        if store.built():
            store.verify()  # a wrong index would spoil training or crash a GPU
            return
        chosen, shown = (graphs[name] for name in names), verbose and group.rank == 0
        tensors = tensors_of(chosen, vocabulary, config, text, total=len(names), verbose=shown)
        TensorStore.build(store.path, zip(names, tensors, strict=True))

    group.first(build)
    return store


class PairTraining:
    """A network, its loss and its optimizer: how a batch of pairs becomes gradients."""

    def __init__(
        self,
        config: MathAMRConfig,
        vocabulary: Vocabulary,
        data: TrainingData,
        group: ProcessGroup,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.config, self.data, self.group, self.device = config, data, group, group.device
        self.tensors: TensorStore  # set before the first batch is made
        encoder = random_network(config, vocabulary)
        if weights is not None:
            encoder.load_state_dict(dict(weights))
        self.encoder, self.loss = encoder.to(self.device), ContrastiveLoss(config).to(self.device)
        self.network = nn.ModuleDict({"encoder": self.encoder, "loss": self.loss})

    def loop(self, verbose: bool = False) -> TrainingLoop[PairBatch, TrainingBatch]:
        options, size = self.config.training, self.group.size
        optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=True
        )
        return TrainingLoop(
            self.network,
            optimizer,
            lambda epoch: self.data.batches(self.config, epoch, size),
            self.gradients,
            epochs=options.epochs,
            make=lambda item, epoch, number: self._make(item, generator_of(options.seed, epoch, number)),
            size=lambda batch: len(batch.pairs),
            rate=self._rate,
            clip=options.clip,
            validate=self._validate,
            patience=options.patience,
            describe=lambda batch: f"its pairs (question, answer): {listed(batch.pairs)}",
            group=self.group,
            verbose=verbose,
        )

    def _rate(self, epoch: int, number: int, batches: int) -> float:
        options = self.config.training
        done = ((epoch - 1) * batches + number) / (options.epochs * batches)
        low, high = options.min_learning_rate, options.learning_rate
        return low + (high - low) * (1 + math.cos(math.pi * done)) / 2

    def _make(self, batch: PairBatch, noise: torch.Generator | None = None) -> TrainingBatch:
        options, group = self.config.training, self.group
        return make_batch(batch, self.tensors, self.data.answers, options, noise, group.rank, group.size)

    def gradients(self, batch: TrainingBatch) -> float:
        """Compute the loss of a batch and the gradients of all parameters."""
        whole = len(batch.parts) == 1  # else each part is encoded again, for its gradient
        with torch.set_grad_enabled(whole):
            encoded = [self._encode(part) for part in batch.parts]
        rows = self._gather([part.detach() for part in encoded], batch).requires_grad_()
        loss: Tensor = self.loss(batch.contrast(rows))
        value = loss.item()
        if not math.isfinite(value):
            return value
        loss.backward()  # type: ignore[no-untyped-call]
        self.group.divide_gradients(self.network.parameters())
        first = sum(batch.rows[: self.group.rank])
        for part, part_rows in zip(batch.parts, encoded, strict=True):
            with_gradient = part_rows if whole else self._encode(part)
            with_gradient.backward(rows.grad[first : first + len(part_rows)])  # type: ignore[index, no-untyped-call]
            first += len(part_rows)
        self.group.sum_gradients(self.network.parameters())
        return value

    def _encode(self, graphs: GraphBatch) -> Tensor:
        graphs = graphs.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.training.precision == "bf16"):
            rows: Tensor = self.encoder(graphs)
        return rows.float()

    def _gather(self, encoded: list[Tensor], batch: TrainingBatch) -> Tensor:
        """Concatenate the rows of all graphs of a batch, including other processes': float32 ``[r, d]``."""
        none = torch.zeros(0, self.config.projection, device=self.device)
        return self.group.gather(torch.cat([none, *encoded]), batch.rows)

    def _validate(self, mean: float) -> Validation:
        # without validation pairs, the training loss decides
        whole, maxsim, document = self.held_losses() if len(self.data.held) > 1 else (mean, mean, mean)
        deciding = {"loss": whole, "maxsim": maxsim, "document": document}[self.config.training.stop_by]
        return Validation(whole, deciding, maxsim, document, self.loss.temperature.item())

    def held_losses(self) -> tuple[float, float, float]:
        """Measure the mean loss of the validation pairs, without noise: the whole, and both parts unweighted."""
        batches = batches_of(self.data.held, self.config.training.batch_size * self.group.size)
        losses, beta = [], self.loss.beta
        for batch in prefetch(lambda pairs: self._make((pairs, [])), batches):
            contrast = batch.contrast(self._gather([self._encode(part) for part in batch.parts], batch))
            maxsim, document = self.loss.maxsim(contrast).item(), self.loss.document(contrast).item()
            losses.append((beta * maxsim + (1 - beta) * document, maxsim, document))
        sizes = list(map(len, batches))
        whole, maxsim, document = (
            sum(map(operator.mul, part, sizes)) / sum(sizes) for part in zip(*losses, strict=True)
        )
        return whole, maxsim, document


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """B pairs and H hard negatives."""

    pairs: list[Pair]  # of all processes
    others: list[str]  # the hard negatives
    graphs: GraphBatch  # all graphs, on the CPU, in the order of the module's diagram
    allowed: Tensor  # bool [B, B + H], the documents that may be negatives of each question
    parts: tuple[GraphBatch, ...]  # the graphs that this process encodes, in order
    rows: list[int]  # the number of rows that each process encodes

    def contrast(self, rows: Tensor) -> Contrast:
        """Divide the rows of all graphs into questions and documents."""
        size, posts = len(self.pairs), 2 * len(self.pairs) + len(self.others)
        offsets = self.graphs.offsets.to(rows.device)
        middle, end = int(self.graphs.offsets[size]), int(self.graphs.offsets[posts])
        allowed, kinds = self.allowed.to(rows.device), self.graphs.kinds[:middle].to(rows.device)
        of_documents = offsets[size : posts + 1] - middle
        return Contrast(rows[:middle], offsets[: size + 1], rows[middle:end], of_documents, allowed, kinds)


def make_batch(
    batch: PairBatch,
    tensors: TensorStore,
    answers: PairAnswers,
    options: TrainingOptions,
    noise: torch.Generator | None = None,
    rank: int = 0,
    processes: int = 1,
) -> TrainingBatch:
    """Collate the graphs of a batch, divide them among processes by nodes, and cut this one's share into parts."""
    pairs, others = batch
    names = [*(question for question, _ in pairs), *(answer for _, answer in pairs), *others]
    graphs = collate(tensors.get_many(names))
    if noise is not None:
        graphs = augment(graphs, options, noise)
    ends = graphs.node_offsets[1:]  # [m]
    total = int(ends[-1])
    budget = total if options.node_budget is None else options.node_budget
    cuts = [0, *(int((ends <= total * i // processes).sum()) for i in range(1, processes)), len(graphs)]
    rows = [int(graphs.offsets[cuts[i + 1]] - graphs.offsets[cuts[i]]) for i in range(processes)]
    parts: tuple[GraphBatch, ...] = (graphs,)
    if processes > 1 or total > budget:
        first, last = cuts[rank], cuts[rank + 1]
        sizes = graphs.node_offsets.diff()[first:last].tolist()
        parts = tuple(graphs.part(first + run.start, first + run.stop) for run in runs_within(sizes, budget))
    return TrainingBatch(pairs, others, graphs, answers.allowed(pairs, others), parts, rows)


def augment(batch: GraphBatch, options: TrainingOptions, generator: torch.Generator) -> GraphBatch:
    """Mask nodes and drop edges at random; never virtual nodes and their edges."""
    device = batch.nodes.device
    drawn = torch.rand(batch.nodes.numel() + batch.edge_type.numel(), generator=generator).to(device)
    for_nodes, for_edges = torch.split(drawn, [batch.nodes.numel(), batch.edge_type.numel()])
    nodes = batch.nodes.masked_fill((for_nodes < options.node_mask) & ~batch.is_virtual, MASK_ID)
    structural = batch.is_virtual[batch.edge_index].any(0)  # [e]
    kept = structural | (for_edges >= options.edge_dropout)
    return dataclasses.replace(
        batch, nodes=nodes, edge_index=batch.edge_index[:, kept], edge_type=batch.edge_type[kept]
    )

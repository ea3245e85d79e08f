"""`InOut`: a model of formulas, from trees to a vector for each symbol, and its training without labels (section 3).

::

    in_out.json           {"format": 1, "options": {…}, "labels": {"slt": […], "opt": […]},
                           "weights": <sha256 of the file>, "checksum": <of all of the above>}
    weights.safetensors   the parameters, float32 or float16

In training a formula contributes the graphs that the condition pairs, with sub-expressions redrawn each epoch. Formulas
are used if their graphs have at least two nodes each, so that a part can be removed; equal graphs are never in one
batch, so they are not negatives of each other.

The contrast of nodes (equations 2 and 3): for a node i of formula f's first graph, z⁺ is the most similar node of f's
second graph, and zₖ⁻ the most similar node of the second graph of each other formula k of the batch::

    ℓᵢ = -log( exp(zᵢ·z⁺/τ) / Σₖ exp(zᵢ·zₖ⁻/τ) )            the positive is not in the sum, as printed: ℓᵢ can be < 0
    L  = ½ ( mean ℓᵢ over the nodes of SLGs + mean ℓᵢ over the nodes of OPGs )
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mathamr_systems.formula_trees import FormulaTrees
from pyterrier_mathamr.extending import (
    WEIGHTS,
    ConfigError,
    EpochRecord,
    Packed,
    PackedTrees,
    RunFolder,
    SavedModel,
    TrainingLoop,
    Validation,
    batches_by_size,
    best_matches,
    check_new_folder,
    choose_device,
    find_saved,
    pack_weights,
    progress,
    read_description,
    read_weights,
    train_and_save,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.model import TrainingError
from pyterrier_mathamr.store import Rows, new_folder, signed

from .graphs import (
    PAIRINGS,
    TREE_OF,
    FormulaGraphs,
    GraphName,
    InOutOptions,
    NodeLabels,
    Pairing,
    Subexpressions,
    encoders,
    kinds_of,
)


class Block(NamedTuple):
    """The nodes of one graph of each of the N formulas of a batch."""

    rows: Tensor  # float32 [r, d], of unit length
    offsets: Tensor  # int64 [N + 1]


def contrast(
    blocks: Mapping[GraphName, Block],
    pairings: Sequence[Pairing],
    temperature: float = 0.1,
    positive_in_sum: bool = False,
) -> Tensor:
    """Compute L of equation 3."""
    by_first: dict[GraphName, list[GraphName]] = {}
    for first, second in pairings:
        by_first.setdefault(first, []).append(second)
    halves = []
    for first, seconds in by_first.items():
        rows, offsets = blocks[first]
        count = offsets.numel() - 1
        others, ends, base = [blocks[name] for name in seconds], [offsets[:1]], 0
        for block in others:
            ends.append(block.offsets[1:] + base)
            base += block.rows.size(0)
        formula = torch.repeat_interleave(torch.arange(count, device=rows.device), offsets.diff())  # [M]
        best = best_matches(rows, torch.cat([block.rows for block in others]), torch.cat(ends))  # [M, seconds · N]
        logits = best.view(-1, len(seconds), count) / temperature
        mine = formula.view(-1, 1, 1).expand(-1, len(seconds), 1)
        positive = logits.gather(2, mine).squeeze(2)  # [M, seconds]
        summed = logits if positive_in_sum else logits.scatter(2, mine, -torch.inf)
        halves.append((summed.logsumexp(2) - positive).mean())
    return torch.stack(halves).mean()


MOST_NODES = 256
"""Formulas with a larger graph, such as a matrix of numbers, take no part: most nodes of a batch would be theirs."""


class FormulaTraining:
    """How a batch of formulas becomes a loss."""

    def __init__(self, network: nn.ModuleDict, graphs: dict[Packed, FormulaGraphs], options: InOutOptions) -> None:
        self._network, self._graphs, self._options = network, graphs, options
        self._parts = {kind: Subexpressions(those) for kind, those in graphs.items()}
        self._numbers = np.stack([those.numbered() for those in graphs.values()], axis=1)  # [x, kinds]
        sizes = np.stack([np.diff(those.offsets) for those in graphs.values()], axis=1)
        eligible = np.flatnonzero(((sizes >= 2) & (sizes <= MOST_NODES)).all(axis=1))
        rows = np.random.default_rng(options.seed).permutation(eligible)
        _, first = np.unique(self._numbers[rows], axis=0, return_index=True)
        rows = rows[np.sort(first)]  # without formulas all of whose graphs an earlier one has
        held_out = max(2, round(options.held_out * len(rows)))
        self._held_out, self._trained = rows[:held_out], rows[held_out:]
        if len(self._trained) < 2:
            raise TrainingError(
                f"training needs at least 4 different formulas of two nodes or more, found {len(rows)}; give more."
            )
        self._generator = np.random.default_rng()

    @property
    def digest(self) -> str:
        """Identifies the formulas that are trained on and held out."""
        arrays = [self._trained, self._held_out]
        arrays += [array for those in self._graphs.values() for array in (those.labels, those.parents, those.relations)]
        return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()

    def loop(self, verbose: bool) -> TrainingLoop[Rows, Rows]:
        options = self._options
        return TrainingLoop(
            self._network,
            torch.optim.AdamW(self._network.parameters(), lr=options.learning_rate),
            self._epoch,
            lambda rows: self._loss(rows, self._generator),
            epochs=options.epochs,
            validate=self._validate,
            patience=options.patience,
            verbose=verbose,
        )

    def _epoch(self, epoch: int) -> list[Rows]:
        """List the batches of an epoch; their sub-expressions are drawn by the same generator."""
        self._generator = np.random.default_rng([self._options.seed, epoch])
        return self._batches(self._generator.permutation(self._trained))

    def _validate(self, _mean: float) -> Validation:
        """Measure the mean loss of the held-out formulas, always with the same sub-expressions."""
        generator, batches = np.random.default_rng([self._options.seed, 0]), self._batches(self._held_out)
        losses = [self._loss(rows, generator).item() for rows in batches]
        loss = float(np.average(losses, weights=list(map(len, batches))))
        return Validation(loss, loss, loss, math.nan, self._options.temperature)  # a formula has no document vector

    def _loss(self, rows: Rows, generator: np.random.Generator) -> torch.Tensor:
        pairings = PAIRINGS[self._options.condition]
        blocks: dict[GraphName, Block] = {}
        for name in sorted({name for pairing in pairings for name in pairing}):
            kind = TREE_OF[name]
            drawn = self._parts[kind].draw(rows, generator) if name.endswith("-sub") else self._graphs[kind].take(rows)
            vectors = self._network[kind](drawn)
            blocks[name] = Block(vectors, torch.from_numpy(drawn.offsets).to(vectors.device))
        return contrast(blocks, pairings, self._options.temperature, self._options.positive_in_sum)

    def _batches(self, rows: Rows) -> list[Rows]:
        """Cut formulas into batches of different graphs, at least two formulas each."""
        batches, size = [], self._options.batch_size
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            for column in range(self._numbers.shape[1]):
                _, first = np.unique(self._numbers[batch, column], return_index=True)
                batch = batch[np.sort(first)]  # without formulas that share a graph with an earlier one
            if len(batch) > 1:
                batches.append(batch)
        return batches


FORMAT_VERSION = 1
DESCRIPTION = "in_out.json"

RowVectors = npt.NDArray[np.float32]
_NODE_BUDGET = 16_384


class InOut(SavedModel):
    """Two encoders that are trained together: one of symbol layout graphs, one of operator graphs (In+Out).

    Amador and Zanibbi, "Math Formula Graph Retrieval Using Contrastive Learning Over Visual and Semantic Embeddings",
    ICTIR 2025. Each symbol of a formula gets a vector of 100 numbers from its label and its surroundings.

    Args:
        options: the options of the model.
        labels: the labels with a vector, for each kind of tree for which the condition has an encoder.
        weights: the parameters by name; random if not given.

    Example::

        trees = FormulaTrees("formulas.trees").index(dataset.get_corpus_iter())
        model = InOut.new(trees, InOutOptions(epochs=2))
        history = model.fit(trees)
        model.save("formulas.in-out")
    """

    DESCRIPTION, NOUN = DESCRIPTION, "In+Out model"

    def __init__(
        self, options: InOutOptions, labels: Mapping[Packed, NodeLabels], weights: Mapping[str, Tensor] | None = None
    ) -> None:
        self.options, self._labels = options, {kind: labels[kind] for kind in kinds_of(options.condition)}
        self._network = encoders(options, {kind: len(those) for kind, those in self._labels.items()}).eval()
        if weights is not None:
            self._network.load_state_dict(dict(weights))
        self._folder: Path | None = None

    @classmethod
    def new(cls, formulas: FormulaTrees | Iterable[FormulaPair], options: InOutOptions | None = None) -> InOut:
        """Make a model that is not trained, with the labels of formulas.

        Args:
            formulas: of the collection.
            options: the paper's if not given.
        """
        options = options or InOutOptions()
        trees = _packed(formulas)
        return cls(
            options,
            {kind: NodeLabels.of_trees(trees[kind], options.least_count) for kind in kinds_of(options.condition)},
        )

    @classmethod
    def from_pretrained(cls, name_or_path: str | Path) -> InOut:
        """Open a model.

        Args:
            name_or_path: a bundled model's name, or a folder that :meth:`save` wrote.

        Raises:
            ModelNotFoundError: there is no such model. ModelFileError: a file is missing or damaged.
        """
        folder = find_saved(name_or_path, DESCRIPTION)

        def read(content: dict[str, Any]) -> InOut:
            options = InOutOptions.from_dict(content["options"])
            labels = {kind: NodeLabels(content["labels"][kind]) for kind in kinds_of(options.condition)}
            sizes = {kind: len(those) for kind, those in labels.items()}
            digest, build = str(content["weights"]), functools.partial(encoders, options, sizes)
            return cls(options, labels, read_weights(folder / WEIGHTS, digest, DESCRIPTION, options.layers, build))

        model = read_description(folder / DESCRIPTION, FORMAT_VERSION, cls.NOUN, read)
        model._folder = folder
        return model

    def save(self, path: str | Path, *, dtype: str = "float32") -> None:
        """Write the model to a new folder, atomically.

        Args:
            path: a folder that does not exist yet.
            dtype: ``float32``, or ``float16`` for half the size, which changes the weights by up to 0.05 %.

        Raises:
            ConfigError: the folder exists, or another dtype. WriteError: it cannot be written.
        """
        packed = pack_weights(self._weights(), dtype)
        content = {
            "format": FORMAT_VERSION,
            "options": self.options.to_dict(),
            "labels": {kind: list(those.names) for kind, those in self._labels.items()},
            "weights": hashlib.sha256(packed).hexdigest(),
        }
        with new_folder(check_new_folder(path)) as folder:
            (folder / WEIGHTS).write_bytes(packed)
            (folder / DESCRIPTION).write_bytes(signed(content))

    def fit(
        self,
        formulas: FormulaTrees | Iterable[FormulaPair],
        *,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        device: str | None = None,
        verbose: bool = False,
    ) -> tuple[EpochRecord, ...]:
        """Train on formulas without any labels (section 3), from the current weights on.

        The model then has the weights of the epoch with the lowest loss of the formulas that are held out. The same
        formulas and options give the same bytes on CPUs of the same kind.

        Args:
            formulas: each distinct one is used once an epoch.
            checkpoint: a folder for the training state after each epoch. A run that was interrupted there is resumed,
                to the same result, by the same model as it was when that run began.
            fresh: discard a run that was interrupted at ``checkpoint``.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show a progress bar for each epoch.

        Returns:
            A record of each epoch; ``validation_loss`` is the loss of the held-out formulas, always with the same
            sub-expressions.

        Raises:
            TrainingError: there are too few formulas, or the loss is NaN or infinite. UnfinishedJobError: the folder
            holds another run. DamagedError: the training state was changed. WriteError: it cannot be written.
        """
        trees = _packed(formulas)
        graphs = {kind: FormulaGraphs.of_trees(trees[kind], those) for kind, those in self._labels.items()}
        run = {**self.options.to_dict(), "starting model": self.identity}
        network = self._network.to(choose_device(device))
        try:
            training = FormulaTraining(network, graphs, self.options)
            with RunFolder(checkpoint) as folder:
                folder.begin({**run, "formulas": training.digest}, fresh=fresh)
                return training.loop(verbose).train(folder).history
        finally:
            network.cpu()
            self._folder = None
            vars(self).pop("identity", None)

    @property
    def kinds(self) -> tuple[Packed, ...]:
        """The kinds of trees that there is an encoder for: ``"slt"``, ``"opt"`` or both."""
        return tuple(self._labels)

    @torch.no_grad()
    def encode(
        self,
        trees: Sequence[FormulaTree | None] | PackedTrees,
        kind: Packed,
        *,
        distinct: bool = True,
        device: str | None = None,
        verbose: bool = False,
    ) -> list[RowVectors]:
        """Encode formulas: a vector for each node.

        Args:
            trees: all of one kind; ``None`` for a formula without.
            kind: ``"slt"`` or ``"opt"``.
            distinct: give equal vectors of a formula once, in the order of their first nodes, as suits documents: a
                document's score does not change. A query's score has a term for each node (equation 4): give ``False``.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show a progress bar.

        Returns:
            For each formula float32 ``[nodes, width]``, rows of unit length; ``[0, width]`` without a tree.

        Raises:
            ConfigError: the model has no encoder for this kind.
        """
        if kind not in self._labels:
            allowed = " or ".join(map(repr, self.kinds))
            raise ConfigError("kind", kind, f"{allowed}: the model's condition is {self.options.condition!r}")
        packed = trees if isinstance(trees, PackedTrees) else PackedTrees.of_trees(trees, kind)
        graphs = FormulaGraphs.of_trees(packed, self._labels[kind])
        sizes = np.diff(graphs.offsets).tolist()
        encoder = self._network[kind].to(choose_device(device))
        encoded = [np.empty((0, self.options.width), np.float32)] * len(graphs)
        for members in progress(batches_by_size(sizes, _NODE_BUDGET), "encoding", "batches", verbose=verbose):
            batch = graphs.take(np.array(members))
            rows = encoder(batch).cpu().numpy()  # [n, d]
            for i, part in zip(members, np.split(rows, batch.offsets[1:-1]), strict=True):
                encoded[i] = _distinct(part) if distinct else part.copy()
        encoder.cpu()
        return encoded

    @cached_property
    def identity(self) -> str:
        """Sha256 of options, labels and weights: 64 hexadecimal digits, equal for models with equal vectors."""
        labels = {kind: those.names for kind, those in self._labels.items()}
        text = json.dumps([self.options.to_dict(), labels], sort_keys=True).encode()
        return hashlib.sha256(text + pack_weights(self._weights())).hexdigest()

    def _weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu() for name, tensor in self._network.state_dict().items()}


def _packed(formulas: FormulaTrees | Iterable[FormulaPair]) -> dict[Packed, PackedTrees]:
    if isinstance(formulas, FormulaTrees):
        return {kind: formulas.packed(kind) for kind in get_args(Packed)}
    pairs = list(formulas)
    return {
        "slt": PackedTrees.of_trees((pair.slt for pair in pairs), "slt"),
        "opt": PackedTrees.of_trees((pair.opt for pair in pairs), "opt"),
    }


def _distinct(rows: RowVectors) -> RowVectors:
    first: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        first.setdefault(row.tobytes(), number)
    return rows[list(first.values())]


def train_in_out(
    formulas: FormulaTrees, output: Path, options: InOutOptions, *, fresh: bool = False, verbose: bool = False
) -> InOut:
    """Train an In+Out model on formulas and save it.

    Args:
        formulas: the trees.
        output: the new model. ``<output>.training`` keeps the training state until the model is saved;
            ``<output>.history.csv`` remains.
        options: of the model.
        fresh: discard the state of a run that was stopped.
        verbose: show progress.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """

    def train(checkpoint: Path) -> InOut:
        model = InOut.new(formulas, options)
        model.fit(formulas, checkpoint=checkpoint, fresh=fresh, verbose=verbose)
        return model

    return train_and_save(output, train)

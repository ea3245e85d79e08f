"""Training MaRF: pairs of formulas for the formula encoder, then pairs of posts for the fusion (MaRF, section 3.4).

::

    question ─ one of its formulas ─┐
    answer   ─ one of its formulas ─┴─ formula encoder ─ MaxSim, or products of means ─▶ loss over the batch
    question, answer, each with one formula ─ fusion ─ MaxSim ───────────────────────▶ loss over the batch

The formulas of a pair are drawn again in each epoch. The frozen context encoder reads the texts of each batch, so that
memory does not grow with the pairs; ``marf.context.cache`` names a file that keeps its rows for the other epochs.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from mathamr_systems.language_models import mixed
from pyterrier_mathamr.extending import (
    Count,
    Natural,
    Options,
    Pair,
    PairAnswers,
    Positive,
    RunFolder,
    TrainingLoop,
    batches_by_size,
    between,
    choose_device,
    info_nce,
    normalise,
)
from pyterrier_mathamr.model import TrainingError, maxsim_matrix
from pyterrier_mathamr.posts import MathPost

from .network import MIN_TOKENS, Symbols, padded

if TYPE_CHECKING:
    from .model import MaRF


Item = TypeVar("Item")
MaRFLoss = Literal["softmax", "ratio"]

_TOKENS = 512  # of formulas of similar lengths, encoded together
_LEAST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MaRFTraining(Options):
    """How a model is trained. The paper prints 3 and 4 epochs; it is silent on rates, batches and negatives.

    Attributes:
        loss: ``softmax``, or the ``ratio`` of equation 3 as printed, which is not defined for scores of 0 and below:
            they are raised to 1e-6.
        temperature: first value of the learned τ that softmax divides scores by.
        formula_epochs: over the pairs of formulas, at most.
        formula_steps: batches of formulas, at most.
        formula_batch: pairs of formulas in a batch; the others' formulas are the negatives.
        formula_rate: learning rate of the formula encoder.
        epochs: over the pairs of posts.
        batch: pairs of posts in a batch; the others' answers are the negatives.
        rate: learning rate of the fusion.
        weight_decay: of AdamW.
        seed: of all random choices.
    """

    loss: MaRFLoss = "softmax"
    temperature: Positive = 0.05
    formula_epochs: Count = 3
    formula_steps: Count = 1_000_000
    formula_batch: Count = 64
    formula_rate: Positive = 1e-4
    epochs: Count = 4
    batch: Count = 32
    rate: Positive = 1e-4
    weight_decay: Annotated[float, between(0)] = 0.01
    seed: Natural = 42


def ratio_loss(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Compute L = mean of −ln( S⁺ / (S⁺ + Σ S⁻) ) as printed, scores below 1e-6 raised to it (MaRF, equation 3)."""
    kept = scores.clamp_min(_LEAST)
    if allowed is not None:
        diagonal = torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
        kept = kept.masked_fill(~(allowed | diagonal), 0.0)
    return -(kept.diagonal().log() - kept.sum(dim=1).log()).mean()


class ScoreLoss(nn.Module):
    """The loss of a batch: softmax with a learned temperature, or the ratio."""

    def __init__(self, loss: MaRFLoss, temperature: float) -> None:
        super().__init__()
        self.loss = loss
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)))

    def forward(self, scores: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Compute a scalar of scores ``[B, m]``."""
        if self.loss == "ratio":
            return ratio_loss(scores, allowed)
        return info_nce(scores, self.log_temperature.exp(), allowed)


class MaRFStep(NamedTuple):
    """The loss of a batch before its step."""

    part: str  # formulas or fusion
    loss: float


class MaRFRun:
    """One run of training: its pairs, the texts and formulas of their posts, and the loss of a batch of each part."""

    def __init__(
        self,
        marf: MaRF,
        pairs: Sequence[Pair],
        posts: Mapping[str, MathPost],
        known: Mapping[str, Iterable[str]],
        *,
        formula_pairs: Collection[Pair] | None = None,
        checkpoint: Path | None = None,
        fresh: bool = False,
        save_every: float = math.inf,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.marf, self.options, self.verbose = marf, marf.training, verbose
        self.checkpoint, self.fresh, self.save_every = checkpoint, fresh, save_every
        self.device = choose_device(device)
        self.pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] in posts and pair[1] in posts]
        if len(self.pairs) < 2:
            raise TrainingError(f"training needs at least 2 pairs whose posts are given, found {len(self.pairs)}.")
        answers = {question: sorted(others) for question, others in known.items()}
        self.answers = PairAnswers(self.pairs, answers)
        names = dict.fromkeys(name for pair in self.pairs for name in pair)
        self.readings = dict(zip(names, marf.readings([posts[name] for name in names]), strict=True))
        self.formula_pairs = set(self.pairs if formula_pairs is None else formula_pairs)
        data = [self.pairs, sorted(answers.items()), self.readings]
        data += [] if formula_pairs is None else [sorted(self.formula_pairs)]
        self.digest = hashlib.sha256(repr(data).encode()).hexdigest()
        self.network = marf._network.to(self.device)

    def formulas(self) -> list[MaRFStep]:
        """Train only the formula encoder; without formulas to pair it is unchanged."""
        long = {
            name: [formula for formula in of.formulas if len(formula) >= MIN_TOKENS]
            for name, of in self.readings.items()
        }
        pairs = [pair for pair in self.pairs if pair in self.formula_pairs and long[pair[0]] and long[pair[1]]]
        if len(pairs) < 2:
            return []
        options, draw, most = self.options, random.Random(self.options.seed), self.options.formula_steps
        epochs = []
        for batches in self._epochs(pairs, options.formula_batch, options.formula_epochs, "formulas"):
            kept, most = batches[:most], most - len(batches[:most])
            epochs.append([(of, [[draw.choice(long[pair[side]]) for pair in of] for side in (0, 1)]) for of in kept])

        def scores(batch: tuple[list[Pair], list[list[Symbols]]]) -> tuple[Tensor, list[Pair]]:
            questions, answers = map(self._formula_rows, batch[1])
            return self._formula_scores(questions, answers), batch[0]

        parts = {"encoder": self.network.formulas}
        return self._train("formulas", parts, epochs, scores, options.formula_rate)

    def fusion(self) -> list[MaRFStep]:
        """Train the fusion and the maps around it; both encoders are unchanged."""
        network, options, numbers = self.network, self.options, count()
        epochs = [
            [(next(numbers), batch) for batch in batches]
            for batches in self._epochs(self.pairs, options.batch, options.epochs, "fusion")
        ]

        def scores(numbered: tuple[int, list[Pair]]) -> tuple[Tensor, list[Pair]]:
            number, batch = numbered
            (questions, question_ends), (answers, answer_ends) = (
                self._fused([pair[side] for pair in batch], side, number) for side in (0, 1)
            )
            scores_of_pairs = maxsim_matrix(questions, question_ends, answers, answer_ends)
            return normalise(scores_of_pairs, question_ends), batch

        parts = {"before": network.before, "fusion": network.fusion, "after": network.after}
        return self._train("fusion", parts, epochs, scores, options.rate)

    def _train(
        self,
        part: str,
        parts: Mapping[str, nn.Module],
        epochs: Sequence[Sequence[Item]],
        scores: Callable[[Item], tuple[Tensor, list[Pair]]],
        rate: float,
    ) -> list[MaRFStep]:
        """Train some parts of the network, by the scores of each batch and its pairs."""
        measure = ScoreLoss(self.options.loss, self.options.temperature).to(self.device)
        network = nn.ModuleDict({**parts, "loss": measure})

        def loss(item: Item) -> Tensor:
            found, batch = scores(item)
            return measure(found, self.answers.allowed(batch).to(self.device))  # type: ignore[no-any-return]

        epochs = [batches for batches in epochs if batches]
        if not epochs:
            return []
        loop = TrainingLoop(
            network,
            torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=self.options.weight_decay),
            lambda epoch: epochs[epoch - 1],
            loss,
            epochs=len(epochs),
            seed=self.options.seed,
            name=part,
            verbose=self.verbose,
        )
        with RunFolder(self.checkpoint and self.checkpoint / part) as folder:
            if self.checkpoint is not None:
                run = {"data": self.digest, "starting model": self.marf.identity}
                folder.begin({**self.options.to_dict(), **run}, fresh=self.fresh)
                vars(self.marf).pop("identity")  # of the weights before training
            return [MaRFStep(part, value) for value in loop.train(folder, self.save_every).losses]

    def _epochs(self, pairs: Sequence[Pair], size: int, epochs: int, part: str) -> list[list[list[Pair]]]:
        """Shuffle pairs for each epoch, and cut them into batches of at least two."""
        epochs_of_batches = []
        for epoch in range(epochs):
            mixed_up = list(pairs)
            random.Random(f"{self.options.seed} {part} {epoch}").shuffle(mixed_up)
            batches = [mixed_up[start : start + size] for start in range(0, len(mixed_up), size)]
            epochs_of_batches.append([batch for batch in batches if len(batch) > 1])
        return epochs_of_batches

    def _formula_rows(self, formulas: Sequence[Symbols]) -> tuple[Tensor, Tensor]:
        """Encode formulas with gradient: rows end to end, float32 ``[r, f]``, and offsets."""
        marf = self.marf
        ids = [torch.tensor(marf.tokens.ids(one, marf.config.formula_length)) for one in formulas]
        rows: list[Tensor] = [torch.empty(0)] * len(ids)
        for members in batches_by_size(list(map(len, ids)), _TOKENS):  # few formulas are long, padding would be most
            batch, missing = padded([ids[i] for i in members], self.device)
            with mixed(self.device):
                encoded = self.network.formulas(batch, missing).float()
            for i, padded_rows in zip(members, encoded, strict=True):
                rows[i] = padded_rows[: len(ids[i])]
        lengths = torch.tensor([0, *map(len, ids)], device=self.device)
        return torch.cat(rows), lengths.cumsum(0)

    def _formula_scores(self, questions: tuple[Tensor, Tensor], answers: tuple[Tensor, Tensor]) -> Tensor:
        """Score formulas by their rows, or by the products of their means: float32 ``[B, B]``."""
        if self.marf.config.formula_score == "passage":
            left, right = (
                F.normalize(torch.segment_reduce(rows, "mean", offsets=ends), dim=1)
                for rows, ends in (questions, answers)
            )
            return left @ right.T
        left, right = (F.normalize(rows, dim=1) for rows, _ in (questions, answers))
        return normalise(maxsim_matrix(left, questions[1], right, answers[1]), questions[1])

    def _fused(self, names: Sequence[str], side: int, number: int) -> tuple[Tensor, Tensor]:
        """Fuse each post with one of its formulas, with gradient: unit rows end to end, and offsets."""
        network, config = self.network, self.marf.config
        texts = [self.readings[name].text for name in names]
        encoded = self.marf.context.encode(texts, query=not side, device=str(self.device))
        context, absent = padded(encoded, self.device)
        with mixed(self.device):
            context = network.before(context)
            if config.keys == "context":
                fused = network.fusion(context, context, absent)
            else:
                chosen = [self._one_formula(name, not side, number) for name in names]
                fused = self._with_formulas(context, chosen)
            rows = network.finished(fused)
        lengths = (~absent).sum(dim=1)
        return rows[~absent].float(), F.pad(lengths.cumsum(0), (1, 0))

    def _one_formula(self, name: str, query: bool, number: int) -> Symbols | None:
        """Choose the longest formula of a query, or any of a document's views."""
        reading, config = self.readings[name], self.marf.config
        some = self.marf.chosen(reading, f"{name} {number}", query)
        if not some:
            return None
        longest_alone = query and config.query_formulas == "longest"
        return some[0] if longest_alone else random.Random(f"{self.options.seed} {number} {name}").choice(some)

    def _with_formulas(self, context: Tensor, chosen: Sequence[Symbols | None]) -> Tensor:
        """Fuse the texts that have a formula; the others stay the context."""
        places = [place for place, one in enumerate(chosen) if one]
        if not places:
            return context
        with torch.no_grad():
            formulas, missing = self.marf.formula_batch([chosen[i] or () for i in places], self.device)
        where = torch.tensor(places, device=self.device)
        fused = self.network.fusion(context[where], formulas, missing)
        return context.to(fused.dtype).index_copy(0, where, fused)

"""Training MaRF: pairs of formulas for the formula encoder, then pairs of posts for the fusion (MaRF, section 3.4).

::

    question ─ one of its formulas ─┐
    answer   ─ one of its formulas ─┴─ formula encoder ─ MaxSim, or products of means ─▶ loss over the batch
    question, answer, each with one formula ─ fusion ─ MaxSim ───────────────────────▶ loss over the batch

The formulas of a pair are drawn anew each epoch. Rows of the frozen context encoder are computed once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import Rule, between
from pyterrier_mathamr.model.config.options import Count, Natural
from pyterrier_mathamr.model.encoder.maxsim import maxsim_matrix
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size
from pyterrier_mathamr.model.inputs.devices import choose_device
from pyterrier_mathamr.model.training.data import Answers, Pair
from pyterrier_mathamr.model.training.losses import info_nce, normalise
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.systems.language_models import SavedOptions, mixed

from .context import MIN_TOKENS, Formula, MaRFPost
from .network import padded

if TYPE_CHECKING:
    from .model import MaRF


Loss = Literal["softmax", "ratio"]

_TOKENS = 512  # of formulas of similar lengths, encoded together
_BLOCK = 512  # posts that are encoded at once
_LEAST = 1e-6


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


_Positive = Annotated[float, Rule("a number above 0", _positive)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaRFTraining(SavedOptions):
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
        seed: of everything that is random.
    """

    loss: Loss = "softmax"
    temperature: _Positive = 0.05
    formula_epochs: Count = 3
    formula_steps: Count = 1_000_000
    formula_batch: Count = 64
    formula_rate: _Positive = 1e-4
    epochs: Count = 4
    batch: Count = 32
    rate: _Positive = 1e-4
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

    def __init__(self, loss: Loss, temperature: float) -> None:
        super().__init__()
        self.loss = loss
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)))

    @property
    def temperature(self) -> Tensor:
        """τ, a scalar above 0."""
        return self.log_temperature.exp()

    def forward(self, scores: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Compute a scalar of scores ``[B, m]``; see :func:`ratio_loss`."""
        if self.loss == "ratio":
            return ratio_loss(scores, allowed)
        return info_nce(scores, self.temperature, allowed)


class MaRFStep(NamedTuple):
    """The loss of a batch.

    Attributes:
        part: ``formulas`` or ``fusion``.
        loss: before the step.
    """

    part: str
    loss: float


class MaRFRun:
    """One run of training."""

    def __init__(
        self,
        marf: MaRF,
        pairs: Sequence[Pair],
        posts: Mapping[str, MathPost],
        known: Mapping[str, Iterable[str]],
        device: str | None,
        verbose: bool,
    ) -> None:
        self.marf, self.options, self.verbose = marf, marf.training, verbose
        self.device = choose_device(device)
        self.pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] in posts and pair[1] in posts]
        if len(self.pairs) < 2:
            raise TrainingError(f"training needs at least 2 pairs whose posts are given, found {len(self.pairs)}.")
        self.answers = Answers(self.pairs, known)
        names = dict.fromkeys(name for pair in self.pairs for name in pair)
        self.readings = {name: MaRFPost.of(posts[name], marf.config) for name in names}
        self.network = marf._network.to(self.device)

    def formulas(self) -> list[MaRFStep]:
        """Train the formula encoder alone; with no formulas to pair it stays as it is."""
        long = {
            name: [formula for formula in of.formulas if len(formula) >= MIN_TOKENS]
            for name, of in self.readings.items()
        }
        pairs = [(question, answer) for question, answer in self.pairs if long[question] and long[answer]]
        if len(pairs) < 2:
            return []
        options, encoder = self.options, self.network.formulas
        loss = ScoreLoss(options.loss, options.temperature).to(self.device)
        optimizer = _optimizer([*encoder.parameters(), *loss.parameters()], options.formula_rate, options.weight_decay)
        steps: list[MaRFStep] = []
        batches = self._batches(pairs, options.formula_batch, options.formula_epochs, "formulas")
        batches = batches[: options.formula_steps]
        torch.manual_seed(options.seed)
        draw = random.Random(options.seed)
        encoder.train()
        for batch in progress(batches, "formula encoder", "batches", verbose=self.verbose):
            sides = ([draw.choice(long[pair[side]]) for pair in batch] for side in (0, 1))
            questions, answers = (self._formula_rows(side) for side in sides)
            scores = self._formula_scores(questions, answers)
            steps.append(MaRFStep("formulas", _step(loss(scores, self._allowed(batch)), optimizer)))
        encoder.eval()
        return steps

    def fusion(self) -> list[MaRFStep]:
        """Train the fusion and the maps around it; both encoders stay as they are."""
        options, network = self.options, self.network
        network.formulas.requires_grad_(False)
        loss = ScoreLoss(options.loss, options.temperature).to(self.device)
        trained = [*network.fusion.parameters(), *(part.weight for part in network.maps), *loss.parameters()]
        optimizer = _optimizer(trained, options.rate, options.weight_decay)
        contexts = (self._contexts(0), self._contexts(1))
        steps: list[MaRFStep] = []
        torch.manual_seed(options.seed)
        network.fusion.train()
        batches = self._batches(self.pairs, options.batch, options.epochs, "fusion")
        for number, batch in enumerate(progress(batches, "fusion", "batches", verbose=self.verbose)):
            sides = [
                self._fused([pair[side] for pair in batch], contexts[side], query=not side, number=number)
                for side in (0, 1)
            ]
            (questions, question_ends), (answers, answer_ends) = sides
            scores = normalise(maxsim_matrix(questions, question_ends, answers, answer_ends), question_ends)
            steps.append(MaRFStep("fusion", _step(loss(scores, self._allowed(batch)), optimizer)))
        network.fusion.eval()
        network.formulas.requires_grad_(True)
        return steps

    def _batches(self, pairs: Sequence[Pair], size: int, epochs: int, part: str) -> list[list[Pair]]:
        """Shuffle pairs for each epoch, and cut them into batches of at least two."""
        batches = []
        for epoch in range(epochs):
            mixed_up = list(pairs)
            random.Random(f"{self.options.seed} {part} {epoch}").shuffle(mixed_up)
            batches += [mixed_up[start : start + size] for start in range(0, len(mixed_up), size)]
        return [batch for batch in batches if len(batch) > 1]

    def _allowed(self, batch: Sequence[Pair]) -> Tensor:
        return self.answers.allowed(batch).to(self.device)

    def _formula_rows(self, formulas: Sequence[Formula]) -> tuple[Tensor, Tensor]:
        """Encode formulas with gradient: rows end to end, float32 ``[r, f]``, and offsets."""
        marf = self.marf
        ids = [torch.tensor(marf.tokens.ids(one, marf.config.formula_length)) for one in formulas]
        rows: list[Tensor] = [torch.empty(0)] * len(ids)
        for members in batches_by_size(list(map(len, ids)), _TOKENS):  # few formulas are long, padding would be most
            batch, missing = padded([ids[i] for i in members], self.device)
            with mixed(self.device):
                encoded = self.network.formulas(batch, missing).float()
            for i, of in zip(members, encoded, strict=True):
                rows[i] = of[: len(ids[i])]
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

    def _contexts(self, side: int) -> dict[str, np.ndarray]:
        """Encode the questions or answers of all pairs: float16 ``[n, d]`` by id."""
        names = list(dict.fromkeys(pair[side] for pair in self.pairs))
        found: dict[str, np.ndarray] = {}
        starts = range(0, len(names), _BLOCK)
        for start in progress(starts, "rows of the context", "blocks", verbose=self.verbose):
            some = names[start : start + _BLOCK]
            texts = [self.readings[name].text for name in some]
            rows = self.marf.context.encode(texts, query=not side, device=str(self.device))
            found |= {name: of.astype(np.float16) for name, of in zip(some, rows, strict=True)}
        return found

    def _fused(
        self, names: Sequence[str], contexts: Mapping[str, np.ndarray], *, query: bool, number: int
    ) -> tuple[Tensor, Tensor]:
        """Fuse each post with one of its formulas, with gradient: unit rows end to end, and offsets."""
        network, config = self.network, self.marf.config
        context, absent = padded([torch.from_numpy(contexts[name]).float() for name in names], self.device)
        with mixed(self.device):
            context = network.before(context)
            if config.keys == "context":
                fused = network.fusion(context, context, absent)
            else:
                chosen = [self._one_formula(name, query, number) for name in names]
                fused = self._with_formulas(context, chosen)
            rows = network.finished(fused)
        return _end_to_end(rows, absent)

    def _one_formula(self, name: str, query: bool, number: int) -> Formula | None:
        """Choose the longest formula of a query, or any of a document's views."""
        reading, config = self.readings[name], self.marf.config
        some = self.marf.chosen(reading, f"{name} {number}", query)
        if not some:
            return None
        longest_alone = query and config.query_formulas == "longest"
        return some[0] if longest_alone else random.Random(f"{self.options.seed} {number} {name}").choice(some)

    def _with_formulas(self, context: Tensor, chosen: Sequence[Formula | None]) -> Tensor:
        """Fuse the texts that have a formula; the others stay the context."""
        places = [place for place, one in enumerate(chosen) if one]
        if not places:
            return context
        tokens, most = self.marf.tokens, self.marf.config.formula_length
        ids, missing = padded([torch.tensor(tokens.ids(chosen[i] or (), most)) for i in places], self.device)
        with torch.no_grad():
            formulas = self.network.formulas(ids, missing)
        where = torch.tensor(places, device=self.device)
        fused = self.network.fusion(context[where], formulas, missing)
        return context.to(fused.dtype).index_copy(0, where, fused)


def _end_to_end(rows: Tensor, missing: Tensor) -> tuple[Tensor, Tensor]:
    """Drop padding: float ``[b, n, d]`` to float32 ``[r, d]`` and int64 offsets ``[b + 1]``."""
    lengths = (~missing).sum(dim=1)
    return rows[~missing].float(), F.pad(lengths.cumsum(0), (1, 0))


def _optimizer(parameters: Iterable[Tensor], rate: float, decay: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(list(parameters), lr=rate, weight_decay=decay)


def _step(loss: Tensor, optimizer: torch.optim.Optimizer) -> float:
    """Take a step, and return the loss before it."""
    value = loss.item()
    if not math.isfinite(value):
        raise TrainingError(f"the loss of a batch is {value}; give a lower rate.")
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return value

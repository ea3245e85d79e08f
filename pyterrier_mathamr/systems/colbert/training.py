"""Training: of all layers, or of the projection and the last layer alone over states that are computed once.

::

    train="last", for a CPU
    texts ─▶ layers 1 … L-1 ─▶ states, float16, in memory          once, without gradient
    states of a batch ─▶ layer L ─▶ projection ─▶ rows ─▶ loss     each step

Both take the same batches: those of the library's trainer could hold answers that are known to be right as negatives.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.model.errors import TrainingError

from .encoding import batches_of_texts, features_of, finish, mixed
from .losses import InBatchMaxSimLoss, PairwiseMaxSimLoss, Ragged
from .network import Side
from .options import ColBERTTraining
from .texts import PostTexts
from .training_data import Batch, ColBERTData

State = tuple[Tensor, Tensor, Tensor]
"""Of a text: states before the last layer, float16 ``[L, d_model]``; ids of the tokens; which are attended to."""

States = dict[tuple[Side, str], State]
"""Of texts, by side."""


def train_last(
    encoder: Any,
    data: ColBERTData,
    texts: PostTexts,
    training: ColBERTTraining,
    *,
    states: States | None = None,
    verbose: bool = False,
) -> list[float]:
    """Train the projection and the last layer in place."""
    tail = Tail(encoder)
    known: States = {} if states is None else states
    written: dict[Side, dict[str, str]] = {
        side: {name: texts.text(data.posts[name]) for name in names} for side, names in _names(data, training).items()
    }
    for side, own in written.items():
        tail.add_states(known, side, [text for text in own.values() if (side, text) not in known], verbose)
    encoder.eval()  # the states below were computed without dropout, too, and attention is twice as fast without
    parameters = [*tail.last.named_parameters(), *encoder[1].named_parameters()]
    rows = lambda names, side: tail.rows([known[side, written[side][name]] for name in names], side)  # noqa: E731
    return _run(data, training, parameters, rows, verbose)


def train_all(
    encoder: Any,
    data: ColBERTData,
    texts: PostTexts,
    training: ColBERTTraining,
    *,
    states: States | None = None,
    verbose: bool = False,
) -> list[float]:
    """Train all layers in place, in bfloat16 where the device has it."""
    written = {name: texts.text(post) for name, post in data.posts.items()}

    def rows(names: Sequence[str], side: Side) -> Ragged:
        features = features_of(encoder, [written[name] for name in names], side)
        with mixed(encoder.device, "auto"):
            features = encoder[0](features)
        features["token_embeddings"] = features["token_embeddings"].float()
        features = finish(encoder, features, side)
        return Ragged.of(features["token_embeddings"], features["attention_mask"].bool())

    cuda = [encoder.device] if encoder.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(training.seed)  # of dropout
        encoder.train()
        history = _run(data, training, list(encoder.named_parameters()), rows, verbose)
    encoder.eval()
    return history


def _run(
    data: ColBERTData,
    training: ColBERTTraining,
    parameters: Sequence[tuple[str, nn.Parameter]],
    rows: Callable[[Sequence[str], Side], Ragged],
    verbose: bool,
) -> list[float]:
    """Take all steps; return the mean loss of each epoch."""
    epochs = range(1, training.epochs + 1)
    optimizer, schedule = optimizer_of(parameters, training, sum(len(data.batches(training, e)) for e in epochs))
    history = []
    for epoch in epochs:
        losses = []
        for batch in progress(data.batches(training, epoch), f"epoch {epoch}", "steps", verbose=verbose):
            if training.loss == "triple" and not any(place is not None for place in batch.wrong):
                raise TrainingError("the loss 'triple' compares with wrong answers. Give negatives=.")
            loss = batch_loss(rows(batch.queries, "query"), rows(batch.documents, "document"), batch, training)
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                raise TrainingError(f"the loss of epoch {epoch} is {losses[-1]}; lower the learning rate.")
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        history.append(sum(losses) / max(len(losses), 1))
    return history


def batch_loss(queries: Ragged, documents: Ragged, batch: Batch, training: ColBERTTraining) -> Tensor:
    """Compute the loss that the options name."""
    if training.loss == "triple":
        loss: Tensor = PairwiseMaxSimLoss()(queries, documents, batch.wrong)
    else:
        loss = InBatchMaxSimLoss()(queries, documents, batch.allowed.to(queries.rows.device))
    return loss


def optimizer_of(
    parameters: Iterable[tuple[str, nn.Parameter]], training: ColBERTTraining, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    """Make AdamW, which decays matrices alone, and its schedule: a linear rise and fall."""
    named = list(parameters)
    groups = [
        {"params": [tensor for _, tensor in named if tensor.dim() > 1], "weight_decay": training.weight_decay},
        {"params": [tensor for _, tensor in named if tensor.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=training.learning_rate)
    rise = round(training.warmup * steps)

    def factor(step: int) -> float:
        if not training.warmup:
            return 1.0
        return (step + 1) / rise if step < rise else (steps - step) / max(steps - rise, 1)

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


class Tail:
    """The last layer of a language model and what follows it."""

    def __init__(self, encoder: Any) -> None:
        self.encoder, model = encoder, encoder[0].model
        layers = getattr(getattr(model, "encoder", None), "layer", None)
        if layers is None or not hasattr(model, "embeddings"):
            raise ConfigError("train", "last", f"'all' for {type(model).__name__}, which is not of the BERT family")
        self.last = layers[-1]
        inner = copy.copy(model.encoder)  # a shallow copy shares the weights
        inner._modules = {**model.encoder._modules, "layer": nn.ModuleList([self.last])}
        self.model = copy.copy(model)
        self.model._modules = {**model._modules, "embeddings": _Given(), "encoder": inner}

    def add_states(self, states: States, side: Side, texts: list[str], verbose: bool = False) -> None:
        """Encode texts up to the layer before the last; a query that is expanded has tokens that none attends to."""
        encoder, distinct = self.encoder, list(dict.fromkeys(texts))
        batches = list(batches_of_texts(encoder, distinct, side))
        for members in progress(batches, f"states of {side} texts", "batches", verbose=verbose):
            features = features_of(encoder, [distinct[i] for i in members], side)
            ids, attended = features["input_ids"], features["attention_mask"]
            with torch.no_grad(), mixed(encoder.device, "auto"):
                found = encoder[0].model(ids, attention_mask=attended, output_hidden_states=True).hidden_states[-2]
            used = attended.bool() | features.get("query_expansion_positions", torch.zeros_like(attended)).bool()
            for i, kept, *parts in zip(members, used, found.half(), ids, attended, strict=True):
                own, tokens, mask = (part[kept].cpu() for part in parts)
                states[side, distinct[i]] = (own, tokens, mask)

    def rows(self, texts: list[State], side: Side) -> Ragged:
        """Apply the last layer, the projection and the mask, with gradient."""
        place = self.encoder.device
        states, ids, attended = (
            pad_sequence(list(part), batch_first=True).to(place) for part in zip(*texts, strict=True)
        )
        there = pad_sequence([torch.ones(len(own[1]), dtype=torch.bool) for own in texts], batch_first=True).to(place)
        with mixed(place, "auto"):
            hidden = self.model(inputs_embeds=states.float(), attention_mask=attended).last_hidden_state
        features = {"token_embeddings": hidden.float(), "input_ids": ids, "attention_mask": attended}
        features["query_expansion_positions"] = there & ~attended.bool()
        features = finish(self.encoder, features, side)
        return Ragged.of(features["token_embeddings"], features["attention_mask"].bool())


class _Given(nn.Module):
    """In place of embeddings: what is given."""

    def forward(self, *, inputs_embeds: Tensor, **others: Any) -> Tensor:
        """Return the states."""
        return inputs_embeds


def _names(data: ColBERTData, training: ColBERTTraining) -> dict[Side, list[str]]:
    """List the posts that training reads, each once."""
    drawn: dict[str, None] = {}
    for epoch in range(1, training.epochs + 1):
        for batch in data.batches(training, epoch):
            drawn.update(dict.fromkeys(batch.documents))
    return {"query": list(dict.fromkeys(question for question, _ in data.pairs)), "document": list(drawn)}

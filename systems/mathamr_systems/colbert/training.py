"""Training: of all layers, or only of the projection and the last layer over states that are computed once.

::

    train="last", for a CPU
    texts ─▶ layers 1 … L-1 ─▶ states, float16, in memory          once, without gradient
    states of a batch ─▶ layer L ─▶ projection ─▶ rows ─▶ loss     each step

Both use our own batches: the batches of the library's trainer could have known right answers as negatives.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, Literal

import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mathamr_systems.language_models import linear_rate, mixed
from pyterrier_mathamr.extending import (
    FRACTION,
    ConfigError,
    Count,
    HardNegatives,
    Natural,
    Options,
    Pair,
    PairAnswers,
    RunFolder,
    TrainingLoop,
    batches_of,
    between,
    columns_of,
    documents,
    generator_of,
    info_nce,
    progress,
    read_pairs,
)
from pyterrier_mathamr.model import TrainingError, maxsim, maxsim_matrix
from pyterrier_mathamr.posts import MathPost, document_post, post_from_any

from .network import ColBERTTexts, TextSide, batches_of_texts, features_of, finish

ColBERTLoss = Literal["in-batch", "triple"]

PostRecords = Iterable[Mapping[str, Any]]
RowsOf = Callable[[Sequence[str], TextSide], "Ragged"]
LayerState = tuple[Tensor, Tensor, Tensor]
"""Of a text: states before the last layer, float16 ``[L, d_model]``; ids of the tokens; which are attended to."""

States = dict[tuple[TextSide, str], LayerState]

_NEGATIVES = 10_000_018  # used as a batch number, for the generator that draws an epoch's wrong answers


@dataclass(frozen=True, slots=True)
class ColBERTTraining(Options):
    """Training options.

    Attributes:
        train: ``last`` trains only the projection and the last layer, over cached states of the layer below; ``all``
            trains everything, for a GPU.
        loss: ``triple`` contrasts each right answer only with its wrong one, as published; ``in-batch`` also with all
            answers of the batch.
        epochs: over all pairs.
        batch_size: pairs in a step.
        learning_rate: of AdamW, at its greatest.
        weight_decay: of AdamW, not for biases and norms.
        warmup: the share of steps in which the learning rate rises; it then falls to 0. With 0 it is constant.
        hard_negatives: wrong answers drawn for each pair in each epoch, if there are any.
        seed: of shuffling and drawing, and of dropout in all layers; ``last`` trains without dropout.
    """

    train: Literal["last", "all"] = "last"
    loss: ColBERTLoss = "in-batch"
    epochs: Count = 2
    batch_size: Count = 16
    learning_rate: Annotated[float, between(0)] = 5e-5
    weight_decay: Annotated[float, between(0)] = 0.01
    warmup: Annotated[float, FRACTION] = 0.1
    hard_negatives: Natural = 1
    seed: Natural = 0


@dataclass(frozen=True, slots=True)
class Ragged:
    """The rows of several texts."""

    rows: Tensor  # float32 [r, d], end to end
    offsets: Tensor  # int64 [m + 1]

    @classmethod
    def of(cls, padded: Tensor, scoring: Tensor) -> Ragged:
        """Leave out the rows that do not score."""
        return cls(padded[scoring].float(), F.pad(scoring.sum(1).cumsum(0), (1, 0)))

    def text(self, i: int) -> Tensor:
        return self.rows[int(self.offsets[i]) : int(self.offsets[i + 1])]

    def texts(self, places: list[int]) -> Ragged:
        """Return some of the texts, in another order."""
        parts = [self.text(i) for i in places]
        lengths = torch.tensor([0, *map(len, parts)], device=self.rows.device)
        return Ragged(torch.cat(parts), lengths.cumsum(0))


def triple_loss(queries: Ragged, documents: Ragged, wrong: list[int | None]) -> Tensor:
    """L = -ln( e^S(q, p⁺) / (e^S(q, p⁺) + e^S(q, p⁻)) ), the mean over triples (Zhong et al. 2022, section 3.2)."""
    losses = []
    for i, place in enumerate(wrong):
        if place is not None:
            both = documents.texts([i, place])
            right, other = maxsim(queries.text(i), both.rows, both.offsets)
            losses.append(F.softplus(other - right))
    return torch.stack(losses).mean() if losses else queries.rows.sum() * 0.0


def in_batch_loss(queries: Ragged, documents: Ragged, allowed: Tensor) -> Tensor:
    """L = -1/B Σᵢ ln( e^S_ii / Σⱼ e^S_ij ) over a batch and wrong answers, without others that are right."""
    scores = maxsim_matrix(queries.rows, queries.offsets, documents.rows, documents.offsets)
    return info_nce(scores, 1.0, allowed)


@dataclass(frozen=True, slots=True)
class PostBatch:
    """The texts of one step, by name."""

    queries: list[str]  # B question ids
    documents: list[str]  # their B right answers, then H wrong ones
    allowed: Tensor  # bool [B, B + H]: the documents that may be negatives of each question
    wrong: list[int | None]  # for each question the place of its first own wrong answer among the documents


@dataclass(frozen=True, slots=True)
class ColBERTData:
    """The pairs of a run, the posts in them, and the allowed negatives."""

    pairs: tuple[Pair, ...]
    posts: dict[str, MathPost]  # all questions and answers, by name
    answers: PairAnswers  # known to be right
    negatives: HardNegatives

    @classmethod
    def read(
        cls,
        pairs: Iterable[Any] | pd.DataFrame,
        posts: PostRecords | pd.DataFrame | None = None,
        negatives: Mapping[str, Sequence[str]] | None = None,
        never: Mapping[str, Iterable[str]] | None = None,
    ) -> ColBERTData:
        """Read the arguments of ``ColBERT.fit``."""
        given = documents(pairs)
        texts: dict[str, MathPost] = {}
        ids = []
        for item in given:
            if isinstance(item, Mapping) and "question" in item:
                if missing := [
                    name for name in ("qid", "question", "aid", "answer") if not isinstance(item.get(name), str)
                ]:
                    raise TrainingError(f"a pair with texts lacks {', '.join(missing)}: {item!r:.200}")
                texts[item["qid"]] = post_from_any(item["question"])
                texts[item["aid"]] = post_from_any(item["answer"])
                ids.append((item["qid"], item["aid"]))
            else:
                ids.append((item["qid"], item["docno"]) if isinstance(item, Mapping) else item)
        wanted = read_pairs(ids)
        if len(wanted) < 2:
            raise TrainingError(f"training needs at least two pairs, and {len(wanted)} are given.")
        answers = PairAnswers(wanted, never)
        wrong = HardNegatives(negatives or {}, answers)
        names = {name for pair in wanted for name in pair} | set(wrong.documents(wanted))
        for record in documents(posts if posts is not None else ()):
            if record["docno"] in names:
                texts[record["docno"]] = document_post(record)
        if missing := sorted(names - texts.keys()):
            shown = ", ".join(missing[:5])
            raise TrainingError(f"{len(missing)} posts of the pairs and negatives have no text: {shown}. Give posts=.")
        return cls(wanted, texts, answers, wrong)

    def digest(self, texts: ColBERTTexts, training: ColBERTTraining) -> str:
        digest = hashlib.sha256(repr([(name, texts.text(post)) for name, post in self.posts.items()]).encode())
        for epoch in range(1, training.epochs + 1):
            for batch in self.batches(training, epoch):
                digest.update(repr([batch.queries, batch.documents, batch.wrong]).encode())
                digest.update(batch.allowed.numpy().tobytes())
        return digest.hexdigest()

    def batches(self, training: ColBERTTraining, epoch: int) -> list[PostBatch]:
        """Shuffle the pairs of an epoch, draw their wrong answers and cut them into batches."""
        chance = generator_of(training.seed, epoch, _NEGATIVES)
        drawn = self.negatives.draw(self.pairs, training.hard_negatives, chance)
        cut = batches_of(self.pairs, training.batch_size, generator_of(training.seed, epoch, 0))
        return [self._batch(pairs, drawn) for pairs in cut]

    def _batch(self, pairs: list[Pair], drawn: Mapping[Pair, Sequence[str]]) -> PostBatch:
        others = columns_of(pairs, drawn)
        documents = [*(answer for _, answer in pairs), *others]
        place = {name: i for i, name in reversed(list(enumerate(documents)))}
        wrong = [next((place[name] for name in drawn[pair]), None) for pair in pairs]
        allowed: Tensor = self.answers.allowed(pairs, others)
        return PostBatch([question for question, _ in pairs], documents, allowed.to(torch.bool), wrong)


def train_colbert(
    encoder: Any,
    data: ColBERTData,
    texts: ColBERTTexts,
    training: ColBERTTraining,
    folder: RunFolder,
    *,
    states: States | None = None,
    save_every: float = math.inf,
    verbose: bool = False,
) -> list[float]:
    """Train in place, in bfloat16 where the device has it; return the mean loss of each epoch."""
    epochs = [data.batches(training, epoch) for epoch in range(1, training.epochs + 1)]
    starts = list(accumulate(map(len, epochs), initial=0))
    last = training.train == "last"
    network, rows = (_last_layer if last else _all_layers)(encoder, data, texts, epochs, states, verbose)

    def loss(batch: PostBatch) -> Tensor:
        queries, documents = rows(batch.queries, "query"), rows(batch.documents, "document")
        if training.loss == "in-batch":
            return in_batch_loss(queries, documents, batch.allowed.to(queries.rows.device))
        if not any(place is not None for place in batch.wrong):
            raise TrainingError("the loss 'triple' compares with wrong answers. Give negatives=.")
        return triple_loss(queries, documents, batch.wrong)

    tensors = list(network.parameters())
    matrices, others = [one for one in tensors if one.dim() > 1], [one for one in tensors if one.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": others, "weight_decay": 0.0}]
    loop = TrainingLoop(
        network,
        torch.optim.AdamW(groups, lr=training.learning_rate),
        lambda epoch: epochs[epoch - 1],
        loss,
        epochs=training.epochs,
        rate=lambda epoch, i, _: learning_rate(training, starts[epoch - 1] + i, starts[-1]),
        dropout=not last,  # states were computed without, too, and attention is twice as fast without
        seed=None if last else training.seed,
        verbose=verbose,
    )
    return [record.loss for record in loop.train(folder, save_every).history]


def learning_rate(training: ColBERTTraining, step: int, steps: int) -> float:
    """Compute the learning rate of a step, counted from 0: a linear rise and fall, or a constant."""
    share = linear_rate(step, steps, round(training.warmup * steps)) if training.warmup else 1.0
    return training.learning_rate * share


def _last_layer(
    encoder: Any,
    data: ColBERTData,
    texts: ColBERTTexts,
    epochs: Sequence[Sequence[PostBatch]],
    states: States | None,
    verbose: bool,
) -> tuple[nn.Module, RowsOf]:
    """Compute the states before the last layer once; return the trained part, and the function that makes its rows."""
    tail = Tail(encoder)
    known: States = {} if states is None else states
    drawn = dict.fromkeys(name for epoch in epochs for batch in epoch for name in batch.documents)
    names: dict[TextSide, dict[str, None]] = {"query": dict.fromkeys(pair[0] for pair in data.pairs), "document": drawn}
    written = {side: {name: texts.text(data.posts[name]) for name in by_name} for side, by_name in names.items()}
    for side, by_name in written.items():
        tail.add_states(known, side, [text for text in by_name.values() if (side, text) not in known], verbose)
    encoder.eval()

    def rows(names: Sequence[str], side: TextSide) -> Ragged:
        return tail.rows([known[side, written[side][name]] for name in names], side)

    return nn.ModuleDict({"last": tail.last, "projection": encoder[1]}), rows


def _all_layers(encoder: Any, data: ColBERTData, texts: ColBERTTexts, *_options: object) -> tuple[nn.Module, RowsOf]:
    """Return the trained part, and the function that makes its rows."""
    written = {name: texts.text(post) for name, post in data.posts.items()}

    def rows(names: Sequence[str], side: TextSide) -> Ragged:
        features = features_of(encoder, [written[name] for name in names], side)
        with mixed(encoder.device):
            features = encoder[0](features)
        features["token_embeddings"] = features["token_embeddings"].float()
        features = finish(encoder, features, side)
        return Ragged.of(features["token_embeddings"], features["attention_mask"].bool())

    return encoder, rows


class Tail:
    """The last layer of a language model and the modules after it."""

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

    def add_states(self, states: States, side: TextSide, texts: list[str], verbose: bool = False) -> None:
        """Encode texts up to the layer before the last; a query that is expanded has tokens that none attends to."""
        encoder, distinct = self.encoder, list(dict.fromkeys(texts))
        batches = list(batches_of_texts(encoder, distinct, side))
        for members in progress(batches, f"states of {side} texts", "batches", verbose=verbose):
            features = features_of(encoder, [distinct[i] for i in members], side)
            ids, attended = features["input_ids"], features["attention_mask"]
            with torch.no_grad(), mixed(encoder.device):
                hidden = encoder[0].model(ids, attention_mask=attended, output_hidden_states=True).hidden_states[-2]
            used = attended.bool() | features.get("query_expansion_positions", torch.zeros_like(attended)).bool()
            for i, kept, *parts in zip(members, used, hidden.half(), ids, attended, strict=True):
                state, tokens, mask = (part[kept].cpu() for part in parts)
                states[side, distinct[i]] = (state, tokens, mask)

    def rows(self, texts: list[LayerState], side: TextSide) -> Ragged:
        """Apply the last layer, the projection and the mask, with gradient."""
        place = self.encoder.device
        states, ids, attended = (
            pad_sequence(list(part), batch_first=True).to(place) for part in zip(*texts, strict=True)
        )
        present = pad_sequence([torch.ones(len(state[1]), dtype=torch.bool) for state in texts], batch_first=True).to(
            place
        )
        with mixed(place):
            hidden = self.model(inputs_embeds=states.float(), attention_mask=attended).last_hidden_state
        features = {"token_embeddings": hidden.float(), "input_ids": ids, "attention_mask": attended}
        features["query_expansion_positions"] = present & ~attended.bool()
        features = finish(self.encoder, features, side)
        return Ragged.of(features["token_embeddings"], features["attention_mask"].bool())


class _Given(nn.Module):
    """Replaces the embeddings by given states."""

    def forward(self, *, inputs_embeds: Tensor, **others: Any) -> Tensor:
        return inputs_embeds

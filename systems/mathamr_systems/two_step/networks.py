"""The language models of the two-step search: loaded, saved with a description for the search, trained and run.

`BiEncoder` gives one vector of unit length for each text, and the transformers that add it to frames.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
import torch
from torch import Tensor

from mathamr_systems.language_models import find_checkpoint, linear_rate, mixed
from pyterrier_mathamr.explain import AskedError, Explanation, QueryRow
from pyterrier_mathamr.extending import (
    COUNT,
    FORMAT,
    FRACTION,
    UNREADABLE,
    Columns,
    Count,
    MathAMRError,
    MaybeCount,
    Natural,
    Options,
    Pair,
    PostRows,
    Rule,
    RunFolder,
    Side,
    TrainingLoop,
    Validation,
    batches_by_size,
    between,
    check_encoder_folder,
    choose_device,
    described,
    distinct_queries,
    field,
    progress,
    read_saved,
    reason_of,
    require,
    shared,
    sum_faults,
    sums_of,
    without_bars,
    write_saved,
)
from pyterrier_mathamr.model import DocEncoder, ModelFileError, QueryEncoder

EncoderKind = Literal["cross", "bi"]
"""An encoder that reads both texts at once and gives a number, or one that gives a vector for each text."""

DESCRIPTION = "two_step.json"

TOKENS = Rule("an integer from 1 to 1,000,000", lambda value: COUNT.holds(value) and value <= 10**6)
"""The most tokens that a model reads."""


def load_network(name: str | Path, kind: EncoderKind, max_length: int, device: str | None = None) -> Any:
    """Load a language model; missing parts, such as the last layer of a cross-encoder, start at random."""
    library, folder = require("sentence_transformers", "answers"), find_checkpoint(name)
    check_encoder_folder(folder)
    place = choose_device(device)
    # on a CPU, eager attention with bfloat16 trains 1.7 times faster than the fused one
    attention = {"attn_implementation": "eager"} if place.type == "cpu" else {}
    options = {"device": str(place), "trust_remote_code": False, "local_files_only": True}
    options["model_kwargs"] = {"use_safetensors": True, **attention}
    try:
        with _quiet():
            if kind == "cross":
                return library.CrossEncoder(str(folder), num_labels=1, max_length=max_length, **options)
            network = library.SentenceTransformer(str(folder), **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelFileError(folder, f"no language model ({reason})") from error
    network.max_seq_length = max_length
    return network


def read_description(folder: str | Path, model: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Read the description that :meth:`TwoStepModel.save` wrote next to a language model."""
    path = Path(folder) / DESCRIPTION
    try:
        content = read_saved(path, model)
        if (found := field(content, "model", str)) != model:
            raise ValueError(f"it is a {found:.80}")
        for name, rule in rules.items():
            rule.check(name, field(content, name, object))
        return content
    except UNREADABLE as error:
        advice = f"Give a folder that {model}.save() wrote."
        raise ModelFileError(path, f"no {model} ({reason_of(error)})", advice) from error


def two_step_faults(folder: Path) -> Iterator[MathAMRError]:
    """Compare the files of a model with their checksums, and yield the faults."""
    try:
        content = read_saved(folder / DESCRIPTION)
        sums = field(content, "files", dict) if content["format"] == FORMAT else {}
    except UNREADABLE as error:
        yield ModelFileError(folder / DESCRIPTION, reason_of(error))
        return
    yield from sum_faults(folder, sums)


B = TypeVar("B")

_CLIP = 1.0  # the largest norm of a gradient


@dataclass(frozen=True, slots=True)
class FitOptions(Options):
    """Training options for a language model of the two-step search.

    Batch size and maximum epochs are published (Mansouri, dissertation, 2022, section 5.3.1); the other options are
    the defaults of sentence-transformers except for the learning rate's warm-up.

    Args:
        epochs: most epochs: 20 for questions, 50 for answers there.
        batch_size: pairs of a step, 64 there.
        learning_rate: the largest, of AdamW; it falls linearly to 0.
        warm_up: the share of the steps in which the learning rate rises.
        layers: train only this many of the last layers, and the head; ``None`` for all. With 2 of MiniLM's 6 a
            step needs less than half the time.
        seed: of the order of pairs, of negatives, and of dropout.

    Raises:
        ConfigError: an option is out of its range.
    """

    epochs: Count = 10
    batch_size: Count = 64
    learning_rate: Annotated[float, between(0)] = 2e-5
    warm_up: Annotated[float, FRACTION] = 0.1
    layers: MaybeCount = None
    seed: Natural = 0


class Epoch(NamedTuple):
    """The mean loss of the steps of an epoch, and the loss on held-out pairs where there are some."""

    loss: float
    validation: float | None


class TwoStepModel:
    """A model of sentence-transformers, and how it reads texts."""

    OPTIONS: ClassVar[Mapping[str, Rule]]
    """The options of the constructor after ``network``, in order."""

    kind: EncoderKind = "bi"

    DESCRIPTION = DESCRIPTION
    faults = staticmethod(two_step_faults)

    def __init__(self, network: Any, **options: object) -> None:
        for name, value in options.items():
            self.OPTIONS[name].check(name, value)
            setattr(self, name, value)
        self.network = network
        self._stamp: tuple[object, ...] = ()
        self._digest, self._weights = "", list[Any]()

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str | None = None) -> Self:
        """Load a model that :meth:`save` wrote; raise ``ModelFileError`` if the folder has none.

        Args:
            folder: of the model.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        """
        saved = read_description(folder, cls.__name__, {**cls.OPTIONS, "max_length": TOKENS})
        network = load_network(folder, saved.get("kind", cls.kind), saved["max_length"], device)
        return cls(network, **{name: saved[name] for name in cls.OPTIONS})

    @staticmethod
    def described(folder: Path) -> str:
        """Describe a saved model in a few words."""
        return f"model, {described(folder / DESCRIPTION)}"

    @property
    def max_length(self) -> int:
        """Most tokens of an input."""
        return int(self.network.max_length if self.kind == "cross" else self.network.max_seq_length)

    def _described(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*self.OPTIONS, "max_length")}

    def _train(
        self,
        batches: Callable[[np.random.Generator], Sequence[B]],
        loss_of: Callable[[B, int], Tensor],
        validate: Callable[[], float] | None,
        options: FitOptions,
        data: object,
        *,
        checkpoint: str | Path | None,
        fresh: bool,
        save_every: float,
        verbose: bool,
    ) -> list[Epoch]:
        """Train the network; it ends with the weights of the epoch that was best on held-out pairs, else the last.

        ``batches`` draws the batches of the next epoch, ``loss_of`` is called with a batch and the number of its step,
        from 0, and ``data`` is everything on which they depend.
        """
        network, random = self.network, np.random.default_rng(options.seed)
        drawn, passed = (batches(random) for _ in range(options.epochs)), 0

        def numbered(epoch: int) -> list[tuple[int, B]]:
            nonlocal passed  # a resumed run draws the batches of earlier epochs, too
            next_batches, passed = next(islice(drawn, epoch - 1 - passed, None)), epoch
            return list(enumerate(next_batches, (epoch - 1) * len(next_batches)))

        def rate(epoch: int, i: int, steps: int) -> float:
            total = options.epochs * steps
            warm_up = max(1, round(options.warm_up * total))
            return options.learning_rate * linear_rate((epoch - 1) * steps + i, total, warm_up)

        with RunFolder(checkpoint) as folder:
            if checkpoint is not None:
                digest = hashlib.sha256(repr(data).encode("utf-8", "surrogatepass")).hexdigest()
                run = {**options.to_dict(), "data": digest, "starting model": self.identity()}
                folder.begin(run, fresh=fresh)
            loop: TrainingLoop[tuple[int, B], tuple[int, B]] = TrainingLoop(
                network,
                torch.optim.AdamW(_trained(network, options.layers), lr=options.learning_rate),
                numbered,
                lambda batch: loss_of(batch[1], batch[0]),
                epochs=options.epochs,
                rate=rate,
                clip=_CLIP,
                validate=None if validate is None else lambda _mean: Validation(*[validate()] * 2),
                seed=options.seed,
                verbose=verbose,
            )
            try:
                history = loop.train(folder, save_every).history
            finally:
                network.requires_grad_(True)
        return [Epoch(record.loss, None if validate is None else record.validation_loss) for record in history]

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder, which may have an older one."""
        folder, name = Path(folder), type(self).__name__
        (folder / DESCRIPTION).unlink(missing_ok=True)  # a model that is written half is none
        with _quiet():
            self.network.save_pretrained(str(folder), create_model_card=False)
        write_saved(folder / DESCRIPTION, name, {"model": name, **self._described(), "files": sums_of(folder)})

    def identity(self) -> str:
        """Return the digest of weights and options, by which an index recognizes its model."""
        said = " ".join(map(str, self._described().values()))
        weights = sorted(self.network.state_dict(keep_vars=True).items())
        written = [(id(value), value._version, value.data_ptr(), value.dtype) for _, value in weights]
        if (said, *written) != self._stamp:
            digest = hashlib.sha256(said.encode())
            for name, value in weights:
                digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
            self._stamp, self._digest = (said, *written), digest.hexdigest()[:32]
            self._weights = [value for _, value in weights]  # kept, so that no other tensor gets their ids
        return f"{type(self).__name__.lower()}:{self._digest}"


@shared
@contextmanager
def _quiet() -> Iterator[None]:
    """Load or save without bars, and without the report of layers that start at random, as documented."""
    loggers = [logging.getLogger(name) for name in ("transformers", "sentence_transformers")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with without_bars():
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


_MARGIN, _SCALE = 0.5, 20.0
_LOSSES = "sentence_transformers.sentence_transformer.losses"


class QuestionBatch(NamedTuple):
    """Similar pairs, and pairs that are not similar."""

    similar: list[Pair]
    others: list[Pair]


class InMixedPrecision(torch.nn.Module):
    """A ``SentenceTransformer`` in bfloat16 where its processor multiplies in it, whose vectors are float32."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add ``sentence_embedding``, float32 ``[n, d]``."""
        with mixed(self.network.device):
            encoded: dict[str, Any] = self.network(features)
        return {**encoded, "sentence_embedding": encoded["sentence_embedding"].float()}

    def features(self, texts: Sequence[str]) -> dict[str, Any]:
        """Tokenize texts, on the device of the network."""
        device = self.network.device
        tokenized = self.network.preprocess(list(texts))
        return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in tokenized.items()}

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Encode texts: float32 ``[n, d]``, with gradient."""
        vectors: Tensor = self(self.features(texts))["sentence_embedding"]
        return vectors


class PairLosses:
    """``OnlineContrastiveLoss`` of all pairs of a batch, and ``MultipleNegativesRankingLoss`` of the similar ones."""

    def __init__(self, network: Any) -> None:
        library: Any = require(_LOSSES, "answers")
        self.model = InMixedPrecision(network)
        self._contrastive = library.OnlineContrastiveLoss(self.model, margin=_MARGIN)
        self._ranking = library.MultipleNegativesRankingLoss(self.model, scale=_SCALE)

    def of_batch(self, batch: QuestionBatch, step: int) -> Tensor:
        """Compute the contrastive loss in even steps, the ranking loss in odd ones."""
        return self.ranking(batch.similar) if step % 2 and batch.similar else self.contrastive(batch)

    def contrastive(self, batch: QuestionBatch) -> Tensor:
        """Compute the contrastive loss; pairs that are far on their side already add nothing."""
        if not any(batch):
            return torch.zeros(())
        labels = torch.tensor([1] * len(batch.similar) + [0] * len(batch.others), device=self.model.network.device)
        loss: Tensor = self._contrastive(self._columns([*batch.similar, *batch.others]), labels)
        return loss

    def ranking(self, pairs: Sequence[Pair]) -> Tensor:
        """Compute the ranking loss of similar pairs: the right texts of the others are the negatives of each."""
        loss: Tensor = self._ranking(self._columns(pairs), None)
        return loss

    def held_out(self, pairs: Sequence[Pair], batch_size: int) -> float:
        """Compute the mean ranking loss of batches of held-out pairs, without gradient."""
        starts = [*range(0, len(pairs), batch_size), len(pairs)]
        with torch.no_grad():
            return float(np.mean([float(self.ranking(pairs[start:end])) for start, end in pairwise(starts)]))

    def _columns(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        return [self.model.features([pair[side] for pair in pairs]) for side in (0, 1)]


def random_batches(
    pairs: Sequence[Pair], known: set[Pair], batch_size: int, random: np.random.Generator
) -> list[QuestionBatch]:
    """Cut pairs into batches in random order, with a random right text of the others as a negative of each."""
    right = [pair[1] for pair in pairs]
    order = random.permutation(len(pairs)).tolist()
    drawn_batches = []
    for start in range(0, len(order), batch_size):
        similar = [pairs[i] for i in order[start : start + batch_size]]
        drawn = [right[i] for i in random.integers(len(right), size=len(similar))]
        others = [(left, other) for (left, _), other in zip(similar, drawn, strict=True)]
        others = [(a, b) for a, b in others if a != b and (a, b) not in known and (b, a) not in known]
        drawn_batches.append(QuestionBatch(similar, others))
    return drawn_batches


def _trained(network: Any, layers: int | None) -> list[Tensor]:
    """Freeze all but the last layers and the modules after them, and list the parameters that are trained."""
    network.requires_grad_(True)
    stacks = [part for part in network.modules() if isinstance(part, torch.nn.ModuleList) and len(part) > 1]
    if layers is not None and stacks:
        stack = max(stacks, key=len)
        names = [name for name, _ in network.named_parameters()]
        first = stack[max(0, len(stack) - layers)]
        of_first = {id(parameter) for parameter in first.parameters()}
        start = next(i for i, (_, value) in enumerate(network.named_parameters()) if id(value) in of_first)
        frozen = set(names[:start])
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name not in frozen)
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


_BUDGET = 1_024  # tokens of a batch, padding included
_AT_ONCE = 4_096  # texts whose tokens are in memory


class BiEncoderRows(PostRows):
    """Reads a text of each row of a frame, and encodes each distinct text to one vector, float32 ``[1, d]``."""

    batch_size = 256

    def __init__(self, model: BiEncoder, verbose: bool) -> None:
        self.model, self.verbose = model, verbose
        self.label = model.label  # type: ignore[misc]

    def check(self, frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
        with pt.validate.any(frame, context=stage) as validation:
            for name in self.model.text_columns(side):
                validation.columns(includes=["docno" if side == "documents" else "qid", name])

    def read_queries(self, frame: pd.DataFrame) -> dict[Any, str]:
        topics = distinct_queries(frame)
        return dict(zip(topics["qid"], self._texts(topics, "queries"), strict=True))

    def key(self, queries: Sequence[str]) -> Hashable:
        return self.model.identity(), tuple(queries)

    def of_queries(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """Encode queries; one without words has no row, float32 ``[0, d]``."""
        identity = self.model.identity()
        rows = [row[None][: int(np.any(row))] for row in self._encode(queries)]
        return [{"query_embs": vector, "query_model": identity} for vector in rows]

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode documents; one without words is similar to none."""
        rows = self._encode(self._texts(frame, "documents"))
        return {"doc_embs": list(rows[:, None]), "doc_model": self.model.identity()}

    def explain(self, query: QueryRow, docno: str | None) -> Explanation:
        """Raise an error: a cosine of vectors has no parts."""
        raise AskedError(self.label, "a cosine of vectors has no parts", "Explain the ranking of an index.")

    def _texts(self, frame: pd.DataFrame, side: Side) -> list[str]:
        return [self.model.row_text(row, side) for row in frame.to_dict("records")]

    def _encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return self.model.encode(list(distinct), verbose=self.verbose)[[distinct[text] for text in texts]]


class BiEncoder(TwoStepModel):
    """A ``SentenceTransformer`` that gives one vector of unit length for each text."""

    label: ClassVar[str]
    """Its name in drawings and progress bars."""

    def text_columns(self, side: Side) -> Sequence[str]:
        """List the text columns; a frame needs one of them."""
        raise NotImplementedError

    def row_text(self, row: Mapping[Any, Any], side: Side) -> str:
        """Write the input of the model for a row."""
        raise NotImplementedError

    def encode(self, texts: Sequence[str], *, verbose: bool = False) -> npt.NDArray[np.float32]:
        """Encode texts in batches of similar lengths, in bfloat16 where the processor multiplies in it.

        Args:
            texts: any number.
            verbose: show progress.

        Returns:
            float32 ``[n, d]``, rows of unit length; zeros for a text without words.
        """
        network, model = self.network.eval(), InMixedPrecision(self.network)
        vectors_of_texts = np.zeros((len(texts), network.get_embedding_dimension()), np.float32)
        written = [i for i, text in enumerate(texts) if text.strip()]
        if not written:
            return vectors_of_texts
        sizes = list[int]()
        for start in range(0, len(written), _AT_ONCE):
            some = [texts[i] for i in written[start : start + _AT_ONCE]]
            tokens = network.tokenizer(some, truncation=True, max_length=network.max_seq_length)
            sizes += map(len, tokens["input_ids"])
        for members in progress(batches_by_size(sizes, _BUDGET), self.label, "batches", verbose=verbose):
            places = [written[member] for member in members]
            with torch.inference_mode():
                vectors = model.vectors([texts[i] for i in places])
            vectors_of_texts[places] = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
        return vectors_of_texts

    def post_rows(self, *, device: str | None = None, verbose: bool = False) -> BiEncoderRows:
        """Return how the transformers encode the texts of a frame with this model.

        Args:
            device: no effect: the model stays where it was loaded.
            verbose: show progress.
        """
        return BiEncoderRows(self, verbose)

    def query_encoder(self, *, verbose: bool = False) -> QueryEncoder:
        """Return the transformer that adds ``query_embs``, float32 ``[1, d]``, and ``query_model`` to queries.

        Args:
            verbose: show progress.
        """
        return QueryEncoder(self, verbose=verbose)

    def doc_encoder(self, *, batch_size: int | None = None, verbose: bool = False) -> DocEncoder:
        """Return the transformer that adds ``doc_embs``, float32 ``[1, d]``, and ``doc_model`` to documents.

        Args:
            batch_size: documents that an indexing pipeline encodes together; by default 256.
            verbose: show progress.
        """
        return DocEncoder(self, batch_size=batch_size, verbose=verbose)

"""`MaRF`: a context encoder, the network over it, their files, and how the transformers encode posts with it.

::

    marf.json             {"format": 1, "config": {…}, "training": {…}, "vocabulary": […], "backbone": name or "",
                           "weights": <sha256 of the file>, "context": {file: sha256}, "checksum": …}
    weights.safetensors   the trained parameters
    context/              the context encoder, where it has no name
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor

from mathamr_systems.language_models import EncoderPrecision, ModelPreset, TokenModel, TokenPosts
from mathamr_systems.math_tokens import MathVocabulary
from pyterrier_mathamr.explain import Part
from pyterrier_mathamr.extending import (
    BUNDLED_MODELS,
    HUB,
    WEIGHTS,
    Columns,
    ConfigError,
    MathAMRError,
    check_new_folder,
    one_of,
    other_shapes,
    pack_weights,
    read_description,
    read_weights,
    sum_faults,
    sums_of,
    without_bars,
)
from pyterrier_mathamr.model import DocEncoder, ModelNotFoundError, exact_maxsim
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.store import new_folder, signed

from .network import (
    UNKNOWN,
    ContextEncoder,
    FormulaTokens,
    MaRFConfig,
    MaRFNetwork,
    MaRFPost,
    Symbols,
    TokenView,
    formula_rows,
    formula_tokens,
    fused_rows,
    padded,
    set_maps,
)
from .training import MaRFRun, MaRFStep, MaRFTraining

PRESETS: dict[ModelPreset, tuple[MaRFConfig, MaRFTraining]] = {
    "published": (MaRFConfig(text="tokens", formula_vocabulary="context"), MaRFTraining()),
    "mini": (
        MaRFConfig(
            query_length=96,
            document_length=128,
            output=128,
            formula_layers=4,
            formula_heads=4,
            formula_width=256,
            formula_hidden=1024,
            formulas=3,
        ),
        MaRFTraining(formula_steps=150, formula_batch=32, formula_rate=5e-4, epochs=2, rate=3e-4),
    ),
}
"""The paper's sizes, and ours for a CPU: MiniLM unchanged, LaTeX between dollars, rows of 128 numbers."""

Store = Literal["views", "parts"]
"""The stored form of a document: a row of each token for each of its views, or once, with its formulas."""

FORMULAS = "\n"
"""Separates the formulas of a document's parts; math tokens have no line break."""

DESCRIPTION = "marf.json"
CONTEXT = "context"
FORMAT_VERSION = 1


class MaRF(TokenModel):
    """Token rows of a post, fused with the rows of its formulas (MaRF, Wang, Zheng and Kani).

    A frozen language model computes a row for each token of a post, E_c; a small transformer trained only on formulas
    computes a row for each token of a formula, E_f; gated cross-attention adds information of the second to the first.
    A post has a view for each of up to six formulas, all with the same E_c; the score of a post is the mean of MaxSim
    over its views. A post without formulas has the view E_c. Needs transformers (extra ``answers``).

    Make one by :meth:`new` or :meth:`from_pretrained`.

    Args:
        context: the language model.
        config: the options of the model.
        vocabulary: math tokens of the formula encoder.
        training: how :meth:`fit` trains.
        weights: the trained parameters by name; random ones if not given.

    Example::

        marf = mathamr_systems.MaRF.from_pretrained("my-marf")
        index = mathamr_systems.MaRFIndex("answers.marf")
        (marf.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
        pipeline = bm25 >> marf.query_encoder() >> index.scorer()
    """

    DESCRIPTION, NOUN = DESCRIPTION, "MaRF model"

    def __init__(
        self,
        context: ContextEncoder,
        config: MaRFConfig,
        vocabulary: MathVocabulary,
        training: MaRFTraining | None = None,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.context, self.config, self.training = context, config, training or MaRFTraining()
        self.tokens = FormulaTokens(vocabulary, context.tokenizer if config.formula_vocabulary == "context" else None)
        self._network = MaRFNetwork(config, context.width, len(self.tokens)).eval()
        if weights is not None:
            self._network.load_state_dict(dict(weights))
        self._folder: Path | None = None

    @classmethod
    def new(
        cls,
        backbone: str = "all-MiniLM-L6-v2",
        posts: Iterable[MathPost] = (),
        *,
        preset: ModelPreset = "mini",
        config: MaRFConfig | None = None,
        training: MaRFTraining | None = None,
        min_count: int = 5,
        cache: str | Path | None = None,
        device: str | None = None,
        verbose: bool = False,
    ) -> MaRF:
        """Make an untrained model: without a map of its rows it equals its context encoder, bit for bit.

        Args:
            backbone: name or folder of an encoder, such as BERT, or of a causal model, such as
                ``hf:Qwen/Qwen3-Embedding-0.6B``.
            posts: their math tokens get embeddings, and the linear maps begin as the principal directions of their
                rows; use the posts of the training pairs.
            preset: ``published`` or ``mini``, the defaults of the other options.
            config: the options of the model.
            training: the options of training.
            min_count: minimum number of formulas of ``posts`` with a math token of the formula encoder.
            cache: a file that keeps the rows of the context encoder for later runs; ``marf.context.cache``.
            device: where to encode ``posts``; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show progress.

        Raises:
            ModelNotFoundError: there is no such backbone. ConfigError: an option does not fit the backbone.
        """
        one_of(*get_args(ModelPreset)).check("preset", preset)
        config, training = config or PRESETS[preset][0], training or PRESETS[preset][1]
        known = list(posts)
        context = ContextEncoder.load(backbone, config)
        context.cache = cache
        width = config.width or context.width
        if width % config.heads:
            raise ConfigError("heads", config.heads, f"a divisor of the width {width} of the rows")
        if config.text == "tokens":
            latex = [formula.latex for post in known for formula in post.formulas]
            MathVocabulary.of(context.tokenizer).warn_lacking(latex)
        vocabulary = MathVocabulary.learn(known, min_count, formula_tokens)
        marf = cls(context, config, vocabulary, training)
        if known and marf._network.maps:
            set_maps(marf._network, context, [MaRFPost.of(post, config).text for post in known], device, verbose)
        return marf

    def formulas_alone(self) -> MaRF:
        """Return a model of the same formula encoder without the text encoder; see :attr:`MaRFConfig.context`."""
        config = replace(self.config, context=False)
        return MaRF(self.context, config, self.tokens.vocabulary, self.training, self._weights())

    @classmethod
    def from_pretrained(cls, path: str | Path) -> MaRF:
        """Open a model.

        Args:
            path: a folder that :meth:`save` wrote.

        Raises:
            ModelNotFoundError: there is no such model, or its backbone is missing. ModelFileError: a file is missing
            or damaged.
        """
        folder = Path(path)
        if not (folder / DESCRIPTION).is_file():
            raise ModelNotFoundError(str(folder), f"it has no {DESCRIPTION}. Give the path that MaRF.save() wrote")
        config, training, vocabulary, backbone, weights = _read(folder)
        try:
            marf = cls(ContextEncoder.load(backbone, config), config, vocabulary, training, weights)
        except RuntimeError as error:
            raise other_shapes(folder / WEIGHTS, DESCRIPTION) from error
        marf._folder = folder
        return marf

    @classmethod
    def faults(cls, folder: Path) -> Iterator[MathAMRError]:
        """Read a saved model without its backbone, compare every checksum, and yield the faults."""
        try:
            _read(folder)
        except MathAMRError as error:
            yield error

    def save(self, path: str | Path) -> None:
        """Write the model to a new folder, atomically; a backbone in a folder is copied, a named one is named.

        Raises:
            ConfigError: the folder exists. WriteError: it cannot be written.
        """
        context, packed = self.context, pack_weights(self._weights())
        named = context.name.startswith(HUB) or context.name in BUNDLED_MODELS
        with new_folder(check_new_folder(path)) as folder:
            if not named:
                with without_bars():
                    context.network.save_pretrained(folder / CONTEXT)
                context.tokenizer.save_pretrained(folder / CONTEXT)
            content = {
                "format": FORMAT_VERSION,
                "config": self.config.to_dict(),
                "training": self.training.to_dict(),
                "vocabulary": list(self.tokens.vocabulary.tokens),
                "backbone": context.name if named else "",
                "weights": hashlib.sha256(packed).hexdigest(),
                "context": sums_of(folder / CONTEXT),
            }
            (folder / WEIGHTS).write_bytes(packed)
            (folder / DESCRIPTION).write_bytes(signed(content))

    def doc_encoder(
        self,
        *,
        device: str | None = None,
        batch_size: int | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
        store: Store = "views",
    ) -> DocEncoder:
        """Return the transformer that encodes documents.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            batch_size: how many documents an indexing pipeline encodes together.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
            store: the stored form of a document; see :meth:`post_rows`.
        """
        options: dict[str, Any] = {"device": device, "precision": precision, "store": store}
        return DocEncoder(self, batch_size=batch_size, verbose=verbose, **options)

    def post_rows(
        self,
        *,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
        store: Store = "views",
    ) -> MaRFPosts:
        """Return how the transformers encode the posts of a frame with this model.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
            store: of documents, ``views``; or ``parts``, the token vectors of the context encoder once, with the math
                tokens of the formulas. ``index.parts_scorer(marf)`` computes the views of such documents.
        """
        return MaRFPosts(self, device, precision, verbose, store)

    def fit(
        self,
        pairs: Sequence[tuple[str, str]],
        posts: Mapping[str, MathPost],
        *,
        known: Mapping[str, Iterable[str]] | None = None,
        formula_pairs: Collection[tuple[str, str]] | None = None,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        device: str | None = None,
        verbose: bool = False,
    ) -> tuple[MaRFStep, ...]:
        """Train the formula encoder on pairs of formulas, then the fusion on pairs of posts.

        The context encoder is frozen throughout, the formula encoder in the second part. The same pairs and options
        give the same bytes on CPUs of the same kind.

        Args:
            pairs: questions and right answers, by id.
            posts: by id, all of the pairs.
            known: by question, further answers that are never its negatives.
            formula_pairs: the pairs whose formulas are trained on, in the paper accepted answers; ``None`` for all.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show progress.

        Returns:
            The loss of each batch.

        Raises:
            TrainingError: there are too few pairs, or a loss is not finite.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        self._folder = None
        vars(self).pop("identity", None)
        training = MaRFRun(
            self,
            pairs,
            posts,
            known or {},
            formula_pairs=formula_pairs,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            fresh=fresh,
            save_every=save_every,
            device=device,
            verbose=verbose,
        )
        try:
            steps = [] if self.config.keys == "context" else training.formulas()
            return (*steps, *(training.fusion() if self.config.context else ()))
        finally:
            self._network.cpu().eval()

    def readings(self, posts: Sequence[MathPost]) -> list[MaRFPost]:
        """Read posts as this model does."""
        return [MaRFPost.of(post, self.config) for post in posts]

    def encode(
        self,
        readings: Sequence[MaRFPost],
        names: Sequence[str] = (),
        *,
        query: bool = False,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> list[list[TokenView]]:
        """Encode posts: a view for each chosen formula, or a view of only the context for a post without formulas.

        Args:
            readings: the posts.
            names: the seed of each post's choice of formulas, such as its docno.
            query: whether they are queries.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.

        Returns:
            For each post its views, float32 ``[n, d]`` with rows of unit length, ``[CLS]`` last.
        """
        options: dict[str, Any] = {"device": device, "precision": precision}
        chosen = [
            self.chosen(reading, name, query)
            for reading, name in zip(readings, names or [""] * len(readings), strict=True)
        ]
        if not self.config.context:
            chosen = [some or (() if query else (UNKNOWN,)) for some in chosen]
            of_formulas = self.formula_rows({one for some in chosen for one in some}, **options)
            unit = {one: F.normalize(rows, dim=1).numpy() for one, rows in of_formulas.items()}
            return [[unit[one] for one in some] or [np.empty((0, self.dimensions), np.float32)] for some in chosen]
        contexts = self.context.encode([reading.text for reading in readings], query=query, verbose=verbose, **options)
        return self.fuse(contexts, chosen, verbose=verbose, **options)

    def fuse(
        self,
        contexts: Sequence[TokenView],
        chosen: Sequence[Sequence[Symbols]],
        *,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> list[list[TokenView]]:
        """Fuse the context rows of each post with each of its formulas; see :meth:`encode`.

        Args:
            contexts: the rows of each post, float32 ``[n, c]``.
            chosen: the formulas of each post; a post without any has one view, of its context.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
        """
        options: dict[str, Any] = {"device": device, "precision": precision}
        of_formulas = self.formula_rows({one for some in chosen for one in some}, **options)
        tasks: list[tuple[int, Symbols | None]] = []
        for place, some in enumerate(chosen):
            tasks += [(place, one) for one in some] or [(place, None)]
        views: list[list[TokenView]] = [[] for _ in contexts]
        fusible = [(contexts[place], of_formulas[one] if one else None) for place, one in tasks]
        made = fused_rows(self._network, fusible, self.config.keys, verbose=verbose, **options)
        for (place, _), view in zip(tasks, made, strict=True):
            views[place].append(view)
        return views

    def formula_batch(self, formulas: Sequence[Symbols], device: torch.device) -> tuple[Tensor, Tensor]:
        """Encode ``formulas`` on ``device`` to train: float ``[b, m, f]``, and the mask of padding, bool ``[b, m]``."""
        ids = [torch.tensor(self.tokens.ids(one, self.config.formula_length)) for one in formulas]
        batch, missing = padded(ids, device)
        return self._network.formulas(batch, missing), missing

    def formula_rows(
        self, formulas: Iterable[Symbols], *, device: str | None = None, precision: EncoderPrecision = "auto"
    ) -> dict[Symbols, Tensor]:
        """Encode distinct formulas: float32 ``[m, f]`` each.

        Args:
            formulas: as math tokens.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
        """
        encoder, length = self._network.formulas, self.config.formula_length
        return formula_rows(encoder, self.tokens, formulas, length, device=device, precision=precision)

    def chosen(self, reading: MaRFPost, name: str, query: bool) -> tuple[Symbols, ...]:
        """Choose the formulas that a post has views of, by the seed ``name``; none for a post without formulas.

        Args:
            reading: the post.
            name: the seed of the choice, such as its docno.
            query: whether it is a query.
        """
        if self.config.keys == "context":
            return ()
        if not query:
            return reading.some(self.config.formulas, name)
        return reading.longest() if self.config.query_formulas == "longest" else reading.formulas

    @property
    def dimensions(self) -> int:
        """Numbers of a row."""
        if not self.config.context:
            return self.config.formula_width
        return self.config.output or self.config.width or self.context.width

    @cached_property
    def identity(self) -> str:
        """Sha256 of options, vocabulary and all weights: 64 hexadecimal digits."""
        config = self.config.to_dict()
        if self.config.context:
            del config["context"]  # earlier releases have no such option, and the same model is the same
        text = json.dumps([config, self.tokens.vocabulary.tokens, self.context.identity], sort_keys=True)
        return hashlib.sha256(text.encode() + pack_weights(self._weights())).hexdigest()

    @property
    def name(self) -> str:
        """The name and the beginning of the identity, which an index stores of its model."""
        return f"MaRF@{self.identity[:16]}"

    @property
    def parts_name(self) -> str:
        """The name of the parts of this model, so that an index of them refuses queries for views."""
        return f"{self.name} parts"

    def _weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu() for name, tensor in self._network.state_dict().items()}


class MaRFPosts(TokenPosts):
    """Reads the posts of a frame, and encodes each distinct one to its views."""

    label = "MaRF"
    help_url = "https://github.com/MLPgroup/MaRF"
    doc_columns = ("doc_views", "doc_formulas", "doc_model")
    model: MaRF

    def __init__(
        self, model: MaRF, device: str | None, precision: EncoderPrecision, verbose: bool, store: Store = "views"
    ) -> None:
        one_of(*get_args(Store)).check("store", store)
        if store == "parts" and not model.config.context:
            raise ConfigError("store", store, "'views' of a model without a context")
        super().__init__(device, precision, verbose)
        self.store = store
        self.model, self._weighted = model, model.config.query_formulas == "all"
        self.query_columns = ("query_embs", "query_model", *(("query_weights",) if self._weighted else ()))

    def of_queries(self, queries: Sequence[MathPost]) -> list[dict[str, Any]]:
        """Encode queries; one without text has no rows."""
        readings = self.model.readings([post for post in queries if post.text.strip()])
        encoded = iter(self.model.encode(readings, query=True, **self.options))
        encoded_queries: list[dict[str, Any]] = []
        for post in queries:
            views = next(encoded) if post.text.strip() else [np.empty((0, self.model.dimensions), np.float32)]
            rows = np.concatenate(views)
            encoded_queries.append({"query_embs": rows, "query_model": self.model.name})
            if self._weighted:
                encoded_queries[-1]["query_weights"] = np.full(len(rows), 1 / len(views))
        return encoded_queries

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode documents, with the math tokens of the formula of each view."""
        names, posts = self.document_posts(frame, of_ranking)
        seeds = [str(name) if "docno" in frame.columns else "" for name in posts]
        readings, parts = self.model.readings(list(posts.values())), self.store == "parts"
        chosen = [self.model.chosen(reading, seed, False) for reading, seed in zip(readings, seeds, strict=True)]
        if parts:
            made = [
                [written]
                for written in self.model.context.encode([reading.text for reading in readings], **self.options)
            ]
        else:
            made = self.model.encode(readings, seeds, **self.options)
        texts = [[" ".join(one) for one in some] for some in chosen]
        formulas = [[FORMULAS.join(written)] if parts else written or [""] for written in texts]
        places = {name: place for place, name in enumerate(posts)}
        return {
            "doc_views": [made[places[name]] for name in names],
            "doc_formulas": [formulas[places[name]] for name in names],
            "doc_model": self.model.parts_name if parts else self.model.name,
        }

    def score(self, query: Mapping[str, Any], documents: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Score documents by the mean over their views, rounded to float32 precision: float64 ``[m]``."""
        means = [np.float32(view_scores(query, views).mean()) for views in documents["doc_views"]]
        return np.array(means, np.float64)

    def parts(self, label: str, frame: pd.DataFrame) -> list[Part]:
        (query,) = self.of_queries(list(self.read_queries(frame).values()))
        document: Any = self.documents(frame, of_ranking=True)
        (views,), (formulas,) = document["doc_views"], document["doc_formulas"]
        return view_parts(label, view_scores(query, views), formulas)


def view_scores(query: Mapping[str, Any], views: Sequence[TokenView]) -> npt.NDArray[np.float64]:
    """Score each view of a document against the columns of a query: float64 ``[views]``, of float32 precision."""
    offsets = np.cumsum([0, *map(len, views)], dtype=np.int64)
    return exact_maxsim(query["query_embs"], np.concatenate(views), offsets, query.get("query_weights"))


def view_parts(system: str, scores: Sequence[float] | npt.NDArray[np.float64], formulas: Sequence[str]) -> list[Part]:
    """Make a part of each view, its formula and its share of the score."""
    share = 1 / len(formulas)
    return [
        Part(system, "view", "", "formula" if formula else "document", formula, contribution=float(score) * share)
        for score, formula in zip(scores, formulas, strict=True)
    ]


def _read(folder: Path) -> tuple[MaRFConfig, MaRFTraining, MathVocabulary, str, dict[str, Tensor]]:
    """Read a model's files, and check every byte; the name or folder of the backbone is before the weights."""

    def read(content: dict[str, Any]) -> tuple[MaRFConfig, MaRFTraining, MathVocabulary, str, dict[str, Tensor]]:
        for fault in sum_faults(folder / CONTEXT, content["context"]):
            raise fault
        return (
            MaRFConfig.from_dict(content["config"]),
            MaRFTraining.from_dict(content["training"]),
            MathVocabulary(tuple(map(str, content["vocabulary"]))),
            str(content["backbone"]) or str(folder / CONTEXT),
            read_weights(folder / WEIGHTS, str(content["weights"]), DESCRIPTION),
        )

    return read_description(folder / DESCRIPTION, FORMAT_VERSION, MaRF.NOUN, read)

"""`ColBERT`, a model of token rows for posts with formulas, how the transformers encode with it, `LateInteraction`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from mathamr_systems.language_models import (
    EncoderPrecision,
    ModelPreset,
    TokenModel,
    TokenPosts,
    find_checkpoint,
    loading,
)
from mathamr_systems.math_tokens import MathVocabulary
from pyterrier_mathamr.explain import Part
from pyterrier_mathamr.extending import (
    Columns,
    Pipeline,
    RunFolder,
    check_encoder_folder,
    check_new_folder,
    choose_device,
    one_of,
    without_bars,
)
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import DocEncoder, QueryEncoder, TextScorer
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.store import new_folder

from .network import (
    DESCRIPTION,
    ColBERTOptions,
    ColBERTTexts,
    TextRows,
    TextSide,
    assemble,
    colbert_faults,
    digest_of,
    encode_texts,
    form_of,
    has_math_tokens,
    load_checkpoint,
    math_start,
    random_projection,
    read_options,
    write_description,
)
from .training import ColBERTData, ColBERTTraining, PostRecords, States, train_colbert

PRESETS: dict[ModelPreset, tuple[ColBERTOptions, ColBERTTraining]] = {
    "published": (
        ColBERTOptions(query_length=512, document_length=512, query_expansion=True, math=True),
        ColBERTTraining("all", "triple", epochs=7, batch_size=48, learning_rate=1e-6, warmup=0.0),
    ),
    "mini": (ColBERTOptions(), ColBERTTraining()),
}
"""The settings of Zhong, Xie and Lin (CLEF 2022), and our choice for a CPU.

Math tokens need a language model that was pretrained on them, as the published one was: without, LaTeX as text ranks
better.
"""


class ColBERT(TokenModel):
    """Token rows of questions and answers, compared by MaxSim (Zhong, Xie and Lin, CLEF 2022; extra ``colbert``).

    A language model encodes each token of a text, formulas as math tokens; a projection maps each to ``d`` dimensions
    and unit length. S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ. The rows go into a :class:`~pyterrier_mathamr.MathAMRIndex`, ``[CLS]``
    last, so that all of its strategies are exact for them.

    Make one by :meth:`new` or :meth:`from_pretrained`.

    Args:
        encoder: a ``MultiVectorEncoder`` of sentence-transformers.
        options: how posts are written for it.
        training: how :meth:`fit` trains.

    Example::

        (colbert.doc_encoder() >> index.indexer(dtype="float16")).index(dataset.get_corpus_iter())
        colbert.query_encoder() >> index.colbert()
    """

    DESCRIPTION, NOUN = DESCRIPTION, "ColBERT model"
    faults = staticmethod(colbert_faults)

    def __init__(
        self, encoder: Any, options: ColBERTOptions | None = None, training: ColBERTTraining | None = None
    ) -> None:
        self.options, self.training = options or ColBERTOptions(), training or ColBERTTraining()
        self._encoder: Any = encoder
        self._source: tuple[Path, int | None] | None = None
        self._identity: str | None = None
        self._unprepared = self._of_others = False
        self.history: list[float] = []

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        *,
        preset: ModelPreset = "mini",
        options: ColBERTOptions | None = None,
        training: ColBERTTraining | None = None,
    ) -> ColBERT:
        """Begin a model over a language model; :meth:`fit` trains it.

        Args:
            backbone: folder of a language model, ``all-MiniLM-L6-v2`` if its package is installed, or
                ``hf:organization/name``.
            preset: ``published``, the paper's figures, or ``mini``, for a CPU.
            options: instead of the preset's.
            training: instead of the preset's.

        Raises:
            ConfigError: no such preset. ModelNotFoundError: no such language model.
            UnsafeModelError: loading it could run code of its author.
        """
        one_of(*get_args(ModelPreset)).check("preset", preset)
        options, training = options or PRESETS[preset][0], training or PRESETS[preset][1]
        folder = find_checkpoint(backbone)
        check_encoder_folder(folder)
        with loading(backbone):
            encoder = assemble(
                folder,
                random_projection(folder, options.dimensions, training.seed),
                query_length=options.query_length,
                document_length=options.document_length,
                query_expansion=options.query_expansion,
                skip_punctuation=options.skip_punctuation,
            )
        model = cls(encoder, options, training)
        model._unprepared = True
        return model

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        subfolder: str | None = None,
        revision: str | None = None,
        query_length: int | None = None,
    ) -> ColBERT:
        """Open a checkpoint; its weights are read when something is encoded.

        Args:
            name_or_path: a folder that :meth:`save` wrote, a multi-vector model of sentence-transformers or PyLate, a
                checkpoint of Stanford or of Approach Zero, or ``hf:organization/name`` (extra ``hub``).
            subfolder: of the folder or model.
            revision: of a model on the hub.
            query_length: tokens of a query; by default the checkpoint's.

        Raises:
            ModelFileError: its form is unknown, such as a bare encoder.
            ModelNotFoundError: there is no such folder, or the hub cannot be reached.
            UnsafeModelError: loading it could run code of its author.
        """
        folder = find_checkpoint(name_or_path, subfolder=subfolder, revision=revision)
        case = form_of(folder) != "Approach Zero"  # its published tokenizer lower-cases variables
        options = read_options(folder)
        model = cls(None, options or ColBERTOptions(case=case))
        model._of_others = options is None
        model._source = (folder.absolute(), query_length)
        return model

    @property
    def encoder(self) -> Any:
        """The ``MultiVectorEncoder``."""
        if self._encoder is None and self._source is not None:
            self._encoder = load_checkpoint(*self._source)
        return self._encoder

    @property
    def texts(self) -> ColBERTTexts:
        """How posts are written for the model: with math tokens if its tokenizer has them."""
        return ColBERTTexts(has_math_tokens(self.encoder.tokenizer), self.options.case)

    @property
    def dimensions(self) -> int:
        """The width of a row."""
        return int(self.encoder.get_embedding_dimension())

    def prepare(self, posts: Iterable[MathPost], *, device: str | None = None, verbose: bool = False) -> ColBERT:
        """Give a new model its math tokens and the projection that training starts from.

        Args:
            posts: of the training pairs. The projection is set to the principal directions of the states of their
                tokens; the paper starts at random.
            device: where to encode; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show progress.
        """
        math_start(self._on(device), list(posts), self.options, verbose=verbose)
        self._unprepared, self._identity, self._source = False, None, None
        return self

    def fit(
        self,
        pairs: Iterable[Any] | pd.DataFrame,
        posts: PostRecords | pd.DataFrame | None = None,
        *,
        negatives: Mapping[str, Sequence[str]] | None = None,
        never: Mapping[str, Iterable[str]] | None = None,
        states: States | None = None,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        device: str | None = None,
        verbose: bool = False,
    ) -> ColBERT:
        """Train the model in place with the options of :attr:`training`.

        Args:
            pairs: questions and right answers, as (id, id) with ``posts``, or as dictionaries with ``qid``,
                ``question``, ``aid`` and ``answer``, texts with formulas as ``$…$``.
            posts: dictionaries with ``docno`` and the columns of a document, for all questions and answers.
            negatives: by question, wrong answers that look right, such as answers to questions with the same tags.
            never: by question, further documents that are never its negatives.
            states: an empty dictionary for the first of several runs that differ only in ``training``: it keeps
                the states that ``train="last"`` computes once.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show progress.

        Returns:
            The model; :attr:`history` is the mean loss of each epoch.

        Raises:
            TrainingError: posts are missing, there are too few pairs, or the loss is not finite.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        data = ColBERTData.read(pairs, posts, negatives, never)
        encoder = self._on(device)
        if self._unprepared:
            self.prepare(data.posts.values(), device=device, verbose=verbose)
        texts, training = self.texts, self.training
        with RunFolder(checkpoint) as folder:
            if checkpoint is not None:
                run = {"data": data.digest(texts, training), "starting model": self.identity}
                folder.begin({**training.to_dict(), **run}, fresh=fresh)
            self._identity, self._source = None, None
            self.history = train_colbert(
                encoder, data, texts, training, folder, states=states, save_every=save_every, verbose=verbose
            )
        return self

    def save(self, path: str | Path) -> None:
        """Write the model to a new folder, atomically; sentence-transformers can open it, too.

        Raises:
            ConfigError: the folder exists.
        """
        target = check_new_folder(path)
        encoder = self._on("cpu")
        with new_folder(target) as folder, without_bars():
            encoder.save_pretrained(str(folder), create_model_card=False)
            write_description(folder, self.options)

    @property
    def identity(self) -> str:
        """Sha256 of options, tokens and weights, equal for a model and its saved copy."""
        if self._identity is None:
            self._identity = digest_of(self.encoder, self.options.case)
        return self._identity

    @property
    def name(self) -> str:
        """The identity of the model's rows, such as ``my-colbert@0123456789abcdef``, as an index stores it."""
        folder = "unsaved" if self._source is None else self._source[0].name
        return f"{folder}@{self.identity[:16]}"

    def warn_lacking(self, posts: Iterable[MathPost]) -> None:
        """Warn, once, if a checkpoint of others lacks math tokens of posts, as it may have other names for them."""
        if self._of_others and self.texts.math:
            latex = [formula.latex for post in posts for formula in post.formulas]
            MathVocabulary.of(self.encoder.tokenizer).warn_lacking(latex, self.texts.tokens)
            self._of_others = False

    def encode(
        self,
        texts: Sequence[str],
        side: TextSide,
        *,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> list[TextRows]:
        """Encode texts that are written for the model, see :attr:`texts`.

        Args:
            texts: of questions or answers.
            side: ``query`` or ``document``.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 where the processor has it, several times as fast; cosines of rows to those
                of float32 are .9999.
            verbose: show progress.

        Returns:
            For each text float32 ``[n, d]``, rows of unit length, ``[CLS]`` last, and their tokens.
        """
        return encode_texts(self._on(device), texts, side, precision=precision, verbose=verbose)

    def post_rows(
        self, *, device: str | None = None, precision: EncoderPrecision = "auto", verbose: bool = False
    ) -> ColBERTPosts:
        """Return how the transformers encode the texts of a frame with this model.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
        """
        return ColBERTPosts(self, device, precision, verbose)

    def _on(self, device: str | None) -> Any:
        place = choose_device(device)
        if self.encoder.device != place:
            self.encoder.to(place)
        return self.encoder

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the network of a model that was opened from a folder; it is opened again."""
        return {**self.__dict__, "_encoder": None} if self._source is not None else dict(self.__dict__)

    def _opened_by(self) -> str | None:
        if self._source is None:
            return None
        return repr(str(self._source[0])) + ("" if self._source[1] is None else f", query_length={self._source[1]}")


class ColBERTPosts(TokenPosts):
    """Reads the posts of a frame, and encodes each distinct text once."""

    label = "ColBERT"
    help_url = "https://ceur-ws.org/Vol-3180/paper-09.pdf"
    batch_size = 256
    model: ColBERT

    def __init__(self, model: ColBERT, device: str | None, precision: EncoderPrecision, verbose: bool) -> None:
        super().__init__(device, precision, verbose)
        self.model = model

    def of_queries(self, queries: Sequence[MathPost]) -> list[dict[str, Any]]:
        """Encode queries; one without text has no rows, float32 ``[0, d]``."""
        return [{"query_embs": text.rows, "query_model": self.model.name} for text in self._queries(queries)]

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        names, encoded = self._documents(frame, of_ranking)
        return {"doc_embs": [encoded[name].rows for name in names], "doc_model": self.model.name}

    def parts(self, label: str, frame: pd.DataFrame) -> list[Part]:
        """Make a part of each token of the query, and the one of the document that it matches best."""
        (query,) = self._queries(list(self.read_queries(frame).values()))
        (document,) = self._documents(frame, True)[1].values()
        if not len(query.rows):
            return []
        similarities = query.rows.astype(np.float64) @ document.rows.astype(np.float64).T
        names = self.model.encoder.tokenizer.convert_ids_to_tokens
        best = similarities.argmax(axis=1)
        tokens, matches = names(query.ids.tolist()), names(document.ids[best].tolist())
        return [
            Part(label, "word", token, "word", match, value, 1.0, value)
            for token, match, value in zip(tokens, matches, similarities.max(axis=1).tolist(), strict=True)
        ]

    def _queries(self, posts: Sequence[MathPost]) -> list[TextRows]:
        write = self.model.texts.text  # once: whether the tokenizer has math tokens is looked up in its vocabulary
        texts = [write(post).strip() for post in posts]
        encoded = iter(self.model.encode(list(filter(None, texts)), "query", **self.options))
        none = TextRows(np.empty((0, self.model.dimensions), np.float32), np.empty(0, np.int64))
        return [next(encoded) if text else none for text in texts]

    def _documents(self, frame: pd.DataFrame, of_ranking: bool) -> tuple[list[object], dict[object, TextRows]]:
        names, posts = self.document_posts(frame, of_ranking)
        self.model.warn_lacking(posts.values())
        write = self.model.texts.text
        texts = [write(post) for post in posts.values()]
        return names, dict(zip(posts, self.model.encode(texts, "document", **self.options), strict=True))


class LateInteraction:
    """Any checkpoint of PyLate, of Stanford's ColBERT or of sentence-transformers (extra ``colbert``).

    It encodes documents and queries, and indexes documents in batches::

        late = LateInteraction("hf:lightonai/GTE-ModernColBERT-v1")
        index = late.index("late.mathamr", dataset.get_corpus_iter())
        late.retriever(index, num_results=100)(topics)
        bm25 >> late.query_encoder() >> index.scorer()

    Args:
        name_or_path: the folder of a checkpoint, or ``hf:organization/name`` (extra ``hub``).
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        precision: ``auto`` is bfloat16 if the processor multiplies in it.
        verbose: show progress.

    Raises:
        ModelFileError: its form is unknown, such as a bare encoder.
        ModelNotFoundError: there is no such folder, or the hub cannot be reached.
        UnsafeModelError: loading it could run code of its author.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> None:
        self.model = ColBERT.from_pretrained(name_or_path)
        self._options: dict[str, Any] = {"device": device, "precision": precision, "verbose": verbose}

    def doc_encoder(self) -> DocEncoder:
        """Return the transformer that adds ``doc_embs`` to documents with a ``text``."""
        return self.model.doc_encoder(**self._options)

    def query_encoder(self) -> QueryEncoder:
        """Return the transformer that adds ``query_embs`` to queries."""
        return self.model.query_encoder(**self._options)

    def text_scorer(self) -> TextScorer:
        """Return the transformer that scores a ranking with texts, without an index."""
        return self.model.text_scorer(**self._options)

    def index(
        self, path: str | Path, documents: pd.DataFrame | Iterable[Mapping[str, Any]], **options: Any
    ) -> MathAMRIndex:
        """Encode documents and index their vectors.

        Args:
            path: the folder of the index.
            documents: dictionaries or a frame with ``docno`` and ``text``.
            options: of :meth:`MathAMRIndex.indexer`, such as ``mode``, ``dtype`` and ``keep``.

        Returns:
            The index.
        """
        index = MathAMRIndex(path)
        (self.doc_encoder() >> index.indexer(**options)).index(documents)
        return index

    def retriever(self, index: Any, **options: Any) -> Pipeline:
        """Return the pipeline that encodes queries and searches an index, in a folder, in parts or in Qdrant.

        Args:
            index: an index of this model's vectors.
            options: of ``index.retriever()``, such as ``num_results`` and ``where``.
        """
        pipeline: Pipeline = self.query_encoder() >> index.retriever(**options)
        return pipeline

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

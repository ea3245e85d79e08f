"""A Tangent-CFT index on disk: training its encoder and building it, and searching it by exact cosines of int8 vectors.

A part has five vectors of each expression, and the first part of an index the encoder that made them::

    slt, opt, slt_type, opt_type, sum     int8 [x, d]
    squares                               int32 [x, 5], the squared lengths of these
    slt_tokens, slt_words, …              the arrays of the encoder; without values in the other parts
    opt_…, slt_type_…, opt_type_…         likewise
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.errors import SystemsError
from mathamr_systems.formula_trees import FormulaTrees, TreePairs
from pyterrier_mathamr.extending import (
    COUNT,
    CollectingBuilder,
    ExpressionIndex,
    ExpressionSnapshot,
    FormulaRetriever,
    Formulas,
    Packing,
    Rule,
    ScoreTerm,
    SparseIndex,
    best_first,
    content_of,
    counted,
    expression_kind,
    method,
    one_of,
    progress,
    reported_once,
    text_fields,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.fusion import reciprocal_ranks
from pyterrier_mathamr.sparse import ExpressionIndexer
from pyterrier_mathamr.store import (
    Array,
    DamagedError,
    Field,
    Job,
    Mode,
    Rows,
    StoredPart,
    map_arrays,
    move,
    write_arrays,
)

from .word_vectors import REPRESENTATIONS, FastTextOptions, TreeForm, WordCorpus, WordVectors, sentences, train

Kept = Literal["slt", "opt", "slt_type", "opt_type", "sum"]
KEPT: tuple[Kept, ...] = get_args(Kept)
"""The vectors of a formula: one for each representation, and the sum of Tangent-CFT."""

Quantized = npt.NDArray[np.int8]

_SUMMED = [REPRESENTATIONS.index(name) for name in ("slt", "opt", "slt_type")]
_STEPS = 127
_EXPRESSION_BYTES = 400  # of memory, in addition to its vectors
_BLOCK = 8192  # rows that are compared at once


@dataclass(frozen=True, eq=False)
class FormulaEncoder:
    """Encodes formulas by the word vectors of each representation."""

    words: Mapping[TreeForm, WordVectors]

    def encode(self, pair: FormulaPair) -> npt.NDArray[np.float32]:
        written = sentences(pair)
        means = np.array([self.words[name].mean(written.get(name, [])) for name in REPRESENTATIONS])
        return np.concatenate([means, means[_SUMMED].sum(axis=0, keepdims=True)])

    def kept(self, pair: FormulaPair) -> Quantized:
        """Return the stored arrays; a formula without a layout tree has no sum, as Tangent-CFT does not index it."""
        rows = quantized(self.encode(pair))
        if pair.slt is None:
            rows[KEPT.index("sum")] = 0
        return rows

    @property
    def dimensions(self) -> int:
        return int(self.words["slt"].vectors.shape[1])

    def identity(self) -> str:
        """Compute 32 hexadecimal digits that identify the encoder."""
        state = hashlib.blake2b(digest_size=16)
        for name, array in self.arrays().items():
            state.update(f"{name} {array.dtype} {array.shape}".encode())
            state.update(np.ascontiguousarray(array).data)
        return state.hexdigest()

    def arrays(self) -> dict[str, Array]:
        return {f"{name}_{part}": array for name, words in self.words.items() for part, array in words.arrays().items()}

    @staticmethod
    def no_arrays(dimensions: int) -> dict[str, Array]:
        """Return the same arrays without values, for a part that keeps no encoder."""
        nothing = WordVectors.empty([], dimensions).arrays() | {"hashing": np.zeros(0, dtype=np.int64)}
        return {f"{name}_{part}": array for name in REPRESENTATIONS for part, array in nothing.items()}

    @classmethod
    def of_part(cls, part: StoredPart) -> FormulaEncoder:
        return cls({name: WordVectors.of_part(part, name) for name in REPRESENTATIONS})


def nbytes(rows: Quantized) -> int:
    """Estimate the memory of the vectors of an expression."""
    return rows.nbytes + _EXPRESSION_BYTES


def quantized(vectors: npt.NDArray[np.float32]) -> Quantized:
    """Round vectors to int8; their length is lost, their direction moves by less than half a degree."""
    greatest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    rounded: Quantized = np.rint(vectors * (_STEPS / np.where(greatest > 0, greatest, 1.0))).astype(np.int8)
    return rounded


def squares(rows: Quantized) -> npt.NDArray[np.int32]:
    lengths: npt.NDArray[np.int32] = np.einsum("nd,nd->n", rows, rows, dtype=np.int32)
    return lengths


def cosines(rows: Quantized, lengths: npt.NDArray[np.int32], query: Quantized) -> npt.NDArray[np.float64]:
    """Compare vectors with one."""
    wide, dots = query.astype(np.float32), np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        here = slice(start, start + _BLOCK)
        np.matmul(rows[here].astype(np.float32), wide, out=dots[here])
    product = lengths.astype(np.float64) * float(squares(query[None])[0])
    return np.divide(dots, np.sqrt(product), out=np.zeros(len(rows)), where=product > 0)


def _encoder_fields(name: TreeForm) -> tuple[Field, ...]:
    words, rows = f"{name}_v", f"{name}_r"
    return (
        *text_fields(f"{name}_tokens", f"{name}_t"),
        *text_fields(f"{name}_words", words),
        Field(f"{name}_word_vectors", "float32", f"{words} d"),
        Field(f"{name}_buckets", "int32", rows),
        Field(f"{name}_bucket_vectors", "float16", f"{rows} d"),
        Field(f"{name}_hashing", "int64", f"{name}_h"),
    )


_ENCODER = tuple(chain.from_iterable(map(_encoder_fields, REPRESENTATIONS)))


@dataclass(frozen=True, eq=False)
class CFTVectors:
    """The vectors of ``x`` expressions, and what made them."""

    rows: Mapping[Kept, Quantized]  # [x, d] each; zeros where a formula lacks the tree
    squares: npt.NDArray[np.int32]  # [x, 5]
    encoder: FormulaEncoder | None  # None in a part that does not keep it

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        if bool((part["squares"] < 0).any()):
            raise DamagedError(part.path, "its squares are negative")
        encoder = FormulaEncoder.of_part(part) if len(part["slt_hashing"]) else None
        return cls({name: part[name] for name in KEPT}, part["squares"], encoder)

    @classmethod
    def of_rows(cls, encoder: FormulaEncoder, keep: bool, vectors: Sequence[Quantized]) -> Self:
        """Make the payload from the result of :meth:`FormulaEncoder.kept` for each expression."""
        rows = np.stack(vectors) if len(vectors) else np.zeros((0, len(KEPT), encoder.dimensions), dtype=np.int8)
        each = {name: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(KEPT)}
        lengths = np.stack([squares(each[name]) for name in KEPT], axis=1)
        return cls(each, lengths, encoder if keep else None)

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        width = pieces[0].rows["slt"].shape[1] if pieces else 0
        rows = {name: np.zeros((size, width), dtype=np.int8) for name in KEPT}
        lengths = np.zeros((size, len(KEPT)), dtype=np.int32)
        for piece, number in zip(pieces, numbers, strict=True):
            kept = np.flatnonzero(number >= 0)
            for name in KEPT:
                rows[name][number[kept]] = piece.rows[name][kept]
            lengths[number[kept]] = piece.squares[kept]
        return cls(rows, lengths, next((piece.encoder for piece in pieces if piece.encoder), None))

    def arrays(self) -> dict[str, Array]:
        width = self.rows["slt"].shape[1]
        encoder = self.encoder.arrays() if self.encoder else FormulaEncoder.no_arrays(width)
        return {**{str(name): rows for name, rows in self.rows.items()}, "squares": self.squares, **encoder}


CFT = expression_kind(
    CFTVectors,
    *(Field(name, "int8", "x d") for name in KEPT),
    Field("squares", "int32", f"x {len(KEPT)}"),
    *_ENCODER,
    type="cft_model",
    format="mathamr",
    version=1,
    index="TangentCFT('{path}')",
)


CFTMode = Literal["cft", "cft2"]

_PAPER = "https://doi.org/10.1145/3341981.3344235"
_NAMES: dict[Kept, str] = {
    "slt": "layout tree",
    "opt": "operator tree",
    "slt_type": "layout tree of types",
    "opt_type": "operator tree of types",
    "sum": "formula",
}
_COMPARED: dict[CFTMode, tuple[Kept, ...]] = {"cft": ("sum",), "cft2": REPRESENTATIONS}


class _Term(NamedTuple):
    """The contribution of one vector to the scores of ``y`` expressions: cosine times weight."""

    name: Kept
    expressions: Rows  # [y]
    cosines: npt.NDArray[np.float64]  # [y]
    weights: npt.NDArray[np.float64]  # [y]


class TangentCFTRetriever(FormulaRetriever):
    r"""Ranks formulas by the cosine of their vectors with the query's.

    Tangent-CFT compares the sum of three vectors: of the layout tree, operator tree and layout tree of types; a
    formula without a layout tree is not found. Tangent-CFT2 ranks by each of four vectors, and fuses the rankings by
    modified reciprocal rank fusion, Σ cosine / (60 + rank) (Mansouri, "Leveraging Formulae and Text for Improved Math
    Retrieval", 2022, equation 4.2). Expressions are ranked, and each of their formulas has their score; formulas with
    equal scores are in order of their ids. The search is exact. A query is ``latex``, or ``query`` that is one formula
    in LaTeX, with or without dollars. Other queries find nothing, with a warning.

    Args:
        tangent_cft: the index.
        num_results: the number of formulas for each query; formulas whose cosine is not above 0 are left out.
        mode: ``"cft"`` or ``"cft2"``.
        candidates: the number of expressions in each ranking that Tangent-CFT2 fuses.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentCFT("formulas.cft").retriever(mode="cft2", num_results=100)
    """

    label, help_url = "Tangent-CFT", _PAPER
    checks: ClassVar[Mapping[str, Rule]] = {
        **FormulaRetriever.checks,
        "mode": one_of(*get_args(CFTMode)),
        "candidates": COUNT,
    }

    def __init__(
        self,
        tangent_cft: TangentCFT,
        num_results: int = 1000,
        *,
        mode: CFTMode = "cft2",
        candidates: int = 1000,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_cft, self.num_results, self.mode, self.candidates = tangent_cft, num_results, mode, candidates
        self.store, self.verbose = store, verbose

    def snapshot(self) -> CFTSnapshot:
        return self.tangent_cft.snapshot()

    def scores(self, snapshot: CFTSnapshot, pair: FormulaPair) -> npt.NDArray[np.float64]:
        total = np.zeros(len(snapshot.expressions.payload.squares))
        for term in self._terms(snapshot, pair):
            total[term.expressions] += term.weights * term.cosines
        return total

    def terms(self, snapshot: CFTSnapshot, pair: FormulaPair, docno: str) -> Iterator[ScoreTerm]:
        """Compute the contribution of the cosine of each vector; the weight of CFT2 is 1 / (60 + rank)."""
        expression = snapshot.expressions_of([docno])[0]
        for term in self._terms(snapshot, pair):
            for place in np.flatnonzero(term.expressions == expression).tolist():
                cosine, weight = float(term.cosines[place]), float(term.weights[place])
                yield ScoreTerm(_NAMES[term.name], cosine * weight, cosine, weight)

    def _terms(self, snapshot: CFTSnapshot, pair: FormulaPair) -> Iterator[_Term]:
        expressions = snapshot.expressions
        payload = expressions.payload
        if not len(payload.squares):
            return
        query = dict(zip(KEPT, quantized(snapshot.encoder().encode(pair)), strict=True))
        every = np.arange(len(payload.squares))
        for name in _COMPARED[self.mode]:
            found = cosines(payload.rows[name], payload.squares[:, KEPT.index(name)], query[name])
            if self.mode == "cft":
                yield _Term(name, every, found, np.ones(len(found)))
                continue
            above = np.flatnonzero(found > 0)
            best, values = best_first(
                above, found[above], self.candidates, lambda some: snapshot.formula_ids(expressions.firsts[some])
            )
            yield _Term(name, best, values, reciprocal_ranks(values, np.arange(len(best))))


class TangentCFTIndexer(ExpressionIndexer):
    """Builds a :class:`TangentCFT` index of the formulas of posts, or adds to one, in one step at the end.

    A new index first trains its encoder on its expressions, by gensim (extra ``cft``), unless ``model`` provides one;
    additions to an index use its encoder. The same formulas and seed give the same
    bytes, in whatever order the posts come. If the process is killed, the same call with ``resume=True`` continues
    after the last representation that was trained.

    Args:
        tangent_cft: the index.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        model: an index whose encoder is used; by default one is trained, and ``append`` uses the encoder of the index.
        training: how to train it.
        store: official trees by formula id; other formulas get their trees from LaTeX.
        visual_ids: formula id to visual id; by default the store's.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        resume: continue an earlier call that was interrupted.
        verbose: show progress bars.
    """

    label = "Tangent-CFT Indexer"

    def __init__(
        self,
        tangent_cft: TangentCFT,
        mode: Mode = "create",
        *,
        model: TangentCFT | None = None,
        training: FastTextOptions = FastTextOptions(),  # noqa: B008 - frozen
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            tangent_cft,
            mode,
            store=store,
            visual_ids=visual_ids,
            bare_formulas=bare_formulas,
            resume=resume,
            verbose=verbose,
        )
        self.tangent_cft, self.model, self.training = tangent_cft, model, training

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> TangentCFT:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index. Formulas without any tree are left out, with a warning that counts them.

        Raises:
            MissingExtraError: gensim, which trains the encoder, is not installed.
            SystemsError: there are too few formulas to train on.
            ConfigError: the index to add to was built by another encoder, or with other options.
            StoreError: anything else failed; nothing was changed.
        """
        if self._source() is None:
            self._train_and_index(iter)
        else:
            super().index(iter)
        return self.tangent_cft

    def made_packing(self) -> Packing:
        """Describe the stored data of an expression: its vectors, and in a new index's first part their encoder."""
        source, kept = self._source(), self.mode == "append"
        snapshot = (source or self.tangent_cft).snapshot()
        encoder = snapshot.encoder()

        def builder() -> CollectingBuilder:
            nonlocal kept
            first, kept = not kept, True
            return CollectingBuilder(partial(CFTVectors.of_rows, encoder, first), nbytes)

        details = {name: snapshot.manifest.details[name] for name in ("training", "encoder")}
        return Packing(builder, encoder.kept, details)

    def _source(self) -> TangentCFT | None:
        """Return the index whose encoder is taken, ``None`` where one is trained."""
        return self.tangent_cft if self.model is None and self.mode == "append" else self.model

    def _train_and_index(self, posts: pd.DataFrame | Iterable[Mapping[str, Any]]) -> None:
        """Collect the trees of all formulas, train on them, and encode them."""
        details = {"training": self.training.to_dict(), "bare_formulas": bool(self.bare_formulas)}
        with reported_once(), self.tangent_cft.job(self.mode, {**details, **self.sources()}, resume=self.resume) as job:
            trees = FormulaTrees(job.scratch("trees"))
            trees.indexer(
                "overwrite",
                store=self.store,
                visual_ids=self.visual_ids,
                bare_formulas=self.bare_formulas,
                resume=self.resume,
                verbose=self.verbose,
            ).index(posts)
            identity = ""
            for part in trees.snapshot().parts:  # one, if there are any formulas
                formulas: Formulas[Any] = Formulas.of_part(part, TreePairs)
                encoder = self._trained(job, formulas.payload)
                shown = progress(formulas.payload, "encoding", "expressions", verbose=self.verbose)
                vectors = CFTVectors.of_rows(encoder, True, [encoder.kept(pair) for pair in shown])
                job.add(content_of([replace(formulas, payload=vectors)]))
                identity = encoder.identity()
            job.commit({**details, "encoder": identity})

    def _trained(self, job: Job, pairs: TreePairs) -> FormulaEncoder:
        """Train the representations that no earlier run of this job has trained."""
        corpora, words = WordCorpus.of_formulas(pairs), dict[TreeForm, WordVectors]()
        for name in progress(REPRESENTATIONS, "training", "representations", verbose=self.verbose):
            path = job.scratch(f"{name}-{corpora[name].digest(self.training)}")
            if not path.exists():
                unfinished = job.scratch(f"{name}.new")
                unfinished.unlink(missing_ok=True)
                arrays = train(corpora[name], self.training).arrays()
                write_arrays(unfinished, {f"{name}_{of}": array for of, array in arrays.items()})
                move(unfinished, path)
            words[name] = WordVectors.of_part(_Trained(path), name)
        if not any(len(of.words) for of in words.values()):
            raise SystemsError(
                f"no pair of symbols of {len(pairs)} formulas occurs {self.training.min_count} times, so that nothing "
                "can be trained. Give more posts, the model= of another index, or fewer occurrences: "
                "training=FastTextOptions(min_count=1)."
            )
        return FormulaEncoder(words)


class _Trained:
    """The file of a representation that was trained."""

    def __init__(self, path: Path) -> None:
        self.path, self._arrays = path, map_arrays(path)

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]


class CFTSnapshot(ExpressionSnapshot[CFTVectors]):
    """A Tangent-CFT index as it was when it was opened."""

    def encoder(self) -> FormulaEncoder:
        encoder = self.expressions.payload.encoder
        if encoder is None:
            raise SystemsError(
                f"{self.path}: the index keeps no encoder, since all of its formulas were deleted. Build it again with "
                "mode='overwrite'."
            )
        return encoder


class TangentCFT(ExpressionIndex[CFTSnapshot], SparseIndex):
    r"""Tangent-CFT: vectors of formulas that fastText learns from their symbol pairs, with the encoder that made them.

    Mansouri and others, "Tangent-CFT: An Embedding Model for Mathematical Formulas", ICTIR 2019; in its second version
    each formula has four vectors (Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval", 2022, section
    4.3). A formula's vector is the mean of the vectors of its symbol pairs, which are the words of fastText. Training
    needs the extra ``cft``, searching and adding posts do not. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        cft, trees = TangentCFT("formulas.cft"), FormulaTrees("formulas.trees")
        pipeline = cft.retriever(mode="cft2") >> trees.edit_distance(combine="rrf")      # CFT2TED
    """

    KIND, PAYLOAD, SNAPSHOT = CFT, CFTVectors, CFTSnapshot

    schematic: ClassVar[dict[str, str]] = {"label": "Tangent-CFT Index", "help_url": _PAPER}

    @staticmethod
    def example() -> TangentCFT:
        """Return an index that is not built."""
        return TangentCFT("index.cft")

    indexer = method(TangentCFTIndexer)
    retriever = method(TangentCFTRetriever)

    def more_counts(self) -> list[str]:
        parts = self.snapshot().parts
        words = sum(len(part[f"{name}_word_vectors"]) for part in parts for name in REPRESENTATIONS)
        return [*super().more_counts(), counted(words, "trained word")]

    def cosines(self, pair: FormulaPair, formulas: Sequence[str] | Rows) -> npt.NDArray[np.float64]:
        """Compare a formula with some formulas of the index.

        Args:
            pair: the formula's trees.
            formulas: ``n`` ids of formulas; or int64 ``[n]``, expressions as the index numbers them.

        Returns:
            float64 ``[n, 4]``: the cosines of the vectors of layout trees, operator trees, layout trees of types and
            operator trees of types, -1 to 1; 0 if one side lacks the tree.

        Raises:
            UnknownIdError: some ids are not in the index; the error names them.
        """
        snapshot = self.snapshot()
        rows = formulas if isinstance(formulas, np.ndarray) else snapshot.expressions_of(list(formulas))
        payload, found = snapshot.expressions.payload, np.zeros((len(rows), len(REPRESENTATIONS)))
        if len(rows):
            query = quantized(snapshot.encoder().encode(pair))
            for column, name in enumerate(REPRESENTATIONS):
                place = KEPT.index(name)
                found[:, column] = cosines(payload.rows[name][rows], payload.squares[rows, place], query[place])
        return found

    def delete(self, ids: Iterable[str]) -> None:
        """Remove formulas by their ids, in one step; :meth:`compact` frees their bytes.

        Raises:
            UnknownIdError: some are not in it; the error names them, and nothing is removed.
        """
        ids = list(dict.fromkeys(ids))
        snapshot = self.snapshot()
        if len(snapshot.parts) > 1:  # the part with the encoder must not be dropped with its last formula
            rows = snapshot.find(ids)
            if any(len(local) == part.meta.live for part, _, local in snapshot.by_part(rows)):
                self.compact()
        super().delete(ids)

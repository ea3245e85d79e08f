"""A Tangent-CFT index on disk: training its encoder and building it, and searching it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.errors import SystemsError
from mathamr_systems.formula_trees import FormulaTrees, TreePairs
from pyterrier_mathamr._common.feedback import counted, progress, reported_once
from pyterrier_mathamr._common.parameters import COUNT, Rule, method, one_of
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.fusion import reciprocal_ranks
from pyterrier_mathamr.sparse.expressions import (
    CollectingBuilder,
    ExpressionIndex,
    ExpressionIndexer,
    ExpressionSnapshot,
    FormulaRetriever,
    Packing,
    ScoreTerm,
)
from pyterrier_mathamr.sparse.expressions.parts import Formulas, content_of
from pyterrier_mathamr.sparse.index import SparseIndex, best_first
from pyterrier_mathamr.store import Job, Rows, map_arrays, move, write_arrays
from pyterrier_mathamr.store import Mode as BuildMode

from .vectors import CFT, KEPT, CFTVectors, FormulaEncoder, Kept, cosines, nbytes, quantized
from .word_vectors import REPRESENTATIONS, FastTextOptions, Representation, WordCorpus, WordVectors, train

Mode = Literal["cft", "cft2"]

_PAPER = "https://doi.org/10.1145/3341981.3344235"
_NAMES: dict[Kept, str] = {
    "slt": "layout tree",
    "opt": "operator tree",
    "slt_type": "layout tree of types",
    "opt_type": "operator tree of types",
    "sum": "formula",
}
_COMPARED: dict[Mode, tuple[Kept, ...]] = {"cft": ("sum",), "cft2": REPRESENTATIONS}


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
        "mode": one_of(*get_args(Mode)),
        "candidates": COUNT,
    }

    def __init__(
        self,
        tangent_cft: TangentCFT,
        num_results: int = 1000,
        *,
        mode: Mode = "cft2",
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
        mode: BuildMode = "create",
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
        corpora, words = WordCorpus.of_formulas(pairs), dict[Representation, WordVectors]()
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

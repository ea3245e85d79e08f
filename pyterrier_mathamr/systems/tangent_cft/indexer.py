"""Building a Tangent-CFT index from posts, or adding to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pyterrier_mathamr._common.feedback import progress, told_once
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.sparse.expressions import ExpressionIndexer
from pyterrier_mathamr.sparse.expressions.joining import Formulas, content_of
from pyterrier_mathamr.store import Job, Mode, map_arrays, move, write_arrays
from pyterrier_mathamr.systems.errors import NothingToTrainError
from pyterrier_mathamr.systems.formula_trees import FormulaTrees
from pyterrier_mathamr.systems.formula_trees.payload import TreePairs

from .encoder import FormulaEncoder
from .options import FastTextOptions
from .payload import FormulaVectorsBuilder
from .training import Corpus, train
from .word_vectors import WordVectors
from .words import REPRESENTATIONS, Representation

if TYPE_CHECKING:
    from .index import TangentCFT


class TangentCFTIndexer(ExpressionIndexer):
    """Builds a :class:`TangentCFT` index of the formulas of posts, or adds to one, in one step at the end.

    A new index trains its encoder on its own expressions first, by gensim (extra ``cft``), unless it is given the one
    of another index; what is added to an index is encoded as the index was. The same formulas and seed give the same
    bytes, in whatever order the posts come.

    Of an id that comes twice, or is in the index already, the first place with a tree is kept. Finished work is kept if
    the process is killed: the same call with ``resume=True`` continues, after the last representation that was trained.

    Args:
        tangent_cft: the index.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        model: an index whose encoder is taken; by default one is trained, and ``append`` takes that of the index.
        training: how it is trained.
        store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
        visual_ids: formula id to visual id; by default the store's.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        resume: continue an earlier call that was interrupted.
        verbose: show progress bars.

    Raises:
        ConfigError: the mode is unknown.
    """

    label, help_url = "Tangent-CFT Indexer", "https://doi.org/10.1145/3341981.3344235"

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
        super().__init__()
        self.tangent_cft, self.mode, self.model, self.training = tangent_cft, mode, model, training
        self.store, self.visual_ids = store, visual_ids
        self.bare_formulas, self.resume, self.verbose = bare_formulas, resume, verbose

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> TangentCFT:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index. Formulas without any tree are left out, with a warning that says how many.

        Raises:
            MissingExtraError: an encoder is to be trained, and gensim is not installed.
            NothingToTrainError: there are too few formulas to train on.
            ConfigError: the index that is added to was built by another encoder, or with other options.
            StoreError: one of its kinds; nothing was changed.
        """
        source = self.tangent_cft if self.model is None and self.mode == "append" else self.model
        if source is None:
            self._train_and_index(iter)
        else:
            snapshot = source.snapshot()
            self._encoder, self._kept = snapshot.encoder(), self.mode == "append"
            details = {name: snapshot.manifest.details[name] for name in ("training", "encoder")}
            self.build_expressions(self.tangent_cft, iter, details)
        return self.tangent_cft

    def begin(self) -> FormulaVectorsBuilder:
        """Return the vectors of no expressions; those of the first part of a new index take the encoder along."""
        first, self._kept = not self._kept, True
        return FormulaVectorsBuilder(self._encoder, keep=first)

    def _train_and_index(self, posts: pd.DataFrame | Iterable[Mapping[str, Any]]) -> None:
        """Collect the trees of all formulas, train on them, and encode them."""
        details = {"training": self.training.to_dict(), "bare_formulas": bool(self.bare_formulas)}
        sources = self._sources()
        with told_once(), self.tangent_cft.job(self.mode, {**details, **sources}, resume=self.resume) as job:
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
                formulas = Formulas.of_part(part, TreePairs)
                pairs = _Pairs(formulas.payload)
                encoder = self._trained(job, pairs)
                vectors = FormulaVectorsBuilder(encoder, keep=True)
                for pair in progress(pairs, "encoding", "expressions", verbose=self.verbose):
                    vectors.add(pair)
                job.add(content_of([formulas.having(vectors.payload())]))
                identity = encoder.identity()
            job.commit({**details, "encoder": identity})

    def _trained(self, job: Job, pairs: _Pairs) -> FormulaEncoder:
        """Train all representations, but for those that an earlier run of this job has trained."""
        corpora, words = Corpus.of_formulas(pairs), dict[Representation, WordVectors]()
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
            raise NothingToTrainError(len(pairs), self.training.min_count)
        return FormulaEncoder(words)


class _Pairs:
    """The trees of expressions, unpacked while they are iterated over."""

    def __init__(self, trees: TreePairs) -> None:
        self._trees = trees

    def __len__(self) -> int:
        return len(self._trees.slt)

    def __iter__(self) -> Any:
        for row in range(len(self)):
            yield FormulaPair(self._trees.slt.tree(row), self._trees.opt.tree(row))


class _Trained:
    """The file of a representation that was trained."""

    def __init__(self, path: Path) -> None:
        self.path, self._arrays = path, map_arrays(path)

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

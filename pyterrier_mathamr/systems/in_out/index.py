"""An In+Out index on disk, and what a reader of it has opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, cast, get_args

import pandas as pd

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.index.errors import check_model
from pyterrier_mathamr.sparse.expressions import ExpressionIndex, ExpressionIndexer, ExpressionSnapshot
from pyterrier_mathamr.sparse.index import SparseIndex
from pyterrier_mathamr.store import Mode, detail
from pyterrier_mathamr.systems.errors import NoModelError

from .payload import IN_OUT, NodeEncoder, NodeVectors, NodeVectorsBuilder
from .retriever import InOutRetriever


class InOutIndexer(ExpressionIndexer):
    """Builds an :class:`InOutIndex` of the formulas of posts, or adds to one, in one step at the end.

    Of an id that comes twice, or is in the index already, the first place with a tree is kept. Finished parts are kept
    if the process is killed: the same call with ``resume=True`` continues after the last one.

    Args:
        in_out_index: the index, with a model.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
        visual_ids: formula id to visual id; by default the store's.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        resume: continue an earlier call that was interrupted.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label, help_url = "In+Out Indexer", "https://doi.org/10.1145/3731120.3744589"

    def __init__(
        self,
        in_out_index: InOutIndex,
        mode: Mode = "create",
        *,
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.in_out_index, self.mode, self.store, self.visual_ids = in_out_index, mode, store, visual_ids
        self.bare_formulas, self.resume, self.verbose = bare_formulas, resume, verbose

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> InOutIndex:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index. Formulas without any tree are left out, with a warning that says how many.

        Raises:
            NoModelError: the index has no model.
            ConfigError: the index that is added to was built by another model, or with other options.
            StoreError: one of its kinds; nothing was changed.
        """
        model = self.in_out_index.encoder()
        self.build_expressions(self.in_out_index, iter, {"model": model.identity, "kinds": list(model.kinds)})
        return self.in_out_index

    def begin(self) -> NodeVectorsBuilder:
        """Return the vectors of no expressions."""
        return NodeVectorsBuilder(self.in_out_index.encoder())


class InOutIndex(ExpressionIndex, SparseIndex):
    r"""The vectors of the nodes of all formulas, searched by the sum of greatest similarities.

    Amador and Zanibbi, "Math formula graph retrieval using contrastive learning over visual and semantic embeddings",
    ICTIR 2025. The symbol layout graph and the operator graph of a formula are encoded apart; both are kept once for
    each expression. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.
        model: encodes the formulas that are indexed and searched; an index is searched with the model that built it.

    Example::

        trees = FormulaTrees("formulas.trees").index(dataset.get_corpus_iter())
        formulas = InOutIndex("formulas.inout", InOut.new(trees))
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND = IN_OUT
    ARTIFACT_TYPE, ARTIFACT_FORMAT = IN_OUT.type, IN_OUT.format

    schematic: ClassVar[dict[str, str]] = {"label": "In+Out Index", "help_url": InOutIndexer.help_url}

    def __init__(self, path: str | Path, model: NodeEncoder | None = None) -> None:
        super().__init__(path)
        self.model = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}{'' if self.model is None else f', {self.model!r}'})"

    @staticmethod
    def example() -> InOutIndex:
        """Return an index that is not built."""
        return InOutIndex("index.inout")

    indexer = method(InOutIndexer)
    retriever = method(InOutRetriever)

    @classmethod
    def merge(cls, path: str | Path, *indexes: Self) -> Self:
        """Build a new index of all rows of some others, in their order; see :meth:`TangentIndex.merge`."""
        merged = super().merge(path, *indexes)
        merged.model = indexes[0].model
        return merged

    def more_counts(self) -> list[str]:
        """List the expressions, the vectors of nodes, and the model."""
        parts = self.snapshot().parts
        vectors = sum(len(part[f"{kind}_rows"]) for part in parts for kind in get_args(Packed))
        return [*super().more_counts(), counted(vectors, "vector"), f"by {self.snapshot().model[:12]}"]

    def encoder(self) -> NodeEncoder:
        """Return the model.

        Raises:
            NoModelError: there is none.
        """
        if self.model is None:
            raise NoModelError(self.path)
        return self.model

    def asked(self) -> tuple[InOutSnapshot, NodeEncoder]:
        """Return the current state of the index and the model that searches it.

        Raises:
            NoModelError: there is no model.
            ModelMismatchError: the index was built by another one.
        """
        snapshot, model = self.snapshot(), self.encoder()
        check_model(self.path, snapshot.model, model.identity)
        return snapshot, model

    def snapshot(self) -> InOutSnapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("InOutSnapshot", super().snapshot())

    def open_snapshot(self) -> InOutSnapshot:
        """Open the index."""
        return InOutSnapshot(self.path)


class InOutSnapshot(ExpressionSnapshot[NodeVectors]):
    """An In+Out index as it was when it was opened."""

    KIND, payload = IN_OUT, NodeVectors

    @property
    def model(self) -> str:
        """The identity of the model of the vectors."""
        return detail(self.manifest.details, "model", str, self.path)

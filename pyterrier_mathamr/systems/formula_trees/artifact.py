"""The trees of a collection's formulas on disk, for whatever compares whole trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pandas as pd

from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.formula.packed_trees import Packed, PackedTrees
from pyterrier_mathamr.sparse.expressions import ExpressionIndex, ExpressionIndexer, ExpressionSnapshot
from pyterrier_mathamr.store import Mode
from pyterrier_mathamr.systems.edit_distance import EditDistanceReranker

from .payload import TREES, TreePairs, TreePairsBuilder


class FormulaTreesIndexer(ExpressionIndexer):
    """Builds :class:`FormulaTrees` of the formulas of posts, or adds to them, in one step at the end.

    Of an id that comes twice, or is there already, the first place with a tree is kept. Finished parts are kept if the
    process is killed: the same call with ``resume=True`` continues after the last one.

    Args:
        formula_trees: where they are kept.
        mode: ``create`` refuses a folder that exists, ``overwrite`` replaces it, ``append`` adds to it.
        store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
        visual_ids: formula id to visual id; by default the store's.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        resume: continue an earlier call that was interrupted.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label = "Formula trees"
    without_trees = "are left out"

    def __init__(
        self,
        formula_trees: FormulaTrees,
        mode: Mode = "create",
        *,
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_trees, self.mode, self.store, self.visual_ids = formula_trees, mode, store, visual_ids
        self.bare_formulas, self.resume, self.verbose = bare_formulas, resume, verbose

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> FormulaTrees:
        """Build them, or add to them.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Raises:
            ConfigError: what is added to was built with other options.
            StoreError: one of its kinds; nothing was changed.
        """
        self.build_expressions(self.formula_trees, iter, {})
        return self.formula_trees

    def begin(self) -> TreePairsBuilder:
        """Return the trees of no expressions."""
        return TreePairsBuilder()


class FormulaTrees(ExpressionIndex):
    r"""Both trees of each formula of a collection, once for each expression.

    Systems that rank candidates anew by whole trees read them from here: the alignment of Tangent-S, the edit distance.

    Args:
        path: the folder; it need not exist yet.

    Example::

        trees = FormulaTrees("formulas.trees")
        trees.index(dataset.get_corpus_iter())
    """

    KIND = TREES
    ARTIFACT_TYPE, ARTIFACT_FORMAT = TREES.type, TREES.format

    @staticmethod
    def example() -> FormulaTrees:
        """Return trees that are not built."""
        return FormulaTrees("formulas.trees")

    indexer = method(FormulaTreesIndexer)
    edit_distance = method(EditDistanceReranker)

    def get(self, formula_id: str) -> FormulaPair:
        """Return both trees of a formula.

        Raises:
            UnknownIdError: it is not there.
        """
        snapshot = self.snapshot()
        row = int(snapshot.expressions_of([formula_id])[0])
        trees = snapshot.expressions.payload
        return FormulaPair(trees.slt.tree(row), trees.opt.tree(row))

    def packed(self, kind: Packed) -> PackedTrees:
        """Return the trees of one kind, of each distinct formula."""
        trees = self.snapshot().expressions.payload
        return trees.slt if kind == "slt" else trees.opt

    def snapshot(self) -> TreesSnapshot:
        """Return the current state; several parts are combined in memory, until they are compacted."""
        return cast("TreesSnapshot", super().snapshot())

    def open_snapshot(self) -> TreesSnapshot:
        """Open them."""
        return TreesSnapshot(self.path)


class TreesSnapshot(ExpressionSnapshot[TreePairs]):
    """The trees as they were when they were opened."""

    KIND, payload = TREES, TreePairs

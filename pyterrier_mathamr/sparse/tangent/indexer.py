"""Building a Tangent index from posts, or adding to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pandas as pd

from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.sparse.expressions import ExpressionIndexer
from pyterrier_mathamr.sparse.expressions.reading import Read
from pyterrier_mathamr.store import Mode

from .content import SymbolPairsBuilder, TakePairs
from .pairs import PairOptions

if TYPE_CHECKING:
    from .index import TangentIndex


class TangentIndexer(ExpressionIndexer):
    """Builds a :class:`TangentIndex` of the formulas of posts, or adds to one, in one step at the end.

    Of an id that comes twice, or is in the index already, the first place with a tree is kept, as in ARQMath's own
    tables. Building takes about 0.2 ms for each formula.

    Finished parts are kept if the process is killed: the same call with ``resume=True`` continues after the last one. A
    post that differs from that of the earlier call is then an error.

    Args:
        tangent_index: the index.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        pairs: which symbol pairs are taken of formulas, and later of queries.
        store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        visual_ids: formula id to visual id; formulas that are not in it get the empty string. By default the store's.
        resume: continue an earlier call that was interrupted.
        executor: where formulas are read and symbol pairs taken, by default in this process; the index is the same.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label, help_url = "Tangent Indexer", "https://doi.org/10.1145/3077136.3080748"

    def __init__(
        self,
        tangent_index: TangentIndex,
        mode: Mode = "create",
        *,
        pairs: PairOptions = PairOptions(),  # noqa: B008 - frozen
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        executor: Executor | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_index, self.mode, self.pairs = tangent_index, mode, pairs
        self.store, self.visual_ids = store, visual_ids
        self.bare_formulas, self.resume, self.verbose = bare_formulas, resume, verbose
        self.executor = executor

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> TangentIndex:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index. Formulas without any tree are left out, with a warning that says how many.

        Raises:
            ConfigError: the index that is added to was built with other options.
            StoreError: one of its kinds; nothing was changed.
        """
        self.build_expressions(self.tangent_index, iter, self._details())
        return self.tangent_index

    def adding(self) -> AbstractContextManager[Callable[[Read], None]]:
        """Build the index of posts that :meth:`reading` has read: give them to what this yields, in order."""
        return self.begun_expressions(self.tangent_index, self._details())

    def _details(self) -> dict[str, Any]:
        return {"pairs": self.pairs.to_dict()}

    def begin(self) -> SymbolPairsBuilder:
        """Return symbol pairs of no expressions."""
        return SymbolPairsBuilder(self.pairs)

    def taker(self) -> TakePairs:
        """Return what takes symbol pairs."""
        return TakePairs(self.pairs)

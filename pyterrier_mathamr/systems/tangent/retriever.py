"""Searching a Tangent index."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.frames import empty_output, is_missing, listed
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.posts import PostFormula, strip_delimiters
from pyterrier_mathamr.systems.sparse.ranking import ranking_frame

from .content import dice
from .pairs import formula_trees, pair_terms

if TYPE_CHECKING:
    from .index import TangentIndex
    from .snapshot import TangentSnapshot

RESULT_COLUMNS = ("docno", "post_id", "visual_id", "score", "rank")


class TangentRetriever(ByParameters, pt.Transformer):  # type: ignore[misc]
    """Ranks formulas by the symbol pairs that they share with the query's formula, whatever text stands around it.

    The score is w · D(layout trees) + (1 - w) · D(operator trees), D the harmonic mean of recall and precision of
    pairs; a query that has one tree only is scored by that. Formulas of the same score are in order of their ids.

    Args:
        tangent_index: the index.
        num_results: at most so many formulas for each query.
        slt_weight: w, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentIndex("formulas.tangent").retriever(num_results=100)
    """

    schematic: ClassVar[dict[str, str]] = {"label": "Tangent", "help_url": "https://doi.org/10.1145/3077136.3080748"}

    def __init__(
        self,
        tangent_index: TangentIndex,
        *,
        num_results: int = 1000,
        slt_weight: float = 0.5,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        if num_results < 1:
            raise ConfigError("num_results", num_results, "a whole number of at least 1")
        if not 0 <= slt_weight <= 1:
            raise ConfigError("slt_weight", slt_weight, "a number between 0 and 1")
        super().__init__()
        self.tangent_index, self.num_results, self.slt_weight = tangent_index, num_results, float(slt_weight)
        self.store, self.verbose = store, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with each query.

        Args:
            inp: ``qid`` with ``latex``, or with ``query`` that is one formula in LaTeX, with or without dollars.

        Returns:
            The columns of ``inp`` with ``docno`` (the formula's id), ``post_id``, ``visual_id``, ``score`` (float64,
            positive, descending for each query) and ``rank`` (int64, from 0); no row for a query that shares no pair.
            Queries whose formula cannot be read have none either, and a ``MathAMRWarning`` names them.
        """
        with pt.validate.any(inp, context=self) as validation:
            validation.query_frame(extra_columns=["latex"])
            validation.query_frame(extra_columns=["query"])
        queries = inp.drop(columns=[name for name in RESULT_COLUMNS if name in inp.columns])
        if queries.empty:
            return empty_output(queries, RESULT_COLUMNS)
        snapshot = self.tangent_index.snapshot()
        trees = formula_trees([_formula(row) for row in queries.to_dict("records")], self.store)
        _warn_of_unread(list(queries["qid"]), trees)
        found = []
        for pair in progress(trees, "Tangent", "q", verbose=self.verbose, total=len(trees)):
            found.append(snapshot.content.best(self.scores(snapshot, pair), self.num_results, snapshot.formula_ids))
        return ranking_frame(
            queries,
            found,
            docno=snapshot.formula_ids,
            post_id=snapshot.post_ids,
            visual_id=snapshot.visual_ids,
        )

    def scores(self, snapshot: TangentSnapshot, pair: FormulaPair) -> npt.NDArray[np.float64]:
        """Score all expressions of the index for one formula.

        Args:
            snapshot: the index.
            pair: its trees.

        Returns:
            float64 ``[x]``, 0 to 1.
        """
        content = snapshot.content
        weights = (self.slt_weight if pair.slt else 0.0, 1 - self.slt_weight if pair.opt else 0.0)
        total = np.zeros(len(content.slt.lengths), dtype=np.float64)
        for tree, postings, weight in zip(pair, (content.slt, content.opt), weights, strict=True):
            if weight:
                total += weight / sum(weights) * dice(postings, Counter(pair_terms(tree, snapshot.pairs)))
        return total

    def fuse_rank_cutoff(self, k: int) -> TangentRetriever:
        """Search for ``k`` formulas in place of cutting the ranking at ``k``.

        Args:
            k: the cutoff that follows this transformer.
        """
        if k >= self.num_results:
            return self
        fused: TangentRetriever = pt.inspect.transformer_apply_attributes(self, num_results=k)
        return fused


def _warn_of_unread(qids: Sequence[str], trees: Sequence[FormulaPair]) -> None:
    """Tell the user of queries that nothing can be found for."""
    unread = [qid for qid, pair in zip(qids, trees, strict=True) if pair.slt is None and pair.opt is None]
    if unread:
        warnings.warn(
            f"{len(unread)} qid(s) have a formula that is empty or cannot be read, and get no result: {listed(unread)}"
            ". Give each query a formula in LaTeX, in `latex` or `query`.",
            MathAMRWarning,
            stacklevel=3,
        )


def _formula(query: Any) -> PostFormula:
    """Read the formula of a query."""
    text, formula_id = (
        next((str(query[name]) for name in names if not is_missing(query.get(name))), "")
        for names in (("latex", "query"), ("formula_id",))
    )
    return PostFormula(strip_delimiters(text), formula_id)

"""A formula that a user types, encoded by the model of the index."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.posts import strip_delimiters

from .errors import ModelNeededError, QueryError

if TYPE_CHECKING:
    from pyterrier_mathamr.model import MathAMR

_SHOWN = ["qid", "query", "docno", "post_id", "visual_id", "score", "rank"]


class TypedFormulas:
    """Gives an index of formulas :meth:`search`."""

    def search(
        self,
        query: str,
        qid: str = "1",
        sort: bool = True,
        *,
        model: MathAMR | str | Path | None = None,
        num_results: int = 1000,
    ) -> pd.DataFrame:
        r"""Find formulas like one that is typed: ``formula_index.search(r"\int_0^\infty e^{-x^2}\,dx")``.

        The formula is encoded alone, as ``GraphBuilder(queries="formula")`` says. The pipeline that is run is::

            GraphBuilder(queries="formula") >> model.query_encoder() >> formula_index.retriever()

        Args:
            query: one formula in LaTeX, with or without dollars.
            qid: the query's id in the result.
            sort: of no effect, the result is sorted by rank; PyTerrier's method has it.
            model: the model that made the index, or its name or folder; by default the bundled model of the name that
                the index gives.
            num_results: formulas.

        Returns:
            ``qid``, ``query``, ``docno`` (the formula's id), ``post_id``, ``visual_id``, ``score`` and ``rank``.

        Raises:
            QueryError: the formula is empty.
            ModelNeededError: the model is not given, and the index names none that is bundled.
            ModelMismatchError: another model made the index.
        """
        from pyterrier_mathamr.graph import GraphBuilder

        if not strip_delimiters(query):
            raise QueryError(qid, r"the formula is empty; give one in LaTeX, such as \frac{a}{b}")
        pipeline: pt.Transformer = (
            GraphBuilder(queries="formula")
            >> _model_of(self, model).query_encoder()
            >> self.retriever(num_results=num_results)  # type: ignore[attr-defined]
        )
        found = pipeline(pd.DataFrame([[qid, query]], columns=["qid", "query"]))
        result: pd.DataFrame = found[_SHOWN]
        return result


def _model_of(index: Any, model: MathAMR | str | Path | None) -> MathAMR:
    """Take the model that is given, or open the bundled one that made the index."""
    from pyterrier_mathamr.model import MathAMR, ModelNotFoundError

    if isinstance(model, MathAMR):
        return model
    if model is not None:
        return _opened(str(model))
    made_by = index.snapshot().meta.model
    try:
        return _opened(str(made_by).partition("@")[0])
    except ModelNotFoundError as error:
        raise ModelNeededError(index.snapshot().path, made_by) from error


@lru_cache(maxsize=1)
def _opened(name: str) -> MathAMR:
    """Open a model once for all queries that are typed."""
    from pyterrier_mathamr.model import MathAMR

    return MathAMR.from_pretrained(name)

"""From the rows of a frame to the trees of the formulas that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr.explain import Asked, AskedError, QueryRow, read_asked
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.posts import PostFormula, is_formula, strip_delimiters
from pyterrier_mathamr.sparse.reading import warn_of_queries

from .trees import formula_trees


def query_trees(queries: pd.DataFrame, store: FormulaStore | None) -> list[FormulaPair]:
    """Read the formula of each query: official trees where the store has its ``formula_id``."""
    trees = formula_trees([query_formula(row) for row in queries.to_dict("records")], store)
    unread = [qid for qid, pair in zip(queries["qid"], trees, strict=True) if pair.slt is None and pair.opt is None]
    warn_of_queries(unread, "they are no formula", "Give each a formula in LaTeX, in `latex` or `query`.")
    return trees


def asked_formula(query: QueryRow, docno: str | None, system: str) -> tuple[Asked, PostFormula]:
    """Read what an explanation of a formula's score is asked for."""
    asked = read_asked(query, docno, system)
    if all(is_missing(asked.row.get(name)) for name in ("latex", "query")):
        raise AskedError(system, "the row has no formula", "Give it `latex`, or `query`.")
    return asked, query_formula(asked.row)


def query_formula(query: Mapping[Any, Any]) -> PostFormula:
    """Read the formula of a query, from ``latex`` or ``query``; what is no formula is blank."""
    text, formula_id = (
        next((str(query[name]) for name in names if not is_missing(query.get(name))), "")
        for names in (("latex", "query"), ("formula_id",))
    )
    return PostFormula(strip_delimiters(text) if is_formula(text) else "", formula_id)

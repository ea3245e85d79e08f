"""The systems that Task 1 compares, by the names that tables and ``--systems`` have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.search import BM25, COLBERT, FUSION, TASK1

from . import SINGLE_ROW, STRUCTURAL_ROW, TOKEN_ROW, AnswerRow
from .colbert import COLBERT_ROW, RERANKED_ROW
from .graph_terms import GRAPH_TERMS_ROW
from .hybrid import hybrid_row
from .marf import MARF
from .two_step.rows import AMR_SVM, QASIM, RRF, SVM, TANGENT, TF_IDF, TF_IDF_TANGENT

ALL = "all"

HYBRID_ROW = replace(hybrid_row(STRUCTURAL_ROW, "structural", 0.5), name="Hybrid")
"""ColBERT and structural search with equal weights, the best published run (``fusion_alpha05``)."""
QASIM_ROW = replace(QASIM, name="QASim")

ANSWER_SYSTEMS: Mapping[str, AnswerRow] = MappingProxyType(
    {
        row.name: row
        for row in (
            *(SINGLE_ROW, TOKEN_ROW, GRAPH_TERMS_ROW, TF_IDF, TANGENT, TF_IDF_TANGENT, STRUCTURAL_ROW),
            *(COLBERT_ROW, RERANKED_ROW, HYBRID_ROW, QASIM_ROW, RRF, SVM, AMR_SVM, MARF),
        )
    }
)
"""The systems beside those of MathAMR+, each a row of a study; what is trained is trained once, by its recipe."""


class ChosenAnswers(NamedTuple):
    """The systems of a table.

    Attributes:
        strategies: of MathAMR+, BM25 first.
        rows: the other systems.
    """

    strategies: tuple[str, ...]
    rows: tuple[AnswerRow, ...]

    @property
    def names(self) -> list[str]:
        """All systems in the order of the table."""
        return [*self.strategies, *(row.name for row in self.rows)]


def chosen_answers(names: Sequence[str] | None) -> ChosenAnswers:
    """Choose the systems of a table."""
    if names is None:
        return ChosenAnswers(tuple(TASK1), ())
    known = (*TASK1, *ANSWER_SYSTEMS)
    chosen = {BM25}
    for name in names:
        found = known if name.lower() == ALL else [each for each in known if each.lower() == name.lower()]
        if not found:
            raise ConfigError("systems", name, f"{ALL}, or some of: {'; '.join(known)}")
        chosen.update(found)
    if FUSION in chosen:
        chosen.add(COLBERT)
    rows = tuple(row for name, row in ANSWER_SYSTEMS.items() if name in chosen)
    return ChosenAnswers(tuple(name for name in TASK1 if name in chosen), rows)

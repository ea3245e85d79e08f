"""The systems that Task 1 compares, by the names that tables and ``--systems`` have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mathamr_systems.experiments.systems import ALL, TASK1, AnswerSystem
from pyterrier_mathamr._common.errors import ConfigError

from .colbert import COLBERT_ROW, RERANKED_ROW, hybrid_row
from .marf import MARF
from .rows import SINGLE_ROW, STRUCTURAL_ROW, TOKEN_ROW
from .two_step import AMR_SVM, QASIM, RRF, SVM, TANGENT, TF_IDF, TF_IDF_TANGENT

HYBRID_ROW = replace(hybrid_row(STRUCTURAL_ROW, "structural", 0.5), name="Hybrid")
"""ColBERT and structural search with equal weights, the best published run (``fusion_alpha05``)."""
QASIM_ROW = replace(QASIM, name="QASim")

ANSWER_SYSTEMS: Mapping[str, AnswerSystem] = MappingProxyType(
    {
        row.name: row
        for row in (
            *(SINGLE_ROW, TOKEN_ROW, TF_IDF, TANGENT, TF_IDF_TANGENT, STRUCTURAL_ROW),
            *(COLBERT_ROW, RERANKED_ROW, HYBRID_ROW, QASIM_ROW, RRF, SVM, AMR_SVM, MARF),
        )
    }
)
"""The systems other than MathAMR+, each a row of a study; trained systems are trained once, by their recipe."""


def task1_systems(names: Sequence[str] | None) -> list[str | AnswerSystem] | None:
    """Find the systems of Task 1 by their names, for ``run_arqmath``."""
    if names is None:
        return None
    known = (*TASK1, *ANSWER_SYSTEMS)
    chosen = set[str]()
    for name in names:
        found = known if name.lower() == ALL else [each for each in known if each.lower() == name.lower()]
        if not found:
            raise ConfigError("systems", name, f"{ALL}, or some of: {'; '.join(known)}")
        chosen.update(found)
    return [name if name in TASK1 else ANSWER_SYSTEMS[name] for name in known if name in chosen]

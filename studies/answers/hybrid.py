"""The study ``answers/hybrid``: ColBERT fused with BM25, and with structural search, as in the published runs."""

from __future__ import annotations

from collections.abc import Callable

import pyterrier as pt

from pyterrier_mathamr.fusion import ConvexFusion

from .colbert import COLBERT_ROW, loaded_colbert
from .definition import AnswerRow, AnswerStudy
from .parts import DEPTH, AnswerParts
from .rows.common import BM25_ROW
from .rows.structural import STRUCTURAL_ROW

ALPHAS = (0.2, 0.3, 0.5)
"""The weight of ColBERT, as published."""


def _fused(other: AnswerRow, alpha: float) -> Callable[[AnswerParts], pt.Transformer]:
    """Fuse the rankings of ColBERT and of another row."""

    def make(parts: AnswerParts) -> pt.Transformer:
        return ConvexFusion(parts.ranking(COLBERT_ROW), parts.ranking(other), alpha=alpha, num_results=DEPTH)

    return make


def _reranked(parts: AnswerParts) -> pt.Transformer:
    """Rank what structural search finds by ColBERT."""
    model, index = loaded_colbert(parts)
    return STRUCTURAL_ROW.make(parts) >> model.query_encoder(device=parts.device) >> index.scorer()


def hybrid_row(other: AnswerRow, name: str, alpha: float) -> AnswerRow:
    """Make the row of ColBERT fused with another row."""
    return AnswerRow(
        f"ColBERT + {name}, α {alpha}",
        _fused(other, alpha),
        against=(COLBERT_ROW.name, other.name),
        trained=True,
        known=other.known,
        settings={"alpha": alpha},
    )


STUDY = AnswerStudy(
    "answers/hybrid",
    "ColBERT and structural search, fused",
    rows=(
        COLBERT_ROW,
        STRUCTURAL_ROW,
        AnswerRow(
            "Structural search, then ColBERT",
            _reranked,
            against=(COLBERT_ROW.name, STRUCTURAL_ROW.name),
            trained=True,
            known=False,
        ),
        *(hybrid_row(STRUCTURAL_ROW, "structural", alpha) for alpha in ALPHAS),
        *(hybrid_row(BM25_ROW, "BM25", alpha) for alpha in ALPHAS),
    ),
    notes=(
        "The published runs have Approach Zero with keywords picked by hand; here its queries are the whole question.",
    ),
)

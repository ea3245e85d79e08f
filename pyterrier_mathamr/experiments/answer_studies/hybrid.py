"""The study ``answers/hybrid``: ColBERT fused with BM25, and with structural search, as in the published runs."""

from __future__ import annotations

from collections.abc import Callable

import pyterrier as pt

from pyterrier_mathamr.systems import ConvexFusion

from .colbert import COLBERT_ROW, colbert_index
from .common_rows import BM25_ROW
from .definition import AnswerRow, AnswerStudy
from .parts import DEPTH, AnswerParts
from .structural import STRUCTURAL_ROW

ALPHAS = (0.2, 0.3, 0.5)
"""The weight of ColBERT, as published."""


def _fused(other: AnswerRow, alpha: float) -> Callable[[AnswerParts], pt.Transformer]:
    """Fuse the rankings of ColBERT and of another row."""

    def make(parts: AnswerParts) -> pt.Transformer:
        return ConvexFusion(parts.ranking(COLBERT_ROW), parts.ranking(other), alpha=alpha, num_results=DEPTH)

    return make


def _reranked(parts: AnswerParts) -> pt.Transformer:
    """Rank what structural search finds by ColBERT."""
    model, index = parts.once(("ColBERT and index", parts.seed), lambda: colbert_index(parts))
    return STRUCTURAL_ROW.make(parts) >> model.query_encoder(device=parts.device) >> index.scorer()


def _rows(other: AnswerRow, name: str) -> list[AnswerRow]:
    """Make a row of each weight."""
    against = (COLBERT_ROW.name, other.name)
    options = {"against": against, "trained": True, "known": other.known}
    return [
        AnswerRow(f"ColBERT + {name}, α {alpha}", _fused(other, alpha), settings={"alpha": alpha}, **options)  # type: ignore[arg-type]
        for alpha in ALPHAS
    ]


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
        *_rows(STRUCTURAL_ROW, "structural"),
        *_rows(BM25_ROW, "BM25"),
    ),
    notes=(
        "The published runs have Approach Zero with keywords picked by hand; here its queries are the whole question.",
    ),
)

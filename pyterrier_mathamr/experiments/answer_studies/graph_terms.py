"""The study ``answers/graph-terms``: what the terms of graphs find without training, kind by kind and beside words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyterrier as pt

from pyterrier_mathamr.experiments.search import BM25
from pyterrier_mathamr.systems import GraphTermsIndex
from pyterrier_mathamr.systems.graph_terms import FIELDS, GraphField

from .definition import AnswerRow, AnswerStudy
from .parts import DEPTH, AnswerParts
from .rows.common import BM25_ROW, MATHAMR_ROW

GRAPH_TERMS = "Graph terms"
SHARE = 0.25
"""Of graph terms beside words; not fitted. The protocol fits the weight of ``BM25 + Graph terms``."""


def _index(parts: AnswerParts) -> GraphTermsIndex:
    """Count the terms of the graphs of all answers."""
    shared = parts.shared

    def build(path: Path) -> None:
        indexer = GraphTermsIndex(path).indexer("overwrite", resume=True, verbose=shared.verbose)
        (shared.graphs.loader() >> indexer).index({"docno": post.id} for post in shared.collection.answers())

    return parts.once(GRAPH_TERMS, lambda: GraphTermsIndex(parts.stage("graph-terms", build)))


def _search(*fields: GraphField) -> Callable[[AnswerParts], pt.Transformer]:
    """Search in some fields, with the stored graphs of the topics."""

    def make(parts: AnswerParts) -> pt.Transformer:
        return parts.topic_graphs() >> _index(parts).retriever(DEPTH, fields=fields)

    return make


def _with_words(parts: AnswerParts) -> pt.Transformer:
    """Add the scores, which have one scale."""
    return (parts.shared.bm25.retriever(DEPTH) + SHARE * _search(*FIELDS)(parts)) % DEPTH


GRAPH_TERMS_ROW = AnswerRow(GRAPH_TERMS, _search(*FIELDS), settings={"fields": list(FIELDS)})
FIELD_ROWS = tuple(
    AnswerRow(name, _search(field), settings={"fields": [field]})
    for name, field in zip(("Formula edges", "Formula nodes", "AMR concepts", "AMR relations"), FIELDS, strict=True)
)
"""One kind of terms each."""

STUDY = AnswerStudy(
    "answers/graph-terms",
    "What the terms of graphs find without training",
    rows=(
        *FIELD_ROWS,
        AnswerRow(GRAPH_TERMS, GRAPH_TERMS_ROW.make, (MATHAMR_ROW.name,), settings=GRAPH_TERMS_ROW.settings),
        AnswerRow(f"{BM25} + {SHARE} graph terms", _with_words, (BM25_ROW.name,), settings={"share": SHARE}),
    ),
    notes=(
        "Graph terms: BM25 (k1 2, b 1) within each field, and the sum of the fields with equal weights. Nothing is "
        "trained or fitted, and k1, b and the share beside BM25 were not searched for.",
    ),
)

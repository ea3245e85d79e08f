"""The rows that every answer study has: what a new system has to be better than."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyterrier as pt

from pyterrier_mathamr.experiments.artifacts import ModelArtifacts
from pyterrier_mathamr.experiments.search import BM25
from pyterrier_mathamr.experiments.stages import Stages
from pyterrier_mathamr.model import MathAMR
from studies.answers.definition import AnswerRow
from studies.answers.parts import DEPTH, AnswerParts

from .text_vectors import MINI_LM, single_vectors, token_vectors

TEXT_MODEL = "mathamr-plus-text"


def _bm25(parts: AnswerParts) -> pt.Transformer:
    """Rank by words and symbols."""
    return parts.shared.bm25.retriever(DEPTH)


def text_model(parts: AnswerParts) -> MathAMR:
    """Open the bundled model with a text encoder, its vectors of texts shared by all runs of the work folder."""

    def load() -> MathAMR:
        model = MathAMR.from_pretrained(TEXT_MODEL)
        return MathAMR.from_pretrained(TEXT_MODEL, text=parts.text_encoder(model.config))

    return parts.once((TEXT_MODEL, parts.live), load)


def _virtual_nodes(name: str, model_of: Callable[[AnswerParts], MathAMR], parts: AnswerParts) -> pt.Transformer:
    """Rank by MaxSim of the virtual nodes of a bundled model, the graphs of topics taken from the work folder."""
    shared, model = parts.shared, model_of(parts)
    own = ModelArtifacts(shared, Stages(parts.folder / name, shared.say), shared.origin, shared.verbose)
    index = parts.once(f"{name} index", lambda: own.answers(model))
    encode = parts.topic_graphs() >> model.query_encoder(device=parts.device)
    return encode >> index.colbert(num_results=DEPTH)


BM25_ROW = AnswerRow(BM25, _bm25)
SINGLE_ROW = AnswerRow("MiniLM single vector", single_vectors, settings={"model": MINI_LM})
TOKEN_ROW = AnswerRow("MiniLM token MaxSim, untrained", token_vectors, settings={"model": MINI_LM})
MATHAMR_ROW = AnswerRow(TEXT_MODEL, partial(_virtual_nodes, TEXT_MODEL, text_model))

COMMON_ROWS = (BM25_ROW, SINGLE_ROW, TOKEN_ROW, MATHAMR_ROW)
"""Those of every study; the random order is added when the tables are made."""

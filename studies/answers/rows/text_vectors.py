"""Untrained vectors of a text encoder in an index: one of each text, or one of each token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import TextEncoder
from pyterrier_mathamr.model.encoder.batching import choose_device
from pyterrier_mathamr.model.text_encoder import local_model, unit_rows
from pyterrier_mathamr.posts import document_post, plain_text
from studies.answers.parts import DEPTH, AnswerParts

MINI_LM = "all-MiniLM-L6-v2"
QUERY_TOKENS, DOCUMENT_TOKENS = 128, 256
_AT_ONCE = 256  # texts; the encoder sorts them by their length

Rows = Callable[[Sequence[str]], Sequence[npt.NDArray[np.float32]]]
"""From texts to the rows of each, float32 ``[n, d]``."""


def single_vectors(parts: AnswerParts) -> pt.Transformer:
    """Rank by the cosine of the vector that MiniLM gives a question and an answer."""
    cache = None if parts.live else parts.shared.workdir / "texts.sqlite"
    encoder = TextEncoder(MINI_LM, cache=cache, device=parts.device, precision="bfloat16")

    def rows(texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        return [vector[None].astype(np.float32) for vector in encoder.encode(texts)]

    return _queries(rows) >> _index(parts, "minilm-vectors", rows).single_vector(num_results=DEPTH)


def token_vectors(parts: AnswerParts) -> pt.Transformer:
    """Rank by MaxSim of MiniLM's last states of the tokens, untrained, of unit length, ``[CLS]`` last."""
    encoder = parts.once("MiniLM tokens", lambda: _token_encoder(parts.device))

    def rows(most: int) -> Rows:
        return lambda texts: _token_rows(encoder, texts, most)

    index = _index(parts, "minilm-tokens", rows(DOCUMENT_TOKENS), tokens=DOCUMENT_TOKENS)
    return _queries(rows(QUERY_TOKENS)) >> index.colbert(num_results=DEPTH)


def _queries(rows: Rows) -> pt.Transformer:
    """Add ``query_embs`` to topics."""

    def add(topics: pd.DataFrame) -> pd.DataFrame:
        return with_objects(topics, query_embs=rows(topics["query"].tolist()))

    return pt.apply.generic(add)


def _index(parts: AnswerParts, name: str, rows: Rows, **settings: Any) -> MathAMRIndex:
    """Encode and index the answers."""
    shared = parts.shared

    def build(path: Path) -> None:
        answers = shared.answer_documents()
        indexer = MathAMRIndex(path).indexer(
            "overwrite", dtype="float16", resume=True, verbose=shared.verbose, total=shared.collection.count_answers()
        )
        indexer.index(_encoded(indexer.pending(answers, _AT_ONCE), rows))

    return MathAMRIndex(parts.stage(name, build, model=MINI_LM, **settings))


def _encoded(answers: Iterator[Mapping[str, Any]], rows: Rows) -> Iterator[dict[str, object]]:
    while block := list(islice(answers, _AT_ONCE)):
        encoded = rows([plain_text(document_post(answer)) for answer in block])
        yield from ({"docno": answer["docno"], "doc_embs": found} for answer, found in zip(block, encoded, strict=True))


def _token_encoder(device: str | None) -> Any:
    load = require("sentence_transformers", "text").SentenceTransformer
    chosen = str(choose_device(device))
    return load(local_model(MINI_LM), device=chosen, model_kwargs={"use_safetensors": True}).bfloat16()


def _token_rows(encoder: Any, texts: Sequence[str], most: int) -> list[npt.NDArray[np.float32]]:
    encoder.max_seq_length = most
    states = encoder.encode(list(texts), output_value="token_embeddings", show_progress_bar=False)
    return [unit_rows(np.roll(found.float().cpu().numpy(), -1, axis=0)) for found in states]

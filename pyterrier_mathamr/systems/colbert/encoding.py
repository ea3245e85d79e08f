"""From texts to rows: batches of similar lengths, in bfloat16 where the processor has it, ``[CLS]`` as the last row.

MaxSim does not depend on the order of rows. An index takes the last row for the document's vector, so that with
``[CLS]`` there all of its strategies work as for any other model::

    [CLS] [unused1] $frac$ $1$ $2$ . [SEP]   ──▶   [unused1] $frac$ $1$ $2$ [SEP] [CLS]
                                   └ no row: punctuation
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size
from pyterrier_mathamr.model.inputs.devices import has_bfloat16

from .network import Side

Precision = Literal["auto", "float32", "bfloat16"]
Embeddings = npt.NDArray[np.float32]
"""float32 ``[n, d]``, rows of unit length: tokens in order, ``[CLS]`` last."""

_BUDGET = {"cpu": 8_192, "cuda": 131_072}
"""Most tokens of a batch."""


class TextRows(NamedTuple):
    """What a text is encoded to.

    Attributes:
        rows: float32 ``[n, d]``.
        ids: int64 ``[n]``, the token of each row.
    """

    rows: Embeddings
    ids: npt.NDArray[np.int64]


def encode_texts(
    encoder: Any, texts: Sequence[str], side: Side, *, precision: Precision = "auto", verbose: bool = False
) -> list[TextRows]:
    """Encode texts on the device where the encoder is."""
    found: list[TextRows | None] = [None] * len(texts)
    batches = list(batches_of_texts(encoder, texts, side))
    for members in progress(batches, f"encoding {side} texts", "batches", verbose=verbose):
        features = features_of(encoder, [texts[i] for i in members], side)
        with torch.inference_mode(), mixed(encoder.device, precision):
            features = encoder[0](features)
        with torch.inference_mode():
            features["token_embeddings"] = features["token_embeddings"].float()
            features = finish(encoder, features, side)
        for i, text in zip(members, _ragged(encoder, features), strict=True):
            found[i] = text
    return [text for text in found if text is not None]


def batches_of_texts(encoder: Any, texts: Sequence[str], side: Side) -> Iterator[list[int]]:
    """Group texts of similar lengths, the longest first, so that little is padding."""
    budget = _BUDGET.get(encoder.device.type, _BUDGET["cuda"])
    yield from batches_by_size(token_counts(encoder, texts, side), budget)


def token_counts(encoder: Any, texts: Sequence[str], side: Side) -> list[int]:
    """Count the tokens of texts as they are encoded."""
    first = encoder[0]
    expansion = first.query_expansion if side == "query" else None
    if expansion is not None:
        return [int(expansion["length"])] * len(texts)
    most = (first.query_length if side == "query" else first.document_length) or first.max_seq_length
    if not texts:
        return []
    prompt = encoder.prompts.get(side) or ""
    tokens = encoder.tokenizer([prompt + text for text in texts], truncation=True, max_length=most)["input_ids"]
    return list(map(len, tokens))


def features_of(encoder: Any, texts: list[str], side: Side) -> dict[str, Any]:
    """Tokenise the texts of a batch, on the encoder's device."""
    prepared = encoder.preprocess(texts, prompt=encoder.prompts.get(side), task=side)
    return {name: value.to(encoder.device) if isinstance(value, Tensor) else value for name, value in prepared.items()}


def finish(encoder: Any, features: dict[str, Any], side: Side) -> dict[str, Any]:
    """Apply what follows the language model: projection, mask of the rows that score, unit length."""
    for module in list(encoder)[1:]:
        options = {"task": side} if "task" in getattr(module, "forward_kwargs", ()) else {}
        features = module(features, **options)
    return features


def mixed(device: torch.device, precision: Precision) -> AbstractContextManager[Any]:
    """Return the context in which a language model computes in bfloat16, if it should."""
    if precision == "float32" or (precision == "auto" and not has_bfloat16(device)):
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _ragged(encoder: Any, features: dict[str, Any]) -> Iterator[TextRows]:
    """Cut a padded batch into the rows that score, ``[CLS]`` last."""
    start = encoder.tokenizer.cls_token_id
    for rows, ids, scoring in zip(
        features["token_embeddings"].cpu(),
        features["input_ids"].cpu(),
        features["attention_mask"].cpu().bool(),
        strict=True,
    ):
        kept = torch.nonzero(scoring).flatten()
        if start is not None and len(kept) and int(ids[kept[0]]) == start:
            kept = kept.roll(-1)
        yield TextRows(rows[kept].numpy(), ids[kept].numpy())

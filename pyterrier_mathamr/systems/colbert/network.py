"""The network: a language model, a projection, a mask of the rows that score, unit length.

::

    text ─▶ [CLS] [unused0] tokens [SEP] ─▶ Transformer ─▶ Dense ─▶ MultiVectorMask ─▶ Normalize ─▶ rows [n, d]
                  └ a query; a document has [unused1]      W x      no punctuation     |row| = 1

It is a ``MultiVectorEncoder`` of sentence-transformers, which saves, loads and trains it.
"""

from __future__ import annotations

import hashlib
import json
import string
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.model.variants.text_loading import without_bars

Side = Literal["query", "document"]

PREFIXES: dict[Side, str] = {"query": "[unused0]", "document": "[unused1]"}
"""The token after ``[CLS]`` that tells queries and documents apart."""


def assemble(
    backbone: Path,
    projection: Tensor,
    *,
    query_length: int,
    document_length: int,
    query_expansion: bool,
    skip_punctuation: bool = True,
) -> Any:
    """Build a ``MultiVectorEncoder`` on the CPU over a language model."""
    library = require("sentence_transformers", "colbert")
    parts = require("sentence_transformers.base.modules", "colbert")
    mask = require("sentence_transformers.multi_vector_encoder.modules", "colbert").MultiVectorMask
    kwargs = {"local_files_only": True}
    with without_bars():
        transformer = parts.Transformer(
            str(backbone),
            model_kwargs={"use_safetensors": True, **kwargs},
            processor_kwargs=dict(kwargs),
            config_kwargs=dict(kwargs),
            document_length=document_length,
        )
    width, dimensions = projection.shape[1], projection.shape[0]
    dense = parts.Dense(
        width,
        dimensions,
        bias=False,
        activation_function=torch.nn.Identity(),
        init_weight=projection.clone(),
        module_input_name="token_embeddings",
    )
    register_prefixes(transformer.tokenizer, transformer.model)
    modules = [
        transformer,
        dense,
        mask(skiplist_words=list(string.punctuation) if skip_punctuation else []),
        parts.Normalize(module_input_name="token_embeddings"),
    ]
    prompts = {side: f"{token} " for side, token in PREFIXES.items()}
    encoder = library.MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu").float()
    expand_queries(encoder, query_length, query_expansion)
    return encoder.eval()


def register_prefixes(tokenizer: Any, model: Any) -> None:
    """Make the prefixes special tokens: as mere text they would fall to pieces."""
    from transformers import AddedToken

    tokens = [AddedToken(token, normalized=False, special=True) for token in PREFIXES.values()]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens})
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(len(tokenizer))


def expand_queries(encoder: Any, length: int, expansion: bool) -> None:
    """Set the length of queries."""
    first = encoder[0]
    first.query_expansion = None
    first.query_length = None if expansion else length
    if expansion:
        first.query_expansion = {"strategy": "fixed", "attend": False, "length": length}


def random_projection(dimensions: int, width: int, seed: int) -> Tensor:
    """Draw a projection as torch initialises one, the same for one seed: float32 ``[d, d_model]``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Linear(width, dimensions, bias=False).weight.detach()


def has_math_tokens(tokenizer: Any) -> bool:
    """Tell whether a tokenizer has math tokens, such as ``$frac$``, so that formulas are written with them."""
    return any(len(token) > 2 and token[0] == token[-1] == "$" for token in tokenizer.get_vocab())


def width_of(backbone: Path) -> int:
    """Read the width of a language model's states."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(str(backbone), local_files_only=True).hidden_size)


def digest_of(encoder: Any, case: bool) -> str:
    """Compute the sha256 of all that rows depend on: lengths, tokens, weights."""
    first, digest = encoder[0], hashlib.sha256()
    described = [case, first.query_length, first.document_length, first.query_expansion, encoder.prompts]
    digest.update(json.dumps([*described, encoder.tokenizer.get_vocab()], sort_keys=True).encode())
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()

"""What a new model starts from: the math tokens of the training posts, and the principal directions of their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.model.variants.starting_weights import moments, principal_directions
from pyterrier_mathamr.posts import MathPost

from .encoding import batches_of_texts, features_of, mixed
from .options import ColBERTOptions
from .texts import PostTexts

_POSTS = 1000
"""Posts whose states give the directions; more change them little."""


def math_start(encoder: Any, posts: Sequence[MathPost], options: ColBERTOptions, *, verbose: bool = False) -> None:
    """Add math tokens to a model and set its projection, both from posts."""
    texts = PostTexts(options.math, options.case)
    if options.math:
        texts.vocabulary(posts, options.min_count).add_to(encoder.tokenizer, encoder[0].model, case=options.case)
    step = max(1, len(posts) // _POSTS)
    moment = state_moment(encoder, [texts.text(post) for post in posts[::step]], verbose)
    projection = encoder[1].linear.weight
    with torch.no_grad():
        projection.copy_(principal_directions(moment, projection.shape[0]).to(projection.device))


def state_moment(encoder: Any, texts: Sequence[str], verbose: bool = False) -> Tensor:
    """Compute the second moment of the unit states of tokens: float64 ``[d_model, d_model]``."""
    width = encoder[0].get_embedding_dimension()
    total, count = torch.zeros(width, width, dtype=torch.float64), 0
    batches = list(batches_of_texts(encoder, texts, "document"))
    for members in progress(batches, "principal directions", "batches", verbose=verbose):
        features = features_of(encoder, [texts[i] for i in members], "document")
        with torch.inference_mode(), mixed(encoder.device, "auto"):
            states = encoder[0](features)["token_embeddings"]
        rows = torch.nn.functional.normalize(states[features["attention_mask"].bool()].float(), dim=1).cpu()
        total += moments(rows) * len(rows)
        count += len(rows)
    return total / max(count, 1)

"""Pseudo-relevance feedback over the rows of documents, as ColBERT-PRF (Wang et al., ICTIR 2021).

::

    ranking ──best fb_docs──▶ their rows ──k-means──▶ centers ──document frequency──▶ the rarest fb_embs
                                                                                           │ weight β · idf
    query_embs  [q₁ … | centers | document]      query_weights  [1 … | β · idf … | 1]   ◀──┘

ColBERT-PRF counts the documents that contain the token nearest to a center. Rows of other models belong to no token, so
a document contains a center here if one of its rows is about as similar to it (:data:`SIMILAR`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, ordered_by_score, with_objects
from pyterrier_mathamr._common.parameters import COUNT, FRACTION, Rule, between
from pyterrier_mathamr.posts.topics import distinct_queries, with_query

from .backend import Backend, Numbers, Rows, Weights
from .search.queries import query_batch
from .transformers import IndexTransformer

SAMPLE = 1000
"""Documents that document frequencies are counted in: all of a small index, else as many, evenly spread."""

_ROUNDS = 20


def cluster_centers(rows: Rows, count: int) -> Rows:
    """Cluster unit rows by spherical k-means that begins with rows far from each other; the largest clusters first.

    Args:
        rows: float32 ``[r, d]``.
        count: clusters at most; there are no more than distinct rows.

    Returns:
        Unit rows, float32 ``[c, d]``. The same rows give the same centers.
    """
    wide = rows.astype(np.float64)
    first = int(np.argmax(wide @ wide.sum(axis=0)))
    chosen, nearest = [first], wide @ wide[first]
    while len(chosen) < count and nearest.min() < 1 - 1e-6:
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, wide @ wide[chosen[-1]])
    centers = wide[chosen]
    for _ in range(_ROUNDS):
        owners = np.argmax(wide @ centers.T, axis=1)
        sums = np.zeros_like(centers)
        np.add.at(sums, owners, wide)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(lengths > 1e-6, sums / np.maximum(lengths, 1e-6), centers)
        if np.allclose(moved, centers, atol=1e-7):
            break
        centers = moved
    sizes = np.bincount(owners, minlength=len(centers))
    order = np.argsort(-sizes, kind="stable")
    return centers[order[sizes[order] > 0]].astype(np.float32)

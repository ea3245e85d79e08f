"""Rows of formulas that also start from the vectors of In+Out, which are learned from formulas alone.

::

    x = unit([mean of the layout graph's node vectors, mean of the operator graph's])     each mean of unit length
    row of a formula = unit(P b) + s unit(z) + unit(Q x)                                  see ``bags``

Q has the principal directions of the training formulas and is not trained: pairs of questions and answers say little
about which formulas are alike, and trained on them Q told formulas apart less well. The product of two formulas is that
of their bags, that of their graphs, and what a bag and a graph have by chance in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.graph import GraphBatch, MathAMRGraph, detach_formulas
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import ShapeError
from pyterrier_mathamr.model.in_out import InOut

from .text import unit_rows
from .text_rows import Features

WIDTH = 200
"""Of x: both graphs of a bundled In+Out model."""


class FormulaVectors(nn.Module):
    """Q of the equation above."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.project: Tensor
        self.register_buffer("project", torch.zeros(config.projection, WIDTH))

    def forward(self, batch: GraphBatch) -> Tensor:
        """Compute unit(Q x): float ``[r, d_p]``, zeros for rows that are no formulas and formulas without trees."""
        if batch.features is None or batch.features.size(1) != WIDTH:
            found = None if batch.features is None else tuple(batch.features.shape)
            expected = f"[r, {WIDTH}]: encode graphs with MathAMR.encode or a transformer, which add these features"
            raise ShapeError("features", found, expected)
        return F.normalize(batch.features.float() @ self.project.T, dim=1)


@dataclass(frozen=True, slots=True)
class PostFormulas:
    """The formulas of a post.

    Attributes:
        rows: the number of the post's rows, the first of which are its formulas.
        trees: both trees of each formula.
    """

    rows: int
    trees: tuple[FormulaPair, ...]

    @classmethod
    def of(cls, graph: MathAMRGraph, rows: int) -> PostFormulas:
        """Collect the trees in a graph."""
        return cls(rows, detach_formulas(graph.amr, graph.n_formulas)[1])


def formula_features(posts: Sequence[PostFormulas], config: MathAMRConfig) -> list[Features]:
    """Encode the formulas of posts, each distinct one once."""
    numbers: dict[FormulaPair, int] = {}
    for post in posts:
        for pair in post.trees:
            numbers.setdefault(pair, len(numbers))
    vectors = _vectors(_model(config.text.formula_vectors), list(numbers))
    found = []
    for post in posts:
        features = np.zeros((post.rows, WIDTH), np.float16)
        features[: len(post.trees)] = vectors[[numbers[pair] for pair in post.trees]]
        found.append(features)
    return found


@lru_cache(maxsize=1)
def _model(name: str) -> InOut:
    return InOut.from_pretrained(name)


def _vectors(model: InOut, formulas: Sequence[FormulaPair]) -> npt.NDArray[np.float32]:
    """Compute x of formulas: float32 ``[formulas, 200]``."""
    means = np.zeros((len(formulas), len(model.kinds), model.options.width), np.float32)
    for place, kind in enumerate(model.kinds):
        for row, nodes in enumerate(model.encode([getattr(pair, kind) for pair in formulas], kind, distinct=False)):
            if len(nodes):
                means[row, place] = nodes.mean(axis=0)
    return unit_rows(np.concatenate([unit_rows(means[:, place]) for place in range(len(model.kinds))], axis=1))

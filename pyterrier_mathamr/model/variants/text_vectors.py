"""Text features in the encoder: where they enter the graph, and the vectors that they are at step 0.

::

    x  text feature of a row          h⁰ = h⁰ + W_in x                  its node's state before the first layer
    z  what the graph makes of it     row = unit(P x) + s_k unit(z)     s_k begins at 0, so at step 0 the row is P x

P begins as the principal directions of the training texts, or as identity where nothing is cut: with
``projection=text_dimension`` an untrained model is the text encoder itself.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.graph import GraphBatch, VirtualKind
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.errors import MissingFeaturesError, ShapeError

KINDS_OF_ROWS: dict[str, tuple[VirtualKind, ...]] = {
    "all": tuple(VirtualKind),
    "no_formulas": (VirtualKind.SENTENCE, VirtualKind.DOCUMENT),
    "document": (VirtualKind.DOCUMENT,),
}
"""The kinds of rows that have text features, for each value of ``text_rows``."""


class TextVectors(nn.Module):
    """Bring the text features of retrieval rows into their nodes' states and their vectors.

    Args:
        config: ``text_dimension``, ``text_rows``, ``text_residual``, ``hidden``, ``projection`` and ``layers``.
    """

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.alone = config.text_alone
        self.width, self.residual = config.text_dimension, config.text_residual
        kinds = torch.zeros(len(VirtualKind), dtype=torch.bool)
        kinds[list(KINDS_OF_ROWS[config.text_rows])] = True
        self.register_buffer("kinds", kinds, persistent=False)
        self.kinds: Tensor
        self.project = nn.Linear(self.width, config.projection, bias=False) if self.residual else nn.Identity()
        self.share = nn.Parameter(torch.zeros(len(VirtualKind))) if self.residual and not self.alone else None
        self.enter = None if self.alone else nn.Linear(self.width, config.hidden, bias=False)

    def begin(self, state: Tensor, batch: GraphBatch) -> Tensor:
        """Add W_in x to the states of the nodes that have text.

        Args:
            state: float ``[N, d]``.
            batch: the graphs with their features.

        Returns:
            float ``[N, d]``.

        Raises:
            MissingFeaturesError: the batch has no features. ShapeError: they are of another width.
        """
        if self.enter is None:
            return state
        has = self.kinds[batch.kinds]  # [r]
        return state.index_add(0, batch.virtual[has], self.enter(self._features(batch)[has]).to(state.dtype))

    def finish(self, rows: Tensor | None, batch: GraphBatch) -> Tensor:
        """Join the vectors of the texts and what the graph has made of them.

        Args:
            rows: float ``[r, d_p]``, or ``None`` for a model of texts alone.
            batch: the graphs with their features.

        Returns:
            float ``[r, d_p]``, not yet of unit length.

        Raises:
            MissingFeaturesError: the batch has no features. ShapeError: they are of another width.
        """
        if rows is not None and self.share is None:
            return rows
        text = F.normalize(self.project(self._features(batch)), dim=1)  # [r, d_p]
        if rows is None or self.share is None:
            return text
        rows = F.normalize(rows, dim=1)
        has = self.kinds[batch.kinds].unsqueeze(1)
        return torch.where(has, text + self.share[batch.kinds].unsqueeze(1) * rows, rows)

    def _features(self, batch: GraphBatch) -> Tensor:
        """Give the features of a batch: float32 ``[r, d_text]``."""
        if batch.features is None:
            raise MissingFeaturesError
        if batch.features.size(1) != self.width:
            raise ShapeError("features", tuple(batch.features.shape), f"[r, {self.width}] as text_dimension says")
        return batch.features.float()


def moments(features: Tensor) -> Tensor:
    """Compute xᵀx / r of rows: float64 ``[d, d]``."""
    rows = features.double()
    return rows.T @ rows / max(rows.size(0), 1)


def principal_directions(moment: Tensor, count: int, skip: int = 0) -> Tensor:
    """Find the directions that keep most of the inner products of rows.

    The moments are not centred: a linear map without bias is wanted whose inner products are nearest to the rows' own.

    Args:
        moment: float64 ``[d, d]``, xᵀx of the rows.
        count: of directions.
        skip: the first of them that are left out.

    Returns:
        float32 ``[count, d]``, orthonormal, the most important first and each with its largest component positive;
        the identity where ``count`` is d and none is left out, rows of zeros where there are no more.
    """
    width = moment.size(0)
    if count == width and not skip:
        return torch.eye(width)
    found = torch.linalg.eigh(moment).eigenvectors.flip(1).T[skip : skip + count]  # [≤ count, d], the largest first
    largest = found.gather(1, found.abs().argmax(1, keepdim=True))
    return F.pad((found * largest.sign()).float(), (0, 0, 0, count - len(found)))

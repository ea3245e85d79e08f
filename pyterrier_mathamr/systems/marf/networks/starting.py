"""The linear maps of a new model: the directions that keep most of the inner products of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from pyterrier_mathamr.model.variants.starting_weights import principal_directions
from pyterrier_mathamr.systems.marf.context import ContextEncoder

from .network import MaRFNetwork

_POSTS = 1000
"""Posts whose rows give the directions; more change them little."""


def set_maps(
    network: MaRFNetwork, context: ContextEncoder, texts: Sequence[str], device: str | None, verbose: bool
) -> None:
    """Set the maps before and after the fusion to principal directions."""
    some = texts[:: max(1, len(texts) // _POSTS)][:_POSTS]
    moment = torch.zeros(context.width, context.width, dtype=torch.float64)
    for start in range(0, len(some), 64):
        for rows in context.encode(some[start : start + 64], device=device, verbose=verbose):
            unit = nn.functional.normalize(torch.from_numpy(rows).double(), dim=1)
            moment += unit.T @ unit
    for part in network.maps:
        directions = principal_directions(moment, part.out_features)
        with torch.no_grad():
            part.weight.copy_(directions)
        moment = directions.double() @ moment @ directions.double().T

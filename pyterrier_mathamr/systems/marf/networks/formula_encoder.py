"""The formula encoder: a small transformer that learns formulas alone (MaRF, section 3.2).

The paper prints 8 layers, 8 heads, 512 wide, about 50 M parameters, and cites Llama 3: root mean square norms before
each part, rotary positions and SwiGLU of 2,048 then have 33.55 M, and 31,523 embeddings bring it to 49.7 M (with a GELU
network in place of SwiGLU it is 41.3 M). As an encoder it has no causal mask.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.systems.marf.config import MaRFConfig

_BASE = 10_000.0  # of the rotary angles


class FormulaEncoder(nn.Module):
    """Tokens of formulas to a row for each token."""

    def __init__(self, vocabulary: int, config: MaRFConfig) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, config.formula_width)
        nn.init.normal_(self.embeddings.weight, std=config.formula_width**-0.5)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.formula_layers))
        self.norm = RMSNorm(config.formula_width)

    def forward(self, ids: Tensor, missing: Tensor) -> Tensor:
        """Encode a padded batch."""
        x = self.embeddings(ids)
        turns = _turns(ids.shape[1], x.shape[-1] // self.layers[0].heads, x.device)
        attended = ~missing[:, None, None, :]
        for layer in self.layers:
            x = layer(x, attended, turns)
        found: Tensor = self.norm(x)
        return found


class RMSNorm(nn.Module):
    """x / √(mean x² + ε) · g, in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        x = x.float()
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * self.gain


class _Layer(nn.Module):
    """Attention with rotary positions, then SwiGLU, each after a norm and around a residual."""

    def __init__(self, config: MaRFConfig) -> None:
        super().__init__()
        width, hidden = config.formula_width, config.formula_hidden
        self.heads, self.dropout = config.formula_heads, config.dropout
        self.before_attention, self.before_network = RMSNorm(width), RMSNorm(width)
        self.query, self.key, self.value, self.joined = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, attended: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the next states: float ``[b, m, f]``."""
        share = self.dropout if self.training else 0.0
        x = x + F.dropout(self._attention(self.before_attention(x), attended, turns), share)
        h = self.before_network(x)
        return x + F.dropout(self.down(F.silu(self.gate(h)) * self.up(h)), share)

    def _attention(self, h: Tensor, attended: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        batch, length, width = h.shape
        parts = (
            part(h).view(batch, length, self.heads, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key, value = parts  # [b, heads, m, f / heads]
        query, key = _turned(query, turns), _turned(key, turns)
        met = F.scaled_dot_product_attention(query, key, value, attn_mask=attended)
        joined: Tensor = self.joined(met.transpose(1, 2).reshape(batch, length, width))
        return joined


def _turns(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Compute cosine and sine of the angle of each position and pair of numbers: float32 ``[m, width / 2]``."""
    rates = _BASE ** -(torch.arange(0, width, 2, device=device) / width)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    return angles.cos(), angles.sin()


def _turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair of numbers of a row by the angle of its position."""
    cosine, sine = (part.to(x.dtype) for part in turns)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)

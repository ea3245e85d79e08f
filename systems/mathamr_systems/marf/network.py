"""The trained part of MaRF, and the encoding of texts and formulas with it.

::

    text ────context─────────▶ E_c [n, d]  ┐
    formula ─FormulaTransformer──▶ E_f [m, f]  ┴─ Fusion ─▶ O [n, d] ─▶ unit rows [n, output], a view

Linear maps before and after the fusion narrow the rows. The paper gives 8 layers, 8 heads, width 512, about 50 M
parameters for the formula encoder, and cites Llama 3: root mean square norms before each part, rotary positions and
SwiGLU of 2,048 then have 33.55 M, and 31,523 embeddings bring it to 49.7 M (with a GELU network instead of SwiGLU it
is 41.3 M). As an encoder it has no causal mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mathamr_systems.language_models import Precision, mixed
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.resources import seeded
from pyterrier_mathamr.model.batching import batches_by_size, choose_device
from pyterrier_mathamr.model.networks import principal_directions

from .context import ContextEncoder, Formula, FormulaTokens, Keys, MaRFConfig, token_budget

View = npt.NDArray[np.float32]
"""float32 ``[n, d]``, rows of unit length."""

_BASE = 10_000.0  # of the rotary angles
_POSTS = 1000  # posts whose rows give the principal directions; more change them little


class FormulaTransformer(nn.Module):
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
        """Normalize the last dimension."""
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
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=attended)
        joined: Tensor = self.joined(found.transpose(1, 2).reshape(batch, length, width))
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


class GatedFusion(nn.Module):
    """O = FFN_G(H) ⊙ FFN(H) + E_c with H = MHA(Q = E_c, K = E_f, V = E_f) (MaRF, equations 4 to 6)."""

    def __init__(self, width: int, keys: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, kdim=keys, vdim=keys, batch_first=True)
        last = nn.Linear(width, width)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.network: nn.Module = nn.Sequential(nn.Linear(width, width), nn.GELU(), last)
        self.gate: nn.Module = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.Sigmoid())
        self.dropout = nn.Dropout(dropout)

    def forward(self, context: Tensor, formulas: Tensor, missing: Tensor | None = None) -> Tensor:
        """Fuse each text, ``[b, n, d]``, with one formula, ``[b, m, f]``; ``missing`` is true for padding."""
        found, _ = self.attention(context, formulas, formulas, key_padding_mask=missing, need_weights=False)  # H
        fused: Tensor = context + self.dropout(self.gate(found) * self.network(found))
        return fused


class MaRFNetwork(nn.Module):
    """The trained parts, with random weights from ``config.seed``."""

    def __init__(self, config: MaRFConfig, width: int, vocabulary: int) -> None:
        super().__init__()
        with seeded(config.seed):
            self.formulas = FormulaTransformer(vocabulary, config)
            d = config.width or width
            self.before = nn.Linear(width, d, bias=False) if config.width else nn.Identity()
            self.fusion = GatedFusion(
                d, d if config.keys == "context" else config.formula_width, config.heads, config.dropout
            )
            self.after = nn.Linear(d, config.output, bias=False) if config.output else nn.Identity()

    @property
    def maps(self) -> list[nn.Linear]:
        return [part for part in (self.before, self.after) if isinstance(part, nn.Linear)]

    def finished(self, fused: Tensor) -> Tensor:
        """Map fused rows to output rows: float ``[…, d]`` to float32 ``[…, output]`` of unit length."""
        return F.normalize(self.after(fused).float(), dim=-1)


def padded(rows: Sequence[np.ndarray | Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Stack rows of several lengths."""
    tensors = [torch.as_tensor(of) for of in rows]
    stacked = pad_sequence(tensors, batch_first=True).to(device)
    lengths = torch.tensor([len(of) for of in tensors], device=device)
    return stacked, torch.arange(stacked.shape[1], device=device) >= lengths[:, None]


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


@torch.inference_mode()
def formula_rows(
    encoder: FormulaTransformer,
    tokens: FormulaTokens,
    formulas: Iterable[Formula],
    length: int,
    *,
    device: str | None = None,
    precision: Precision = "auto",
) -> dict[Formula, Tensor]:
    """Encode formulas, each distinct one once, so that equal ones have equal rows."""
    where = choose_device(device)
    distinct = sorted(set(formulas), key=lambda one: (-len(one), one))
    ids = [tokens.ids(one, length) for one in distinct]
    found: dict[Formula, Tensor] = {}
    encoder.to(where)
    for members in batches_by_size(list(map(len, ids)), token_budget(where)):
        batch, missing = padded([torch.tensor(ids[i]) for i in members], where)
        with mixed(where, precision):
            rows = encoder(batch, missing).float().cpu()
        for i, of in zip(members, rows, strict=True):
            found[distinct[i]] = of[: len(ids[i])].clone()
    encoder.cpu()
    return found


@torch.inference_mode()
def fused_rows(
    network: MaRFNetwork,
    tasks: Sequence[tuple[View, Tensor | None]],
    keys: Keys,
    *,
    device: str | None = None,
    precision: Precision = "auto",
    verbose: bool = False,
) -> list[View]:
    """Fuse contexts with formulas, batched by length."""
    where, found = choose_device(device), [np.empty((0, 0), np.float32)] * len(tasks)
    network.to(where)
    for fuses in (True, False):
        some = [i for i, (_, formula) in enumerate(tasks) if (formula is not None or keys == "context") == fuses]
        batches = batches_by_size([max(1, len(tasks[i][0])) for i in some], token_budget(where))
        for members in progress(batches, "fusing formulas", "batches", verbose=verbose):
            places = [some[member] for member in members]
            context, absent = padded([tasks[i][0] for i in places], where)
            with mixed(where, precision):
                context = network.before(context)
                if fuses and keys == "context":
                    context = network.fusion(context, context, absent)
                elif fuses:
                    formulas = [formula for formula in (tasks[i][1] for i in places) if formula is not None]
                    context = network.fusion(context, *padded(formulas, where))
                rows = network.finished(context).cpu().numpy()
            for i, of in zip(places, rows, strict=True):
                found[i] = of[: len(tasks[i][0])].copy()
    network.cpu()
    return found

"""The fusion: rows of the context attend to rows of a formula, and a gate lets in what helps (MaRF, section 3.3)."""

from __future__ import annotations

from torch import Tensor, nn


class Fusion(nn.Module):
    """O = FFN_G(H) ⊙ FFN(H) + E_c with H = MHA(Q = E_c, K = E_f, V = E_f) (MaRF, equations 4 to 6).

    Both networks are two layers with GELU between; that of the gate ends in a sigmoid. The paper prints neither, only
    that there are fewer than 5 M parameters: with d 768 and f 512 these are 4.33 M. The last layer of FFN starts at 0,
    so that an untrained fusion returns the context bit for bit.

    Args:
        width: d, of the context's rows.
        keys: f, of the formulas' rows.
        heads: of the attention.
        dropout: of the attention and before the sum, in training.
    """

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
        """Fuse each text with one formula.

        Args:
            context: E_c, float ``[b, n, d]``; rows of padding stay among themselves.
            formulas: E_f, float ``[b, m, f]``.
            missing: bool ``[b, m]``, true for padding of formulas; every formula has a row.

        Returns:
            O, float ``[b, n, d]``.
        """
        met, _ = self.attention(context, formulas, formulas, key_padding_mask=missing, need_weights=False)  # H
        fused: Tensor = context + self.dropout(self.gate(met) * self.network(met))
        return fused

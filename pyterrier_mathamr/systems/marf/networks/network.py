"""What is trained of MaRF: formula encoder, fusion, and the linear maps before and after the fusion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from pyterrier_mathamr.systems.marf.config import MaRFConfig

from .formula_encoder import FormulaEncoder
from .fusion import Fusion


class MaRFNetwork(nn.Module):
    """The trained parts, with random weights from ``config.seed``."""

    def __init__(self, config: MaRFConfig, width: int, vocabulary: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.formulas = FormulaEncoder(vocabulary, config)
            d = config.width or width
            self.before = nn.Linear(width, d, bias=False) if config.width else nn.Identity()
            self.fusion = Fusion(
                d, d if config.keys == "context" else config.formula_width, config.heads, config.dropout
            )
            self.after = nn.Linear(d, config.output, bias=False) if config.output else nn.Identity()

    @property
    def maps(self) -> list[nn.Linear]:
        """The linear maps there are."""
        return [part for part in (self.before, self.after) if isinstance(part, nn.Linear)]

    def finished(self, fused: Tensor) -> Tensor:
        """Map fused rows to those that are compared: float ``[…, d]`` to float32 ``[…, output]`` of unit length."""
        return F.normalize(self.after(fused).float(), dim=-1)


def padded(rows: Sequence[np.ndarray | Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Stack rows of several lengths."""
    tensors = [torch.as_tensor(of) for of in rows]
    stacked = pad_sequence(tensors, batch_first=True).to(device)
    lengths = torch.tensor([len(of) for of in tensors], device=device)
    return stacked, torch.arange(stacked.shape[1], device=device) >= lengths[:, None]

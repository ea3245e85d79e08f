"""Encoding with the trained parts: formulas to rows, contexts and formulas to views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size
from pyterrier_mathamr.model.inputs.devices import choose_device
from pyterrier_mathamr.systems.colbert.encoding import Precision, mixed

from .config import Keys
from .networks.formula_encoder import FormulaEncoder
from .networks.network import MaRFNetwork, padded
from .reading import Formula, FormulaTokens

View = npt.NDArray[np.float32]
"""float32 ``[n, d]``, rows of unit length."""

_BUDGET = {"cpu": 8_192, "cuda": 65_536}  # most tokens of a batch, padding included


@torch.inference_mode()
def formula_rows(
    encoder: FormulaEncoder,
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
    for members in batches_by_size(list(map(len, ids)), _budget(where)):
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
    """Fuse contexts with formulas, those of similar lengths together."""
    where, found = choose_device(device), [np.empty((0, 0), np.float32)] * len(tasks)
    network.to(where)
    for fuses in (True, False):
        some = [i for i, (_, formula) in enumerate(tasks) if (formula is not None or keys == "context") == fuses]
        batches = batches_by_size([max(1, len(tasks[i][0])) for i in some], _budget(where))
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


def _budget(device: torch.device) -> int:
    return _BUDGET.get(device.type, _BUDGET["cuda"])

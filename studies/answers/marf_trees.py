"""MaRF whose formula encoder is In+Out: a state for each symbol of both trees, instead of one for each token.

The paper names trees as missing from its encoder ("Limitations"). In+Out is trained only on formulas and frozen here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from mathamr_systems import InOut
from mathamr_systems.language_models import EncoderPrecision
from mathamr_systems.marf import MaRF
from mathamr_systems.marf.network import MaRFPost, Symbols, formula_tokens, padded
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.posts import MathPost

MODEL = "in-out-mini"
WIDTH = 100
SIZES: Mapping[str, Any] = MappingProxyType(
    {"formula_width": WIDTH, "formula_heads": 2, "formula_layers": 1, "formula_hidden": 2, "formula_steps": 1}
)
"""The encoder of tokens is not used, and so it is small."""


class TreeMaRF(MaRF):
    """MaRF over trees: its formulas are identified by their tokens, and encoded from their original LaTeX."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_out = InOut.from_pretrained(MODEL)
        self._latex, self._known = dict[Symbols, str](), dict[Symbols, Tensor]()

    def readings(self, posts: Sequence[MathPost]) -> list[MaRFPost]:
        """Read posts, and remember the LaTeX of their formulas."""
        for formula in (formula for post in posts for formula in post.formulas):
            tokens = tuple(formula_tokens(formula.latex))[: self.config.formula_length]
            self._latex.setdefault(tokens, formula.latex)
        return super().readings(posts)

    def formula_rows(
        self, formulas: Iterable[Symbols], *, device: str | None = None, precision: EncoderPrecision = "auto"
    ) -> dict[Symbols, Tensor]:
        """Encode distinct formulas: a vector for each symbol of the layout tree, then of the operator tree."""
        asked = list(dict.fromkeys(formulas))
        new = [one for one in asked if one not in self._known]
        pairs = [trees_from_latex(self._latex[one]) for one in new]
        rows: list[list[Tensor]] = [[] for _ in new]
        for kind in self._in_out.kinds:
            trees = [getattr(pair, kind) for pair in pairs]
            there = [place for place, tree in enumerate(trees) if tree is not None]
            encoded = self._in_out.encode([trees[place] for place in there], kind, distinct=False)
            for place, vectors in zip(there, encoded, strict=True):
                rows[place].append(torch.from_numpy(vectors))
        none = torch.zeros(1, WIDTH)
        self._known |= {one: torch.cat(own) if own else none for one, own in zip(new, rows, strict=True)}
        return {one: self._known[one] for one in asked}

    def formula_batch(self, formulas: Sequence[Symbols], device: torch.device) -> tuple[Tensor, Tensor]:
        """Encode formulas for a step of training."""
        rows = self.formula_rows(formulas)
        return padded([rows[one] for one in formulas], device)

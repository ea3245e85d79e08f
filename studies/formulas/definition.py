"""The studies as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model.in_out.graphs import PAIRINGS
from pyterrier_mathamr.systems.in_out import Combine


@dataclass(frozen=True)
class FormulaStudy:
    """Models to compare.

    Attributes:
        name: by which it is run.
        title: one line.
        conditions: by their name in the table, options that differ from the defaults of ``InOutOptions``.
        against: the condition that all others are tested against; ``None`` for Tangent.
        combinations: of the scores of both graphs that are measured; a model of one graph has none.
        seeds: of the full run.
        formulas: how many are trained on at most; ``None`` for all.
    """

    name: str
    title: str
    conditions: Mapping[str, Mapping[str, Any]]
    against: str | None = None
    combinations: tuple[Combine, ...] = get_args(Combine)
    seeds: tuple[int, ...] = (42,)
    formulas: int | None = None


_NAMES = {"slg": "SLG", "opg": "OPG", "slg+opg": "SLG+OPG", "inner": "Inner", "outer": "Outer"}

CONDITIONS = FormulaStudy(
    "formula/in-out",
    "In+Out: which graphs are paired in training, and how both scores are combined",
    {_NAMES.get(condition, "Inner+Outer"): {"condition": condition} for condition in PAIRINGS},
)

LAYERS = FormulaStudy(
    "formula/message-passing",
    "In+Out with and without message passing",
    {f"{layers} layers" if layers != 1 else "1 layer": {"layers": layers, "epochs": 3} for layers in range(4)},
    against="0 layers",
    combinations=("max", "avg"),
    seeds=(42, 43, 44),
    formulas=8000,
)

FORMULA_STUDIES: Mapping[str, FormulaStudy] = MappingProxyType({study.name: study for study in (CONDITIONS, LAYERS)})
"""All studies of formula models by name."""


def find_formula_study(name: str) -> FormulaStudy:
    """Look up a study."""
    if name not in FORMULA_STUDIES:
        raise ConfigError("study", name, "one of " + ", ".join(FORMULA_STUDIES))
    return FORMULA_STUDIES[name]

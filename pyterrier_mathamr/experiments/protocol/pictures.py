"""Pictures of all systems: how good each is, and what it costs. Points and bars have the same numbers, best first."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.drawing.palette import BETTER, WORSE
from pyterrier_mathamr.arqmath import SHORT_NAMES
from pyterrier_mathamr.explain.figures import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = ("systems.png", "cost.png")
_INTERVAL = 1.96  # standard errors to either side: 95 %
_QUIET = "#999999"


def draw_systems(table: pd.DataFrame, measure: str, cost: str, baseline: str, folder: Path) -> list[Path]:
    """Draw a bar for each system with its interval of 95 %, and its quality over the time of a query.

    Args:
        table: ``name``, ``measure``, ``<measure> error``, ``cost`` in milliseconds, NaN where it is not known.
        measure: a column.
        cost: a column.
        baseline: the system that has a line in the first picture.
        folder: where ``systems.png`` and ``cost.png`` are written.

    Returns:
        Their paths; none where matplotlib (extra ``plots``) is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None or table.empty:
        return []
    ordered = table.dropna(subset=[measure]).sort_values(measure, ascending=False, kind="stable").reset_index(drop=True)
    _draw_bars(ordered, measure, baseline, folder / PICTURES[0])
    _draw_costs(ordered, measure, cost, folder / PICTURES[1])
    return [folder / name for name in PICTURES]


def _draw_bars(table: pd.DataFrame, measure: str, baseline: str, path: Path) -> None:
    figure = new_figure(8.0, 0.24 * len(table) + 1.0)
    axes = figure.add_subplot()
    values, error = table[measure].to_numpy(dtype=float), table[f"{measure} error"].fillna(0).to_numpy(dtype=float)
    level = table.loc[table["name"] == baseline, measure]
    line = float(level.iloc[0]) if len(level) else float(values.min())
    colors = [BETTER if value > line else _QUIET if value == line else WORSE for value in values]
    places = np.arange(len(table))
    axes.barh(places, values, xerr=_INTERVAL * error, color=colors, height=0.7, error_kw={"elinewidth": 1})
    axes.axvline(line, color="black", linewidth=0.8, linestyle="--")
    names = [f"{name}  {number}" for number, name in enumerate(table["name"], 1)]
    axes.set_yticks(places, names, fontsize=8, parse_math=False)
    axes.invert_yaxis()
    axes.set_ylim(len(table) - 0.4, -0.6)
    low = float((values - _INTERVAL * error).min())
    axes.set_xlim(max(0.0, low - 0.02), None)
    axes.set_xlabel(f"{SHORT_NAMES.get(measure, measure)}, lines: 95 %; dashed: {baseline}", parse_math=False)
    _open(axes)
    save(figure, path)


def _draw_costs(table: pd.DataFrame, measure: str, cost: str, path: Path) -> None:
    known = table[table[cost] > 0]
    figure = new_figure(9.0, max(4.2, 0.19 * len(known)))
    axes = figure.add_subplot()
    ms, values = known[cost].to_numpy(dtype=float), known[measure].to_numpy(dtype=float)
    front = [i for i in np.argsort(ms, kind="stable") if not ((ms <= ms[i]) & (values > values[i])).any()]
    axes.step(ms[front], values[front], where="post", color=_QUIET, linewidth=1, zorder=1)
    for i, (number, name) in enumerate(zip(known.index + 1, known["name"], strict=True)):
        color = BETTER if i in front else _QUIET
        axes.scatter(ms[i], values[i], s=22, color=color, zorder=2, label=f"{number}  {name}".replace("$", r"\$"))
        axes.annotate(str(number), (ms[i], values[i]), (4, 3), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("CPU ms a query")
    axes.set_ylabel(SHORT_NAMES.get(measure, measure), parse_math=False)
    _open(axes)
    figure.legend(loc="outside right upper", fontsize=7, frameon=False, handlelength=1)
    save(figure, path)


def _open(axes: Axes) -> None:
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

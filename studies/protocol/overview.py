"""All systems in one table with their costs, and what ensembles lose without one of their parts; and pictures.

Both pictures number the systems alike, the best first: the quality and the cost of each.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.charts import new_figure, save
from mathamr_systems.experiments.measuring import KNOWN_ITEM_MEASURES, paired_test
from pyterrier_mathamr._common.drawing import BETTER, WORSE
from pyterrier_mathamr.arqmath import SHORT_NAMES, TASK1_MEASURES

from .catalogue import ABLATIONS, Cost
from .labels import label_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CROSSED, FOLDS, KNOWN, LINKED = "Years crossed", "Ten folds", "Known items", "Duplicate questions"
OVERVIEW, PARTS = "All systems", "Without one part"
MS, MB = "ms a query", "MB"
ABOUT = (
    "Years crossed; known items and duplicates: MRR@10. ms a query: CPU time from the text of a topic to its ranking, "
    "over all threads, measured once on the machine that first ran it; the cost of a fusion includes its parts. MB: "
    "the indexes that are searched, without models. Blank: not measured, or not possible."
)
ABOUT_PARTS = (
    "nDCG' of an ensemble less that of the same without one part, its weights refitted, ± the interval of 95 % "
    "over topics; p is of a two-sided paired t-test, not corrected."
)
_MAIN = str(TASK1_MEASURES[0])
_MEGABYTE = 1e6


def overview_table(tables: Mapping[str, pd.DataFrame], names: Sequence[str], costs: Mapping[str, Cost]) -> pd.DataFrame:
    """Put the figures of each system in one row."""
    chosen = [name for name in names if name not in ABLATIONS]
    crossed, known, linked = (tables[caption].set_index("name") for caption in (CROSSED, KNOWN, LINKED))
    measures, found = [str(measure) for measure in TASK1_MEASURES[:3]], str(KNOWN_ITEM_MEASURES[0])
    columns = [*measures[:1], f"{_MAIN} error", f"{_MAIN} reject", *measures[1:]]
    table = crossed.reindex(chosen).reindex(columns=columns)
    table["known item"] = known[found].reindex(chosen)
    table["known item error"] = known[f"{found} error"].reindex(chosen)
    table["duplicates"] = linked[f"{found} of duplicates"].reindex(chosen)
    table["duplicates error"] = linked[f"{found} of duplicates error"].reindex(chosen)
    table[MS] = [costs[name].ms if name in costs else math.nan for name in chosen]
    table[MB] = [sum(costs[name].files.values()) / _MEGABYTE if name in costs else math.nan for name in chosen]
    return table.rename_axis("name").reset_index()


def parts_table(values: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare ensembles with the same without one part."""
    lines: dict[tuple[str, str], dict[str, object]] = {}
    for caption in (CROSSED, FOLDS):
        main = values[caption][values[caption]["measure"] == _MAIN]
        wide = main.pivot(index="qid", columns="name", values="value")
        for name, (whole, part) in ABLATIONS.items():
            if {name, whole} <= set(wide.columns):
                test = paired_test(wide[whole].to_numpy(), wide[name].to_numpy(), 1)
                spread = 1.96 * float((wide[whole] - wide[name]).std(ddof=1)) / math.sqrt(len(wide))
                line = lines.setdefault((whole, part), {"ensemble": whole, "without": part})
                line |= {caption: test.difference, f"{caption} error": spread, f"p, {caption.lower()}": test.p}
    return pd.DataFrame(lines.values())


PICTURES = ("systems.png", "cost.png")
_INTERVAL = 1.96  # standard errors to either side: 95 %
_QUIET = "#767676"


def draw_systems(table: pd.DataFrame, measure: str, cost: str, baseline: str, folder: Path) -> list[Path]:
    """Draw the quality of each system with its interval of 95 %, and its quality over the time of a query."""
    if importlib.util.find_spec("matplotlib") is None or table.empty:
        return []
    ordered = table.dropna(subset=[measure]).sort_values(measure, ascending=False, kind="stable").reset_index(drop=True)
    _draw_quality(ordered, measure, baseline, folder / PICTURES[0])
    _draw_costs(ordered, measure, cost, baseline, folder / PICTURES[1])
    return [folder / name for name in PICTURES]


def _draw_quality(table: pd.DataFrame, measure: str, baseline: str, path: Path) -> None:
    figure = new_figure(8.0, 0.24 * len(table) + 1.0)
    axes = figure.add_subplot()
    values, error = table[measure].to_numpy(dtype=float), table[f"{measure} error"].fillna(0).to_numpy(dtype=float)
    level = _level(table, measure, baseline)
    axes.axvline(level, color="black", linewidth=0.8, linestyle="--", zorder=1)
    for place, (value, of) in enumerate(zip(values, _INTERVAL * error, strict=True)):
        color = BETTER if value > level else WORSE if value < level else "black"
        axes.errorbar(value, place, xerr=of, fmt="o", color=color, markersize=5, elinewidth=1.2)
    axes.set_yticks(range(len(table)), _numbered(table["name"]), fontsize=8, parse_math=False)
    axes.set_ylim(len(table) - 0.4, -0.6)
    shown = axes.secondary_yaxis("right")
    stars = np.where(table[f"{measure} reject"].eq(True), "*", "")
    shown.set_yticks(
        range(len(table)), [f"{value:.3f}{star}" for value, star in zip(values, stars, strict=True)], fontsize=8
    )
    shown.tick_params(length=0)
    shown.spines["right"].set_visible(False)
    short = SHORT_NAMES.get(measure, measure)
    axes.set_xlabel(f"{short} and its interval of 95 %; dashed: {baseline}; *: differs from it", parse_math=False)
    _open(axes)
    save(figure, path)


def _draw_costs(table: pd.DataFrame, measure: str, cost: str, baseline: str, path: Path) -> None:
    known = table[table[cost] > 0]
    figure = new_figure(10.0, max(4.6, 0.2 * len(known)))
    axes = figure.add_subplot()
    ms, values = known[cost].to_numpy(dtype=float), known[measure].to_numpy(dtype=float)
    front = _front(ms, values)
    axes.axhline(_level(table, measure, baseline), color="black", linewidth=0.8, linestyle="--", zorder=1)
    axes.step(ms[front], values[front], where="post", color=BETTER, linewidth=1, zorder=1)
    names = _numbered(known["name"], known.index)
    for i, name in enumerate(names):
        color = BETTER if i in front else _QUIET
        axes.scatter(ms[i], values[i], s=22, color=color, zorder=2, label=name.replace("$", r"\$"))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"CPU ms a query; dashed: {baseline}", parse_math=False)
    axes.set_ylabel(SHORT_NAMES.get(measure, measure), parse_math=False)
    axes.margins(x=0.1, y=0.06)
    _open(axes)
    blue = "blue: no system of its cost or less is better"
    figure.legend(
        loc="outside right upper", fontsize=7.5, frameon=False, handlelength=1, title=blue, title_fontsize=7.5,
        alignment="left",
    )  # fmt: skip
    label_points(axes, ms, values, [name if i in front else name.split(" ", 1)[0] for i, name in enumerate(names)])
    save(figure, path)


def _level(table: pd.DataFrame, measure: str, baseline: str) -> float:
    """Return the quality of the baseline, or the least where there is none."""
    level = table.loc[table["name"] == baseline, measure]
    return float(level.iloc[0]) if len(level) else float(table[measure].min())


def _front(ms: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> list[int]:
    """List the systems that none is better than of the same cost or less, the cheapest first."""
    return [i for i in np.argsort(ms, kind="stable").tolist() if not ((ms <= ms[i]) & (values > values[i])).any()]


def _numbered(names: pd.Series[str], places: pd.Index[int] | None = None) -> list[str]:
    places = names.index if places is None else places
    return [f"{place + 1}  {name}" for place, name in zip(places, names, strict=True)]


def _open(axes: Axes) -> None:
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

"""Figures of matplotlib (extra ``plots``): where two systems differ, effectiveness against speed.

Figures are made without windows, and saved as the same bytes each time.
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pyterrier_mathamr.explain import ExplainError
from pyterrier_mathamr.extending import BETTER, WORSE, Picture, picture_path, require, shared

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure that belongs to no window, and that notebooks show."""
    module = require("matplotlib.figure", "plots")

    class ShownFigure(module.Figure):  # type: ignore[misc, name-defined]
        def _repr_png_(self) -> bytes:  # a plain figure is shown by pyplot only
            written = BytesIO()
            self.savefig(written, format="png", bbox_inches="tight")
            return written.getvalue()

    figure: Figure = ShownFigure(figsize=(width, height), dpi=120, layout="constrained")
    return figure


def save(drawing: Figure | Picture, path: str | Path) -> Path:
    """Write a picture or figure; the same one gives the same bytes.

    Args:
        drawing: the result of a function of this distribution.
        path: the file, ``.svg``, ``.png`` or ``.pdf``; its folder is created if necessary.

    Returns:
        The path.

    Raises:
        ConfigError: the name has another ending.
    """
    if isinstance(drawing, Picture):
        return drawing.save(path)
    path = picture_path(path, (".png", ".svg", ".pdf"))
    with _fixed_ids():
        drawing.savefig(path, bbox_inches="tight", metadata=_NO_DATES.get(path.suffix.lower()))
    return path


@shared
def _fixed_ids() -> AbstractContextManager[object]:
    """Let matplotlib write the same ids each time."""
    context: AbstractContextManager[object] = require("matplotlib", "plots").rc_context({"svg.hashsalt": "mathamr"})
    return context


_COLORS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#8a7a00")
_MARKERS = "osD^vP*X"
_NAMED = 40  # topics; if there are more, only the first and last are named
_ENDS = 6


def topic_differences(by_topic: pd.DataFrame, measure: str, baseline: str, system: str) -> pd.Series[float]:
    """Compute the difference between a system and a baseline for each topic.

    Args:
        by_topic: ``name``, ``qid``, ``measure``, ``value``, as ``pt.Experiment(perquery=True)`` returns it.
        measure: one of its measures, by its name in the table or in the paper (``nDCG'``).
        baseline: a name in the table.
        system: another name in the table.

    Returns:
        Differences by ``qid``, the largest first, equal ones by ``qid``; only topics that both have.

    Raises:
        ExplainError: a column, measure or name is missing; the message lists the known ones.
    """
    _has(by_topic, "column", by_topic.columns, "name", "qid", "measure", "value")
    measure = _long(measure, by_topic["measure"])
    measures = by_topic["measure"].astype(str)
    _has(by_topic, "measure", measures, measure)
    chosen = by_topic[measures == measure]
    _has(by_topic, "name", chosen["name"], baseline, system)
    values = chosen.astype({"qid": str}).pivot_table(index="qid", columns="name", values="value")
    difference = (values[system] - values[baseline]).dropna()
    order = np.lexsort((difference.index.to_numpy(dtype=str), -difference.to_numpy()))
    ordered: pd.Series[float] = difference.iloc[order].rename(measure)
    return ordered


def draw_topic_differences(by_topic: pd.DataFrame, measure: str, baseline: str, system: str) -> Figure:
    """Draw a bar for each topic: how much better (blue) or worse (vermilion, hatched) a system is than a baseline.

    Args, Raises: as for :func:`topic_differences`.

    Args:
        by_topic: ``name``, ``qid``, ``measure``, ``value``, as ``pt.Experiment(perquery=True)`` returns it.
        measure: one of its measures, by its name in the table or in the paper (``nDCG'``).
        baseline: a name in the table.
        system: another name in the table.

    Returns:
        A matplotlib figure; its title has the numbers of topics and the mean, which is a dashed line. Of more than 40
        topics the six at each end are named.

    Example::

        table = pt.Experiment([bm25, bm25 % 10], topics, qrels, mathamr.TASK1_MEASURES, names=['BM25', 'its first ten'],
                              perquery=True, filter_by_qrels=True)
        mathamr_systems.draw_topic_differences(table, str(mathamr.TASK1_MEASURES[1]), 'BM25', 'its first ten')
    """
    difference = topic_differences(by_topic, measure, baseline, system)
    count = len(difference)
    figure = new_figure(max(5.0, min(11.0, 0.22 * count + 1.5)), 4.0)
    axes = figure.add_subplot()
    better = difference.to_numpy() > 0
    bars = axes.bar(range(count), difference, width=0.8, color=[BETTER if good else WORSE for good in better])
    for bar, good in zip(bars, better, strict=True):
        if not good:
            bar.set(hatch="////", edgecolor="white", linewidth=0)
    axes.axhline(0, color="black", linewidth=0.8)
    worse, mean = int((difference < 0).sum()), difference.mean()
    axes.axhline(mean, color="black", linewidth=0.8, linestyle="--", label="mean")
    axes.legend(loc="best", fontsize=8, frameon=False)
    _name_topics(axes, difference)
    axes.set_ylabel(f"difference in {_short(measure)}", parse_math=False)
    counts = (
        f"{int(better.sum())} topics better, {worse} worse, {count - int(better.sum()) - worse} equal; mean {mean:+.3f}"
    )
    axes.set_title(f"{system} against {baseline}\n{counts}", fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _name_topics(axes: Axes, difference: pd.Series[float]) -> None:
    """Name the topics below the axis; if there are many, only the first and last, on the free side of their bars."""
    count = len(difference)
    axes.set(xlabel="topic", xlim=(-0.7, max(count, 1) - 0.3))
    if count <= _NAMED:
        axes.set_xticks(range(count), list(difference.index), rotation=90, fontsize=8, parse_math=False)
        return
    axes.set_xticks([])
    step = max(1.0, count / 64)  # of the places of names, which are wider than bars
    places = [(i, i * step) for i in range(_ENDS)]
    places += [(count - 1 - i, count - 1 - at) for i, at in places]
    for topic, at in places:
        above = difference.iloc[topic] < 0
        name, offset = str(difference.index[topic]), (0, 4 if above else -4)
        axes.annotate(
            name, (at, 0), offset, textcoords="offset points", rotation=90, fontsize=8, ha="center",
            va="bottom" if above else "top", parse_math=False, bbox={"fc": "white", "ec": "none", "pad": 0.5},
        )  # fmt: skip


def draw_speed(table: pd.DataFrame, measure: str, *, time: str = "ms per query") -> Figure:
    """Draw effectiveness against queries per second; a line joins the systems that no other beats in both.

    Args:
        table: ``name``, a column for the measure, and one for the time.
        measure: the column of the effectiveness, or its name in the paper (``nDCG'``); higher is better.
        time: the column of the time of a query in milliseconds, such as ``mrt`` of ``pt.Experiment``.

    Returns:
        A matplotlib figure; each system has its own color and marker, explained in a legend.

    Raises:
        ExplainError: a column is missing, or a time is not above 0.
    """
    measure = _long(measure, table.columns)
    _has(table, "column", table.columns, "name", measure, time)
    if not (table[time] > 0).all():
        raise ExplainError(f"the time {table[time].min()} cannot be drawn; it must be above 0.")
    speed, value = 1000 / table[time].to_numpy(dtype=float), table[measure].to_numpy(dtype=float)
    legends = [
        f"{name}  ({score:.3f}, {per:,.1f}/s)".replace("$", r"\$")
        for name, score, per in zip(table["name"], value, speed, strict=True)
    ]
    figure = new_figure(5.0 + 0.07 * max(map(len, legends), default=0), max(4.2, 0.2 * len(legends)))
    axes = figure.add_subplot()
    as_good = (speed >= speed[:, None]) & (value >= value[:, None])  # [i, j]: whether j is as fast and as good as i
    beaten = set(np.nonzero(as_good & ((speed > speed[:, None]) | (value > value[:, None])))[0].tolist())
    front = [i for i in np.lexsort((-value, -speed)).tolist() if i not in beaten]
    axes.step(speed[front], value[front], where="post", color="#999999", linewidth=1, zorder=1)
    for i, legend in enumerate(legends):
        axes.scatter(
            speed[i], value[i], s=64, color=_COLORS[i % 8], marker=_MARKERS[(i + i // 8) % 8], label=legend, zorder=2
        )
    axes.set_xscale("log")
    narrow = speed.max(initial=1.0) < 30 * speed.min(initial=np.inf)
    if len(speed):
        axes.set_xlim(speed.min() / 1.6, speed.max() * 1.6)
    ticks = require("matplotlib.ticker", "plots")
    axes.xaxis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("queries per second")
    axes.set_ylabel(_short(measure), parse_math=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def _long(measure: str, found: Iterable[object]) -> str:
    """Return the table's name of a measure of the paper; any other name unchanged."""
    known = sorted(set(map(str, found)))
    named = [name for name in known if _short(name) == measure]
    return measure if measure in known or not named else named[0]


def _short(measure: str) -> str:
    """Return the paper's name of a measure of ``ir_measures``: ``P(rel=2,judged_only=True)@10`` is ``P'@10``."""
    match = re.fullmatch(r"(\w+)\((?:.*,)?judged_only=True(?:,.*)?\)(@\d+)?", measure)
    if match is None:
        return measure.replace("Bpref(rel=2)", "Bpref")  # which reads judged documents by definition
    name = {"AP": "MAP", "RR": "MRR"}.get(match[1], match[1])
    return f"{name}'{(match[2] or '').replace('@1000', '')}"


def _has(table: pd.DataFrame, what: str, found: object, *wanted: str) -> None:
    """Raise an error if a table lacks one of ``wanted``; the message lists the existing ones."""
    known = [str(name) for name in dict.fromkeys(found)]  # type: ignore[call-overload]
    for name in wanted:
        if name not in known:
            raise ExplainError(f"the {what} {name!r} cannot be drawn; the table has {', '.join(known) or 'none'}.")

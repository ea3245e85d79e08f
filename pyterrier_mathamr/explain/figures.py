"""Figures of matplotlib (extra ``plots``): made without windows, saved as the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.drawing import Picture as Picture
from pyterrier_mathamr._common.drawing import picture_path
from pyterrier_mathamr._common.errors import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure that belongs to no window."""
    require("matplotlib.figure", "plots")
    from .shown_figure import ShownFigure

    return ShownFigure(figsize=(width, height), dpi=120, layout="constrained")


def save(drawing: Figure | Picture, path: str | Path) -> Path:
    """Write a picture or figure; the same one gives the same bytes.

    Args:
        drawing: the result of a function of this room.
        path: the file, ``.svg``, ``.png`` or ``.pdf``; its folder is created if necessary.

    Returns:
        The path.

    Raises:
        ConfigError: the name has another ending.
    """
    if isinstance(drawing, Picture):
        return drawing.save(path)
    path = picture_path(path, (".png", ".svg", ".pdf"))
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": "mathamr"}):
        drawing.savefig(path, bbox_inches="tight", metadata=_NO_DATES.get(path.suffix.lower()))
    return path

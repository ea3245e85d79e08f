"""What the pictures made by matplotlib (extra ``plots``) share: a figure without windows, and how it is saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.extras import require

from .svg import Picture, picture_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure that belongs to no window, so that none is left open.

    Args:
        width: in inches.
        height: in inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure: Figure = require("matplotlib.figure", "plots").Figure(
        figsize=(width, height), dpi=120, layout="constrained"
    )
    return figure


def save(drawing: Figure | Picture, path: str | Path) -> Path:
    """Write a picture or figure; the same one gives the same bytes.

    Args:
        drawing: what a function of this room gave.
        path: the file; its ending says the form: ``.svg``, and of figures also ``.png`` and ``.pdf``. Its
            folder is made where it is missing.

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

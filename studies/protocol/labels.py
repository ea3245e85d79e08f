"""Labels of points in a figure: none covers another, a point or a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DISTANCES = (3.0, 6.0, 10.0, 15.0)  # from the point to the label, in points of print
_DIRECTIONS = [math.radians(angle) for angle in (45, 135, 315, 225, 0, 180, 90, 270, 20, 160, 340, 200, 70, 110)]
_POINT = 3.0  # half the width of a point
_LETTER = 0.58  # mean width of a letter, of the size of the font


class LabelBox(NamedTuple):
    """A rectangle, in points of print."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: LabelBox) -> bool:
        """Whether two rectangles overlap."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def within(self, other: LabelBox) -> bool:
        """Whether another rectangle contains this one."""
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.bottom <= self.bottom
            and self.top <= other.top
        )


def place_labels(
    points: npt.NDArray[np.float64], texts: Sequence[str], size: float, frame: LabelBox, taken: Iterable[LabelBox] = ()
) -> list[LabelBox]:
    """Find a place for the label of each point, the longest label first, as near as there is one."""
    full = [*taken, *(LabelBox(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points.tolist())]
    found: dict[int, LabelBox] = {}
    for i in sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i)):
        x, y = points[i].tolist()
        inside = [box for box in _places(x, y, _LETTER * size * len(texts[i]), size) if box.within(frame)]
        free = (box for box in inside if not any(map(box.meets, full)))
        found[i] = next(free, None) or next(iter(inside), LabelBox(x, y, x, y))
        full.append(found[i])
    return [found[i] for i in range(len(texts))]


def _places(x: float, y: float, width: float, height: float) -> Iterator[LabelBox]:
    """Yield places of a label around a point, the nearest first."""
    for distance in _DISTANCES:
        for angle in _DIRECTIONS:
            across, up = math.cos(angle), math.sin(angle)
            near_x, near_y = x + (_POINT + distance) * across, y + (_POINT + distance) * up
            left = near_x - width * (1 - across) / 2
            bottom = near_y - height * (1 - up) / 2
            yield LabelBox(left, bottom, left + width, bottom + height)


def label_points(
    axes: Axes, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], texts: Sequence[str], *, size: float = 8
) -> None:
    """Label the points without overlaps; the axes must have their final limits."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()  # finds the place of the axes
    scale = 72 / figure.dpi
    points = np.asarray(axes.transData.transform(np.column_stack([x, y])), dtype=float) * scale
    frame = np.asarray(axes.get_window_extent().get_points(), dtype=float).ravel() * scale
    lines = []
    for line in axes.get_lines():
        corners = np.asarray(line.get_transform().transform_path(line.get_path()).vertices, dtype=float) * scale
        lines += [
            LabelBox(*(np.minimum(a, b) - 1).tolist(), *(np.maximum(a, b) + 1).tolist()) for a, b in pairwise(corners)
        ]
    boxes = place_labels(points, texts, size, LabelBox(*frame.tolist()), lines)
    for box, (across, up), at, text in zip(boxes, points.tolist(), zip(x, y, strict=True), texts, strict=True):
        side = "right" if box.right < across else "left"  # the edge at the point, since the width is an estimate
        offset = ((box.right if side == "right" else box.left) - across, (box.bottom + box.top) / 2 - up)
        axes.annotate(
            text, at, offset, textcoords="offset points", fontsize=size, ha=side, va="center", parse_math=False
        ).set_in_layout(False)

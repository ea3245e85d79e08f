"""Labels of points: none covers another, a point or a line."""

from itertools import combinations

import numpy as np
import pytest

from studies.protocol.labels import LabelBox, label_points, place_labels

FRAME = LabelBox(0, 0, 200, 100)


def test_labels_of_points_that_lie_close_together_do_not_meet() -> None:
    points = np.array([[100.0, 50.0], [101.0, 51.0], [103.0, 50.0], [140.0, 20.0]])
    boxes = place_labels(points, ["1", "2  a longer name", "3", "4"], 8, FRAME)
    assert not any(a.meets(b) for a, b in combinations(boxes, 2))
    assert not any(box.left < x < box.right and box.bottom < y < box.top for box in boxes for x, y in points.tolist())
    assert all(box.within(FRAME) for box in boxes)


def test_a_label_keeps_off_a_line_and_within_the_frame() -> None:
    point = np.array([[195.0, 50.0]])  # there is no room to its right
    line = LabelBox(0, 52, 200, 100)
    (box,) = place_labels(point, ["12"], 8, FRAME, [line])
    assert (box.meets(line), box.within(FRAME), box.right < 195) == (False, True, True)
    (free,) = place_labels(np.array([[100.0, 50.0]]), ["12"], 8, FRAME)
    assert free.left > 100  # with room on all sides, above and to the right
    assert free.bottom > 50

    (box,) = place_labels(np.array([[100.0, 50.0]]), ["1"], 8, FRAME, [FRAME])
    assert box.within(FRAME)


def test_written_labels_do_not_meet_and_no_line_runs_through_them() -> None:
    pytest.importorskip("matplotlib")
    from mathamr_systems.charts import new_figure

    figure = new_figure(4, 3)
    axes = figure.add_subplot()
    x, y = np.array([1.0, 1.01, 2.0]), np.array([1.0, 1.0, 1.5])
    axes.scatter(x, y)
    axes.axhline(1.5)
    label_points(axes, x, y, ["1  first", "2", "3"])
    figure.draw_without_rendering()
    found = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == ["1  first", "2", "3"]
    assert not any(a.overlaps(b) for a, b in combinations(found, 2))
    height = axes.transData.transform((0, 1.5))[1]
    assert not found[2].y0 < height < found[2].y1

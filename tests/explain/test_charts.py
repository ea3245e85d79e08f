"""Figures of matplotlib, read back from their axes."""

import pickle
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from mathamr_systems import draw_speed, draw_topic_differences, save, topic_differences
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.explain import ExplainError

pytest.importorskip("matplotlib", reason="the extra plots is not installed")

TABLE = pd.DataFrame(
    [
        ("A", "1", "AP", 0.1), ("A", "2", "AP", 0.5), ("A", "10", "AP", 0.2), ("A", "4", "AP", 0.9),
        ("B", "1", "AP", 0.4), ("B", "2", "AP", 0.25), ("B", "10", "AP", 0.2), ("B", "1", "P@10", 1.0),
    ],
    columns=["name", "qid", "measure", "value"],
)  # fmt: skip


def test_topics_are_bars_by_difference_worse_ones_hatched_and_topics_of_one_system_left_out() -> None:
    found = topic_differences(TABLE, "AP", "A", "B")
    assert found.index.tolist() == ["1", "10", "2"]
    assert found.tolist() == pytest.approx([0.3, 0.0, -0.25])
    axes = draw_topic_differences(TABLE, "AP", "A", "B").axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0.3, 0.0, -0.25])
    assert bool(axes.patches[2].get_hatch())
    assert not axes.patches[0].get_hatch()
    assert axes.get_title() == "B against A\n1 topics better, 1 worse, 1 equal; mean +0.017"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "2"]


def test_of_many_topics_those_at_both_ends_are_named_and_no_name_is_tiny() -> None:
    rows = [(name, f"A.{i}", "AP", i / 60 if name == "B" else 0.5) for name in "AB" for i in range(60)]
    table = pd.DataFrame(rows, columns=TABLE.columns)
    axes = draw_topic_differences(table, "AP", "A", "B").axes[0]
    assert [text.get_text() for text in axes.texts[:6]] == [f"A.{i}" for i in range(59, 53, -1)]
    assert [text.get_text() for text in axes.texts[6:]] == [f"A.{i}" for i in range(6)]
    few = draw_topic_differences(TABLE, "AP", "A", "B").axes[0]
    assert min(text.get_fontsize() for text in [*axes.texts, *few.get_xticklabels()]) >= 8


@pytest.mark.parametrize("times", [[7.7], [1, 20, 400], [3, 4, 5]])
def test_the_numbers_of_the_time_axis_do_not_overlap(times: list[float]) -> None:
    names = [f"system {i}" for i in range(len(times))]
    figure = draw_speed(pd.DataFrame({"name": names, "AP": [0.1] * len(times), "ms": times}), "AP", time="ms")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    labels = [label for label in axes.get_xticklabels() if axes.get_xlim()[0] <= label.get_position()[0]]
    shown = [label.get_window_extent() for label in labels if label.get_position()[0] <= axes.get_xlim()[1]]
    assert shown
    assert all(before.x1 < after.x0 for before, after in pairwise(shown))
    assert not any(label.get_text() for label in axes.get_xticklabels(minor=True))


@pytest.mark.parametrize(("measure", "system", "named"), [("MAP", "B", "AP, P@10"), ("AP", "C", "A, B")])
def test_a_missing_column_is_named_with_the_existing_ones(measure: str, system: str, named: str) -> None:
    with pytest.raises(ExplainError, match=named) as caught:
        topic_differences(TABLE, measure, "A", system)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ExplainError, match="'qid'"):
        topic_differences(TABLE.drop(columns="qid"), "AP", "A", "B")


def test_a_measure_may_be_asked_for_by_the_name_that_papers_use() -> None:
    long = str(TASK1_MEASURES[0])
    table = TABLE.replace({"measure": {"AP": long}})
    assert topic_differences(table, "nDCG'", "A", "B").equals(topic_differences(table, long, "A", "B"))
    for name in ("nDCG'", long):
        assert draw_topic_differences(table, name, "A", "B").axes[0].get_ylabel() == "difference in nDCG'"
    speed = draw_speed(pd.DataFrame({"name": ["a"], long: [0.5], "mrt": [2.0]}), "nDCG'", time="mrt")
    assert speed.axes[0].get_ylabel() == "nDCG'"


def test_systems_that_no_other_beats_in_both_are_joined() -> None:
    slower = pd.DataFrame({"name": ["BM25", "twin", "slow"], "AP": [0.3, 0.3, 0.3], "mrt": [1, 1, 10]})
    assert draw_speed(slower, "AP", time="mrt").axes[0].lines[0].get_xdata().tolist() == [1000.0, 1000.0]
    table = pd.DataFrame(
        {"name": ["slow $", "fast", "beaten", "mid"], "AP": [0.4, 0.1, 0.1, 0.3], "mrt": [100, 1, 50, 10]}
    )
    figure = draw_speed(table, "AP", time="mrt")
    axes = figure.axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1000.0, 100.0, 10.0]
    assert axes.lines[0].get_ydata().tolist() == [0.1, 0.3, 0.4]
    assert [points.get_offsets().tolist() for points in axes.collections][2] == [[20.0, 0.1]]
    assert len(figure.legends[0].get_texts()) == 4
    with pytest.raises(ExplainError, match="above 0"):
        draw_speed(table.assign(mrt=0.0), "AP", time="mrt")


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    figures = [draw_topic_differences(TABLE, "AP", "A", "B") for _ in range(2)]
    for ending in ("png", "svg", "pdf"):
        first, second = (save(figure, tmp_path / f"{id(figure)}.{ending}").read_bytes() for figure in figures)
        assert first == second

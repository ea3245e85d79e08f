"""Pictures are shown by a notebook, without magic and without pyplot, and written in the form of a name's suffix."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mathamr_systems
from mathamr_systems import save
from pyterrier_mathamr import explain
from pyterrier_mathamr._common.drawing import Canvas
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.explain import Picture
from pyterrier_mathamr.formula import opt_from_latex
from pyterrier_mathamr.formula.display.typesetting import typeset
from pyterrier_mathamr.graph import MathAMRGraph

PICTURE = Picture(svg="<svg/>", width=1, height=1)


def test_pictures_are_shown_as_pictures() -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="the extra test is not installed")
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    graph = MathAMRGraph(decode_penman("(f / find-01 :ARG1 (m / FORMULA_0))"), ("",), "1", latex=("x^2",))
    rows = np.eye(3, dtype=np.float32)
    speed = pd.DataFrame({"name": ["a", "b"], "AP": [0.1, 0.2], "ms": [1.0, 2.0]})
    rankings = [("A", "1", "AP", 0.1), ("B", "1", "AP", 0.4)]
    by_topic = pd.DataFrame(rankings, columns=["name", "qid", "measure", "value"])
    shown = [
        ("image/svg+xml", explain.draw_graph(graph)),
        ("image/svg+xml", explain.draw_maxsim(graph, rows, graph, rows)),
        ("image/svg+xml", explain.draw_formula("x^2")),
        ("text/html", opt_from_latex("x^2")),
        ("image/png", mathamr_systems.draw_speed(speed, "AP", time="ms")),
        ("image/png", mathamr_systems.draw_topic_differences(by_topic, "AP", "A", "B")),
    ]
    for kind, thing in shown:
        assert kind in formatters.DisplayFormatter().format(thing)[0], thing


@pytest.mark.parametrize("name", ["graph.jpg", "graph.svg.gz", "graph"])
def test_a_picture_is_not_written_under_another_name(tmp_path: Path, name: str) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    for write in (PICTURE.save, lambda path: save(PICTURE, path)):
        with pytest.raises(ConfigError, match=r"a name that ends in \.svg or \.png or \.pdf"):
            write(tmp_path / name)
    with pytest.raises(ConfigError, match=r"\.png or \.svg or \.pdf"):
        save(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_and_a_figure_have_three_forms(tmp_path: Path) -> None:
    pytest.importorskip("cairosvg", reason="the extra plots is not installed", exc_type=ImportError)
    canvas, formula = Canvas(), typeset(r"\frac{1}{2}", 14, 100)
    assert formula is not None
    canvas.outlines(10, 20, formula, "#000000")
    picture = canvas.picture(80, 40, "#ffffff", "a half")
    assert save(picture, tmp_path / "half.png").read_bytes().startswith(b"\x89PNG")
    assert save(picture, tmp_path / "half.pdf").read_bytes().startswith(b"%PDF")
    assert PICTURE.save(tmp_path / "new" / "folder" / "graph.svg").read_text() == "<svg/>"
    figure = pytest.importorskip("matplotlib.figure").Figure()
    assert save(figure, tmp_path / "chart.PNG").read_bytes().startswith(b"\x89PNG")

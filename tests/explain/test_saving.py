"""A picture is written in the form of its name's suffix, or not at all."""

from pathlib import Path

import pytest

from mathamr_systems import save
from pyterrier_mathamr._common.drawing import Canvas
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.explain import Picture
from pyterrier_mathamr.formula.display.typesetting import typeset

PICTURE = Picture(svg="<svg/>", width=1, height=1)


@pytest.mark.parametrize("name", ["graph.jpg", "graph.svg.gz", "graph"])
def test_a_picture_is_not_written_under_another_name(tmp_path: Path, name: str) -> None:
    for write in (PICTURE.save, lambda path: save(PICTURE, path)):
        with pytest.raises(ConfigError, match=r"a name that ends in \.svg or \.png or \.pdf"):
            write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_figure_has_one_of_three_forms(tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    with pytest.raises(ConfigError, match=r"\.png or \.svg or \.pdf"):
        save(figure, tmp_path / "chart.jpg")
    assert save(figure, tmp_path / "chart.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_picture_has_the_same_three_forms(tmp_path: Path) -> None:
    pytest.importorskip("cairosvg", reason="the extra plots is not installed", exc_type=ImportError)
    canvas = Canvas()
    formula = typeset(r"\frac{1}{2}", 14, 100)
    assert formula is not None
    canvas.outlines(10, 20, formula, "#000000")
    picture = canvas.picture(80, 40, "#ffffff", "a half")
    assert save(picture, tmp_path / "half.png").read_bytes().startswith(b"\x89PNG")
    assert save(picture, tmp_path / "half.pdf").read_bytes().startswith(b"%PDF")


def test_the_folder_of_a_picture_is_made(tmp_path: Path) -> None:
    assert PICTURE.save(tmp_path / "new" / "folder" / "graph.svg").read_text() == "<svg/>"

"""The demo: its figures with each bundled model, what it shows, and its page."""

from functools import partial
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from click.testing import CliRunner

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.cli.demo import PATTERN, QUESTION, build_sample_engine, compare_systems
from pyterrier_mathamr.engine import page

MEASURES = list(map(str, TASK1_MEASURES))
NAMES = (
    "BM25",
    "BM25, tuned for mathematics",
    "MathAMR+",
    "tuned BM25 % 100, then MathAMR+",
    "search engine: words and MathAMR+",
)
TUNED = (0.8357, 0.6800, 0.2800, 0.5964)
STANDARD = (0.8221, 0.6291, 0.2950, 0.5227)
FIGURES = {
    "mathamr-plus-mini": [
        STANDARD,
        TUNED,
        (0.8284, 0.6644, 0.3100, 0.5616),
        (0.8183, 0.6671, 0.3100, 0.5616),
        (0.8635, 0.7201, 0.3050, 0.6074),
    ],
    "mathamr-plus-text": [
        STANDARD,
        TUNED,
        (0.8982, 0.7989, 0.3400, 0.7520),
        (0.8816, 0.7888, 0.3300, 0.7472),
        (0.9068, 0.7980, 0.3300, 0.7331),
    ],
}


def check(found: pd.DataFrame, model: str, tolerance: float) -> None:
    expected = pd.DataFrame(FIGURES[model], columns=MEASURES, index=pd.Index(NAMES, name="name"))
    pd.testing.assert_frame_equal(found.set_index("name")[MEASURES], expected, rtol=0, atol=tolerance)
    assert not pt.java.started()


@pytest.mark.slow
def test_the_sample_has_the_figures_of_the_small_model_without_network_or_java(tmp_path: Path) -> None:
    engine = build_sample_engine(tmp_path / "engine", verbose=False, model="mathamr-plus-mini")
    check(compare_systems(engine, tmp_path), "mathamr-plus-mini", 0.01)


def test_the_demo_shows_a_table_an_explained_answer_a_pattern_and_how_to_go_on() -> None:
    result = CliRunner().invoke(main, ["demo", "--quiet"])
    assert result.exit_code == 0, result.output
    sections = (
        *NAMES,
        "* differs from BM25, tuned for mathematics",
        f"Question: {QUESTION}",
        "score of '",
        "further part",
    )
    sections += (f"Pattern: {PATTERN}", "with ?f = ", "mathamr demo --serve", "mathamr build NOTES -o my.engine")
    places = [result.output.find(section) for section in sections]
    assert -1 not in places
    assert places == sorted(places)
    table = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[2:7]]
    found = pd.DataFrame([[name, *map(float, figures[:4])] for name, *figures in table], columns=["name", *MEASURES])
    check(found, "mathamr-plus-text", 0.02)  # its precision is that of the processor


def test_the_demo_serves_a_page_over_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    served = []

    def serve_page(engine: Path, *args: object, started: object, title: str, **options: object) -> None:
        from pyterrier_mathamr.engine import SearchEngine

        served.append((len(SearchEngine(engine)), title))

    monkeypatch.setattr(page, "serve_page", serve_page)
    small = partial(build_sample_engine, model="mathamr-plus-mini")  # builds faster
    monkeypatch.setattr("pyterrier_mathamr.cli.demo.build_sample_engine", small)
    result = CliRunner().invoke(main, ["demo", "--serve", "--quiet"])
    assert result.exit_code == 0, result.output
    assert served == [(222, "The sample")]

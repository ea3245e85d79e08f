"""The demo: its figures with each bundled model, what it shows, and its page."""

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


@pytest.mark.parametrize("model", [pytest.param("mathamr-plus-mini", marks=pytest.mark.slow), "mathamr-plus-text"])
def test_the_demo_measures_the_figures_of_the_bundled_model_without_network_or_java(tmp_path: Path, model: str) -> None:
    engine = build_sample_engine(tmp_path / "engine", verbose=False, model=model)
    found = compare_systems(engine, tmp_path).set_index("name")[MEASURES]
    expected = pd.DataFrame(FIGURES[model], columns=MEASURES, index=pd.Index(NAMES, name="name"))
    tolerance = 0.02 if model == "mathamr-plus-text" else 0.01  # its precision is that of the processor
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=tolerance)
    assert not pt.java.started()


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


def test_the_demo_serves_a_page_over_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    served = []

    def serve_page(engine: Path, *args: object, started: object, title: str, **options: object) -> None:
        from pyterrier_mathamr.engine import SearchEngine

        served.append((len(SearchEngine(engine)), title))

    monkeypatch.setattr(page, "serve_page", serve_page)
    result = CliRunner().invoke(main, ["demo", "--serve", "--quiet"])
    assert result.exit_code == 0, result.output
    assert served == [(222, "The sample")]

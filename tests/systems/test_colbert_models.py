"""ColBERT: checkpoints in four forms, losses by hand, training of the last layer."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from colbert_checkpoints import DIMENSIONS, projection, pylate_form, sentence_transformers_form, stored_inline
from safetensors.torch import load_file, save_file
from tiny_models import tiny_bert

from mathamr_systems import ColBERT, ColBERTOptions, ColBERTTraining
from mathamr_systems.colbert.training import ColBERTData, Ragged, Tail, in_batch_loss, learning_rate, triple_loss
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.running.resources import one_torch_thread
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError, TrainingError, UnsafeModelError

LENGTH = 12
QUERIES = pd.DataFrame(
    {"qid": ["1", "2", "3"], "query": [r"prove $\frac{x}{2}$ is less", "sum of two , the limit .", "   "]}
)


def query_rows(model: ColBERT) -> list[np.ndarray]:
    return list(model.query_encoder(precision="float32")(QUERIES)["query_embs"])


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        "sentence-transformers": sentence_transformers_form(folder / "st", folder / "bert", LENGTH),
        "PyLate": pylate_form(folder / "pylate"),
        "Stanford": stored_inline(folder / "stanford", "HF_ColBERT"),
        "Approach Zero": stored_inline(folder / "a0", "ColBERT"),
    }


@pytest.mark.parametrize("form", ["PyLate", "Stanford", "Approach Zero"])
def test_all_forms_of_one_model_give_the_rows_of_the_first(forms, form):
    first = query_rows(ColBERT.from_pretrained(forms["sentence-transformers"], query_length=LENGTH))
    found = query_rows(ColBERT.from_pretrained(forms[form], query_length=LENGTH))
    assert [rows.shape for rows in found] == [(LENGTH, DIMENSIONS), (LENGTH, DIMENSIONS), (0, DIMENSIONS)]
    for expected, rows in zip(first, found, strict=True):
        np.testing.assert_allclose(rows, expected, atol=1e-6)


@pytest.mark.parametrize("form", ["sentence-transformers", "PyLate", "Stanford", "Approach Zero"])
def test_the_stored_projection_is_used_and_prefixes_are_single_tokens(forms, form):
    model = ColBERT.from_pretrained(forms[form].parent, subfolder=forms[form].name, query_length=LENGTH)
    assert torch.equal(model.encoder[1].linear.weight.detach().cpu(), projection())
    for side, prefix in (("query", "[unused0]"), ("document", "[unused1]")):
        ids = model.encode(["prove the sum"], side)[0].ids
        assert model.encoder.tokenizer.convert_ids_to_tokens(ids[0].item()) == prefix
        assert model.encoder.tokenizer.convert_ids_to_tokens(ids[-1].item()) == "[CLS]"


def test_lengths_of_queries_and_capitals_follow_the_form(forms, tmp_path) -> None:
    def length(folder: Path) -> int:
        return ColBERT.from_pretrained(folder).encoder[0].query_expansion["length"]

    assert length(forms["Stanford"]) == length(forms["Approach Zero"]) == 512
    assert length(stored_inline(tmp_path / "with", "HF_ColBERT", metadata=True)) == 9

    cases = {form: ColBERT.from_pretrained(folder).options.case for form, folder in forms.items()}
    assert cases == {"sentence-transformers": True, "PyLate": True, "Stanford": True, "Approach Zero": False}


@pytest.mark.parametrize("make", ["bert", "sentence-transformer", "empty", "no projection", "no json"])
def test_a_folder_without_a_checkpoint_is_refused_by_name(make, tmp_path):
    folder = tmp_path / "model"
    if make == "bert":
        tiny_bert(folder)
    elif make == "sentence-transformer":
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        transformer = Transformer(str(tiny_bert(tmp_path / "bert")))
        SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu").save_pretrained(
            str(folder), create_model_card=False
        )
    elif make == "empty":
        folder.mkdir()
    elif make == "no projection":
        stored_inline(folder, "ColBERT")
        weights = load_file(folder / "model.safetensors")
        weights.pop("linear.weight")
        save_file(weights, folder / "model.safetensors")
    else:
        stored_inline(folder, "ColBERT")
        (folder / "config.json").write_text("{", "utf-8")
    with pytest.raises(ModelFileError, match="no ColBERT checkpoint of a known form") as raised:
        ColBERT.from_pretrained(folder)
    assert raised.value.path == folder
    assert "ColBERT.new(backbone)" in str(raised.value)


def test_missing_or_unsafe_checkpoints_are_refused(forms, tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        ColBERT.from_pretrained(tmp_path / "nowhere")
    folder = stored_inline(tmp_path / "pickled", "ColBERT")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnsafeModelError, match="safetensors"):
        ColBERT.from_pretrained(folder)
    foreign = pylate_form(tmp_path / "foreign")
    modules = json.loads((foreign / "modules.json").read_text("utf-8"))
    modules[1]["type"] = "evil.Dense"
    (foreign / "modules.json").write_text(json.dumps(modules), "utf-8")
    with pytest.raises(UnsafeModelError, match=r"evil\.Dense"):
        ColBERT.from_pretrained(foreign)
    ColBERT.from_pretrained(forms["Approach Zero"]).save(tmp_path / "copy")
    (tmp_path / "copy" / "mathamr_colbert.json").write_text("{}", "utf-8")
    with pytest.raises(ModelFileError, match="mathamr_colbert"):
        ColBERT.from_pretrained(tmp_path / "copy")


def test_a_foreign_checkpoint_without_math_tokens_warns_once(forms):
    documents = pd.DataFrame({"docno": ["1"], "text": [r"$\frac{x}{2}$ and $\int y$"]})
    model = ColBERT.from_pretrained(forms["Approach Zero"])
    with pytest.warns(MathAMRWarning, match=r"2 of 5 formula tokens are not in the vocabulary"):
        model.doc_encoder()(documents)
    model.doc_encoder()(documents)
    model = ColBERT.from_pretrained(forms["Approach Zero"])
    model.doc_encoder()(documents.assign(text=r"$\frac{x}{2}$"))


PAIRS = [
    {
        "qid": f"q{i}",
        "question": f"{word} of $x^{i}$ is",
        "aid": f"a{i}",
        "answer": f"the {word} , two $\\frac{{1}}{{2}}$",
    }
    for i, word in enumerate(["sum", "limit", "fraction", "prove", "less", "two"])
]
NEGATIVES = {f"q{i}": [f"a{(i + 1) % 6}", f"a{i}"] for i in range(6)}
OPTIONS = ColBERTOptions(dimensions=8, query_length=16, document_length=20, min_count=1, math=True)


def ragged(*texts: list[tuple[float, float]]) -> Ragged:
    lengths = torch.tensor([0, *map(len, texts)])
    return Ragged(torch.tensor([row for text in texts for row in text], requires_grad=True), lengths.cumsum(0))


QUERY = ragged([(1.0, 0.0), (0.6, 0.8)])
DOCUMENTS = ragged([(0.8, 0.6), (0.0, 1.0)], [(1.0, 0.0)])


def test_the_triple_loss_is_that_of_the_worked_example_without_questions_that_have_no_wrong_answer() -> None:
    loss = triple_loss(QUERY, DOCUMENTS, [1])
    assert loss.item() == pytest.approx(0.616344, abs=1e-6)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-0.16)), abs=1e-6)

    queries = ragged([(1.0, 0.0), (0.6, 0.8)], [(1.0, 0.0)])
    documents = ragged([(0.8, 0.6), (0.0, 1.0)], [(0.0, 1.0)], [(1.0, 0.0)])
    assert triple_loss(queries, documents, [2, None]).item() == pytest.approx(0.616344, abs=1e-6)
    none = triple_loss(queries, documents, [None, None])
    none.backward()
    assert none.item() == 0

    padded, scoring = torch.tensor([[[-1.0, 0.0], [0.0, 0.0]]]), torch.tensor([[True, False]])
    document = Ragged.of(padded, scoring)
    assert document.rows.tolist() == [[-1.0, 0.0]]
    other = document.texts([0, 0])
    loss = triple_loss(ragged([(1.0, 0.0)]), other, [1])
    assert loss.item() == pytest.approx(math.log(2))


def test_the_loss_within_a_batch_leaves_out_answers_that_are_right():
    queries = ragged([(1.0, 0.0)], [(0.0, 1.0)])
    documents = ragged([(1.0, 0.0)], [(0.6, 0.8)], [(-1.0, 0.0)])
    allowed = torch.tensor([[True, False, True], [True, True, True]])
    first = -math.log(math.e / (math.e + math.exp(-1)))
    second = -math.log(math.exp(0.8) / (1 + math.exp(0.8) + 1))
    assert in_batch_loss(queries, documents, allowed).item() == pytest.approx((first + second) / 2, abs=1e-6)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("backbone") / "bert")


def trained(backbone, **options) -> ColBERT:
    training = ColBERTTraining(**{"epochs": 2, "batch_size": 6, "learning_rate": 0.01, "warmup": 0.0, **options})
    return ColBERT.new(backbone, options=OPTIONS, training=training).fit(PAIRS, negatives=NEGATIVES)


@pytest.mark.parametrize(("train", "loss"), [("last", "in-batch"), ("last", "triple"), ("all", "in-batch")])
def test_steps_lower_the_loss(backbone, train, loss):
    history = trained(backbone, train=train, loss=loss, epochs=3).history
    assert history[2] < history[0]


@pytest.mark.parametrize("train", ["last", "all"])
def test_last_trains_only_the_projection_and_the_last_layer_and_all_also_the_embeddings(backbone, train):
    start = ColBERT.new(backbone, options=OPTIONS)
    start.prepare(ColBERTData.read(PAIRS, negatives=NEGATIVES).posts.values())
    before = {name: tensor.clone() for name, tensor in start.encoder.state_dict().items()}
    start.training = ColBERTTraining(train=train, epochs=1, batch_size=6, learning_rate=0.01, warmup=0.0)
    start.fit(PAIRS, negatives=NEGATIVES)
    changed = {name for name, tensor in start.encoder.state_dict().items() if not torch.equal(tensor, before[name])}
    others = {name for name in changed if "encoder.layer.0." not in name and name != "1.linear.weight"}
    assert "1.linear.weight" in changed
    assert any("word_embeddings" in name for name in others) if train == "all" else not others


def test_the_cached_states_give_the_rows_of_the_whole_model(backbone):
    model = ColBERT.new(backbone, options=OPTIONS)
    data = ColBERTData.read(PAIRS)
    model.prepare(data.posts.values())
    texts = [model.texts.text(post) for post in data.posts.values()]
    tail, states = Tail(model.encoder), {}
    tail.add_states(states, "document", texts)
    with torch.no_grad():
        found = tail.rows([states["document", text] for text in texts], "document")
    expected = model.encode(texts, "document")
    for i, text in enumerate(expected):
        np.testing.assert_allclose(np.roll(text.rows, 1, axis=0), found.text(i).numpy(), atol=0.03)


def test_states_are_shared_by_runs_of_several_seeds(backbone):
    states = {}
    for seed in (0, 1):
        training = ColBERTTraining(epochs=1, batch_size=6, seed=seed)
        model = ColBERT.new(backbone, options=OPTIONS, training=training).fit(PAIRS, states=states)
        assert len(states) == 12
    uninterrupted = ColBERT.new(backbone, options=OPTIONS, training=training).fit(PAIRS)
    assert uninterrupted.identity == model.identity


def test_queries_with_expansion_are_trained_with_it(backbone):
    options = ColBERTOptions(dimensions=8, query_length=16, document_length=20, min_count=1, query_expansion=True)
    training = ColBERTTraining(epochs=2, batch_size=6, learning_rate=0.01, warmup=0.0)
    model = ColBERT.new(backbone, options=options, training=training).fit(PAIRS)
    assert model.history[1] < model.history[0]
    assert len(model.encode(["sum"], "query")[0].rows) == 16


def test_a_new_model_learns_the_math_tokens_of_its_posts_and_starts_at_principal_directions(backbone):
    model = ColBERT.new(backbone, options=OPTIONS)
    rows = model.encoder[0].model.get_input_embeddings().weight.shape[0]
    model.prepare(ColBERTData.read(PAIRS).posts.values())
    tokenizer = model.encoder.tokenizer
    assert tokenizer.tokenize("$5$ $frac$") == ["$5$", "$frac$"]
    assert model.encoder[0].model.get_input_embeddings().weight.shape[0] == len(tokenizer) > rows
    weight = model.encoder[1].linear.weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(8), atol=1e-5, rtol=0)


def test_bad_training_data_is_named(backbone):
    model = ColBERT.new(backbone, options=OPTIONS)
    with pytest.raises(TrainingError, match="at least two pairs"):
        model.fit(PAIRS[:1])
    with pytest.raises(TrainingError, match=r"2 posts .* 'a9', 'q9'|2 posts .* a9, q9"):
        model.fit([("q9", "a9"), ("q0", "a0")], [{"docno": "q0", "text": "x"}, {"docno": "a0", "text": "y"}])
    with pytest.raises(TrainingError, match="Give negatives="):
        ColBERT.new(backbone, options=OPTIONS, training=ColBERTTraining(loss="triple")).fit(PAIRS)
    with pytest.raises(TrainingError, match="lacks aid"):
        model.fit([{"qid": "1", "question": "a", "answer": "b"}])


def test_the_learning_rate_rises_and_falls_or_stays():
    def rates(warmup: float) -> list[float]:
        training = ColBERTTraining(learning_rate=1.0, warmup=warmup)
        return [learning_rate(training, step, 10) for step in range(10)]

    assert rates(0.0) == [1.0] * 10
    assert rates(0.2) == pytest.approx([0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125])

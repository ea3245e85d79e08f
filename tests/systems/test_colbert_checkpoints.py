"""Loading: four forms, the stored projection, and what is refused by name."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from colbert_checkpoints import DIMENSIONS, projection, pylate_form, sentence_transformers_form, stored_inline
from safetensors.torch import load_file, save_file
from tiny_models import tiny_bert

from mathamr_systems import ColBERT
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError, UnsafeModelError

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


def test_a_stanford_checkpoint_without_metadata_has_queries_of_512_tokens_not_32(forms, tmp_path):
    def length(folder: Path) -> int:
        return ColBERT.from_pretrained(folder).encoder[0].query_expansion["length"]

    assert length(forms["Stanford"]) == length(forms["Approach Zero"]) == 512
    assert length(stored_inline(tmp_path / "with", "HF_ColBERT", metadata=True)) == 9


def test_capitals_of_math_tokens_are_kept_but_for_approach_zero(forms):
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


@pytest.mark.parametrize("form", ["sentence-transformers", "Approach Zero"])
def test_a_saved_copy_is_equal_to_the_bit(forms, form, tmp_path):
    model = ColBERT.from_pretrained(forms[form], query_length=LENGTH)
    model.save(tmp_path / "copy")
    copy = ColBERT.from_pretrained(tmp_path / "copy")
    assert copy == model
    assert copy.identity == model.identity
    assert copy.name == f"copy@{model.identity[:16]}"
    assert copy.options == model.options
    for expected, rows in zip(query_rows(model), query_rows(copy), strict=True):
        np.testing.assert_array_equal(rows, expected)
    with pytest.raises(Exception, match="does not exist yet"):
        model.save(tmp_path / "copy")


def test_mathamr_verify_knows_a_model_and_names_what_is_damaged(forms, tmp_path):
    def verified() -> tuple[int, str]:
        found = CliRunner().invoke(main, ["verify", str(tmp_path / "copy")])
        return found.exit_code, found.output

    ColBERT.from_pretrained(forms["Approach Zero"]).save(tmp_path / "copy")
    code, text = verified()
    assert code == 0
    assert "ColBERT model" in text
    weights = tmp_path / "copy" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    code, text = verified()
    assert code == 1
    assert "model.safetensors" in text
    weights.unlink()
    assert "model.safetensors: the file is missing" in verified()[1]
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

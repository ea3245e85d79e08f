"""A model on disk: the round trip, laziness, identity, and folders that are not what they should be."""

import json
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.model import (
    MathAMR,
    ModelFileError,
    ModelNotFoundError,
    saving,
)
from pyterrier_mathamr.model.saving import model_faults, pack_weights
from pyterrier_mathamr.store import WriteError


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_is_the_same_model(model, folder, graphs) -> None:
    opened = MathAMR.from_pretrained(folder)
    assert opened.identity == model.identity
    assert opened == model
    assert hash(opened) == hash(model)
    assert (opened.config, opened.vocabulary) == (model.config, model.vocabulary)
    posts = list(graphs.values())[:4]
    for mine, other in zip(model.encode(posts), opened.encode(posts), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_an_option_that_the_file_lacks_has_its_default_and_changes_no_identity(model, folder) -> None:
    content = json.loads((folder / "config.json").read_text())
    del content["config"]["min_role_count"]
    (folder / "config.json").write_text(json.dumps(content))
    opened = MathAMR.from_pretrained(folder)
    assert (opened.identity, opened.vocabulary) == (model.identity, model.vocabulary)


def test_a_folder_holds_three_files_and_the_same_bytes_each_time(model, folder, tmp_path) -> None:
    model.save(tmp_path / "again")
    names = ["config.json", "vocabulary.json.gz", "weights.safetensors"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert all((folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)


def test_a_name_on_the_hub_is_fetched_without_pickles_and_code(model, folder, monkeypatch) -> None:
    asked = []

    def snapshot_download(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((name, revision, sorted(allow_patterns)))
        if name != "someone/model":
            raise ValueError("not a name\nmore")
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    assert MathAMR.from_pretrained("hf:someone/model") == model
    assert MathAMR.from_pretrained("hf:someone/model@v2") == model
    patterns = ["*.json", "*.json.gz", "*.safetensors", "*.txt"]
    assert asked == [("someone/model", None, patterns), ("someone/model", "v2", patterns)]
    with pytest.raises(ModelNotFoundError, match=r"hf:some/one': .*fetched \(not a name\)") as caught:
        MathAMR.from_pretrained("hf:some/one")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[hub\]"):
        MathAMR.from_pretrained("hf:someone/model")


def test_half_precision_halves_the_file_and_hardly_moves_a_vector(model, folder, graphs, tmp_path) -> None:
    model.save(tmp_path / "half", dtype="float16")
    small, large = ((path / "weights.safetensors").stat().st_size for path in (tmp_path / "half", folder))
    assert small < 0.6 * large
    half = MathAMR.from_pretrained(tmp_path / "half")
    for mine, other in zip(model.encode([graphs["q0"]]), half.encode([graphs["q0"]]), strict=True):
        np.testing.assert_allclose(mine, other, atol=0.01)
        assert other.dtype == np.float32
    assert half != model
    with pytest.raises(ConfigError, match="dtype"):
        model.save(tmp_path / "other", dtype="int8")
    assert not (tmp_path / "other").exists()


def test_opening_and_comparing_read_neither_vocabulary_nor_weights(folder) -> None:
    opened = MathAMR.from_pretrained(folder)
    (folder / "weights.safetensors").write_bytes(b"")
    (folder / "vocabulary.json.gz").write_bytes(b"")
    assert opened == MathAMR.from_pretrained(folder)
    assert "model" in repr(opened)
    with pytest.raises(ModelFileError):
        opened.weights()


def test_the_identity_changes_with_each_part(model, small, vocabulary) -> None:
    weights = {name: tensor.clone() for name, tensor in model.weights().items()}
    weights["head.outer.bias"][0] += 1
    others = [MathAMR(small.replace(seed=1), vocabulary, model.weights()), MathAMR(small, vocabulary, weights)]
    assert len({model.identity, *(other.identity for other in others)}) == 3
    assert MathAMR(small, vocabulary, model.weights()) == model


def test_models_survive_pickling(model, folder, graphs) -> None:
    for one in (model, MathAMR.from_pretrained(folder)):
        copy = pickle.loads(pickle.dumps(one))
        assert copy == one
        np.testing.assert_array_equal(copy.encode([graphs["q1"]])[0], one.encode([graphs["q1"]])[0])


def test_a_folder_that_exists_is_never_written_over(model, folder) -> None:
    before = (folder / "config.json").read_bytes()
    with pytest.raises(ConfigError, match="does not exist yet"):
        model.save(folder)
    assert (folder / "config.json").read_bytes() == before


def test_a_save_that_fails_leaves_nothing(model, tmp_path, monkeypatch) -> None:
    for place in ("pyterrier_mathamr.store.files.sync_file", "pyterrier_mathamr.store.files.move"):
        with monkeypatch.context() as patch:
            patch.setattr(place, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            with pytest.raises(WriteError, match="No space left"):
                model.save(tmp_path / "model")
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="cannot be written"):
        model.save(tmp_path / "file" / "model")


def test_every_byte_of_a_model_that_is_changed_is_found(folder, model) -> None:
    model.verify()
    MathAMR.from_pretrained(folder).verify()
    for file in sorted(folder.iterdir()):
        sound = file.read_bytes()
        for place in {*range(0, len(sound), 1 + len(sound) // 200), len(sound) - 1}:
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1 :])
            assert list(model_faults(folder)), (file.name, place)
        file.unlink()
        assert list(model_faults(folder))
        file.write_bytes(sound)
    assert list(model_faults(folder)) == []


def test_an_unknown_name_lists_what_there_is(tmp_path, monkeypatch) -> None:
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "config.json").write_text("{}")
    monkeypatch.setattr(saving, "BUNDLED", tmp_path)
    with pytest.raises(ModelNotFoundError, match=r"no model 'maxi'.*\(mini\)"):
        MathAMR.from_pretrained("maxi")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelNotFoundError, match=r"neither a folder with a config\.json"):
        MathAMR.from_pretrained(tmp_path / "empty")


def test_a_copy_of_a_model_in_half_precision_is_the_same_model(model, tmp_path) -> None:
    model.save(tmp_path / "half", dtype="float16")
    half = MathAMR.from_pretrained(tmp_path / "half")
    half.save(tmp_path / "copy")
    assert MathAMR.from_pretrained(tmp_path / "copy").identity == half.identity
    half.save(tmp_path / "wider", dtype="float32")
    assert MathAMR.from_pretrained(tmp_path / "wider").identity != half.identity


def test_a_relative_path_still_leads_to_the_model_after_a_change_of_folder(
    folder, tmp_path, monkeypatch, model
) -> None:
    monkeypatch.chdir(folder.parent)
    opened = MathAMR.from_pretrained(folder.name)
    monkeypatch.chdir(tmp_path.parent)
    assert opened.weights().keys() == model.weights().keys()


def test_a_bundled_model_is_shown_by_its_name() -> None:
    assert repr(MathAMR.from_pretrained("mathamr-plus-mini")) == "MathAMR.from_pretrained('mathamr-plus-mini')"


@pytest.mark.parametrize("name", ["vocabulary.json.gz", "weights.safetensors"])
def test_a_missing_file_is_named(folder, name) -> None:
    (folder / name).unlink()
    with pytest.raises(ModelFileError, match=f"{name}: the file is missing"):
        MathAMR.from_pretrained(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("format"),
        lambda content: content.pop("weights"),
        lambda content: content["config"].update(heads=3),
        lambda content: content["config"].update(layers=-1),
        lambda content: content.update(config=3),
    ],
)
def test_a_damaged_description_is_refused(folder, change) -> None:
    content = json.loads((folder / "config.json").read_text())
    change(content)
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"config.json"):
        MathAMR.from_pretrained(folder)


def test_an_unknown_format_names_the_formats_that_can_be_read(folder) -> None:
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(ModelFileError, match=r"99.*reads 1.*Install") as caught:
        MathAMR.from_pretrained(folder)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_weights_of_another_shape_name_or_value_are_refused(model, folder, small, vocabulary) -> None:
    def write(weights) -> None:
        data = pack_weights(weights)
        content = json.loads((folder / "config.json").read_text())
        content["weights"] = __import__("hashlib").sha256(data).hexdigest()
        (folder / "config.json").write_text(json.dumps(content))
        (folder / "weights.safetensors").write_bytes(data)

    weights = dict(model.weights())
    write({**weights, "head.outer.bias": torch.zeros(9)})
    with pytest.raises(ModelFileError, match=r"'head.outer.bias' has shape \(9,\).*\(8,\)"):
        MathAMR.from_pretrained(folder).encode([])
    write({name: tensor for name, tensor in weights.items() if name != "attributes"})
    with pytest.raises(ModelFileError, match="'attributes' has shape None"):
        MathAMR.from_pretrained(folder).encode([])
    write({**weights, "head.outer.bias": torch.full((8,), float("nan"))})
    with pytest.raises(ModelFileError, match="not finite numbers"):
        MathAMR.from_pretrained(folder).encode([])
    write(weights)
    assert MathAMR.from_pretrained(folder).encode([]) == []


def test_files_of_another_model_are_refused(model, folder, small, vocabulary, graphs, tmp_path) -> None:
    other = type(vocabulary).build([graphs["q0"]])
    other.save(folder / "vocabulary.json.gz")
    with pytest.raises(ModelFileError, match="vocabulary is not the one"):
        _ = MathAMR.from_pretrained(folder).vocabulary
    vocabulary.save(folder / "vocabulary.json.gz")
    (folder / "weights.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(ModelFileError, match=r"weights.safetensors: the weights differ"):
        MathAMR.from_pretrained(folder).weights()

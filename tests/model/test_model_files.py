"""A model on disk: the round trip, laziness, identity, and folders that are not what they should be."""

import hashlib
import json
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.model import MathAMR, ModelFileError, ModelNotFoundError, saving
from pyterrier_mathamr.model.saving import pack_weights
from pyterrier_mathamr.store import WriteError

NAMES = ["config.json", "vocabulary.json.gz", "weights.safetensors"]


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def describe(folder):
    """Change the description of the model without signing it."""

    def change(**changes) -> None:
        content = json.loads((folder / "config.json").read_text())
        content.update(changes)
        content = {name: value for name, value in content.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(content))

    return change


def test_a_saved_model_is_the_same_model(model, folder, graphs, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened = MathAMR.from_pretrained(folder.name)  # a relative path
    monkeypatch.chdir(tmp_path.parent)
    assert (opened.config, opened.vocabulary, opened.identity) == (model.config, model.vocabulary, model.identity)
    assert opened == model
    assert hash(opened) == hash(model)
    posts = list(graphs.values())[:4]
    for one in (opened, pickle.loads(pickle.dumps(opened)), pickle.loads(pickle.dumps(model))):
        assert one == model
        for mine, other in zip(model.encode(posts), one.encode(posts), strict=True):
            np.testing.assert_array_equal(mine, other)
    model.save(tmp_path / "again")
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert all((folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in NAMES)


def test_an_option_that_the_file_lacks_has_its_default_and_changes_no_identity(model, folder, describe) -> None:
    config = model.config.to_dict()
    del config["min_role_count"]
    describe(config=config)
    opened = MathAMR.from_pretrained(folder)
    assert (opened.identity, opened.vocabulary) == (model.identity, model.vocabulary)


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


def test_half_precision_halves_the_file_hardly_moves_a_vector_and_is_kept_by_copies(
    model, folder, graphs, tmp_path
) -> None:
    model.save(tmp_path / "half", dtype="float16")
    small, large = ((path / "weights.safetensors").stat().st_size for path in (tmp_path / "half", folder))
    assert small < 0.6 * large
    half = MathAMR.from_pretrained(tmp_path / "half")
    [mine], [other] = model.encode([graphs["q0"]]), half.encode([graphs["q0"]])
    np.testing.assert_allclose(mine, other, atol=0.01)
    assert other.dtype == np.float32
    assert half != model
    half.save(tmp_path / "copy")
    half.save(tmp_path / "wider", dtype="float32")
    assert MathAMR.from_pretrained(tmp_path / "copy") == half != MathAMR.from_pretrained(tmp_path / "wider")
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


def test_a_folder_that_exists_is_never_written_over_and_a_save_that_fails_leaves_nothing(
    model, folder, tmp_path, monkeypatch
) -> None:
    before = (folder / "config.json").read_bytes()
    with pytest.raises(ConfigError, match="does not exist yet"):
        model.save(folder)
    assert (folder / "config.json").read_bytes() == before
    for place in ("pyterrier_mathamr.store.files.sync_file", "pyterrier_mathamr.store.files.move"):
        with monkeypatch.context() as patch:
            patch.setattr(place, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            with pytest.raises(WriteError, match="No space left"):
                model.save(tmp_path / "other")
        assert list(tmp_path.iterdir()) == [folder]
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="cannot be written"):
        model.save(tmp_path / "file" / "model")


def test_every_byte_of_a_model_that_is_changed_is_found(folder, model) -> None:
    model.verify()
    MathAMR.from_pretrained(folder).verify()
    for file in sorted(folder.iterdir()):
        sound = file.read_bytes()
        for place in {*range(0, len(sound), 1 + len(sound) // 60), len(sound) - 1}:
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1 :])
            assert list(MathAMR.faults(folder)), (file.name, place)
        file.unlink()
        assert list(MathAMR.faults(folder))
        if file.name != "config.json":
            with pytest.raises(ModelFileError, match=f"{file.name}: the file is missing"):
                MathAMR.from_pretrained(folder)
        file.write_bytes(sound)
    assert list(MathAMR.faults(folder)) == []


def test_an_unknown_name_lists_what_there_is(tmp_path, monkeypatch) -> None:
    assert repr(MathAMR.from_pretrained("mathamr-plus-mini")) == "MathAMR.from_pretrained('mathamr-plus-mini')"
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "config.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(saving, "BUNDLED", tmp_path)
    with pytest.raises(ModelNotFoundError, match=r"no model 'maxi'.*\(mini\)"):
        MathAMR.from_pretrained("maxi")
    with pytest.raises(ModelNotFoundError, match=r"neither a folder with a config\.json"):
        MathAMR.from_pretrained(tmp_path / "empty")


@pytest.mark.parametrize(
    "changes",
    [{"format": None}, {"weights": None}, {"config": {"heads": 3}}, {"config": {"layers": -1}}, {"config": 3}],
)
def test_a_damaged_description_is_refused(folder, describe, changes) -> None:
    describe(**changes)
    with pytest.raises(ModelFileError, match=r"config.json"):
        MathAMR.from_pretrained(folder)


def test_an_unknown_format_names_the_formats_that_can_be_read(folder, describe) -> None:
    describe(format=99)
    with pytest.raises(ModelFileError, match=r"99.*reads 1.*Install") as caught:
        MathAMR.from_pretrained(folder)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_weights_of_another_shape_name_or_value_are_refused(model, folder, describe) -> None:
    def encode(weights) -> list[np.ndarray]:
        data = pack_weights(weights)
        describe(weights=hashlib.sha256(data).hexdigest())
        (folder / "weights.safetensors").write_bytes(data)
        return MathAMR.from_pretrained(folder).encode([])

    weights = dict(model.weights())
    without = {name: tensor for name, tensor in weights.items() if name != "attributes"}
    for wrong, problem in (
        ({**weights, "head.outer.bias": torch.zeros(9)}, r"'head.outer.bias' has shape \(9,\).*\(8,\)"),
        (without, "'attributes' has shape None"),
        ({**weights, "head.outer.bias": torch.full((8,), float("nan"))}, "not finite numbers"),
    ):
        with pytest.raises(ModelFileError, match=problem):
            encode(wrong)
    assert encode(weights) == []


def test_files_of_another_model_are_refused(folder, vocabulary, graphs) -> None:
    type(vocabulary).build([graphs["q0"]]).save(folder / "vocabulary.json.gz")
    with pytest.raises(ModelFileError, match="vocabulary is not the one"):
        _ = MathAMR.from_pretrained(folder).vocabulary
    vocabulary.save(folder / "vocabulary.json.gz")
    (folder / "weights.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(ModelFileError, match=r"weights.safetensors: the weights differ"):
        MathAMR.from_pretrained(folder).weights()

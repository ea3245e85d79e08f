"""Checkpoints of ColBERT in the four forms in which they are published.

=====================  ==========================================================  ==============================
form                   recognised by                                               loaded by
=====================  ==========================================================  ==============================
sentence-transformers  ``modules.json`` of a multi-vector model, or of PyLate      the library
Stanford               architecture ``HF_ColBERT``, ``linear.weight``              the library
Approach Zero          architecture ``ColBERT``, ``linear.weight``                 `convert`, below
bare encoder           anything else                                               refused: it has to be trained
=====================  ==========================================================  ==============================

Given a checkpoint of Approach Zero as it is, the library makes its projection at random, and only a line in a log says
so. Nothing in a folder is run: parts are classes of sentence-transformers, weights are safetensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.model.errors import ModelNotFoundError, UnsafeModelError
from pyterrier_mathamr.model.saving.places import HUB
from pyterrier_mathamr.model.variants.text_folder import check_encoder_folder
from pyterrier_mathamr.model.variants.text_loading import SAFE_FILES, local_model, without_bars
from pyterrier_mathamr.systems.errors import CheckpointFormError

from .network import assemble, expand_queries

Form = Literal["sentence-transformers", "Stanford", "Approach Zero"]

LENGTH = 512
"""Tokens of queries and documents where a checkpoint does not say."""

_MODULES, _CONFIG, _ST_CONFIG = "modules.json", "config.json", "config_sentence_transformers.json"
_WEIGHTS, _PROJECTION = "model.safetensors", "linear.weight"
_METADATA = "artifact.metadata"
_PYLATE = {"query_prefix", "document_prefix"}
_PYLATE_PARTS = ("pylate.models.Dense.Dense",)  # the library takes its own class for it


def find_checkpoint(name: str | Path, *, subfolder: str | None = None, revision: str | None = None) -> Path:
    """Find the folder of a checkpoint or backbone."""
    if str(name).startswith(HUB):
        folder = _from_hub(str(name).removeprefix(HUB), subfolder, revision)
    else:
        folder = Path(local_model(str(name)))
    folder = folder / subfolder if subfolder else folder
    if not folder.is_dir():
        reason = f"{folder} is no folder. Give one, or hf:organisation/name for a model on the hub"
        raise ModelNotFoundError(str(name), reason)
    return folder


def form_of(folder: Path) -> Form:
    """Recognise the form of a checkpoint by its descriptions, without loading weights."""
    if (folder / _MODULES).is_file():
        check_encoder_folder(folder, also=_PYLATE_PARTS)
        described = _read(folder / _ST_CONFIG)
        if described.get("model_type") in ("MultiVectorEncoder", "ColBERT") or _PYLATE & described.keys():
            return "sentence-transformers"
        raise CheckpointFormError(folder, "a SentenceTransformer, which has one vector for a text")
    if not (folder / _CONFIG).is_file():
        raise CheckpointFormError(folder, f"it has neither {_MODULES} nor {_CONFIG}")
    forms: dict[str, Form] = {"HF_ColBERT": "Stanford", "ColBERT": "Approach Zero"}
    architectures = [str(name) for name in _read(folder / _CONFIG).get("architectures") or ()]
    form = next((forms[name] for name in architectures if name in forms), None)
    if form is None:
        raise CheckpointFormError(folder, f"a bare encoder of architecture {', '.join(architectures) or 'unknown'}")
    check_encoder_folder(folder)
    if not (folder / _WEIGHTS).is_file():
        raise UnsafeModelError(folder / _WEIGHTS, "weights are read from safetensors alone; convert pickled ones")
    if _PROJECTION not in _names(folder / _WEIGHTS):
        raise CheckpointFormError(folder, f"{form}, but its weights lack the projection {_PROJECTION}")
    return form


def load_checkpoint(folder: Path, query_length: int | None = None) -> Any:
    """Load a checkpoint of any form as a ``MultiVectorEncoder`` on the CPU, in evaluation mode."""
    form = form_of(folder)
    encoder = convert(folder) if form == "Approach Zero" else _load(folder)
    if form == "Stanford" and query_length is None and not (folder / _METADATA).is_file():
        query_length = LENGTH
    if query_length is not None:
        expand_queries(encoder, query_length, encoder[0].query_expansion is not None)
    return encoder.eval()


def convert(folder: Path) -> Any:
    """Build the modules of a checked checkpoint of Approach Zero, with its stored projection and its tokenizer."""
    from safetensors import safe_open

    with safe_open(folder / _WEIGHTS, "pt") as file:
        projection = file.get_tensor(_PROJECTION).float()
    return assemble(folder, projection, query_length=LENGTH, document_length=LENGTH, query_expansion=True)


def _load(folder: Path) -> Any:
    library = require("sentence_transformers", "colbert")
    with without_bars():
        return library.MultiVectorEncoder(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        ).float()


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointFormError(path.parent, f"{path.name} is no JSON ({error})") from error
    return content if isinstance(content, dict) else {}


def _names(weights: Path) -> set[str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(weights, "pt") as file:
            return set(file.keys())
    except SafetensorError as error:
        raise CheckpointFormError(weights.parent, f"{weights.name} is no safetensors file ({error})") from error


def _from_hub(name: str, subfolder: str | None, revision: str | None) -> Path:
    """Fetch a model from the hub or its cache, without pickled weights."""
    hub = require("huggingface_hub", "hub")
    inside = f"{subfolder}/" if subfolder else ""
    patterns = [inside + kind for kind in (*SAFE_FILES, "*.metadata")]
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (OSError, ValueError) as error:  # the bases of its errors: of the connection, of the answer, of the name
        problem = str(error).strip().partition("\n")[0]
        fix = "Check the name and the connection; without one, give the path of a copy"
        raise ModelNotFoundError(HUB + name, f"it cannot be fetched ({problem}). {fix}") from error

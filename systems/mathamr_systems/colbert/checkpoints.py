"""Checkpoints of ColBERT in the four forms in which they are published.

=====================  ==========================================================  ==============================
form                   recognized by                                               loaded by
=====================  ==========================================================  ==============================
sentence-transformers  ``modules.json`` of a multi-vector model, or of PyLate      the library
Stanford               architecture ``HF_ColBERT``, ``linear.weight``              the library
Approach Zero          architecture ``ColBERT``, ``linear.weight``                 `load_checkpoint`
bare encoder           anything else                                               refused: it must be trained first
=====================  ==========================================================  ==============================

If the library loaded a checkpoint of Approach Zero, it would make its projection at random and only log it. Nothing in
a folder is run: parts are classes of sentence-transformers, weights are safetensors.

`ColBERT.save` adds to the files of sentence-transformers the options, and a checksum of each file::

    mathamr_colbert.json  {"format": 1, "options": {…}, "files": {name: sha256}, "checksum": <of all of the above>}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from pyterrier_mathamr._common.errors import MathAMRError, require
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.model.errors import ModelFileError, UnsafeModelError
from pyterrier_mathamr.model.saving import read_description, sum_faults, sums_of
from pyterrier_mathamr.model.text_encoder import check_encoder_folder, without_bars
from pyterrier_mathamr.store import signed

from .network import ColBERTOptions, assemble, expand_queries

Form = Literal["sentence-transformers", "Stanford", "Approach Zero"]

LENGTH = 512
"""Tokens of queries and documents if a checkpoint does not set them."""

DESCRIPTION = "mathamr_colbert.json"
FORMAT_VERSION = 1

_MODULES, _CONFIG, _ST_CONFIG = "modules.json", "config.json", "config_sentence_transformers.json"
_WEIGHTS, _PROJECTION = "model.safetensors", "linear.weight"
_METADATA = "artifact.metadata"
_PYLATE = {"query_prefix", "document_prefix"}
_PYLATE_PARTS = ("pylate.models.Dense.Dense",)  # replaced by the library's own class


def form_of(folder: Path) -> Form:
    """Recognize the form of a checkpoint by its descriptions, without loading weights."""
    if (folder / _MODULES).is_file():
        check_encoder_folder(folder, also=_PYLATE_PARTS)
        described = _read(folder / _ST_CONFIG)
        if described.get("model_type") in ("MultiVectorEncoder", "ColBERT") or _PYLATE & described.keys():
            return "sentence-transformers"
        raise _unknown(folder, "a SentenceTransformer, which has one vector for a text")
    if not (folder / _CONFIG).is_file():
        raise _unknown(folder, f"it has neither {_MODULES} nor {_CONFIG}")
    forms: dict[str, Form] = {"HF_ColBERT": "Stanford", "ColBERT": "Approach Zero"}
    architectures = [str(name) for name in _read(folder / _CONFIG).get("architectures") or ()]
    form = next((forms[name] for name in architectures if name in forms), None)
    if form is None:
        raise _unknown(folder, f"a bare encoder of architecture {', '.join(architectures) or 'unknown'}")
    check_encoder_folder(folder)
    if not (folder / _WEIGHTS).is_file():
        raise UnsafeModelError(folder / _WEIGHTS, "weights are read only from safetensors; convert pickled ones")
    try:
        with safe_open(folder / _WEIGHTS, "pt") as file:
            names = set(file.keys())
    except SafetensorError as error:
        raise _unknown(folder, f"{_WEIGHTS} is not a safetensors file ({error})") from error
    if _PROJECTION not in names:
        raise _unknown(folder, f"{form}, but its weights lack the projection {_PROJECTION}")
    return form


def load_checkpoint(folder: Path, query_length: int | None = None) -> Any:
    """Load a checkpoint of any form as a ``MultiVectorEncoder`` on the CPU, in evaluation mode."""
    form = form_of(folder)
    if form == "Approach Zero":
        with safe_open(folder / _WEIGHTS, "pt") as file:
            projection = file.get_tensor(_PROJECTION).float()
        encoder = assemble(folder, projection, query_length=LENGTH, document_length=LENGTH, query_expansion=True)
    else:
        options = {"local_files_only": True, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
        with without_bars():
            library = require("sentence_transformers", "colbert")
            encoder = library.MultiVectorEncoder(str(folder), device="cpu", **options).float()
    if form == "Stanford" and query_length is None and not (folder / _METADATA).is_file():
        query_length = LENGTH
    if query_length is not None:
        expand_queries(encoder, query_length, encoder[0].query_expansion is not None)
    return encoder.eval()


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unknown(path.parent, f"{path.name} is not JSON ({error})") from error
    return content if isinstance(content, dict) else {}


def _unknown(folder: Path, found: str) -> ModelFileError:
    advice = (
        "Give a multi-vector model of sentence-transformers or PyLate, a Stanford checkpoint (HF_ColBERT) or one of "
        "Approach Zero (ColBERT); ColBERT.new(backbone) begins the training of a bare encoder."
    )
    return ModelFileError(folder, f"no ColBERT checkpoint of a known form: {found}", advice)


def write_description(folder: Path, options: ColBERTOptions) -> None:
    """Describe a model's folder, when all other files are written."""
    content = {"format": FORMAT_VERSION, "options": options.to_dict(), "files": sums_of(folder)}
    (folder / DESCRIPTION).write_bytes(signed(content))


def read_options(folder: Path) -> ColBERTOptions | None:
    """Read the options of a model's folder; ``None`` for a checkpoint that others wrote."""
    return ColBERTOptions.from_dict(_description(folder)["options"]) if (folder / DESCRIPTION).is_file() else None


def colbert_faults(folder: Path) -> Iterator[MathAMRError]:
    """Compare the files of a model with their checksums, and yield the faults."""
    try:
        sums = _description(folder)["files"]
    except ModelFileError as error:
        yield error
        return
    yield from sum_faults(folder, sums)


def _description(folder: Path) -> dict[str, Any]:
    def read(content: dict[str, Any]) -> dict[str, Any]:
        return {"options": dict(content["options"]), "files": dict(content["files"])}

    return read_description(folder / DESCRIPTION, FORMAT_VERSION, "description of a ColBERT model", read)

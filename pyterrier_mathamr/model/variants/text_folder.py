"""Check which text encoder a model's configuration names, and that its folder is safe to load.

A text encoder is loaded by sentence-transformers and transformers. ``modules.json`` names the classes of its parts,
other descriptions name files of weights, options of the loader and models elsewhere, and weights may be pickles; all of
these can run code of the folder's author. Therefore only classes of sentence-transformers and weights in safetensors
are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import ModelFileError, UnsafeModelError

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)?")
_MODULES, _CONFIG = "modules.json", "config.json"
_ROUTES = "router_config.json"  # a part that has parts of its own
_OWN = re.compile(r"sentence_transformers(?:\.[a-z_]\w*)*\.[A-Z]\w*")  # a class, not a module that it imports
_PICKLED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz"})
_WEIGHTS, _SHARDS = "model.safetensors", "model.safetensors.index.json"
_SAFE_FILE = re.compile(r"[\w-][\w.-]*\.safetensors")
_ADAPTER = "adapter_config.json"
_OPTIONS = frozenset({"dtype", "torch_dtype", "attn_implementation"})  # that a folder may give to its loader
_ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.\w+\.)?[A-Z]\w*")
_MOST = 1 << 20  # bytes of a description; real ones have under a thousand
_MOST_SHARDS = 1 << 26  # bytes of an index of shards, which names every tensor


def encoder_of(config: MathAMRConfig, folder: Path) -> str:
    """Return the text encoder that a model's configuration names, on the hub or inside the model's own folder."""
    name = config.text.text_model
    if _is_part(name, folder) and (folder / name).is_dir():
        return str(folder / name)
    if not _HUB_NAME.fullmatch(name) or ".." in name or Path(name).exists():
        raise UnsafeModelError(
            folder / "config.json",
            f"text_model {name!r} is neither a name on the hub nor a folder inside the model's; if you trust that "
            "folder, give text=TextEncoder(path)",
        )
    return name


def check_encoder_folder(folder: Path, also: Collection[str] = ()) -> None:
    """Refuse a folder if loading it could run code in it."""
    for name in ["", *_parts(folder, also)]:
        if name and not _is_part(name, folder):
            raise UnsafeModelError(folder / _MODULES, f"the part {name!r} lies outside the folder")
        _check_weights(folder / name)
        _check_options(folder / name)


def _check_weights(part: Path) -> None:
    """Check that what will be loaded of a part, whatever else lies in its folder, is safetensors."""
    if (part / _ADAPTER).exists():
        raise UnsafeModelError(part / _ADAPTER, "an adapter names a model elsewhere; merge it into that model")
    named = _described(part / _CONFIG).get("transformers_weights")
    if named is not None:
        _check_file(part / _CONFIG, str(named).removesuffix(".index.json"))
    indexes = {_SHARDS} | ({named} if str(named).endswith(".index.json") else set())
    for index in sorted(indexes):
        shards = _described(part / index, _MOST_SHARDS).get("weight_map", {})
        for shard in shards.values() if isinstance(shards, dict) else (shards,):
            _check_file(part / index, shard)
    safe = (named or _WEIGHTS, _WEIGHTS, _SHARDS)
    pickled = sorted(file.name for file in part.glob("*") if file.suffix in _PICKLED)
    if pickled and not any((part / name).is_file() for name in safe):
        raise UnsafeModelError(part / pickled[0], "pickled weights can run code; convert them to safetensors")


def _check_file(description: Path, name: object) -> None:
    if not isinstance(name, str) or not _SAFE_FILE.fullmatch(name):
        raise UnsafeModelError(description, f"the weights {name!r:.80} are no safetensors file of the same folder")


def _check_options(part: Path) -> None:
    """Check the options with which descriptions have a language model loaded, and its activation function."""
    for file in sorted(part.glob("sentence_*_config.json")):
        content = _described(file)
        if content.get("tokenizer_name_or_path") is not None:
            raise UnsafeModelError(file, "its tokenizer lies elsewhere")
        for name in ("model_args", "model_kwargs"):
            for option in content.get(name) or ():
                if option not in _OPTIONS:
                    raise UnsafeModelError(file, f"the option {option!r:.80} is not one that a model may set")
    config = _described(part / _CONFIG)
    own = config.get("sentence_transformers")
    named = own.get("activation_fn") if isinstance(own, dict) else None
    for activation in filter(None, (named, config.get("sbert_ce_default_activation_function"))):
        if not _ACTIVATION.fullmatch(str(activation)):
            raise UnsafeModelError(part / _CONFIG, f"the activation {activation!r:.80} is no class of torch.nn")


def _is_part(name: str, folder: Path) -> bool:
    """Tell whether a path leads to a folder inside another, links followed."""
    try:
        return (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # no path at all
        return False


def _parts(folder: Path, also: Collection[str]) -> Iterator[str]:
    """Yield the paths of the parts and check their classes."""
    description = folder / _MODULES
    for entry in _described(description):
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise ModelFileError(description, "no list of parts")
        if entry.get("type") not in also:
            _check_class(description, entry.get("type"))
        yield entry["path"]
    for routes in folder.rglob(_ROUTES):
        types = _described(routes).get("types", {})
        if not isinstance(types, dict):
            raise ModelFileError(routes, "no types of parts")
        for name, kind in types.items():
            _check_class(routes, kind)
            yield str(routes.parent.relative_to(folder) / name)


def _check_class(description: Path, name: object) -> None:
    if not isinstance(name, str) or not _OWN.fullmatch(name):
        raise UnsafeModelError(description, f"the class {name!r} is not one of sentence-transformers")


def _described(path: Path, most: int = _MOST) -> Any:
    """Read a description: a list of parts, or an object."""
    kind: type = list if path.name == _MODULES else dict
    if not path.exists():
        return kind()
    try:
        if path.stat().st_size > most:
            raise ValueError(f"{path.stat().st_size:,} bytes")
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelFileError(path, f"no description of a text encoder ({error})") from error
    if not isinstance(content, kind):
        raise ModelFileError(path, "no description of a text encoder")
    return content

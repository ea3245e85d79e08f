"""Check which text encoder a model's configuration names, and that its folder is safe to load.

A text encoder is loaded by sentence-transformers. Its ``modules.json`` names the classes of its parts, and weights
may be pickles; both can run code of the folder's author. Therefore only classes of sentence-transformers and weights
in safetensors are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.json_text import parse_json
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import ModelFileError, UnsafeModelError

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)?")
_MODULES = "modules.json"
_ROUTES = "router_config.json"  # a part that has parts of its own
_OWN = "sentence_transformers."
_PICKLED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz"})
_MOST = 1 << 20  # bytes of a description; real ones have under a thousand


def encoder_of(config: MathAMRConfig, folder: Path) -> str:
    """Return the text encoder that a model's configuration names, on the hub or inside the model's own folder.

    Args:
        config: of the model.
        folder: of the model, absolute.

    Returns:
        The name on the hub, or the path of the folder.

    Raises:
        UnsafeModelError: the name is another path.
    """
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
    """Refuse a folder if loading it could run code in it.

    Args:
        folder: of a sentence-transformers model.
        also: classes of other packages that a part may name, since they are never imported.

    Raises:
        UnsafeModelError: a part has a foreign class, lies elsewhere, or has its weights in no safetensors file.
        ModelFileError: its description cannot be read.
    """
    for name in ["", *_parts(folder, also)]:
        if name and not _is_part(name, folder):
            raise UnsafeModelError(folder / _MODULES, f"the part {name!r} lies outside the folder")
        part = folder / name
        pickled = sorted(file.name for file in part.glob("*") if file.suffix in _PICKLED)
        if pickled and not any(part.glob("*.safetensors")):
            raise UnsafeModelError(part / pickled[0], "pickled weights can run code; convert them to safetensors")


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
    if not isinstance(name, str) or not name.startswith(_OWN):
        raise UnsafeModelError(description, f"the class {name!r} is not one of sentence-transformers")


def _described(path: Path) -> Any:
    """Read a description: a list of parts, or an object."""
    kind: type = list if path.name == _MODULES else dict
    if not path.exists():
        return kind()
    try:
        if path.stat().st_size > _MOST:
            raise ValueError(f"{path.stat().st_size:,} bytes")
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelFileError(path, f"no description of a text encoder ({error})") from error
    if not isinstance(content, kind):
        raise ModelFileError(path, "no description of a text encoder")
    return content

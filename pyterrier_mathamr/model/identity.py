"""Who made some vectors: a name for people and a hash that tells models apart."""

from __future__ import annotations

from pathlib import Path

from .files import Manifest
from .mathamr import MathAMR

_DIGITS = 16


def vectors_by(model: MathAMR) -> str:
    """Say who makes a model's vectors, such as ``mathamr-plus-mini@0123456789abcdef``.

    What follows the ``@`` is the beginning of a hash of configuration, vocabulary and weights. Models that encode alike
    share it: a saved copy, and one with other score weights, which do not change vectors.

    Args:
        model: the model; before the ``@`` stands the name of its folder, of its place on the hub, or ``unsaved``.
    """
    whole = model.identity
    plain = model.config.replace(kind_weights="none", document_blend="none")
    if model._manifest is not None and plain != model.config:
        whole = Manifest(plain, model._manifest.vocabulary, model._manifest.weights).identity
    return f"{_name(model._folder)}@{whole[:_DIGITS]}"


def _name(folder: Path | None) -> str:
    if folder is None:
        return "unsaved"
    place = folder.absolute()
    if place.parent.name == "snapshots":  # the cache of the hub: models--organisation--name/snapshots/revision
        return place.parent.parent.name.removeprefix("models--").replace("--", "/")
    return place.name

"""Write the files of the package, byte for byte reproducible: integer weights with their scales, and the names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from names import Names
from network import DILATIONS, Net, Rounded

FILES = ("syntax.npz", "syntax.json.gz")


def write(net: Net, names: Names, lemmas: dict[str, str], folder: Path) -> None:
    """Write both files.

    Args:
        net: the trained network.
        names: its names.
        lemmas: the table of `lemma_table`.
        folder: the folder; created if it does not exist.
    """
    arrays = {
        "embedding": _levels(net.embedding.weight.detach().clamp(-1, 1).numpy()).astype(np.int8),
        "root": _levels(net.root.detach().clamp(-1, 1).numpy()).astype(np.int8),
        "distance": _levels(127 * net.distance.detach().numpy()).astype(np.int32),
        "root_label": net.root_label.detach().numpy().astype(np.float32),
    }
    for i, (wide, back) in enumerate(zip(net.wide, net.back, strict=True)):
        arrays |= _linear(f"wide{i}", wide) | _linear(f"back{i}", back)
    for name in ("tag", "dependent", "head", "label_dependent", "label_head", "label"):
        arrays |= _linear(name, getattr(net, name))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / FILES[0], **arrays)
    own = {"tags": names.tags, "relations": names.relations, "vocabulary": names.vocabulary}
    write_names({"dilations": DILATIONS, **own, "lemmas": lemmas}, folder)


def write_names(names: dict[str, object], folder: Path) -> None:
    """Write vocabulary, tags, relations and lemmas."""
    with gzip.GzipFile(folder / FILES[1], "wb", mtime=0) as file:
        file.write(json.dumps(names, ensure_ascii=False).encode())


def _levels(values: np.ndarray) -> np.ndarray:
    return np.rint(values * 127)


def _linear(name: str, layer: Rounded) -> dict[str, np.ndarray]:
    """Return the arrays of a layer: int8 weight ``[in, out]``, the scale of the product, float32 bias ``[out]``."""
    weight = layer.weight.detach().numpy().T
    scale = np.abs(weight).max() / 127
    return {
        f"{name}.weight": np.rint(weight / scale).astype(np.int8),
        f"{name}.scale": np.float32(scale / 127),
        f"{name}.bias": layer.bias.detach().numpy().astype(np.float32),
    }

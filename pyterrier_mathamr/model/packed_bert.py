"""Packed weights of text encoders, such as the bundled one, and BERT's forward pass in numpy, which encodes queries.

``import torch`` costs more than a search. For the few texts of a query numpy multiplies in float32 as fast as torch
does; torch's products of int8 matrices, which :mod:`.bert` has for documents, are faster still from some ten pieces on,
but their rounding makes a text's vector depend on the other texts of its batch (docs/how-it-works.md).

A matrix is stored as int8 with a float16 scale for each row, ``W[i] = scale[i] · codes[i]``, a quarter of its size in
float32; the small tables of positions and segments, whose rounding costs more than it saves, as float16.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.running.resources import one_blas_thread

Float32 = npt.NDArray[np.float32]
Weight = npt.NDArray[Any]

Precision = Literal["float32", "bfloat16", "int8"]
"""Of the products with weights; states are float32, or bfloat16 with ``bfloat16``."""

BUNDLED_ENCODER = "minilm-math"
"""The text encoder that comes with the package: all-MiniLM-L6-v2, trained further on mathematical texts."""

BUNDLED_FOLDER = Path(__file__).parent.parent / "data" / BUNDLED_ENCODER
PACKED, PUBLISHED = "weights.safetensors", "model.safetensors"  # the files of packed weights, and of transformers
SCALE = ".scale"  # the end of the name of a matrix's scales
LEFT, RIGHT = ".left", ".right"  # of the factors of what training added to a matrix


class BertSize(NamedTuple):
    """The numbers that a ``config.json`` gives, by the names that it gives them."""

    vocab_size: int
    max_position_embeddings: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float
    type_vocab_size: int = 1  # segments, which MPNet does not have: one row of zeros
    relative_attention_num_buckets: int = 0  # rows of MPNet's bias by distance

    @classmethod
    def read(cls, path: Path) -> BertSize:
        content = {**cls._field_defaults, **json.loads(path.read_bytes())}
        return cls(**{name: content[name] for name in cls._fields})

    @property
    def first_position(self) -> int:
        """The row of the first piece in the table of positions, which MPNet counts after its padding piece, 1."""
        return 2 if self.relative_attention_num_buckets else 0


_FAR = 128  # the distance from which on all have one bucket


def relative_buckets(length: int, buckets: int) -> npt.NDArray[np.int64]:
    """Return the row of the bias for each pair of pieces, ``[l, l]`` (Raffel et al., "T5", JMLR 2020)."""
    # a half is for pieces after this one; the lower 8 of 16 are the distances 0 to 7, the others grow logarithmically
    half, exact = buckets // 2, buckets // 4
    distances = np.arange(length)
    scale = np.log(np.maximum(distances, 1) / exact, dtype=np.float32) / np.float32(math.log(_FAR / exact))
    far = exact + (scale * np.float32(half - exact)).astype(np.int64)
    rows = np.where(distances < exact, distances, np.minimum(far, half - 1))
    steps = distances - distances[:, None]
    buckets_of_pairs: npt.NDArray[np.int64] = rows[np.abs(steps)] + half * (steps > 0)
    return buckets_of_pairs


_NAMES = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "relative": "encoder.relative_attention_bias",
}
_LAYER_NAMES = {"up": "intermediate.dense", "down": "output.dense", "norm": "output.LayerNorm"}
_ATTENTION_NAMES = {  # of BERT, of MPNet
    "qkv": (("self.query", "self.key", "self.value"), ("attn.q", "attn.k", "attn.v")),
    "out": (("output.dense",), ("attn.o",)),
    "norm": (("output.LayerNorm",), ("LayerNorm",)),
}


def renamed_weights(weights: Mapping[str, Weight], size: BertSize) -> dict[str, Float32]:
    """Rename the weights of a ``BertModel`` or ``MPNetModel`` of transformers."""
    renamed = {"segments.weight": np.zeros((1, weights[f"{_NAMES['words']}.weight"].shape[1]), np.float32)}
    is_mpnet = bool(size.relative_attention_num_buckets)
    for kind in ("weight", "bias"):
        for ours, theirs in _NAMES.items():
            if f"{theirs}.{kind}" in weights:
                renamed[f"{ours}.{kind}"] = weights[f"{theirs}.{kind}"]
        for i in range(size.num_hidden_layers):
            layer = f"encoder.layer.{i}."
            for ours, theirs in _LAYER_NAMES.items():
                renamed[f"layers.{i}.{ours}.{kind}"] = weights[f"{layer}{theirs}.{kind}"]
            for ours, names in _ATTENTION_NAMES.items():
                parts = [weights[f"{layer}attention.{name}.{kind}"] for name in names[is_mpnet]]
                renamed[f"layers.{i}.attention.{ours}.{kind}"] = np.concatenate(parts)
    return {name: weight.astype(np.float32, copy=False) for name, weight in renamed.items()}


def weights_file(folder: Path) -> Path:
    """Return the file of an encoder's weights: the packed ones where a folder has both."""
    return folder / (PACKED if (folder / PACKED).is_file() else PUBLISHED)


def read_weights(folder: Path, changes: Path | None = None) -> dict[str, Weight]:
    """Read packed weights, or the published ones of a BERT or MPNet, by the same names.

    Args:
        folder: of the encoder.
        changes: a file of what training added to some weights, as float16: to a vector by its name, to a matrix as
            the product of two, ``.left`` ``[out, r]`` and ``.right`` ``[r, in]``.

    Raises:
        ValueError: there are others than ``config.json`` describes.
    """
    from safetensors.numpy import load_file

    size, file = BertSize.read(folder / "config.json"), weights_file(folder)
    weights: dict[str, Weight] = load_file(file)
    if file.name != PACKED:
        weights = {**renamed_weights(weights, size)}
    shapes = {name: weight.shape for name, weight in weights.items() if not name.endswith(SCALE)}
    # first the number: a config.json may ask for layers without end
    if size.num_hidden_layers > len(shapes) or shapes != dict(_shapes(size)):
        raise ValueError("weights have other names or shapes than config.json gives")
    for name, weight in added(load_file(changes), weights) if changes else ():
        if name + SCALE in weights:
            weights[name], weights[name + SCALE] = int8_rows(weight)
        else:
            weights[name] = weight
    return weights


def added(changes: Mapping[str, Weight], weights: Mapping[str, Weight]) -> Iterator[tuple[str, Float32]]:
    """Yield the weights that training changed, as float32."""
    for name in (name for name in changes if not name.endswith(RIGHT)):
        changed = name.removesuffix(LEFT)
        change = changes[name].astype(np.float32)
        if changed != name:
            change = change @ changes[changed + RIGHT].astype(np.float32)
        weight = weights[changed].astype(np.float32)
        if changed + SCALE in weights:
            weight *= weights[changed + SCALE].astype(np.float32)[:, None]
        yield changed, weight + change


def int8_rows(matrix: Float32) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    """Round each row to 127 steps of its largest number: codes and scales."""
    scale = np.maximum(np.abs(matrix).max(axis=1) / np.float32(127), np.float32(2.0**-24)).astype(np.float16)
    steps = np.rint(matrix / scale.astype(np.float32)[:, None])
    return np.clip(steps, -127, 127).astype(np.int8), scale


def _shapes(size: BertSize) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, inner = size.hidden_size, size.intermediate_size
    tables = {"words": size.vocab_size, "positions": size.max_position_embeddings, "segments": size.type_vocab_size}
    for name, rows in tables.items():
        yield f"{name}.weight", (rows, width)
    if size.relative_attention_num_buckets:
        yield "relative.weight", (size.relative_attention_num_buckets, size.num_attention_heads)
    maps: dict[str, tuple[int, ...]] = {"attention.qkv": (3 * width, width), "attention.out": (width, width)}
    maps |= {"up": (inner, width), "down": (width, inner), "attention.norm": (width,), "norm": (width,)}
    of_layers = {f"layers.{i}.{name}": shape for i in range(size.num_hidden_layers) for name, shape in maps.items()}
    for name, shape in {"norm": (width,), **of_layers}.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]


class PackedBert:
    """BERT in float32, one text at a time; :mod:`.bert` has its equations, and the same names."""

    at_once = 1024  # pieces of a batch; as texts are computed one by one, it only bounds the states in memory

    def __init__(self, folder: Path, changes: Path | None = None) -> None:
        self._size = BertSize.read(folder / "config.json")
        packed = read_weights(folder, changes)
        scales = {name.removesuffix(SCALE): packed.pop(name).astype(np.float32) for name in [*packed] if SCALE in name}
        self._words = packed.pop("words.weight")
        self._word_scales = scales.pop("words.weight", np.ones(len(self._words), np.float32))
        self._weights: dict[str, Float32] = {}
        for name, weight in packed.items():
            if name.startswith("layers.") and weight.ndim == 2:  # as [in, out], by which products are faster
                scale = scales.get(name, np.float32(1))
                self._weights[name] = np.multiply(weight.T, scale, out=np.empty(weight.shape[::-1], np.float32))
            else:
                self._weights[name] = weight.astype(np.float32)

    def words(self, ids: Sequence[int]) -> Float32:
        """Return the input embeddings of pieces, float32 ``[l, d]``."""
        embeddings: Float32 = self._words[ids] * self._word_scales[ids, None]
        return embeddings

    def states(self, texts: Sequence[Sequence[int]]) -> list[Float32]:
        """Compute the states of texts, each float32 ``[l, d]``, given their pieces, special ones included."""
        with one_blas_thread():
            return [self._states(ids) for ids in texts]

    def _states(self, ids: Sequence[int]) -> Float32:
        positions = self._weights["positions.weight"][self._size.first_position :][: len(ids)]
        x = self._norm(self.words(ids) + positions + self._weights["segments.weight"][0], "norm")
        bias = None
        if buckets := self._size.relative_attention_num_buckets:
            bias = self._weights["relative.weight"].T[:, relative_buckets(len(ids), buckets)]  # [h, l, l]
        for i in range(self._size.num_hidden_layers):
            layer = f"layers.{i}."
            mixed = self._attention(self._linear(x, f"{layer}attention.qkv"), bias)
            x = self._norm(x + self._linear(mixed, f"{layer}attention.out"), f"{layer}attention.norm")
            inner = gelu(self._linear(x, f"{layer}up"))
            x = self._norm(x + self._linear(inner, f"{layer}down"), f"{layer}norm")
        return x

    def _linear(self, x: Float32, name: str) -> Float32:
        product: Float32 = x @ self._weights[f"{name}.weight"]
        product += self._weights[f"{name}.bias"]
        return product

    def _norm(self, states: Float32, name: str) -> Float32:
        x: Float32 = np.subtract(states, states.mean(axis=1, keepdims=True))
        variance = np.einsum("ij,ij->i", x, x) / x.shape[1]
        x /= np.sqrt(variance + self._size.layer_norm_eps)[:, None]
        x *= self._weights[f"{name}.weight"]
        x += self._weights[f"{name}.bias"]
        return x

    def _attention(self, qkv: Float32, bias: Float32 | None) -> Float32:
        """Mix the values of pieces by softmax(Q Kᵀ / √d_h + bias) in each head: ``[l, 3 d]`` to ``[l, d]``."""
        length, heads = len(qkv), self._size.num_attention_heads
        q, k, v = qkv.reshape(length, 3, heads, -1).transpose(1, 2, 0, 3)  # each [h, l, d / h]
        mixed = np.empty((length, heads, q.shape[-1]), np.float32)
        q = q * np.float32(q.shape[-1] ** -0.5)
        for some in _blocks(heads, length * length):
            weights: Float32 = q[some] @ k[some].transpose(0, 2, 1)
            if bias is not None:
                weights += bias[some]
            np.subtract(weights, weights.max(axis=2, keepdims=True), out=weights)
            np.exp(weights, out=weights)
            np.divide(weights, weights.sum(axis=2, keepdims=True), out=weights)
            mixed[:, some] = (weights @ v[some]).transpose(1, 0, 2)
        return mixed.reshape(length, -1)


_IN_CACHE = 1 << 16  # numbers that are changed several times while they are in the processor's cache


def _blocks(parts: int, size: int) -> Iterator[slice]:
    """Cut parts of one size into blocks that stay in the cache, or into single parts."""
    step = max(_IN_CACHE // size, 1)
    return (slice(start, start + step) for start in range(0, parts, step))


_ERF = 1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592
_NEAR = 0.3275911


def gelu(x: Float32) -> Float32:
    """Replace x by x Φ(x), with erf to 1.5e-7 by Abramowitz and Stegun, 7.1.26, as numpy has none."""
    for some in _blocks(len(x), x.shape[1]):
        part = x[some]
        z = np.abs(part) * np.float32(2**-0.5)
        t = np.float32(1) / (np.float32(1) + np.float32(_NEAR) * z)
        erfc = np.float32(_ERF[0]) * t
        for factor in _ERF[1:]:
            erfc += np.float32(factor)
            erfc *= t
        z *= -z
        erfc *= np.exp(z, out=z)
        erf = np.copysign(np.float32(1) - erfc, part)
        erf += np.float32(1)
        part *= erf
        part *= np.float32(0.5)
    return x

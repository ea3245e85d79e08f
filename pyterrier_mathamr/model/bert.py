"""BERT and MPNet in plain torch, by which text encoders whose weights are int8 encode documents.

::

    pieces ──▶ word + position + segment ──norm──▶ x
    each layer:  x ← norm(x + attention(x))        attention = softmax(Q Kᵀ / √d_h) V, in 12 heads
                 x ← norm(x + W₂ gelu(W₁ x))
    text   ──▶ unit(mean of the states of its pieces)

Devlin et al., "BERT", NAACL 2019; Vaswani et al., "Attention is all you need", 2017. MPNet (Song et al., NeurIPS 2020)
has no segments, and adds a number to Q Kᵀ / √d_h for the distance of two pieces, the same in all layers. Products with
the weights, whose format is in :mod:`.packed_bert`, are computed in float32, in bfloat16, or in int8: then each row of
x is rounded to 127 steps, too, and the integer product is scaled back::

    (W x)[i] ≈ scale[i] · t · Σⱼ codes[i, j] · round(x[j] / t)          t = max |x| / 127
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from safetensors.torch import load, save
from torch import Tensor, nn

from pyterrier_mathamr._common.private import int8_product
from pyterrier_mathamr._common.running.resources import keep_freed_memory

from .batching import cpu_has, has_bfloat16
from .packed_bert import SCALE, BertSize, Float32, Precision, int8_rows, read_weights, relative_buckets, renamed_weights

_FLOAT16 = ("positions.", "segments.", "relative.")  # beginnings of names


class Linear(nn.Module):
    """A linear map whose weights are loaded, so that none are drawn; tables are the same."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(outputs, inputs)), nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def _table(rows: int, width: int) -> nn.Embedding:
    table: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)  # type: ignore[no-untyped-call]
    return table


class Attention(nn.Module):
    """Multi-head self-attention with its residual and norm."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        width = size.hidden_size
        self.heads = size.num_attention_heads
        self.qkv = Linear(width, 3 * width)  # query, key and value in one product
        self.out = Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=size.layer_norm_eps)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        texts, length, width = x.shape  # [n, l, d]
        q, k, v = self.qkv(x).view(texts, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # each [n, h, l, d / h]
        mixed: Tensor = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out: Tensor = self.norm(x + self.out(mixed.transpose(1, 2).reshape(texts, length, width)))
        return out


class Layer(nn.Module):
    """Attention, then a feed-forward network with its residual and norm."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.attention = Attention(size)
        self.up = Linear(size.hidden_size, size.intermediate_size)
        self.down = Linear(size.intermediate_size, size.hidden_size)
        self.norm = nn.LayerNorm(size.hidden_size, eps=size.layer_norm_eps)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        out: Tensor = self.norm(x + self.down(F.gelu(self.up(x))))
        return out


class Bert(nn.Module):
    """The encoder: pieces of texts to one state for each piece."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.words = _table(size.vocab_size, size.hidden_size)
        self.positions = _table(size.max_position_embeddings, size.hidden_size)
        self.segments = _table(size.type_vocab_size, size.hidden_size)
        self.norm = nn.LayerNorm(size.hidden_size, eps=size.layer_norm_eps)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.num_hidden_layers))
        self.first_position, self.buckets = size.first_position, size.relative_attention_num_buckets
        self.relative = _table(self.buckets, size.num_attention_heads) if self.buckets else None

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Compute the states of texts, float32 or bfloat16 ``[n, l, d]``; those of padding are meaningless.

        ``ids``, int64 ``[n, l]``, include special pieces and are padded at the end with any piece; ``lengths``, int64
        ``[n]``, are the pieces of each text.
        """
        number = torch.arange(ids.size(1), device=ids.device)
        positions, segments = self.positions(number + self.first_position), self.segments(torch.zeros_like(number))
        x: Tensor = self.norm(self.words(ids) + positions + segments)
        padded = bool((lengths < ids.size(1)).any())
        mask = (number < lengths.unsqueeze(1))[:, None, None, :] if padded else None  # [n, 1, 1, l]
        if self.relative is not None:
            buckets = torch.from_numpy(relative_buckets(ids.size(1), self.buckets)).to(ids.device)
            bias = self.relative(buckets).permute(2, 0, 1)[None]  # [1, h, l, l]
            # attention takes a third longer with a mask that is not contiguous
            mask = bias.contiguous() if mask is None else bias.masked_fill(~mask, -torch.inf)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Int8Linear(nn.Module):
    """A linear map whose product is one of int8 matrices, with a scale for each row of both."""

    codes: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, codes: Tensor, scale: Tensor, bias: Tensor) -> None:
        super().__init__()
        for name, value in (("codes", codes.T), ("scale", scale), ("bias", bias)):  # [in, out], [out], [out]
            self.register_buffer(name, value, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1))
        step = rows.abs().amax(1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny) / 127
        product = int8_product((rows / step).round_().to(torch.int8), self.codes).float()
        out: Tensor = product.mul_(step).mul_(self.scale).add_(self.bias).view(*x.shape[:-1], -1)
        return out


def _onednn_product(codes: Tensor, scale: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the product of rows of bytes with int8 weights, scaled: uint8 ``[n, in]`` to float32 ``[n, out]``.

    The operators are private to torch, the same in 2.6 and 2.13; where one is missing or another, ``_is_exact`` fails.
    """
    packed = torch.ops.onednn.qlinear_prepack(codes, None)
    weights = packed, scale, torch.zeros(len(codes), dtype=torch.int32), None  # zero points; no bias
    output = 1.0, 0, torch.float32  # scale, zero point, type

    def product(rows: Tensor) -> Tensor:
        result: Tensor = torch.ops.onednn.qlinear_pointwise(rows, 1.0, 0, *weights, *output, "none", [], "")
        return result

    return product


class Int7Linear(nn.Module):
    """A linear map on a processor without VNNI, where sums of two products of bytes must fit in 16 bits: 2 · 127².

    oneDNN multiplies unsigned bytes by signed ones. So a row of x is rounded to 127 steps from its least number on::

        (W x)[i] ≈ scale[i] · Σⱼ codes[i, j] · (t · round((x[j] - min x) / t) + min x)       t = (max x - min x) / 127
    """

    def __init__(self, codes: Tensor, scale: Tensor, bias: Tensor) -> None:
        super().__init__()
        self._product = _onednn_product(codes, scale)
        self._bias, self._sums = bias, codes.sum(1) * scale  # each [out]

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1))
        low = rows.amin(1, keepdim=True)
        step = ((rows.amax(1, keepdim=True) - low) / 127).clamp_min_(torch.finfo(rows.dtype).tiny)
        codes = (rows - low).div_(step).round_().to(torch.uint8)
        out: Tensor = (
            torch.addcmul(self._bias, self._product(codes), step).addcmul_(low, self._sums).view(*x.shape[:-1], -1)
        )
        return out


class Int8Embedding(nn.Module):
    """A table of int8 vectors with a scale for each."""

    codes: Tensor
    scale: Tensor

    def __init__(self, codes: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("codes", codes, persistent=False)  # [rows, d]
        self.register_buffer("scale", scale, persistent=False)  # [rows]

    def forward(self, ids: Tensor) -> Tensor:
        return self.codes[ids] * self.scale[ids].unsqueeze(-1)


@lru_cache(maxsize=1)
def int8_linear() -> type[Int8Linear | Int7Linear] | None:
    """Choose the product of int8 matrices that is faster than float32 on this processor and, tested once, exact."""
    if cpu_has("avx512_vnni", "avx_vnni") and _is_exact(Int8Linear):
        return Int8Linear
    # without VNNI torch's int8 product is a plain loop, which takes 28 times as long as float32
    return Int7Linear if cpu_has("avx2") and _is_exact(Int7Linear) else None


def _is_exact(linear: type[Int8Linear | Int7Linear]) -> bool:
    """Test that sums of the largest products do not overflow."""
    rows = torch.full((32, 384), 127.0)
    rows[:, 0] = 0  # the first of 127 steps
    try:
        product = linear(torch.full((64, 384), 127, dtype=torch.int8), torch.ones(64), torch.zeros(64))(rows)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return bool((product == 383 * 127 * 127).all())


def best_precision(device: torch.device) -> Precision:
    """Choose how a device multiplies matrices fastest without a loss in rankings (docs/archive/speed.md)."""
    if device.type == "cpu" and int8_linear():
        return "int8"
    return "bfloat16" if has_bfloat16(device) else "float32"


def from_transformers(weights: Mapping[str, Tensor], size: BertSize) -> dict[str, Tensor]:
    """Rename the weights of a ``BertModel`` or ``MPNetModel`` of transformers."""
    arrays = {name: weight.detach().float().cpu().numpy() for name, weight in weights.items()}
    return {name: torch.from_numpy(weight) for name, weight in renamed_weights(arrays, size).items()}


def pack(weights: Mapping[str, Tensor]) -> bytes:
    """Write weights as safetensors: matrices as int8 with scales, small tables as float16, vectors as float32."""
    packed = {}
    for name, weight in weights.items():
        if weight.dim() < 2:
            packed[name] = weight.float().contiguous()
            continue
        if name.startswith(_FLOAT16):
            packed[name] = weight.half().contiguous()
            continue
        codes, scale = int8_rows(weight.float().numpy())
        packed[name], packed[name + SCALE] = torch.from_numpy(codes), torch.from_numpy(scale)
    written: bytes = save(packed)
    return written


def load_bert(folder: Path, precision: Precision, device: torch.device, changes: Path | None = None) -> Bert:
    """Open the weights that :func:`pack` wrote, or published ones, with changes or without, in evaluation mode."""
    packed = {name: torch.from_numpy(weight) for name, weight in read_weights(folder, changes).items()}
    if precision == "int8" and not any(name.endswith(SCALE) for name in packed):
        packed = load(pack(packed))
    with torch.device("meta"):  # nothing is allocated
        bert = Bert(BertSize.read(folder / "config.json"))
    scales = {name.removesuffix(SCALE): packed.pop(name).float() for name in list(packed) if name.endswith(SCALE)}
    if precision == "int8":
        linear = int8_linear() or Int8Linear
        for name in [matrix.removesuffix(".weight") for matrix in scales]:
            codes, scale = packed.pop(f"{name}.weight"), scales.pop(f"{name}.weight")
            bias = packed.pop(f"{name}.bias", None)
            bert.set_submodule(name, Int8Embedding(codes, scale) if bias is None else linear(codes, scale, bias))
    for name, scale in scales.items():
        packed[name] = packed[name] * scale.unsqueeze(1)
    bert.load_state_dict({name: weight.float() for name, weight in packed.items()}, assign=True)
    return (bert.bfloat16() if precision == "bfloat16" else bert).to(device).eval().requires_grad_(False)


class TorchBert:
    """The loaded encoder as a function of many texts; see :class:`.packed_bert.PackedBert`."""

    def __init__(self, folder: Path, precision: Precision, device: torch.device, changes: Path | None = None) -> None:
        self._bert, self._device = load_bert(folder, precision, device, changes), device
        self.at_once = 1024 if device.type == "cpu" else 16384  # pieces of a batch whose states stay in a CPU's cache
        if device.type == "cpu":
            keep_freed_memory()

    @torch.inference_mode()
    def words(self, ids: Sequence[int]) -> Float32:
        """Return the input embeddings of pieces, float32 ``[l, d]``."""
        embeddings: Float32 = self._bert.words(torch.tensor(ids, device=self._device)).float().cpu().numpy()
        return embeddings

    @torch.inference_mode()
    def states(self, texts: Sequence[Sequence[int]]) -> list[Float32]:
        """Compute the states of texts, each float32 ``[l, d]``; they are padded to the longest."""
        lengths, longest = torch.tensor(list(map(len, texts))), max(map(len, texts))
        padded = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in texts])
        states = self._bert(padded.to(self._device), lengths.to(self._device)).float().cpu().numpy()
        return [states[i, :length] for i, length in enumerate(lengths.tolist())]

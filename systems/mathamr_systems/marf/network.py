"""The networks of MaRF: options, a post as they read it, the frozen language model, and the trained part.

::

    text ────context─────────▶ E_c [n, d]  ┐
    formula ─FormulaTransformer──▶ E_f [m, f]  ┴─ Fusion ─▶ O [n, d] ─▶ unit rows [n, output], a view

Of the context's rows, ``[CLS]`` is moved to the end, where an index expects the document's vector; MaxSim does not
depend on the order. A causal model's last token is there anyway. Rows are rounded to float16, so that cached ones are
equal.

Linear maps before and after the fusion narrow the rows. The paper gives 8 layers, 8 heads, width 512, about 50 M
parameters for the formula encoder, and cites Llama 3: root mean square norms before each part, rotary positions and
SwiGLU of 2,048 then have 33.55 M, and 31,523 embeddings bring it to 49.7 M (with a GELU network instead of SwiGLU it
is 41.3 M). As an encoder it has no causal mask.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from sys import intern
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mathamr_systems.language_models import EncoderPrecision, find_checkpoint, loading, mixed
from mathamr_systems.math_tokens import MathVocabulary, math_tokens, post_text
from pyterrier_mathamr.extending import (
    BELOW_1,
    FLAG,
    ConfigError,
    Count,
    MaybeCount,
    Natural,
    Options,
    Rule,
    batches_by_size,
    check_encoder_folder,
    choose_device,
    principal_directions,
    progress,
    require,
    seeded,
)
from pyterrier_mathamr.posts import MathPost, plain_text
from pyterrier_mathamr.store import Cache

AttentionKeys = Literal["formulas", "context"]
TokenRows = npt.NDArray[np.float32]
Symbols = tuple[str, ...]
"""The math tokens of a formula."""

UNKNOWN: Symbols = ("",)
"""A formula of one token that no vocabulary has."""

MIN_TOKENS = 3
"""Shorter formulas, such as a single variable, are in no training pair, and get no view in a post with longer ones."""

_BUDGET = {"cpu": 1_024, "cuda": 65_536}  # most tokens of a batch, padding included
_BLOCK = 1024  # texts between two writes to the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class MaRFConfig(Options):
    """The options of a model. The paper gives the sizes of the encoders and the six formulas, and no other options.

    Attributes:
        text: how the context encoder reads formulas: as ``latex`` between dollars, or as math ``tokens``, which its
            tokenizer must have. The paper adds the tokens and trains BERT further; an encoder that is used unchanged
            has seen LaTeX.
        rows: all ``tokens`` of a text are rows, or only the ``last``, as for a causal encoder's vector of a text (the
            paper does not specify it for Qwen3).
        instruction: put before a query, as the card of an instructed model asks; documents have none.
        query_length: most tokens of a query.
        document_length: most tokens of a document.
        width: of the context's rows before the fusion, such as 768 for Qwen3's 1,024; ``None`` keeps their width.
        output: of the rows to compare; ``None`` keeps their width.
        formula_layers: of the formula encoder.
        formula_heads: of its attention.
        formula_width: of its rows.
        formula_hidden: of its SwiGLU.
        formula_length: most tokens of a formula.
        formula_vocabulary: tokens with a separate row: the tokens in the posts of :meth:`MaRF.new` (``own``), or in
            the tokenizer of the ``context`` encoder.
        formula_score: how formulas are compared in their training: by all rows (``token``), or by their mean
            (``passage``). The paper's table captions use passage, its text prefers token.
        heads: of the cross-attention.
        dropout: in training, of formula encoder and fusion.
        context: whether there is a text encoder. Without one, a view consists of the formula encoder's rows of a
            formula, a post without formulas has the row of an unknown token, and a query without them finds nothing.
        keys: the keys of the context's attention: its ``formulas``, or, as a control, the ``context`` itself.
        formulas: most views of a document, each with one of its formulas; 1 uses the longest, more are drawn at
            random, seeded by the docno.
        query_formulas: the ``longest`` formula of a query (algorithm 1 has one), or the mean over views with ``all``.
        seed: of the parameters.
    """

    text: Literal["latex", "tokens"] = "latex"
    rows: Literal["tokens", "last"] = "tokens"
    instruction: Annotated[str, Rule("text", lambda value: isinstance(value, str))] = ""
    query_length: Count = 512
    document_length: Count = 512
    width: MaybeCount = None
    output: MaybeCount = None
    formula_layers: Count = 8
    formula_heads: Count = 8
    formula_width: Count = 512
    formula_hidden: Count = 2048
    formula_length: Count = 64
    formula_vocabulary: Literal["own", "context"] = "own"
    formula_score: Literal["token", "passage"] = "token"
    heads: Count = 8
    dropout: Annotated[float, BELOW_1] = 0.1
    context: Annotated[bool, FLAG] = True
    keys: AttentionKeys = "formulas"
    formulas: Count = 6
    query_formulas: Literal["longest", "all"] = "longest"
    seed: Natural = 42

    def __post_init__(self) -> None:
        super(MaRFConfig, self).__post_init__()
        if not self.context and self.keys == "context":
            raise ConfigError("keys", self.keys, "'formulas' in a model without a context")
        if self.formula_width % (2 * self.formula_heads):
            raise ConfigError(
                "formula_heads", self.formula_heads, f"heads of an even width: {self.formula_width} = 2·k·n"
            )


@dataclass(frozen=True, slots=True)
class MaRFPost:
    """A post as MaRF reads it."""

    text: str  # for the context encoder
    formulas: tuple[Symbols, ...]  # distinct and sorted, so that their order in the post has no effect

    @classmethod
    def of(cls, post: MathPost, config: MaRFConfig) -> MaRFPost:
        text = post_text(post) if config.text == "tokens" else plain_text(post)
        formulas = {_tokens(formula.latex)[: config.formula_length] for formula in post.formulas}
        return cls(text, tuple(sorted(formula for formula in formulas if formula)))

    def longest(self) -> tuple[Symbols, ...]:
        """Return the formula with the most tokens, of several the first in order; none of a post without formulas."""
        return tuple(sorted(self.formulas, key=lambda formula: (-len(formula), formula))[:1])

    def some(self, most: int, seed: str) -> tuple[Symbols, ...]:
        """Return the longest formula, or several drawn at random, the same for the same seed."""
        if most == 1:
            return self.longest()
        long = [formula for formula in self.formulas if len(formula) >= MIN_TOKENS]
        pool = long or list(self.formulas)
        if len(pool) <= most:
            return tuple(pool)
        number = int.from_bytes(hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        return tuple(sorted(random.Random(number).sample(pool, most)))


class FormulaTokens:
    """Tokens of formulas to numbers: by a separate vocabulary, or by a tokenizer."""

    def __init__(self, vocabulary: MathVocabulary, tokenizer: Any = None) -> None:
        self.vocabulary, self._tokenizer = vocabulary, tokenizer
        self._numbers = {token: number for number, token in enumerate(vocabulary.tokens, 1)}

    def __len__(self) -> int:
        return len(self._tokenizer) if self._tokenizer is not None else len(self._numbers) + 1

    def ids(self, formula: Sequence[str], most: int) -> list[int]:
        """Return the numbers of a formula's tokens, at least one and at most ``most``."""
        if self._tokenizer is None:
            return [self._numbers.get(token, 0) for token in formula[:most]]
        numbers: list[int] = self._tokenizer(" ".join(formula), add_special_tokens=False)["input_ids"]
        return numbers[:most] or [0]


@lru_cache(maxsize=65_536)
def _tokens(latex: str) -> Symbols:
    return tuple(map(intern, formula_tokens(latex)))  # of a million posts, equal tokens are one object


def formula_tokens(latex: str) -> list[str]:
    """Write a formula as the formula encoder reads it: argument boundaries, numbers by powers of ten."""
    return math_tokens(latex, numbers="10e", braces=True)


class ContextEncoder:
    """A language model of transformers and its tokenizer."""

    def __init__(self, tokenizer: Any, network: Any, config: MaRFConfig, name: str) -> None:
        self.tokenizer, self.network, self.config, self.name = tokenizer, network.eval(), config, name
        self.cache: str | Path | None = None
        self.tokenizer.padding_side = self.tokenizer.truncation_side = "right"
        network.requires_grad_(False)

    @classmethod
    def load(cls, name: str, config: MaRFConfig) -> ContextEncoder:
        """Load a model by name, folder or name on the hub, only from safetensors, without running its code."""
        library = require("transformers", "answers")
        folder = str(find_checkpoint(name))
        check_encoder_folder(Path(folder))
        options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        with loading(name):
            tokenizer = library.AutoTokenizer.from_pretrained(folder, **options)
            network = library.AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **options)
        return cls(tokenizer, network, config, name)

    @property
    def width(self) -> int:
        return int(self.network.config.hidden_size)

    @cached_property
    def identity(self) -> str:
        """Sha256 of the weights and the vocabulary."""
        total = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for key, tensor in sorted(self.network.state_dict().items()):
            total.update(key.encode())
            total.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return total.hexdigest()

    def encode(
        self,
        texts: Sequence[str],
        *,
        query: bool = False,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> list[TokenRows]:
        """Encode texts, batched by length; memory is bounded by a batch and the result."""
        if self.cache is None:
            return self._encode(list(texts), query, device, precision, verbose)
        cache = Cache(self.cache)
        options = (
            f"{self.identity}|{query}|{self._length(query)}|{self.config.rows}|{self.config.instruction}|{precision}"
        )
        keys = {text: hashlib.blake2b(f"{options}\0{text}".encode(), digest_size=16).digest() for text in texts}
        known = cache.get(list(keys.values()))
        missing = [text for text, key in keys.items() if key not in known]
        for start in range(0, len(missing), _BLOCK):
            block = missing[start : start + _BLOCK]
            rows = self._encode(block, query, device, precision, verbose)
            new = {keys[text]: found.astype("<f2").tobytes() for text, found in zip(block, rows, strict=True)}
            cache.add(new)
            known |= new
        return [np.frombuffer(known[keys[text]], "<f2").reshape(-1, self.width).astype(np.float32) for text in texts]

    def _length(self, query: bool) -> int:
        """The most tokens of a text: as configured, and not beyond the model's positions."""
        asked = self.config.query_length if query else self.config.document_length
        return min(asked, int(getattr(self.network.config, "max_position_embeddings", asked)))

    def _encode(
        self, texts: list[str], query: bool, device: str | None, precision: EncoderPrecision, verbose: bool
    ) -> list[TokenRows]:
        where = choose_device(device)
        self.network.to(where)
        ids: list[list[int]] = []
        if texts:
            prefixed = [(self.config.instruction if query else "") + text for text in texts]
            ids = self.tokenizer(prefixed, truncation=True, max_length=self._length(query))["input_ids"]
        encoded = [np.empty((0, self.width), np.float32)] * len(texts)
        batches = batches_by_size([max(1, len(tokens)) for tokens in ids], token_budget(where))
        for members in progress(batches, "encoding texts", "batches", verbose=verbose):
            kept = [i for i in members if ids[i]]  # a tokenizer without special tokens gives no ids for an empty text
            if kept:
                found_rows = self._batch([ids[i] for i in kept], where, precision)
                for i, rows in zip(kept, found_rows, strict=True):
                    encoded[i] = rows
        return encoded

    @torch.inference_mode()
    def _batch(self, ids: list[list[int]], where: torch.device, precision: EncoderPrecision) -> Iterator[TokenRows]:
        tensors = list(map(torch.tensor, ids))
        padded = pad_sequence(tensors, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0)
        mask = pad_sequence([torch.ones_like(tokens) for tokens in tensors], batch_first=True)
        with mixed(where, precision):
            states = self.network(input_ids=padded.to(where), attention_mask=mask.to(where)).last_hidden_state
        rows = states.to("cpu", torch.float16).float().numpy()
        return (self._ordered(found[: len(tokens)], tokens) for found, tokens in zip(rows, ids, strict=True))

    def _ordered(self, rows: TokenRows, ids: list[int]) -> TokenRows:
        if ids[0] == self.tokenizer.cls_token_id:
            rows = np.roll(rows, -1, axis=0)
        return rows[-1:].copy() if self.config.rows == "last" else rows.copy()


def token_budget(device: torch.device) -> int:
    """Return the most tokens of a batch, padding included."""
    return _BUDGET.get(device.type, _BUDGET["cuda"])


TokenView = npt.NDArray[np.float32]
"""float32 ``[n, d]``, rows of unit length."""

_BASE = 10_000.0  # of the rotary angles
_POSTS = 1000  # posts whose rows give the principal directions; more change them little


class FormulaTransformer(nn.Module):
    """Tokens of formulas to a row for each token."""

    def __init__(self, vocabulary: int, config: MaRFConfig) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, config.formula_width)
        nn.init.normal_(self.embeddings.weight, std=config.formula_width**-0.5)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.formula_layers))
        self.norm = RMSNorm(config.formula_width)

    def forward(self, ids: Tensor, missing: Tensor) -> Tensor:
        x = self.embeddings(ids)
        width = x.shape[-1] // self.layers[0].heads
        rates = _BASE ** -(torch.arange(0, width, 2, device=x.device) / width)
        angles = torch.outer(torch.arange(ids.shape[1], device=x.device).float(), rates)  # [m, width / 2], of positions
        turns, attended = (angles.cos(), angles.sin()), ~missing[:, None, None, :]
        for layer in self.layers:
            x = layer(x, attended, turns)
        found: Tensor = self.norm(x)
        return found


class RMSNorm(nn.Module):
    """x / √(mean x² + ε) · g, in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * self.gain


class _Layer(nn.Module):
    """Attention with rotary positions, then SwiGLU, each after a norm and around a residual."""

    def __init__(self, config: MaRFConfig) -> None:
        super().__init__()
        width, hidden = config.formula_width, config.formula_hidden
        self.heads, self.dropout = config.formula_heads, config.dropout
        self.before_attention, self.before_network = RMSNorm(width), RMSNorm(width)
        self.query, self.key, self.value, self.joined = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, attended: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the next states: float ``[b, m, f]``."""
        share = self.dropout if self.training else 0.0
        h = self.before_attention(x)
        query, key, value = (  # [b, heads, m, f / heads]
            part(h).view(*h.shape[:2], self.heads, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key = _turned(query, turns), _turned(key, turns)
        attention = F.scaled_dot_product_attention(query, key, value, attn_mask=attended)
        x = x + F.dropout(self.joined(attention.transpose(1, 2).reshape(h.shape)), share)
        h = self.before_network(x)
        return x + F.dropout(self.down(F.silu(self.gate(h)) * self.up(h)), share)


def _turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair of numbers of a row by the angle of its position."""
    cosine, sine = (part.to(x.dtype) for part in turns)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)


class GatedFusion(nn.Module):
    """O = FFN_G(H) ⊙ FFN(H) + E_c with H = MHA(Q = E_c, K = E_f, V = E_f) (MaRF, equations 4 to 6)."""

    def __init__(self, width: int, keys: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, kdim=keys, vdim=keys, batch_first=True)
        last = nn.Linear(width, width)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.network: nn.Module = nn.Sequential(nn.Linear(width, width), nn.GELU(), last)
        self.gate: nn.Module = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.Sigmoid())
        self.dropout = nn.Dropout(dropout)

    def forward(self, context: Tensor, formulas: Tensor, missing: Tensor | None = None) -> Tensor:
        """Fuse each text, ``[b, n, d]``, with one formula, ``[b, m, f]``; ``missing`` is true for padding."""
        found, _ = self.attention(context, formulas, formulas, key_padding_mask=missing, need_weights=False)  # H
        fused: Tensor = context + self.dropout(self.gate(found) * self.network(found))
        return fused


class MaRFNetwork(nn.Module):
    """The trained parts, with random weights from ``config.seed``."""

    def __init__(self, config: MaRFConfig, width: int, vocabulary: int) -> None:
        super().__init__()
        with seeded(config.seed):
            self.formulas = FormulaTransformer(vocabulary, config)
            d = config.width or width
            self.before = nn.Linear(width, d, bias=False) if config.width else nn.Identity()
            self.fusion = GatedFusion(
                d, d if config.keys == "context" else config.formula_width, config.heads, config.dropout
            )
            self.after = nn.Linear(d, config.output, bias=False) if config.output else nn.Identity()

    @property
    def maps(self) -> list[nn.Linear]:
        return [part for part in (self.before, self.after) if isinstance(part, nn.Linear)]

    def finished(self, fused: Tensor) -> Tensor:
        """Map fused rows to output rows: float ``[…, d]`` to float32 ``[…, output]`` of unit length."""
        return F.normalize(self.after(fused).float(), dim=-1)


def padded(rows: Sequence[np.ndarray | Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Stack rows of several lengths."""
    tensors = [torch.as_tensor(row) for row in rows]
    stacked = pad_sequence(tensors, batch_first=True).to(device)
    lengths = torch.tensor([len(row) for row in tensors], device=device)
    return stacked, torch.arange(stacked.shape[1], device=device) >= lengths[:, None]


def set_maps(
    network: MaRFNetwork, context: ContextEncoder, texts: Sequence[str], device: str | None, verbose: bool
) -> None:
    """Set the maps before and after the fusion to principal directions."""
    some = texts[:: max(1, len(texts) // _POSTS)][:_POSTS]
    moment = torch.zeros(context.width, context.width, dtype=torch.float64)
    for start in range(0, len(some), 64):
        for rows in context.encode(some[start : start + 64], device=device, verbose=verbose):
            unit = nn.functional.normalize(torch.from_numpy(rows).double(), dim=1)
            moment += unit.T @ unit
    for part in network.maps:
        directions = principal_directions(moment, part.out_features)
        with torch.no_grad():
            part.weight.copy_(directions)
        moment = directions.double() @ moment @ directions.double().T


@torch.inference_mode()
def formula_rows(
    encoder: FormulaTransformer,
    tokens: FormulaTokens,
    formulas: Iterable[Symbols],
    length: int,
    *,
    device: str | None = None,
    precision: EncoderPrecision = "auto",
) -> dict[Symbols, Tensor]:
    """Encode formulas, each distinct one once, so that equal ones have equal rows."""
    where = choose_device(device)
    distinct = sorted(set(formulas), key=lambda one: (-len(one), one))
    ids = [tokens.ids(one, length) for one in distinct]
    rows_of: dict[Symbols, Tensor] = {}
    encoder.to(where)
    for members in batches_by_size(list(map(len, ids)), token_budget(where)):
        batch, missing = padded([torch.tensor(ids[i]) for i in members], where)
        with mixed(where, precision):
            rows = encoder(batch, missing).float().cpu()
        for i, padded_rows in zip(members, rows, strict=True):
            rows_of[distinct[i]] = padded_rows[: len(ids[i])].clone()
    encoder.cpu()
    return rows_of


@torch.inference_mode()
def fused_rows(
    network: MaRFNetwork,
    tasks: Sequence[tuple[TokenView, Tensor | None]],
    keys: AttentionKeys,
    *,
    device: str | None = None,
    precision: EncoderPrecision = "auto",
    verbose: bool = False,
) -> list[TokenView]:
    """Fuse contexts with formulas, batched by length."""
    where, found = choose_device(device), [np.empty((0, 0), np.float32)] * len(tasks)
    network.to(where)
    for fuses in (True, False):
        some = [i for i, (_, formula) in enumerate(tasks) if (formula is not None or keys == "context") == fuses]
        batches = batches_by_size([max(1, len(tasks[i][0])) for i in some], token_budget(where))
        for members in progress(batches, "fusing formulas", "batches", verbose=verbose):
            places = [some[member] for member in members]
            context, absent = padded([tasks[i][0] for i in places], where)
            with mixed(where, precision):
                context = network.before(context)
                if fuses and keys == "context":
                    context = network.fusion(context, context, absent)
                elif fuses:
                    formulas = [formula for formula in (tasks[i][1] for i in places) if formula is not None]
                    context = network.fusion(context, *padded(formulas, where))
                rows = network.finished(context).cpu().numpy()
            for i, padded_rows in zip(places, rows, strict=True):
                found[i] = padded_rows[: len(tasks[i][0])].copy()
    network.cpu()
    return found

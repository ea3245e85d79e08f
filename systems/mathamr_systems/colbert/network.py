"""The network of ColBERT: its input, its modules, its output rows, and checkpoints in the four published forms.

::

    post ─▶ text ─▶ [CLS] [unused0] tokens [SEP] ─▶ Transformer ─▶ Dense ─▶ MultiVectorMask ─▶ Normalize ─▶ rows [n, d]
             │            └ a query; a document has [unused1]      W x      no punctuation     |row| = 1
             └ formulas as math tokens

It is a ``MultiVectorEncoder`` of sentence-transformers, which saves, loads and trains it. MaxSim does not depend on the
order of rows. An index treats the last row as the document's vector, so with ``[CLS]`` last all of its strategies
work as for any other model::

    [CLS] [unused1] $frac$ $1$ $2$ . [SEP]   ──▶   [unused1] $frac$ $1$ $2$ [SEP] [CLS]
                                   └ no row: punctuation

=====================  ==========================================================  ==============================
form                   recognized by                                               loaded by
=====================  ==========================================================  ==============================
sentence-transformers  ``modules.json`` of a multi-vector model, or of PyLate      the library
Stanford               architecture ``HF_ColBERT``, ``linear.weight``              the library
Approach Zero          architecture ``ColBERT``, ``linear.weight``                 `load_checkpoint`
bare encoder           anything else                                               refused: it must be trained first
=====================  ==========================================================  ==============================

If the library loaded a checkpoint of Approach Zero, it would make its projection at random and only log it. Nothing in
a folder is run: parts are classes of sentence-transformers, weights are safetensors.

`ColBERT.save` adds to the files of sentence-transformers the options, and a checksum of each file::

    mathamr_colbert.json  {"format": 1, "options": {…}, "files": {name: sha256}, "checksum": <of all of the above>}
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from mathamr_systems.language_models import EncoderPrecision, mixed
from mathamr_systems.math_tokens import MathVocabulary, math_tokens, post_text
from pyterrier_mathamr.extending import (
    Count,
    MathAMRError,
    Options,
    UnsafeModelError,
    at_least,
    batches_by_size,
    check_encoder_folder,
    moments,
    parse_json,
    principal_directions,
    progress,
    read_description,
    require,
    seeded,
    sum_faults,
    sums_of,
    without_bars,
)
from pyterrier_mathamr.model import ModelFileError
from pyterrier_mathamr.posts import MathPost, plain_text
from pyterrier_mathamr.store import signed

TextSide = Literal["query", "document"]
Embeddings = npt.NDArray[np.float32]
"""float32 ``[n, d]``, rows of unit length: tokens in order, ``[CLS]`` last."""

PREFIXES: dict[TextSide, str] = {"query": "[unused0]", "document": "[unused1]"}
"""The token after ``[CLS]`` by which the model distinguishes queries and documents."""

_Length = Annotated[int, at_least(4)]
_BUDGET = {"cpu": 1_024, "cuda": 131_072}  # most tokens of a batch: on a CPU, larger ones are mostly padding
_POSTS = 1000  # posts whose states give the principal directions; more change them little


@dataclass(frozen=True, slots=True)
class ColBERTOptions(Options):
    """How a new model reads and encodes.

    Attributes:
        dimensions: of a row.
        query_length: most tokens of a query, with the special ones.
        document_length: most tokens of a document.
        query_expansion: fill queries up to ``query_length`` with ``[MASK]``, whose rows score, too. The paper names it
            as common practice and is silent on whether it was used.
        skip_punctuation: documents have no rows of punctuation.
        math: write formulas as math tokens, learned from the training posts, instead of LaTeX as text.
        case: math tokens keep their capitals.
        min_count: how often a math token must occur in the training posts.
    """

    dimensions: Count = 128
    query_length: _Length = 128
    document_length: _Length = 256
    query_expansion: bool = False
    skip_punctuation: bool = True
    math: bool = False
    case: bool = True
    min_count: Count = 5


@dataclass(frozen=True, slots=True)
class ColBERTTexts:
    """Writes posts as a model reads them."""

    math: bool  # with math tokens; else formulas are LaTeX between dollars
    case: bool  # math tokens keep their capitals

    def text(self, post: MathPost) -> str:
        return post_text(post, self.tokens) if self.math else plain_text(post)

    def tokens(self, latex: str) -> list[str]:
        return math_tokens(latex, case=self.case)


def assemble(
    backbone: Path,
    projection: Tensor,
    *,
    query_length: int,
    document_length: int,
    query_expansion: bool,
    skip_punctuation: bool = True,
) -> Any:
    """Build a ``MultiVectorEncoder`` on the CPU over a language model."""
    library = require("sentence_transformers", "colbert")
    parts = require("sentence_transformers.base.modules", "colbert")
    mask = require("sentence_transformers.multi_vector_encoder.modules", "colbert").MultiVectorMask
    library_tokens = require("transformers", "colbert")
    kwargs = {"local_files_only": True}
    transformer = parts.Transformer(
        str(backbone),
        model_kwargs={"use_safetensors": True, **kwargs},
        processor_kwargs=dict(kwargs),
        config_kwargs=dict(kwargs),
        document_length=document_length,
    )
    width, dimensions = projection.shape[1], projection.shape[0]
    dense = parts.Dense(
        width,
        dimensions,
        bias=False,
        activation_function=torch.nn.Identity(),
        init_weight=projection.clone(),
        module_input_name="token_embeddings",
    )
    added = [library_tokens.AddedToken(token, normalized=False, special=True) for token in PREFIXES.values()]
    transformer.tokenizer.add_special_tokens({"additional_special_tokens": added})  # as mere text they fall to pieces
    if len(transformer.tokenizer) > transformer.model.get_input_embeddings().weight.shape[0]:
        transformer.model.resize_token_embeddings(len(transformer.tokenizer))
    modules = [
        transformer,
        dense,
        mask(skiplist_words=list(string.punctuation) if skip_punctuation else []),
        parts.Normalize(module_input_name="token_embeddings"),
    ]
    prompts = {side: f"{token} " for side, token in PREFIXES.items()}
    encoder = library.MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu").float()
    expand_queries(encoder, query_length, query_expansion)
    return encoder.eval()


def expand_queries(encoder: Any, length: int, expansion: bool) -> None:
    first = encoder[0]
    first.query_expansion = None
    first.query_length = None if expansion else length
    if expansion:
        first.query_expansion = {"strategy": "fixed", "attend": False, "length": length}


def has_math_tokens(tokenizer: Any) -> bool:
    """Return whether a tokenizer has math tokens, such as ``$frac$``, so that formulas are written with them."""
    return any(len(token) > 2 and token[0] == token[-1] == "$" for token in tokenizer.get_vocab())


def random_projection(backbone: Path, dimensions: int, seed: int) -> Tensor:
    """Draw a projection as torch initializes one, the same for one seed: float32 ``[d, d_model]``."""
    config = require("transformers", "colbert").AutoConfig.from_pretrained(str(backbone), local_files_only=True)
    with seeded(seed):
        return torch.nn.Linear(int(config.hidden_size), dimensions, bias=False).weight.detach()


def digest_of(encoder: Any, case: bool) -> str:
    """Compute the sha256 of all that rows depend on: lengths, tokens, weights."""
    first, digest = encoder[0], hashlib.sha256()
    described = [case, first.query_length, first.document_length, first.query_expansion, encoder.prompts]
    digest.update(json.dumps([*described, encoder.tokenizer.get_vocab()], sort_keys=True).encode())
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


class TextRows(NamedTuple):
    """The encoding of a text."""

    rows: Embeddings
    ids: npt.NDArray[np.int64]  # the token of each row


def encode_texts(
    encoder: Any, texts: Sequence[str], side: TextSide, *, precision: EncoderPrecision = "auto", verbose: bool = False
) -> list[TextRows]:
    """Encode texts on the device where the encoder is."""
    encoded: list[TextRows | None] = [None] * len(texts)
    batches = batches_of_texts(encoder, texts, side)
    for members in progress(batches, f"encoding {side} texts", "batches", verbose=verbose):
        features = features_of(encoder, [texts[i] for i in members], side)
        with torch.inference_mode(), mixed(encoder.device, precision):
            features = encoder[0](features)
        with torch.inference_mode():
            features["token_embeddings"] = features["token_embeddings"].float()
            features = finish(encoder, features, side)
        for i, text in zip(members, _ragged(encoder, features), strict=True):
            encoded[i] = text
    return [text for text in encoded if text is not None]


def batches_of_texts(encoder: Any, texts: Sequence[str], side: TextSide) -> list[list[int]]:
    """Group texts of similar lengths in tokens, the longest first, so that little is padding."""
    first = encoder[0]
    if side == "query" and first.query_expansion is not None:
        lengths = [int(first.query_expansion["length"])] * len(texts)
    elif texts:
        most = (first.query_length if side == "query" else first.document_length) or first.max_seq_length
        prompt = encoder.prompts.get(side) or ""
        tokens = encoder.tokenizer([prompt + text for text in texts], truncation=True, max_length=most)["input_ids"]
        lengths = list(map(len, tokens))
    else:
        lengths = []
    return list(batches_by_size(lengths, _BUDGET.get(encoder.device.type, _BUDGET["cuda"])))


def features_of(encoder: Any, texts: list[str], side: TextSide) -> dict[str, Any]:
    """Tokenize the texts of a batch, on the encoder's device."""
    prepared = encoder.preprocess(texts, prompt=encoder.prompts.get(side), task=side)
    return {name: value.to(encoder.device) if isinstance(value, Tensor) else value for name, value in prepared.items()}


def finish(encoder: Any, features: dict[str, Any], side: TextSide) -> dict[str, Any]:
    """Apply the modules after the language model: projection, mask of the rows that score, unit length."""
    for module in list(encoder)[1:]:
        options = {"task": side} if "task" in getattr(module, "forward_kwargs", ()) else {}
        features = module(features, **options)
    return features


def _ragged(encoder: Any, features: dict[str, Any]) -> Iterator[TextRows]:
    """Cut a padded batch into the rows that score, ``[CLS]`` last."""
    start = encoder.tokenizer.cls_token_id
    for rows, ids, scoring in zip(
        features["token_embeddings"].cpu(),
        features["input_ids"].cpu(),
        features["attention_mask"].cpu().bool(),
        strict=True,
    ):
        kept = torch.nonzero(scoring).flatten()
        if start is not None and len(kept) and int(ids[kept[0]]) == start:
            kept = kept.roll(-1)
        yield TextRows(rows[kept].numpy(), ids[kept].numpy())


def math_start(encoder: Any, posts: Sequence[MathPost], options: ColBERTOptions, *, verbose: bool = False) -> None:
    """Add math tokens to a model and set its projection to the principal directions of states, both from posts."""
    texts = ColBERTTexts(options.math, options.case)
    if options.math:
        vocabulary = MathVocabulary.learn(posts, options.min_count, texts.tokens)
        vocabulary.add_to(encoder.tokenizer, encoder[0].model, case=options.case)
    some = [texts.text(post) for post in posts[:: max(1, len(posts) // _POSTS)]]
    width = encoder[0].get_embedding_dimension()
    total, count = torch.zeros(width, width, dtype=torch.float64), 0  # the second moment of unit states
    batches = batches_of_texts(encoder, some, "document")
    for members in progress(batches, "principal directions", "batches", verbose=verbose):
        features = features_of(encoder, [some[i] for i in members], "document")
        with torch.inference_mode(), mixed(encoder.device):
            states = encoder[0](features)["token_embeddings"]
        rows = torch.nn.functional.normalize(states[features["attention_mask"].bool()].float(), dim=1).cpu()
        total += moments(rows) * len(rows)
        count += len(rows)
    projection = encoder[1].linear.weight
    with torch.no_grad():
        directions = principal_directions(total / max(count, 1), projection.shape[0])
        projection.copy_(directions.to(projection.device))


CheckpointForm = Literal["sentence-transformers", "Stanford", "Approach Zero"]

LENGTH = 512
"""Tokens of queries and documents if a checkpoint does not set them."""

DESCRIPTION = "mathamr_colbert.json"
FORMAT_VERSION = 1

_MODULES, _CONFIG, _ST_CONFIG = "modules.json", "config.json", "config_sentence_transformers.json"
_WEIGHTS, _PROJECTION = "model.safetensors", "linear.weight"
_METADATA = "artifact.metadata"
_PYLATE = {"query_prefix", "document_prefix"}
_PYLATE_PARTS = ("pylate.models.Dense.Dense",)  # replaced by the library's own class


def form_of(folder: Path) -> CheckpointForm:
    """Recognize the form of a checkpoint by its descriptions, without loading weights."""
    if (folder / _MODULES).is_file():
        check_encoder_folder(folder, also=_PYLATE_PARTS)
        described = _read(folder / _ST_CONFIG)
        if described.get("model_type") in ("MultiVectorEncoder", "ColBERT") or _PYLATE & described.keys():
            return "sentence-transformers"
        raise _unknown(folder, "a SentenceTransformer, which has one vector for a text")
    if not (folder / _CONFIG).is_file():
        raise _unknown(folder, f"it has neither {_MODULES} nor {_CONFIG}")
    forms: dict[str, CheckpointForm] = {"HF_ColBERT": "Stanford", "ColBERT": "Approach Zero"}
    architectures = [str(name) for name in _read(folder / _CONFIG).get("architectures") or ()]
    form = next((forms[name] for name in architectures if name in forms), None)
    if form is None:
        raise _unknown(folder, f"a bare encoder of architecture {', '.join(architectures) or 'unknown'}")
    check_encoder_folder(folder)
    if not (folder / _WEIGHTS).is_file():
        raise UnsafeModelError(folder / _WEIGHTS, "weights are read only from safetensors; convert pickled ones")
    try:
        with safe_open(folder / _WEIGHTS, "pt") as file:
            names = set(file.keys())
    except SafetensorError as error:
        raise _unknown(folder, f"{_WEIGHTS} is not a safetensors file ({error})") from error
    if _PROJECTION not in names:
        raise _unknown(folder, f"{form}, but its weights lack the projection {_PROJECTION}")
    return form


def load_checkpoint(folder: Path, query_length: int | None = None) -> Any:
    """Load a checkpoint of any form as a ``MultiVectorEncoder`` on the CPU, in evaluation mode."""
    form = form_of(folder)
    with without_bars():
        if form == "Approach Zero":
            with safe_open(folder / _WEIGHTS, "pt") as file:
                projection = file.get_tensor(_PROJECTION).float()
            encoder = assemble(folder, projection, query_length=LENGTH, document_length=LENGTH, query_expansion=True)
        else:
            options = {"local_files_only": True, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
            library = require("sentence_transformers", "colbert")
            encoder = library.MultiVectorEncoder(str(folder), device="cpu", **options).float()
    if form == "Stanford" and query_length is None and not (folder / _METADATA).is_file():
        query_length = LENGTH
    if query_length is not None:
        expand_queries(encoder, query_length, encoder[0].query_expansion is not None)
    return encoder.eval()


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unknown(path.parent, f"{path.name} is not JSON ({error})") from error
    return content if isinstance(content, dict) else {}


def _unknown(folder: Path, reason: str) -> ModelFileError:
    advice = (
        "Give a multi-vector model of sentence-transformers or PyLate, a Stanford checkpoint (HF_ColBERT) or one of "
        "Approach Zero (ColBERT); ColBERT.new(backbone) begins the training of a bare encoder."
    )
    return ModelFileError(folder, f"no ColBERT checkpoint of a known form: {reason}", advice)


def write_description(folder: Path, options: ColBERTOptions) -> None:
    """Describe a model's folder, when all other files are written."""
    content = {"format": FORMAT_VERSION, "options": options.to_dict(), "files": sums_of(folder)}
    (folder / DESCRIPTION).write_bytes(signed(content))


def read_options(folder: Path) -> ColBERTOptions | None:
    """Read the options of a model's folder; ``None`` for a checkpoint that others wrote."""
    return ColBERTOptions.from_dict(_description(folder)["options"]) if (folder / DESCRIPTION).is_file() else None


def colbert_faults(folder: Path) -> Iterator[MathAMRError]:
    """Compare the files of a model with their checksums, and yield the faults."""
    try:
        sums = _description(folder)["files"]
    except ModelFileError as error:
        yield error
        return
    yield from sum_faults(folder, sums)


def _description(folder: Path) -> dict[str, Any]:
    def read(content: dict[str, Any]) -> dict[str, Any]:
        return {"options": dict(content["options"]), "files": dict(content["files"])}

    return read_description(folder / DESCRIPTION, FORMAT_VERSION, "description of a ColBERT model", read)

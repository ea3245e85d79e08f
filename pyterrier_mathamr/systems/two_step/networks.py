"""The language models of the two-step search: loaded, saved with what the search must know of them, and run."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._common.errors import MathAMRError, require
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr.model.errors import ModelFileError
from pyterrier_mathamr.model.inputs.devices import choose_device
from pyterrier_mathamr.model.saving.description import sum_faults, sums_of
from pyterrier_mathamr.model.variants.text_folder import check_encoder_folder
from pyterrier_mathamr.model.variants.text_loading import without_bars
from pyterrier_mathamr.store.saved import FORMAT, UNREADABLE, field, read_saved, reason_of, write_saved
from pyterrier_mathamr.systems.colbert.checkpoints import find_checkpoint
from pyterrier_mathamr.systems.colbert.encoding import mixed as in_precision

Kind = Literal["cross", "bi"]
"""An encoder that reads both texts at once and gives a number, or one that gives a vector for each text."""

DESCRIPTION = "two_step.json"

TOKENS = Rule("an integer from 1 to 1,000,000", lambda value: COUNT.holds(value) and value <= 10**6)
"""The most tokens that a model reads."""


def load_network(name: str | Path, kind: Kind, max_length: int, device: str | None = None) -> Any:
    """Load a language model; what it lacks, such as the last layer of a cross-encoder, starts at random."""
    library, folder = require("sentence_transformers", "answers"), find_checkpoint(name)
    check_encoder_folder(folder)
    place = choose_device(device)
    # on a CPU, eager attention with bfloat16 trains 1.7 times faster than the fused one
    attention = {"attn_implementation": "eager"} if place.type == "cpu" else {}
    options = {"device": str(place), "trust_remote_code": False, "local_files_only": True}
    options["model_kwargs"] = {"use_safetensors": True, **attention}
    try:
        with _quiet():
            if kind == "cross":
                return library.CrossEncoder(str(folder), num_labels=1, max_length=max_length, **options)
            network = library.SentenceTransformer(str(folder), **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelFileError(folder, f"no language model ({reason})") from error
    network.max_seq_length = max_length
    return network


def save_network(network: Any, folder: str | Path, description: Mapping[str, object]) -> None:
    """Write a language model and what the search must know of it."""
    folder = Path(folder)
    (folder / DESCRIPTION).unlink(missing_ok=True)  # a model that is written half is none
    with _quiet():
        network.save_pretrained(str(folder), create_model_card=False)
    write_saved(folder / DESCRIPTION, str(description["model"]), {**description, "files": sums_of(folder)})


def read_description(folder: str | Path, model: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Read what :func:`save_network` wrote beside a language model."""
    path = Path(folder) / DESCRIPTION
    try:
        content = read_saved(path, model)
        if (found := field(content, "model", str)) != model:
            raise ValueError(f"it is a {found:.80}")
        for name, rule in rules.items():
            rule.check(name, field(content, name, object))
        return content
    except UNREADABLE as error:
        advice = f"Give a folder that {model}.save() wrote."
        raise ModelFileError(path, f"no {model} ({reason_of(error)})", advice) from error


def two_step_faults(folder: Path) -> Iterator[MathAMRError]:
    """Compare the files of a model with their checksums, and yield what is wrong."""
    try:
        content = read_saved(folder / DESCRIPTION)
        sums = field(content, "files", dict) if content["format"] == FORMAT else {}
    except UNREADABLE as error:
        yield ModelFileError(folder / DESCRIPTION, reason_of(error))
        return
    yield from sum_faults(folder, sums)


class WeightsDigest:
    """The digest of a network's weights, taken again only after one of them was written."""

    def __init__(self) -> None:
        self._stamp: tuple[object, ...] = ()
        self._digest, self._weights = "", list[Any]()

    def of(self, network: Any, said: str) -> str:
        """Return 32 hexadecimal digits."""
        weights = sorted(network.state_dict(keep_vars=True).items())
        written = [(id(value), value._version, value.data_ptr(), value.dtype) for _, value in weights]
        if (said, *written) != self._stamp:
            digest = hashlib.sha256(said.encode())
            for name, value in weights:
                digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
            self._stamp, self._digest = (said, *written), digest.hexdigest()[:32]
            self._weights = [value for _, value in weights]  # kept, so that no other tensor gets their ids
        return self._digest


def mixed(network: Any) -> AbstractContextManager[Any]:
    """Return the context in which a language model computes in bfloat16, where its processor multiplies in it."""
    return in_precision(network.device, "auto")


@contextmanager
def _quiet() -> Iterator[None]:
    """Load or save without bars, and without the report of layers that start at random, which the docstring tells."""
    loggers = [logging.getLogger(name) for name in ("transformers", "sentence_transformers")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with without_bars():
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

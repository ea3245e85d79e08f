"""Models joined into one: each row is that of every part, side by side.

::

    row = [ √s₀ r₀ | √s₁ r₁ | … ]        s: the shares, together 1;  r: the unit row of the same virtual node by a part
    row · row' = s₀ r₀ · r₀' + s₁ r₁ · r₁' + …

A row stays a unit vector, so that one index, one search and one score do what several models and a fusion of their
rankings would do, and a question's row finds the document's row that is nearest by all parts together. Models that err
differently gain most: one of word vectors and message passing, one of exact symbols and edges.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, Vocabulary
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.config.options import ScoreOptions
from pyterrier_mathamr.model.encoder.in_batches import Embeddings
from pyterrier_mathamr.model.mathamr import MathAMR, vectors_by
from pyterrier_mathamr.model.saving.files import stored_dtype
from pyterrier_mathamr.model.saving.places import BUNDLED, folder_name
from pyterrier_mathamr.model.saving.saved_model import check_new_folder
from pyterrier_mathamr.model.variants.score_weights import ScoreWeights, with_weights
from pyterrier_mathamr.model.variants.text import TextEncoder
from pyterrier_mathamr.store import new_folder

from .files import Joint, joined_faults, part_folders, read_joint


class JoinedMathAMR(MathAMR):
    """Several models as one, whose rows are theirs side by side.

    It encodes, searches, scores, explains, is saved and opened as every model; its score weights are best fitted anew
    (:func:`fit_score_weights`). Until then they are the mean of those of the parts. It is not trained further: its
    parts are.

    Args:
        models: two or more with the same kinds of rows (``formulas`` and ``virtual_nodes``).
        shares: what each counts in the product of two rows, above 0; the same by default. They are divided by their
            sum.
        score: the weights of rows in a score.

    Attributes:
        parts: the models.
        shares: of each; together 1.
        config: the kinds of rows, ``projection`` (the width of a whole row) and the score weights; everything else is
            in the configurations of the parts.

    Raises:
        ConfigError: too few models, models with other kinds of rows, or shares that are not as many or not above 0.

    Example::

        joined = JoinedMathAMR([mathamr.MathAMR.from_pretrained("mathamr-plus-mini"), model])
        pipeline = mathamr.GraphBuilder() >> joined.query_encoder() >> index.colbert()
    """

    def __init__(
        self, models: Sequence[MathAMR], shares: Sequence[float] | None = None, *, score: ScoreOptions | None = None
    ) -> None:
        self.parts = _checked(tuple(models))
        self.shares = _shares(shares, len(self.parts))
        self.config = _config(self.parts, self.shares, score)
        self.text = self.parts[0].text
        self._folder: Path | None = None
        self._vocabulary, self._weights, self._manifest, self._encoders = None, None, None, {}

    @classmethod
    def opened(cls, folder: Path, *, text: TextEncoder | None = None) -> JoinedMathAMR:
        """Open the joined model in a folder; see :meth:`MathAMR.from_pretrained`."""
        joint = read_joint(folder)
        parts = [MathAMR.from_pretrained(part, text=text) for part in joint.folders(folder)]
        model = cls(parts, joint.shares, score=joint.score)
        model._folder = folder.absolute()
        return model

    def save(self, path: str | Path, *, dtype: str | None = None) -> None:
        """Write the model to a new folder, atomically; see :meth:`MathAMR.save`.

        A part that comes with the package is named, not copied, unless ``dtype`` asks for another than its own.
        """
        target = check_new_folder(path)
        bundled = tuple(_bundled(part, dtype) for part in self.parts)
        with new_folder(target) as unfinished:
            folders = part_folders(unfinished, len(self.parts))
            identities = [part.identity for part in self.parts]
            for number, (part, folder) in enumerate(zip(self.parts, folders, strict=True)):
                if bundled[number] is None:
                    part.save(folder, dtype=dtype)
                    identities[number] = MathAMR.from_pretrained(folder).identity
            Joint(self.shares, tuple(identities), bundled, self.config.score).write(unfinished)

    def verify(self) -> None:
        """Read the files of all parts and compare every checksum; see :meth:`MathAMR.verify`."""
        if self._folder is not None:
            for fault in joined_faults(self._folder):
                raise fault

    def encode(
        self, graphs: Sequence[MathAMRGraph], *, device: str | None = None, verbose: bool = False
    ) -> list[Embeddings]:
        """Encode posts by each part; see :meth:`MathAMR.encode`."""
        encoded = [part.encode(graphs, device=device, verbose=verbose) for part in self.parts]
        lengths = np.sqrt(np.asarray(self.shares)).astype(np.float32)
        return [
            np.concatenate([length * rows for length, rows in zip(lengths, of_parts, strict=True)], axis=1)
            for of_parts in zip(*encoded, strict=True)
        ]

    @property
    def identity(self) -> str:
        """Sha256 of the parts, their shares and the score weights, equal for a model and its saved copy."""
        return _hash([[part.identity for part in self.parts], self.shares, self.config.essence])

    def with_score_weights(self, weights: ScoreWeights) -> JoinedMathAMR:
        """Return a model that encodes as this one does and scores with ``weights``; see :func:`fit_score_weights`."""
        return JoinedMathAMR(self.parts, self.shares, score=with_weights(self.config, weights).score)

    @cached_property
    def _vectors_by(self) -> str:
        parts = [vectors_by(part).rpartition("@")[2] for part in self.parts]
        return f"{folder_name(self._folder)}@{_hash([parts, self.shares])[:16]}"

    @property
    def vocabulary(self) -> Vocabulary:
        """There is none: each part has its own."""
        _refuse("vocabulary")

    def weights(self) -> dict[str, Tensor]:
        """Refuse: each part has its own weights."""
        _refuse("weights")

    def encoder(self, device: str | None = None) -> nn.Module:
        """Refuse: each part has its own network."""
        _refuse("encoder")

    def encode_tensors(
        self, graphs: Sequence[GraphTensors], *, device: str | None = None, verbose: bool = False
    ) -> list[Embeddings]:
        """Refuse: arrays are made with the vocabulary of one part."""
        _refuse("encode_tensors")

    def __repr__(self) -> str:
        if self._folder is None:
            return f"JoinedMathAMR({list(self.parts)!r}, {list(self.shares)!r})"
        return f"MathAMR.from_pretrained({self._opened_by()})"


def _bundled(part: MathAMR, dtype: str | None) -> str | None:
    """Return the name of a part that comes with the package and is saved as it is there."""
    folder = part._folder
    kept = folder is not None and folder.parent == BUNDLED and dtype in (None, stored_dtype(folder))
    return folder.name if folder is not None and kept else None


def _checked(models: tuple[MathAMR, ...]) -> tuple[MathAMR, ...]:
    """Refuse models whose rows are not those of the same virtual nodes."""
    if len(models) < 2 or any(isinstance(model, JoinedMathAMR) for model in models):
        raise ConfigError("models", list(models), "two or more models, none of them joined")
    for name in ("formulas", "virtual_nodes"):
        kinds = {getattr(model.config, name) for model in models}
        if len(kinds) > 1:
            raise ConfigError("models", sorted(kinds), f"models with the same {name}")
    return models


def _shares(given: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """Divide shares by their sum, unless that is 1 already."""
    shares = (1.0,) * count if given is None else tuple(map(float, given))
    if len(shares) != count or not all(0 < share < np.inf for share in shares):
        raise ConfigError("shares", given, f"{count} numbers above 0, one for each model")
    total = sum(shares)
    return shares if abs(total - 1) < 1e-9 else tuple(share / total for share in shares)


def _config(parts: Sequence[MathAMR], shares: Sequence[float], score: ScoreOptions | None) -> MathAMRConfig:
    """Describe the rows of a joined model, and how they are weighted."""
    first = parts[0].config
    config = MathAMRConfig(
        formulas=first.formulas,
        virtual_nodes=first.virtual_nodes,
        projection=sum(part.config.projection for part in parts),
        beta=first.training.beta,
        normalise_scores=first.training.normalise_scores,
    )
    if score is not None:
        return config.replace(score=score)
    weights = [part.score_weights for part in parts]
    if all(one is None for one in weights):
        return config
    known = [one or ScoreWeights() for one in weights]
    if len({one.means for one in known}) > 1:
        raise ConfigError("models", list(parts), "models with the same kind_means, or give score=")
    mean = np.average([[one.formula, one.sentence, one.document, one.blend] for one in known], axis=0, weights=shares)
    return with_weights(config.replace(kind_means=known[0].means), ScoreWeights(*mean.tolist()))


def _hash(content: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _refuse(name: str) -> NoReturn:
    raise ConfigError("model", "a joined one", f"one of its parts, which have {name}")

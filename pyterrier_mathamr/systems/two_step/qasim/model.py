"""QASim: how well an answer fits a question, by a language model that reads both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size
from pyterrier_mathamr.systems.two_step.bi_losses import InMixedPrecision
from pyterrier_mathamr.systems.two_step.networks import (
    TOKENS,
    Kind,
    WeightsDigest,
    load_network,
    read_description,
    save_network,
)
from pyterrier_mathamr.systems.two_step.texts import Form, Row, answer_text, question_text
from pyterrier_mathamr.systems.two_step.training import Epoch, FitOptions, fit_network

from .losses import BiLosses, CrossLosses, Example, Loss, cross_logits, random_batches, split_folds
from .scorer import QASimScorer

TARGETS = (0.0, 0.5, 1.0, 1.0)
"""What is learned for the grades 0 to 3, as published: chosen there by a grid search."""

_BUDGET = 8_192  # tokens of a batch
_TOLD = {"kind": one_of(*get_args(Kind)), "form": one_of(*get_args(Form)), "max_length": TOKENS}


class QASim:
    """A model of question and answer whose score, 0 to 1, says how well the answer fits.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1 and eq.
    5.3. Title and body of the question and the answer are read together, 128 tokens in all.

    Args:
        network: a ``CrossEncoder`` with one label or, of ``kind="bi"``, a ``SentenceTransformer``; :meth:`new` and
            :meth:`from_pretrained` load one.
        kind: ``cross``, or ``bi``, to which both losses of the paper's text apply; its score is (1 + cosine) / 2.
        form: ``raw`` text with LaTeX, or linearised ``mathamr`` graphs, of bodies alone.

    Raises:
        ConfigError: the kind or the form is unknown.

    Example::

        qasim = QASim.new("all-MiniLM-L6-v2")
        pipeline = questions >> threads.answers() >> threads.text_loader() >> qasim.scorer() >> TimesQQ()
    """

    def __init__(self, network: Any, kind: Kind = "cross", form: Form = "raw") -> None:
        one_of(*get_args(Kind)).check("kind", kind)
        one_of(*get_args(Form)).check("form", form)
        self.network, self.kind, self.form, self._digest = network, kind, form, WeightsDigest()

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        kind: Kind = "cross",
        form: Form = "raw",
        *,
        max_length: int = 128,
        device: str | None = None,
        seed: int = 0,
    ) -> QASim:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder or a name; the paper's is ``hf:cross-encoder/ms-marco-TinyBERT-L-6``. Of an encoder that
                is no cross-encoder, the last layer starts at random.
            kind: see the class.
            form: likewise.
            max_length: tokens of question and answer together, of ``kind="bi"`` of each.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            seed: of a last layer that starts at random.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        one_of(*get_args(Kind)).check("kind", kind)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(load_network(backbone, kind, max_length, device), kind, form)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str | None = None) -> QASim:
        """Load a model that :meth:`save` wrote.

        Raises:
            ModelFileError: the folder holds none.
        """
        told = read_description(folder, cls.__name__, _TOLD)
        return cls(load_network(folder, told["kind"], told["max_length"], device), told["kind"], told["form"])

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder."""
        told = {"kind": self.kind, "form": self.form, "max_length": self.max_length}
        save_network(self.network, folder, {"model": type(self).__name__, **told})

    @property
    def max_length(self) -> int:
        """Most tokens of an input."""
        return int(self.network.max_length if self.kind == "cross" else self.network.max_seq_length)

    def question(self, row: Row) -> str:
        """Write what the model reads of a question: title and body, or its linearised graph."""
        return question_text(row, "whole", self.form)

    def answer(self, row: Row) -> str:
        """Write what the model reads of an answer."""
        return answer_text(row, self.form)

    def fit(
        self,
        examples: Sequence[tuple[str, str, float]],
        options: FitOptions | None = None,
        *,
        loss: Loss = "bce",
        folds: int | None = 10,
        fold: int = 0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on questions, answers and targets.

        The paper names a contrastive and a ranking loss, which do not take a target of .5: by default the loss is
        ``BinaryCrossEntropyLoss`` on the targets, and ``"bce+mnrl"`` takes turns with ``MultipleNegativesRankingLoss``
        on what has the target 1. A bi-encoder has the two losses of :class:`QQSim`; a target of .5 is left out.

        Args:
            examples: question, answer, target 0 to 1; of a grade ``TARGETS[grade]``.
            options: of the training; by default 50 epochs in batches of 64, as published.
            loss: see above.
            folds: the questions are divided into so many; ``None`` holds none out, and the last epoch is kept. A
                question is in one fold with all of its answers.
            fold: the one that is held out, the same in each epoch; the best epoch by its loss is kept.
            verbose: show progress.

        Returns:
            What each epoch came to.

        Raises:
            TrainingError: there is nothing to train on.
            ConfigError: an option is out of its range, or a target is not between 0 and 1.
        """
        one_of(*get_args(Loss)).check("loss", loss)
        options = options or FitOptions(epochs=50)
        known = [Example(*example) for example in examples]
        if any(not 0 <= example.target <= 1 for example in known):
            raise ConfigError("examples", "a target", "targets between 0 and 1, such as TARGETS[grade]")
        training, held_out = split_folds(known, folds, fold)
        if not training:
            raise TrainingError(f"{len(known)} examples leave nothing to train on")
        losses = BiLosses(self.network) if self.kind == "bi" else CrossLosses(self.network, loss)
        batches = partial(random_batches, training, options.batch_size)
        validate = partial(losses.held_out, held_out, options.batch_size) if held_out else None
        return fit_network(self.network, batches, losses.of_batch, options, validate, verbose=verbose)

    def scores(self, pairs: Sequence[tuple[str, str]], *, verbose: bool = False) -> npt.NDArray[np.float64]:
        """Score pairs of question and answer, in batches of similar lengths.

        Args:
            pairs: the texts, as :meth:`question` and :meth:`answer` write them.
            verbose: show progress.

        Returns:
            float64 ``[n]``, 0 to 1.
        """
        network, found = self.network.eval(), np.zeros(len(pairs))
        sizes = [min(self.max_length, 2 + sum(map(len, pair)) // 3) for pair in pairs]  # about three letters a token
        for members in progress(batches_by_size(sizes, _BUDGET), "QASim", "batches", verbose=verbose):
            with torch.inference_mode():
                found[members] = self._score(network, [pairs[i] for i in members])
        return found

    def identity(self) -> str:
        """Return the digest of the weights."""
        return f"qasim:{self._digest.of(self.network, f'{self.kind} {self.form} {self.max_length}')}"

    def scorer(self, *, batch_size: int = 256, verbose: bool = False) -> QASimScorer:
        """Return the transformer that scores a ranking; see :class:`QASimScorer`."""
        return QASimScorer(self, batch_size=batch_size, verbose=verbose)

    def _score(self, network: Any, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float64]:
        if self.kind == "cross":
            scores = torch.sigmoid(cross_logits(network, pairs))
        else:
            left, right = (InMixedPrecision(network).vectors([pair[side] for pair in pairs]) for side in (0, 1))
            scores = (1 + torch.nn.functional.cosine_similarity(left, right)) / 2
        found: npt.NDArray[np.float64] = scores.double().cpu().numpy()
        return found

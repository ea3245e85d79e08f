"""QQSim: how similar two questions are, by the vectors of a language model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.transformers import Side

from .bi_encoder import BiEncoder
from .networks import Epoch, FitOptions, Pair, PairLosses, load_network, random_batches
from .texts import Form, Row, View, question_text

_TEXTS = {"raw": ("title", "body", "html", "query"), "mathamr": ("query_graph", "graph")}


_LENGTHS: dict[View, int] = {"title": 128, "head": 128, "tail": 128, "whole": 256}


class QQSim(BiEncoder):
    """A bi-encoder of questions: one vector of unit length for the title, or the head or tail of the body.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1. The
    figure there shows a cross-encoder; but a million questions are ranked, and the losses are for bi-encoders, so this
    is a bi-encoder, and the similarity is the cosine. Title, head and tail are three models, each initialized from the
    model of :meth:`fit` on whole questions, and :class:`~pyterrier_mathamr.fusion.ModifiedRRF` fuses their rankings.

    Args:
        network: a ``SentenceTransformer``; :meth:`new` and :meth:`from_pretrained` load one.
        view: the part of a question that it reads: ``title``, ``head`` or ``tail`` of the body, or ``whole``: both.
        form: ``raw`` text with LaTeX, or linearized ``mathamr`` graphs.

    Raises:
        ConfigError: the view or the form is unknown.

    Example::

        titles = QQSim.new("all-MiniLM-L6-v2", view="title")
        (titles.doc_encoder() >> index.indexer()).index([{"docno": "q1", "title": "Roots of $x^2$", "body": "How?"}])
        pipeline = titles.query_encoder() >> index.single_vector()
    """

    label = "QQSim"
    OPTIONS = {"view": one_of(*get_args(View)), "form": one_of(*get_args(Form))}  # noqa: RUF012
    view: View
    form: Form

    def __init__(self, network: Any, view: View = "title", form: Form = "raw") -> None:
        super().__init__(network, view=view, form=form)
        network.tokenizer.truncation_side = "left" if view == "tail" else "right"

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        view: View = "title",
        form: Form = "raw",
        *,
        max_length: int | None = None,
        device: str | None = None,
    ) -> QQSim:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder, such as another model of questions, or a name. The paper's is the Sentence-BERT
                ``hf:sentence-transformers/distilbert-base-nli-stsb-quora-ranking``.
            view: the part of a question that it reads: ``title``, ``head`` or ``tail`` of the body, or ``whole``: both.
            form: ``raw`` text with LaTeX, or linearized ``mathamr`` graphs.
            max_length: tokens; ``None`` for 128, or 256 for whole questions (265 is printed).
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        cls.OPTIONS["view"].check("view", view)
        return cls(load_network(backbone, "bi", max_length or _LENGTHS[view], device), view, form)

    def text_columns(self, side: Side) -> Sequence[str]:
        """List the columns that the form is read from."""
        return _TEXTS[self.form]

    def row_text(self, row: Row, side: Side) -> str:
        """Return the text of a ``row``, which is a question on either ``side``; see :meth:`text`."""
        return self.text(row)

    def text(self, row: Row) -> str:
        """Write the input of the model for a question; see :func:`~.texts.question_text`."""
        return question_text(row, self.view, self.form)

    def fit(
        self,
        pairs: Sequence[Pair],
        options: FitOptions | None = None,
        *,
        known: Collection[Pair] = (),
        validation: Sequence[Pair] = (),
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on pairs of similar questions, with as many random pairs as negatives.

        The two losses alternate, a batch each: ``OnlineContrastiveLoss(margin=0.5)`` on the batch's pairs and its
        negatives, and ``MultipleNegativesRankingLoss(scale=20)`` on the pairs. (The published formulas lack a
        logarithm and the positive pair of the denominator, and have a_i for a_j.)

        Args:
            pairs: texts, as :meth:`text` writes them; pairs with an empty text are left out.
            options: of the training; by default 20 epochs in batches of 64, as published.
            known: further similar pairs, which are never negatives.
            validation: held-out pairs; the best epoch by their ranking loss is kept.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            verbose: show progress.

        Returns:
            The losses of each epoch.

        Raises:
            TrainingError: there is no pair.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        options = options or FitOptions(epochs=20)
        useful = [pair for pair in pairs if all(map(str.strip, pair))]
        if not useful:
            raise TrainingError("no pair of questions has two texts to train on")
        losses = PairLosses(self.network)
        batches = partial(random_batches, useful, {*pairs, *known}, options.batch_size)
        held_out = [pair for pair in validation if all(map(str.strip, pair))]
        validate = partial(losses.held_out, held_out, options.batch_size) if held_out else None
        return self._train(
            batches,
            losses.of_batch,
            validate,
            options,
            (useful, sorted({*pairs, *known}), held_out),
            checkpoint=checkpoint,
            fresh=fresh,
            save_every=save_every,
            verbose=verbose,
        )

"""A training batch: the graphs of its posts, and what their rows are compared by.

::

    graphs  [ B questions | B answers | H hard negatives | sub-expressions, see subexpression.Expressions ]
              └───────── noise: sentences, nodes and edges dropped ──────┘
    rows    [ rows of each graph, end to end ]  ──▶  β L_MaxSim + (1 - β) L_doc        over B × (B + H) scores
                                                     + formula_contrast · L_formula
                                                     + subexpression · L_sub

Validation compares the B questions with the B answers alone, without noise, so that its loss means the same whatever
is trained beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyterrier_mathamr.graph import MASK_ID, GraphBatch, Vocabulary, collate
from pyterrier_mathamr.model.config import MathAMRConfig

from .augment import augment, drop_sentences
from .formula_contrast import formula_contrast
from .formula_trees import formula_keys, formulas_of
from .losses import ContrastiveLoss
from .pairs import Answers, Pair
from .subexpression import draw_expressions, subexpression_contrast
from .training_files import Tensors


@dataclass(frozen=True, eq=False)
class Batch:
    """B pairs and what goes with them.

    Attributes:
        pairs: the pairs.
        others: H hard negatives.
        graphs: all graphs, on the CPU, as the module draws them.
        keys: int64, which formula each row of the posts stands for; ``None`` where formulas are not compared.
        expressions: N of the sub-expressions, 0 where there are none.
    """

    pairs: list[Pair]
    others: list[str]
    graphs: GraphBatch
    keys: Tensor | None = None
    expressions: int = 0


class BatchMaker:
    """Makes batches under a configuration.

    Args:
        config: noise, and what is compared.
        vocabulary: that of the arrays.
        tensors: the arrays of each post.
    """

    def __init__(self, config: MathAMRConfig, vocabulary: Vocabulary, tensors: Tensors) -> None:
        self.config, self.vocabulary, self.tensors = config, vocabulary, tensors

    def make(self, pairs: list[Pair], others: Sequence[str] = (), noise: torch.Generator | None = None) -> Batch:
        """Put the graphs of a batch end to end.

        Args:
            pairs: B pairs.
            others: H hard negatives.
            noise: the source of chance in training; ``None`` for validation.
        """
        names = [*(question for question, _ in pairs), *(answer for _, answer in pairs), *others]
        posts = self.tensors.get_many(names)
        graphs = collate(posts)
        if noise is None:
            return Batch(pairs, list(others), graphs)
        config, keys, expressions = self.config, None, None
        if config.formula_contrast > 0 or config.subexpression > 0:
            formulas = [formulas_of(post, self.vocabulary) for post in posts]
            if config.formula_contrast > 0:
                keys = torch.from_numpy(np.concatenate(list(map(formula_keys, posts, formulas))))
            if config.subexpression > 0:
                expressions = draw_expressions(formulas[: 2 * len(pairs)], self.vocabulary, noise)
        if config.sentence_dropout > 0:
            graphs, kept = drop_sentences(graphs, config.sentence_dropout, noise)
            keys = None if keys is None else keys[kept]
        graphs = augment(graphs, MASK_ID, node_mask=config.node_mask, edge_dropout=config.edge_dropout, generator=noise)
        if expressions is None:
            return Batch(pairs, list(others), graphs, keys)
        return Batch(pairs, list(others), graphs.join(expressions.graphs), keys, expressions.formulas)


def batch_loss(config: MathAMRConfig, loss: ContrastiveLoss, batch: Batch, rows: Tensor, answers: Answers) -> Tensor:
    """Compute the loss of a batch.

    Args:
        config: the weights of what is compared beside whole posts.
        loss: compares whole posts; its temperature is that of the formulas, too.
        batch: whose rows they are.
        rows: float32 ``[r, d]``, unit rows of all its graphs.
        answers: what is known to be right.

    Returns:
        A scalar.
    """
    posts = _posts(batch, rows, answers)
    queries, query_spans, documents, spans, allowed = posts
    middle, end = len(queries), len(queries) + len(documents)
    total: Tensor = loss(*posts, batch.graphs.kinds[:middle].to(rows.device))
    if batch.keys is not None:
        keys = batch.keys.to(rows.device)
        contrast = formula_contrast(
            queries, query_spans, keys[:middle], documents, spans, keys[middle:end], loss.temperature, allowed
        )
        total = total + config.formula_contrast * contrast
    if batch.expressions:
        starts = batch.graphs.offsets[2 * len(batch.pairs) + len(batch.others) :].to(rows.device)
        drawn = subexpression_contrast(rows[end:], starts - end, batch.expressions)
        total = total + config.subexpression * drawn
    return total


class ValidationLoss(NamedTuple):
    """The mean loss of validation pairs.

    Attributes:
        loss: β L_MaxSim + (1 - β) L_doc.
        maxsim: L_MaxSim, whatever its weight.
        document: L_doc, likewise; that of the last row where a post has no document vector.
    """

    loss: float
    maxsim: float
    document: float


def validation_loss(loss: ContrastiveLoss, batch: Batch, rows: Tensor, answers: Answers) -> ValidationLoss:
    """Compare whole posts alone; see :func:`batch_loss`."""
    posts = _posts(batch, rows, answers)
    maxsim = loss.maxsim_loss(*posts, batch.graphs.kinds[: len(posts[0])].to(rows.device)).item()
    document = loss.document_loss(*posts).item()
    return ValidationLoss(loss.beta * maxsim + (1 - loss.beta) * document, maxsim, document)


def _posts(batch: Batch, rows: Tensor, answers: Answers) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Give the rows of questions and documents, each with its offsets, and who may count against whom."""
    size, posts = len(batch.pairs), 2 * len(batch.pairs) + len(batch.others)
    offsets = batch.graphs.offsets.to(rows.device)
    middle, end = int(batch.graphs.offsets[size]), int(batch.graphs.offsets[posts])
    allowed = answers.allowed(batch.pairs, batch.others).to(rows.device)
    return rows[:middle], offsets[: size + 1], rows[middle:end], offsets[size : posts + 1] - middle, allowed

"""Formula-level contrast: each formula of a question looks for the answer that it stands in, by formulas alone.

The objective of MathAMR+ (eq. 3.6) compares whole posts; a formula's vector, by which Task 2 searches, is trained by it
only as one row of many. Here it is compared as Task 2 compares it, one formula row with other formula rows::

    question i   f₁ f₂                    s(f, j) = max over the formulas g of answer j of f · g
    answers      [g g] [g g g] [] [g]     ℓ(f) = -log exp(s(f, i)/τ) / Σⱼ exp(s(f, j)/τ)      as eq. 3.6, by formula

An answer that holds the very same formula is no negative of it: ``x`` stands everywhere and says nothing.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor

from pyterrier_mathamr.model.encoder.maxsim import maxsim_matrix
from pyterrier_mathamr.model.errors import ShapeError


def formula_contrast(
    queries: Tensor,
    query_offsets: Tensor,
    query_keys: Tensor,
    rows: Tensor,
    offsets: Tensor,
    keys: Tensor,
    temperature: Tensor | float,
    allowed: Tensor | None = None,
) -> Tensor:
    """Compute the mean over questions of the mean over their formulas of ℓ(f).

    Formulas whose own answer has no formula, or that have no negative, have no part in it.

    Args:
        queries: float32 ``[q_total, d]``, unit rows of B questions end to end.
        query_offsets: int64 ``[B + 1]``.
        query_keys: int64 ``[q_total]``, which formula each row stands for; negative for rows that are none.
        rows: float32 ``[r, d]``, unit rows of m >= B documents end to end; document i is the answer of question i.
        offsets: int64 ``[m + 1]``.
        keys: int64 ``[r]``, as ``query_keys``.
        temperature: τ, above 0.
        allowed: bool ``[B, m]``; where false, document j is no negative of any formula of question i.

    Returns:
        A scalar; 0 where no formula has a part.

    Raises:
        ShapeError: keys or ``allowed`` have another shape.
    """
    _check(query_keys, queries, "query_keys")
    _check(keys, rows, "keys")
    questions, documents = query_offsets.numel() - 1, offsets.numel() - 1
    if allowed is not None and allowed.shape != (questions, documents):
        raise ShapeError("allowed", tuple(allowed.shape), f"[{questions}, {documents}]")
    asked, question = _formula_rows(query_keys, query_offsets)  # [f] rows, and their questions
    offered, document = _formula_rows(keys, offsets)
    if asked.numel() == 0 or offered.numel() == 0:
        return rows.new_zeros(())
    spans = F.pad(torch.bincount(document, minlength=documents).cumsum(0), (1, 0))
    each = torch.arange(asked.numel() + 1, device=rows.device)
    scores = maxsim_matrix(queries[asked], each, rows[offered], spans)  # [f, m]
    blocked = _holds(query_keys[asked], keys[offered], document, documents)  # [f, m]
    if allowed is not None:
        blocked = blocked | ~allowed[question]
    blocked = blocked.scatter(1, question.unsqueeze(1), False) | torch.isneginf(scores)
    partnered = ~blocked.gather(1, question.unsqueeze(1)).squeeze(1) & ((~blocked).sum(1) > 1)
    # Divided before it is masked: the temperature's gradient multiplies scores, and infinity times zero is no number.
    logits = (scores.masked_fill(blocked, 0.0) / temperature).masked_fill(blocked, -math.inf)
    logits, question = logits[partnered], question[partnered]
    if question.numel() == 0:
        return rows.new_zeros(())
    losses = F.cross_entropy(logits, question, reduction="none")  # [f]
    formulas = torch.bincount(question, minlength=questions)
    return (losses / formulas[question]).sum() / (formulas > 0).sum()


def _formula_rows(keys: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Find the rows that stand for formulas, int64 ``[f]``, and the post of each, int64 ``[f]``."""
    posts = torch.repeat_interleave(torch.arange(offsets.numel() - 1, device=keys.device), offsets.diff())
    rows = torch.nonzero(keys >= 0).squeeze(1)
    return rows, posts[rows]


def _holds(asked: Tensor, offered: Tensor, document: Tensor, documents: int) -> Tensor:
    """Tell which documents hold the very formula that is asked for: bool ``[f, m]``."""
    distinct, number = torch.unique(torch.cat([asked, offered]), return_inverse=True)
    table = torch.zeros(distinct.numel(), documents, dtype=torch.bool, device=asked.device)
    table[number[asked.numel() :], document] = True
    return table[number[: asked.numel()]]


def _check(keys: Tensor, rows: Tensor, name: str) -> None:
    if keys.shape != rows.shape[:1]:
        raise ShapeError(name, tuple(keys.shape), f"[{rows.size(0)}], one for each row")

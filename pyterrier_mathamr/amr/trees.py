"""Scores of arcs to a dependency tree: the best head for each token, then cycles and second roots are undone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def tree_heads(scores: npt.NDArray[np.float32]) -> list[int]:
    """Choose heads that form a tree with one root.

    Args:
        scores: float32 ``[n, n + 1]``, row for the dependent, column for the head; column 0 is the root.

    Returns:
        The head of each token, -1 for the root. Where the best heads form a tree, it is that; otherwise each cycle is
        broken at the arc that costs least.
    """
    heads = [int(head) - 1 for head in scores.argmax(axis=1)]
    roots = [token for token, head in enumerate(heads) if head < 0]
    if not roots:
        root = int(scores[:, 0].argmax())
        heads[root] = -1
    elif len(roots) > 1:
        root = max(roots, key=lambda token: (scores[token, 0], -token))
        for token in roots:
            if token != root:
                _move(token, heads, scores)
    while cycle := _cycle(heads):
        best = max(cycle, key=lambda token: (_gain(token, cycle, scores), -token))
        _move(best, heads, scores)
    return heads


def _gain(token: int, cycle: set[int], scores: npt.NDArray[np.float32]) -> float:
    """What changing a token's head to one outside the cycle gains (below zero: costs)."""
    row = scores[token, 1:].copy()
    row[list(cycle)] = -np.inf
    return float(row.max() - scores[token].max()) if len(row) > len(cycle) else -np.inf


def _move(token: int, heads: list[int], scores: npt.NDArray[np.float32]) -> None:
    """Give a token the best head that is not below it."""
    below = {token}
    grown = True
    while grown:
        more = {i for i, head in enumerate(heads) if head in below} - below
        below |= more
        grown = bool(more)
    row = scores[token, 1:].copy()
    row[list(below)] = -np.inf
    heads[token] = int(row.argmax())


def _cycle(heads: list[int]) -> set[int]:
    """A cycle among the heads, or nothing."""
    state = [0] * len(heads)  # 0 not seen, else the walk that saw it
    for start in range(len(heads)):
        token = start
        while token >= 0 and not state[token]:
            state[token] = start + 1
            token = heads[token]
        if token >= 0 and state[token] == start + 1:
            cycle = {token}
            step = heads[token]
            while step != token:
                cycle.add(step)
                step = heads[step]
            return cycle
    return set()

"""Fitting the weights of a trained model's score (:class:`.exact.ScoreWeights`).

In-batch training sees too few wrong answers at a time to move such scalars, so :func:`fit_score_weights` fits them by
softmax over many answers at once. The sums of best matches are computed once for each question, answer and kind of
query row; the remaining problem is convex in four numbers. Formulas are the most numerous rows of a question, so
without weights they dominate the score.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.listwise import Features, fit_listwise
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import MathAMRGraph

from .encoding import Embeddings
from .errors import TrainingError
from .exact import ScoreWeights, row_kinds
from .losses import best_matches
from .mathamr import MathAMR
from .pairs import PairGraphs, Pairs, read_pairs, require_graphs

_MATCHES = 1 << 23  # best matches held at once: 32 MiB of float32


def fit_score_weights(
    model: MathAMR,
    pairs: Pairs,
    graphs: PairGraphs,
    *,
    blend: bool = True,
    max_questions: int = 3000,
    max_answers: int = 4000,
    seed: int = 42,
    device: str | None = None,
    verbose: bool = False,
) -> MathAMR:
    """Fit the weights of the kinds of query rows and of the product of the document vectors.

    The loss is a softmax over all answers of the pairs as candidates of each question; its other right answers are left
    out. As in training, ``normalise_scores`` divides scores by the question's rows, which changes no ranking. Memory
    is 16 bytes for each question and answer, 192 MB at the default limits.

    Args:
        model: a trained model; its score weights are not used.
        pairs: (question id, answer id), or a frame with ``qid`` and ``docno``; best pairs on which the model was not
            trained, since it fits its training pairs too well, especially by the document's vector.
        graphs: the graph of every id in the pairs.
        blend: whether the product of the document vectors also gets a weight.
        max_questions: if there are more, they are sampled.
        max_answers: if there are more, they are sampled; the right answers of the questions are always included.
        seed: of the samples.
        device: the device to encode on.
        verbose: show progress.

    Returns:
        The same model with the weights in its configuration.

    Raises:
        TrainingError: no kind of row distinguishes right answers from wrong ones.
        NothingToFitError: there are too few answers.

    Example::

        weighted = fit_score_weights(model, pairs, graph_store)
        weighted.save("my-model-weighted")
        pipeline = mathamr.GraphBuilder() >> weighted.query_encoder() >> index.colbert()
    """
    known = read_pairs(pairs)
    right: dict[str, list[str]] = {}  # answers by question
    for question, answer in known:
        right.setdefault(question, []).append(answer)
    if len(right) > max_questions:
        chosen = set(random.Random(seed).sample(list(right), max_questions))
        right = {question: answers for question, answers in right.items() if question in chosen}
    needed = dict.fromkeys(answer for answers in right.values() for answer in answers)
    others = [answer for answer in dict.fromkeys(answer for _, answer in known) if answer not in needed]
    room = max(0, max_answers - len(needed))
    candidates = [*needed, *(others if len(others) <= room else random.Random(seed).sample(others, room))]
    require_graphs(dict.fromkeys([*right, *candidates]), graphs)

    questions, answers = ([graphs[name] for name in names] for names in (right, candidates))
    features = score_features(model, questions, answers, device=device, verbose=verbose)
    if not blend or model.config.virtual_nodes == "none":
        features = features[:, :, :3]
    column = {name: i for i, name in enumerate(candidates)}
    marks = np.zeros((len(right), len(candidates)), dtype=bool)
    for mark, names in zip(marks, right.values(), strict=True):
        mark[[column[name] for name in names]] = True
    weights = fit_listwise(list(zip(features, marks, strict=True)))
    if not weights.any():
        raise TrainingError("no kind of virtual node distinguishes right answers of these pairs from wrong ones.")
    return model.with_score_weights(ScoreWeights(*weights.tolist()))


def score_features(
    model: MathAMR,
    questions: Sequence[MathAMRGraph],
    answers: Sequence[MathAMRGraph],
    *,
    documents: MathAMR | None = None,
    device: str | None = None,
    verbose: bool = False,
) -> Features:
    """Encode questions and answers and compute :func:`kind_sums`: float32 ``[b, m, 4]``, scaled as in training.

    Another model, whose vectors have the same space, may encode the answers.
    """
    queries = model.encode(questions, device=device, verbose=verbose)
    rows = (documents or model).encode(answers, device=device, verbose=verbose)
    kinds = [row_kinds(model.config, graph, len(query)) for graph, query in zip(questions, queries, strict=True)]
    features = kind_sums(queries, kinds, rows, verbose)
    if model.config.score.kind_means:
        counts = np.array([[max(of_query.count(kind), 1) for kind in range(3)] for of_query in kinds], np.float32)
        features[:, :, :3] /= counts[:, None]
    elif model.config.training.normalise_scores:
        features /= np.array([len(query) for query in queries], np.float32)[:, None, None]
    return features


def kind_sums(
    queries: Sequence[Embeddings],
    kinds: Sequence[Sequence[int]],
    documents: Sequence[Embeddings],
    verbose: bool = False,
) -> Features:
    """Sum the best matches of each kind of query row, and multiply the document vectors."""
    rows = torch.from_numpy(np.concatenate(documents))
    offsets = torch.from_numpy(np.cumsum([0, *map(len, documents)]))
    last = rows[offsets[1:] - 1]  # [m, d]
    sums = np.empty((len(queries), len(documents), 4), np.float32)
    parts = runs_within((len(query) * len(documents) for query in queries), _MATCHES)
    for part in progress(parts, "best matches", "parts", verbose=verbose):
        query_rows = torch.from_numpy(np.concatenate([queries[i] for i in part]))
        groups = torch.tensor([3 * number + kind for number, i in enumerate(part) for kind in kinds[i]])
        best = best_matches(query_rows, rows, offsets)  # [q of the part, m]
        total = torch.zeros(3 * len(part), len(documents)).index_add_(0, groups, best)
        sums[part, :, :3] = total.view(len(part), 3, -1).transpose(1, 2).numpy()
        ends = torch.from_numpy(np.cumsum([len(queries[i]) for i in part]) - 1)
        sums[part, :, 3] = (query_rows[ends] @ last.T).numpy()
    return sums

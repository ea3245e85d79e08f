"""The weights of each kind of query row in MaxSim and of the product of the document vectors, and how they are fitted.

::

    S(Q, D) = Σᵢ w_kind(i) maxⱼ qᵢ · dⱼ  +  a q_doc · d_doc

Plain MaxSim (MathAMR+, eq. 3.4) is w = 1 and a = 0; with ``kind_means`` w is divided by the number of the query's rows
of the kind. Formulas are the most numerous rows of a question, so without weights they dominate the score.

:func:`fit_score_weights` fits them for a trained model by softmax over many answers at once: in-batch training sees
too few wrong answers at a time to move such scalars. The sums of best matches are computed once for each question,
answer and kind of query row; the remaining problem is convex in four numbers. The model has the numbers in its
configuration, so they are saved, shown and part of the identity like every other option.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.listwise import Features, fit_listwise
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import MathAMRGraph

from .config import MathAMRConfig
from .errors import TrainingError

if TYPE_CHECKING:
    from .encoding import Embeddings
    from .mathamr import MathAMR
    from .pairs import PairGraphs, Pairs


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The numbers of the formula above.

    Attributes:
        formula, sentence, document: w of a query row of each kind.
        blend: a.
        means: divide w by the number of a query's rows of the kind.
    """

    formula: float = 1.0
    sentence: float = 1.0
    document: float = 1.0
    blend: float = 0.0
    means: bool = False

    @classmethod
    def of(cls, config: MathAMRConfig) -> ScoreWeights | None:
        """Return the weights that a model of this configuration searches with."""
        kinds, blend = config.score.kind_weights, config.score.document_blend
        if kinds == "none" and blend == "none" and not config.score.kind_means:
            return None
        formula, sentence, document = (1.0, 1.0, 1.0) if isinstance(kinds, str) else kinds
        number = (0.0 if blend == "none" else 1.0) if isinstance(blend, str) else blend
        return cls(float(formula), float(sentence), float(document), float(number), config.score.kind_means)

    def of_rows(self, kinds: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the weight of each row of a query, given the kinds of its rows."""
        kind = np.array(kinds, np.int64)
        weights = np.array([self.formula, self.sentence, self.document])[kind]
        return weights / np.bincount(kind)[kind] if self.means else weights


def row_kinds(config: MathAMRConfig, graph: MathAMRGraph, rows: int) -> list[int]:
    """Determine the kind of each row of a query; empty for a blank one."""
    formulas = graph.n_formulas if config.formulas != "none" else 0
    documents = min(rows, int(config.virtual_nodes != "none"))
    return [0] * formulas + [1] * (rows - formulas - documents) + [2] * documents


def legible(number: float) -> float:
    """Round to six digits: people read them."""
    return float(f"{number:.6g}")


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
    from .pairs import read_pairs, require_graphs

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


_MATCHES = 1 << 23
"""Best matches held at once: 32 MiB of float32."""


def kind_sums(
    queries: Sequence[Embeddings],
    kinds: Sequence[Sequence[int]],
    documents: Sequence[Embeddings],
    verbose: bool = False,
) -> Features:
    """Sum the best matches of each kind of query row, and multiply the document vectors."""
    import torch

    from .losses import best_matches

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

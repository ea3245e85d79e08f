"""How the weights of the score are found: by training, or for a trained model.

Training learns the weights that the configuration sets to ``learned``. The trained model has the numbers in its
configuration, so they are saved, shown and part of the identity like every other option.

:func:`fit_score_weights` fits them for a trained model by softmax over many answers at once: in-batch training sees
too few wrong answers at a time to move such scalars. The sums of best matches are computed once for each question,
answer and kind of query row; the remaining problem is convex in four numbers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.listwise import Features, fit_listwise
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import MathAMRGraph

from .batching import Embeddings
from .config import MathAMRConfig
from .encoder.maxsim import best_matches
from .errors import ModelError, TrainingError
from .pairs import Pair, PairGraphs, Pairs, read_pairs, require_graphs
from .score_weights import ScoreWeights, legible, row_kinds

if TYPE_CHECKING:
    from .mathamr import MathAMR


class LearnedWeights(nn.Module):
    """The weights in training: learned ones start at 1 and remain positive, numbers are fixed."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.means = config.score.kind_means
        start = ScoreWeights.of(config) or ScoreWeights()
        for name, option, value in (
            ("kinds", config.score.kind_weights, [start.formula, start.sentence, start.document]),
            ("blend", config.score.document_blend, start.blend),
        ):
            learned = nn.Parameter(torch.tensor(value).log()) if option == "learned" else None
            self.register_parameter(f"log_{name}", learned)
            fixed = None if isinstance(option, str) else torch.tensor(value)
            self.register_buffer(f"fixed_{name}", fixed, persistent=False)

    def of_rows(self, kinds: Tensor | None, offsets: Tensor) -> Tensor | None:
        """Return the weight of each query row, with gradient if it is learned."""
        weights = self._value("kinds")
        if weights is None and not self.means:
            return None
        if kinds is None:
            raise ModelError("kinds is required because this model weights the rows of queries: pass int64 [q_total].")
        of_kinds = torch.ones(3, device=kinds.device) if weights is None else weights
        if not self.means:
            return of_kinds[kinds]
        sizes = offsets.diff()
        group = 3 * torch.repeat_interleave(torch.arange(len(sizes), device=kinds.device), sizes) + kinds
        return of_kinds[kinds] / torch.bincount(group, minlength=3 * len(sizes))[group]

    @property
    def blend(self) -> Tensor | None:
        """a, a scalar, or ``None`` if the score is only MaxSim."""
        return self._value("blend")

    def _value(self, name: str) -> Tensor | None:
        logarithm: Tensor | None = getattr(self, f"log_{name}")
        fixed: Tensor | None = getattr(self, f"fixed_{name}")
        return fixed if logarithm is None else logarithm.exp()


def trained_config(config: MathAMRConfig, state: Mapping[str, Tensor]) -> MathAMRConfig:
    """Replace ``learned`` by the numbers that training found."""
    changes: dict[str, object] = {}
    for name, tensor in state.items():
        if name.endswith("weights.log_kinds"):
            changes["kind_weights"] = tuple(map(legible, tensor.exp().tolist()))
        elif name.endswith("weights.log_blend"):
            changes["document_blend"] = legible(tensor.exp().item())
    return config.replace(**changes) if changes else config


_MATCHES = 1 << 23
"""Best matches held at once: 32 MiB of float32."""


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
    own = _sample(known, max_questions, seed)
    answers = _candidates(known, own, max_answers, seed)
    require_graphs(dict.fromkeys([*own, *answers]), graphs)
    asked, found_in = ([graphs[name] for name in names] for names in (own, answers))
    features = score_features(model, asked, found_in, device=device, verbose=verbose)
    if not blend or model.config.virtual_nodes == "none":
        features = features[:, :, :3]
    place = {name: i for i, name in enumerate(answers)}
    marks = np.zeros((len(own), len(answers)), dtype=bool)
    for mark, right in zip(marks, own.values(), strict=True):
        mark[[place[name] for name in right]] = True
    found = fit_listwise(list(zip(features, marks, strict=True)))
    if not found.any():
        raise TrainingError("no kind of virtual node distinguishes right answers of these pairs from wrong ones.")
    return model.with_score_weights(ScoreWeights(*found.tolist()))


def score_features(
    model: MathAMR,
    asked: Sequence[MathAMRGraph],
    answers: Sequence[MathAMRGraph],
    *,
    documents: MathAMR | None = None,
    device: str | None = None,
    verbose: bool = False,
) -> Features:
    """Encode questions and answers and compute :func:`kind_sums`: float32 ``[b, m, 4]``, scaled as in training.

    Another model, whose vectors have the same space, may encode the answers.
    """
    queries = model.encode(asked, device=device, verbose=verbose)
    found = (documents or model).encode(answers, device=device, verbose=verbose)
    kinds = [row_kinds(model.config, graph, len(query)) for graph, query in zip(asked, queries, strict=True)]
    features = kind_sums(queries, kinds, found, verbose)
    if model.config.score.kind_means:
        counts = np.array([[max(of.count(kind), 1) for kind in range(3)] for of in kinds], np.float32)
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
        of_part = torch.from_numpy(np.concatenate([queries[i] for i in part]))
        where = [3 * at + kind for at, i in enumerate(part) for kind in kinds[i]]
        best = best_matches(of_part, rows, offsets)  # [q of the part, m]
        total = torch.zeros(3 * len(part), len(documents)).index_add_(0, torch.tensor(where), best)
        sums[part, :, :3] = total.view(len(part), 3, -1).transpose(1, 2).numpy()
        ends = np.cumsum([len(queries[i]) for i in part]) - 1
        product: Tensor = of_part[torch.from_numpy(ends)] @ last.T
        sums[part, :, 3] = product.numpy()
    return sums


def _sample(pairs: Sequence[Pair], limit: int, seed: int) -> dict[str, list[str]]:
    """Sample questions and return their answers, in the order of the pairs."""
    own: dict[str, list[str]] = {}
    for question, answer in pairs:
        own.setdefault(question, []).append(answer)
    if len(own) <= limit:
        return own
    chosen = set(random.Random(seed).sample(list(own), limit))
    return {question: answers for question, answers in own.items() if question in chosen}


def _candidates(pairs: Sequence[Pair], own: dict[str, list[str]], limit: int, seed: int) -> list[str]:
    """Return the answers of the chosen questions, and others up to the limit."""
    needed = dict.fromkeys(answer for answers in own.values() for answer in answers)
    others = [answer for answer in dict.fromkeys(answer for _, answer in pairs) if answer not in needed]
    room = max(0, limit - len(needed))
    return [*needed, *(others if len(others) <= room else random.Random(seed).sample(others, room))]

"""An In+Out index on disk, and the search in it: MaxSim in each of two graphs, combined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Self, get_args

import numpy as np

from mathamr_systems.errors import SystemsError
from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.parameters import Rule, between, method, one_of
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.fusion import RRF_K
from pyterrier_mathamr.index.errors import check_model
from pyterrier_mathamr.sparse.expressions import (
    CollectingBuilder,
    ExpressionIndex,
    ExpressionSnapshot,
    FormulaRetriever,
    Packing,
    ScoreTerm,
)
from pyterrier_mathamr.sparse.index import SparseIndex
from pyterrier_mathamr.store import detail

from .node_rows import IN_OUT, Grid, NodeEncoder, NodeVectors, Scores, nbytes, on_grid

Combine = Literal["max", "avg", "f1", "rrf"]
Scale = Literal["sum", "mean"]

_NAMES: dict[Packed, str] = {"slt": "layout graph", "opt": "operator graph"}
_PAPER = "https://doi.org/10.1145/3731120.3744589"


def combined(combine: Combine, scores: Scores) -> Scores:
    """Combine the scores of both graphs."""
    weights, values = parts(combine, scores)
    return np.asarray((weights * values).sum(axis=0))


def parts(combine: Combine, scores: Scores) -> tuple[Scores, Scores]:
    """Write the combined score as a weighted sum."""
    if combine == "rrf":
        return np.ones_like(scores), 1 / (RRF_K + np.array([ranks(of) for of in scores]))
    if combine == "avg":
        return np.full_like(scores, 0.5), scores
    if combine == "max":
        first = scores[0] >= scores[1]
        return np.array([first, ~first], dtype=np.float64), scores
    above = (scores > 0).all(axis=0)
    total = np.where(above, scores.sum(axis=0), 1.0)
    return np.where(above, 2 * (scores[::-1] / total) ** 2, 0.0), scores


def ranks(scores: Scores) -> Scores:
    """Rank scores from 1, the greatest first; equal ones share their best rank."""
    return np.asarray(1.0 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right"), dtype=np.float64)


class InOutRetriever(FormulaRetriever):
    """Ranks formulas by how well the nodes of the query's graphs are found among theirs.

    For each of the two graphs the score is S(Q, C) = Σᵢ maxⱼ cos(qᵢ, cⱼ), over the nodes i of the query and j of the
    candidate (In+Out, equation 4), computed for all formulas; a candidate that lacks a graph scores 0 for it. If the
    query has only one tree, or the model one kind of graph, only that graph counts. Formulas with equal scores are in
    order of their ids. A query is ``latex``, or ``query`` that is one formula in LaTeX, with or without dollars. Other
    queries (blank text, prose, braces that do not pair) find nothing, with a warning.

    Args:
        in_out_index: the index, with the model that built it.
        num_results: the number of formulas for each query.
        combine: ``max``, the greater of both scores; ``avg``, their mean; ``f1``, their harmonic mean, 0 if one is
            not above 0; or ``rrf``, the sum of 1 / (60 + rank), whose constant is not in the paper.
        scale: ``sum`` as printed; ``mean`` divides each score by the number of nodes of the query's graph, which is
            usually larger for the operator graph.
        temperature: τ; the term of a node is then exp((cos - 1) / τ), which is 1 if the node is found with all its
            surroundings and falls off quickly. Nearly the same structure then no longer outweighs the same symbols. The
            loss (equation 2) compares nodes by exp(cos / τ) with τ = 0.1. ``None`` is the cosine, as printed.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = InOutIndex("formulas.inout", model).retriever(combine="max", num_results=100)
    """

    label, help_url = "In+Out", _PAPER
    checks: ClassVar[Mapping[str, Rule]] = {
        **FormulaRetriever.checks,
        "combine": one_of(*get_args(Combine)),
        "scale": one_of(*get_args(Scale)),
        "temperature": between(1e-3).or_none(),
    }
    above = -np.inf

    def __init__(
        self,
        in_out_index: InOutIndex,
        num_results: int = 1000,
        *,
        combine: Combine = "max",
        scale: Scale = "sum",
        temperature: float | None = None,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.in_out_index, self.num_results, self.combine, self.scale = in_out_index, num_results, combine, scale
        self.temperature, self.store, self.verbose = temperature, store, verbose

    def snapshot(self) -> InOutSnapshot:
        return self.in_out_index.asked()[0]

    def scores(self, snapshot: InOutSnapshot, pair: FormulaPair) -> Scores:
        """Score all expressions of ``snapshot`` for the trees ``pair`` of a formula; minus infinity without a graph."""
        vectors = snapshot.expressions.payload
        each = self._each(_graphs(self.in_out_index.encoder(), pair), vectors)
        if not len(each):
            return np.full(len(vectors), -np.inf)
        return combined(self.combine, each) if len(each) > 1 else each[0]

    def terms(self, snapshot: InOutSnapshot, pair: FormulaPair, docno: str) -> Iterator[ScoreTerm]:
        """Compute the contribution of each node of the query's graphs; for ``rrf``, of the ranks by both graphs.

        Args:
            snapshot: of the index.
            pair: the trees of the query's formula.
            docno: the formula whose score is explained.
        """
        vectors, expression = snapshot.expressions.payload, int(snapshot.expressions_of([docno])[0])
        graphs = _graphs(self.in_out_index.encoder(), pair)
        each = self._each(graphs, vectors)
        weights, values = parts(self.combine, each) if len(graphs) > 1 else (np.ones_like(each), each)
        for place, (kind, tree, rows) in enumerate(graphs):
            factor, name = float(weights[place, expression]), _NAMES[kind]
            if self.combine == "rrf" and len(graphs) > 1:
                value = float(values[place, expression])
                yield ScoreTerm(name, factor * value, value, factor)
                continue
            factor *= self._factor(rows)
            own = getattr(vectors, kind).only(expression)
            for label, node in zip(tree.nodes, rows, strict=True):
                value = float(own.maxsim(node[None], self.temperature)[0])
                yield ScoreTerm(name, factor * value, value, factor, label)

    def _each(self, graphs: Sequence[tuple[Packed, FormulaTree, Grid]], vectors: NodeVectors) -> Scores:
        """Score all expressions by each graph of a query: float64 ``[graphs, x]``."""
        found = [getattr(vectors, kind).maxsim(rows, self.temperature) * self._factor(rows) for kind, _, rows in graphs]
        return np.array(found)

    def _factor(self, rows: Grid) -> float:
        return 1 / len(rows) if self.scale == "mean" else 1.0


def _graphs(model: NodeEncoder, pair: FormulaPair) -> list[tuple[Packed, FormulaTree, Grid]]:
    """Encode the graphs of a formula that there are."""
    there = [(kind, tree) for kind, tree in zip(get_args(Packed), pair, strict=True) if tree and kind in model.kinds]
    return [(kind, tree, on_grid(model.encode([tree], kind, distinct=False)[0])) for kind, tree in there]


class InOutSnapshot(ExpressionSnapshot[NodeVectors]):
    """An In+Out index as it was when it was opened."""

    @property
    def model(self) -> str:
        """The identity of the model of the vectors."""
        return detail(self.manifest.details, "model", str, self.path)


class InOutIndex(ExpressionIndex[InOutSnapshot], SparseIndex):
    r"""The vectors of the nodes of all formulas, searched by the sum of greatest similarities.

    Amador and Zanibbi, "Math formula graph retrieval using contrastive learning over visual and semantic embeddings",
    ICTIR 2025. The symbol layout graph and the operator graph of a formula are encoded apart; both are kept once for
    each expression. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.
        model: encodes the formulas that are indexed and searched; an index is searched with the model that built it.

    Example::

        trees = FormulaTrees("formulas.trees").index(dataset.get_corpus_iter())
        formulas = InOutIndex("formulas.inout", InOut.new(trees))
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND, PAYLOAD, SNAPSHOT = IN_OUT, NodeVectors, InOutSnapshot

    schematic: ClassVar[dict[str, str]] = {"label": "In+Out Index", "help_url": _PAPER}

    def __init__(self, path: str | Path, model: NodeEncoder | None = None) -> None:
        super().__init__(path)
        self.model = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}{'' if self.model is None else f', {self.model!r}'})"

    @staticmethod
    def example() -> InOutIndex:
        """Return an index that is not built."""
        return InOutIndex("index.inout")

    retriever = method(InOutRetriever)

    @classmethod
    def merge(cls, path: str | Path, *indexes: Self) -> Self:
        """Build a new index at ``path`` of all rows of some ``indexes``, in order, with the model of the first."""
        merged = super().merge(path, *indexes)
        merged.model = indexes[0].model
        return merged

    def more_counts(self) -> list[str]:
        parts = self.snapshot().parts
        vectors = sum(len(part[f"{kind}_rows"]) for part in parts for kind in get_args(Packed))
        return [*super().more_counts(), counted(vectors, "vector"), f"by {self.snapshot().model[:12]}"]

    def encoder(self) -> NodeEncoder:
        """Return the model; raise a ``SystemsError`` if there is none."""
        if self.model is None:
            text = "the index was opened without the model that encodes formulas. Give it: InOutIndex(path, model)."
            raise SystemsError(f"{self.path}: {text}")
        return self.model

    def asked(self) -> tuple[InOutSnapshot, NodeEncoder]:
        """Return the current state of the index and the model that searches it, if it is the one that built it."""
        snapshot, model = self.snapshot(), self.encoder()
        check_model(self.path, snapshot.model, model.identity)
        return snapshot, model

    def packing(self) -> Packing:
        """Describe the stored data of an expression: the vectors of its nodes, by its model."""
        model = self.encoder()
        details = {"model": model.identity, "kinds": list(model.kinds)}
        return Packing(partial(CollectingBuilder, partial(NodeVectors.encoded, model), nbytes), details=details)

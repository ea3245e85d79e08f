"""An In+Out index on disk, and the search in it: MaxSim in each of two graphs, combined.

Vectors are on a grid, on which the sum of maximum cosines is exact. A vector of unit length becomes integers, its
numbers times 4,000. A product of two such vectors, and every partial sum of it, is an integer of at most 2²⁴ (Cauchy
and Schwarz), which float32 holds exactly. So a product in float32 does not depend on the order in which a library adds,
nor on the other formulas in the product: equal vectors have equal scores everywhere, and no second stage has to correct
the first. Only the vector is rounded: its direction changes by about 0.0001, less than in float16.

An index keeps the vectors of both graphs of each expression::

    slt_offsets, slt_rows      arrays of :class:`NodeRows`, of symbol layout graphs
    opt_offsets, opt_rows      of operator graphs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from mathamr_systems.errors import SystemsError
from pyterrier_mathamr.extending import (
    BothTrees,
    CollectingBuilder,
    ExpressionIndex,
    ExpressionSnapshot,
    FormulaRetriever,
    Packed,
    Packing,
    Rule,
    ScoreTerm,
    SparseIndex,
    between,
    check_model,
    combined_runs,
    counted,
    ends_of,
    expression_kind,
    method,
    one_blas_thread,
    one_of,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.fusion import RRF_K
from pyterrier_mathamr.store import Array, Field, Rows, StoredPart, detail

if TYPE_CHECKING:
    from .model import InOut

Grid = npt.NDArray[np.int16]
"""Vectors on the grid: int16 ``[r, d]``."""
TreeScores = npt.NDArray[np.float64]

_STEPS = 4000
_FINE = 1 << 20  # a node's term is a multiple of 1 / _FINE, so that sums of them are exact, too
_BLOCK = 4096  # rows multiplied at once, whose products stay in the CPU's caches


def on_grid(vectors: npt.NDArray[np.float32]) -> Grid:
    """Round vectors of unit length to the grid."""
    rows: Grid = np.rint(vectors * np.float32(_STEPS)).astype(np.int16)
    return rows


def lengths(rows: Grid) -> TreeScores:
    """Compute the length of each vector on the grid, about 4,000."""
    norms: TreeScores = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return norms


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The vectors of the nodes of ``x`` expressions in one kind of graph, ``r`` in all."""

    offsets: Rows  # [x + 1]; expression i owns rows[offsets[i]:offsets[i + 1]], none where it has no such graph
    rows: Grid  # [r, d]; a vector that an expression repeats is kept once, which changes no MaxSim

    @classmethod
    def none(cls, size: int) -> Self:
        return cls(np.zeros(size + 1, dtype=np.int64), np.zeros((0, 0), dtype=np.int16))

    @classmethod
    def of_vectors(cls, vectors: Sequence[npt.NDArray[np.float32]]) -> Self:
        """Keep the vectors of the nodes of each expression, float32 ``[n, d]`` each."""
        if not any(map(len, vectors)):
            return cls.none(len(vectors))
        rows = on_grid(np.concatenate(vectors))
        owner = np.repeat(np.arange(len(vectors), dtype=">u4"), [len(some) for some in vectors])
        owned = np.concatenate([owner.view(np.uint8).reshape(-1, 4), rows.view(np.uint8)], axis=1)
        _, firsts = np.unique(owned.view(f"V{owned.shape[1]}").reshape(-1), return_index=True)
        sizes = np.bincount(owner[firsts].astype(np.int64), minlength=len(vectors))
        return cls(ends_of(sizes), rows[firsts])

    @classmethod
    def of_part(cls, part: StoredPart, prefix: str) -> Self:
        return cls(part[f"{prefix}offsets"], part[f"{prefix}rows"])

    def arrays(self, prefix: str) -> dict[str, Array]:
        return {f"{prefix}offsets": self.offsets, f"{prefix}rows": self.rows}

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        filled = [piece.rows for piece in pieces if len(piece.rows)]
        if not filled:
            return cls.none(size)
        offsets, places = combined_runs([piece.offsets for piece in pieces], numbers, size)
        return cls(offsets, np.concatenate(filled)[places])

    def only(self, expression: int) -> Self:
        """Return the vectors of one expression, as expression 0."""
        start, end = self.offsets[expression : expression + 2].tolist()
        return type(self)(np.array([0, end - start], dtype=np.int64), self.rows[start:end])

    @cached_property
    def _factors(self) -> npt.NDArray[np.float32]:
        factors: npt.NDArray[np.float32] = (1 / np.maximum(lengths(self.rows), 1)).astype(np.float32)
        return factors

    @cached_property
    def _filled(self) -> Rows:
        return np.flatnonzero(np.diff(self.offsets))

    def maxsim(self, query: Grid, temperature: float | None = None) -> TreeScores:
        """Score all expressions for one formula: S(Q, C) = Σᵢ maxⱼ cos(qᵢ, cⱼ) (In+Out, equation 4).

        With a temperature τ the term of a node is exp((cos - 1) / τ).
        """
        scores = np.zeros(len(self.offsets) - 1)
        if not len(query):
            return scores
        asked, ends = query.astype(np.float32), self.offsets[self._filled + 1]
        each = _FINE / np.maximum(lengths(query), 1)
        first, start = 0, 0
        with one_blas_thread():
            while first < len(ends):
                last = max(first + 1, int(np.searchsorted(ends, start + _BLOCK, side="right")))
                here = slice(start, int(ends[last - 1]))
                products = asked @ self.rows[here].astype(np.float32).T  # [q, rows], exact
                products *= self._factors[here]
                starts = np.concatenate([[start], ends[first : last - 1]]) - start
                best = np.maximum.reduceat(products, starts, axis=1)  # [q, expressions]
                terms = np.rint(best * each[:, None])
                if temperature is not None:
                    terms = np.rint(np.exp((terms / _FINE - 1) / temperature) * _FINE)
                scores[self._filled[first:last]] = terms.sum(axis=0) / _FINE
                first, start = last, here.stop
        return scores


_AT_ONCE = 1024  # expressions encoded together
_NODE_BYTES = 200  # of memory for the vector of a node


class NodeVectors(BothTrees[NodeRows]):
    """The vectors of the nodes of ``x`` expressions, in symbol layout graphs and in operator graphs."""

    OF = NodeRows

    def __len__(self) -> int:
        return len(self.slt.offsets) - 1

    @classmethod
    def encoded(cls, model: InOut, pairs: Sequence[FormulaPair]) -> Self:
        """Encode the graphs of expressions, some at a time."""
        some = [pairs[start : start + _AT_ONCE] for start in range(0, len(pairs), _AT_ONCE)]
        ends = np.cumsum([0, *map(len, some)]).tolist()
        numbers = [np.arange(start, end) for start, end in pairwise(ends)]
        return cls.combined([cls._encoded(model, each) for each in some], numbers, len(pairs))

    @classmethod
    def _encoded(cls, model: InOut, pairs: Sequence[FormulaPair]) -> Self:
        rows = []
        for kind in get_args(Packed):
            trees = [getattr(pair, kind) if kind in model.kinds else None for pair in pairs]
            rows.append(NodeRows.of_vectors(model.encode(trees, kind)) if any(trees) else NodeRows.none(len(trees)))
        return cls(*rows)


def nbytes(pair: FormulaPair) -> int:
    """Estimate the memory of an expression that waits to be encoded."""
    return _NODE_BYTES * sum(len(tree.nodes) for tree in pair if tree is not None)


def _fields(kind: Packed) -> tuple[Field, ...]:
    rows = f"{kind}_r"
    return (Field(f"{kind}_offsets", "int64", "x+1", cuts=rows), Field(f"{kind}_rows", "int16", f"{rows} {kind}_d"))


IN_OUT = expression_kind(
    NodeVectors,
    *_fields("slt"),
    *_fields("opt"),
    type="node_vector_index",
    format="mathamr_in_out",
    version=1,
    index="InOutIndex('{path}', model)",
)


Combine = Literal["max", "avg", "f1", "rrf"]
Scale = Literal["sum", "mean"]

_NAMES: dict[Packed, str] = {"slt": "layout graph", "opt": "operator graph"}
_PAPER = "https://doi.org/10.1145/3731120.3744589"


def combined(combine: Combine, scores: TreeScores) -> TreeScores:
    weights, values = parts(combine, scores)
    return np.asarray((weights * values).sum(axis=0))


def parts(combine: Combine, scores: TreeScores) -> tuple[TreeScores, TreeScores]:
    """Write the combined score as a weighted sum."""
    if combine == "rrf":
        return np.ones_like(scores), 1 / (RRF_K + np.array([ranks(graph_scores) for graph_scores in scores]))
    if combine == "avg":
        return np.full_like(scores, 0.5), scores
    if combine == "max":
        first = scores[0] >= scores[1]
        return np.array([first, ~first], dtype=np.float64), scores
    above = (scores > 0).all(axis=0)
    total = np.where(above, scores.sum(axis=0), 1.0)
    return np.where(above, 2 * (scores[::-1] / total) ** 2, 0.0), scores


def ranks(scores: TreeScores) -> TreeScores:
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

    def scores(self, snapshot: InOutSnapshot, pair: FormulaPair) -> TreeScores:
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
            candidate = getattr(vectors, kind).only(expression)
            for label, node in zip(tree.nodes, rows, strict=True):
                value = float(candidate.maxsim(node[None], self.temperature)[0])
                yield ScoreTerm(name, factor * value, value, factor, label)

    def _each(self, graphs: Sequence[tuple[Packed, FormulaTree, Grid]], vectors: NodeVectors) -> TreeScores:
        """Score all expressions by each graph of a query: float64 ``[graphs, x]``."""
        scores = [
            getattr(vectors, kind).maxsim(rows, self.temperature) * self._factor(rows) for kind, _, rows in graphs
        ]
        return np.array(scores)

    def _factor(self, rows: Grid) -> float:
        return 1 / len(rows) if self.scale == "mean" else 1.0


def _graphs(model: InOut, pair: FormulaPair) -> list[tuple[Packed, FormulaTree, Grid]]:
    trees = [(kind, tree) for kind, tree in zip(get_args(Packed), pair, strict=True) if tree and kind in model.kinds]
    return [(kind, tree, on_grid(model.encode([tree], kind, distinct=False)[0])) for kind, tree in trees]


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

    def __init__(self, path: str | Path, model: InOut | None = None) -> None:
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

    def encoder(self) -> InOut:
        """Return the model; raise a ``SystemsError`` if there is none."""
        if self.model is None:
            text = "the index was opened without the model that encodes formulas. Give it: InOutIndex(path, model)."
            raise SystemsError(f"{self.path}: {text}")
        return self.model

    def asked(self) -> tuple[InOutSnapshot, InOut]:
        """Return the current state of the index and the model that searches it, if it is the one that built it."""
        snapshot, model = self.snapshot(), self.encoder()
        check_model(self.path, snapshot.model, model.identity)
        return snapshot, model

    def packing(self) -> Packing:
        """Describe the stored data of an expression: the vectors of its nodes, by its model."""
        model = self.encoder()
        details = {"model": model.identity, "kinds": list(model.kinds)}
        return Packing(partial(CollectingBuilder, partial(NodeVectors.encoded, model), nbytes), details=details)

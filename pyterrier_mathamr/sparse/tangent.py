r"""Tangent: a formula search engine on symbol pairs, after the first stage of Tangent-S.

A symbol pair is an ancestor, a descendant and the path of edges between them, without its place in the formula, so that
a sub-expression matches anywhere. In ``x^2+1`` (layout tree, window 1)::

    V!x a N!2      V!x n +      + n N!1      N!2 n 0!      N!1 n 0!        0! is the end of a baseline

The ends of baselines are all that a formula of a single symbol has. An index keeps the pairs of each expression::

    slt_…, opt_…  Postings      of its layout tree and of its operator tree

and a formula's score is Dice's coefficient of its pairs and the query's, averaged over both trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import FRACTION, Rule, at_least, method, one_of
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.formula.tree import LONGEST_PAIR, SPELLED_PATH
from pyterrier_mathamr.store import Mode

from .expression_parts import BothTrees, expression_kind
from .expressions import (
    ExpressionIndex,
    ExpressionIndexer,
    ExpressionSnapshot,
    FormulaRetriever,
    Packing,
    ScoreTerm,
)
from .index import SparseIndex, read_options
from .postings import Postings, PostingsBuilder, postings_fields

_PAPER = "https://doi.org/10.1145/3077136.3080748"


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Which symbol pairs are used.

    Attributes:
        window: longest distance between the two symbols, in edges; 0 for any distance. Tangent-CFT has 2.
        ends: include the ends of baselines (in an operator tree: the leaves); ``"small"``: only of trees without a
            second level below the root, as the ARQMath runs of Tangent-S did, with a window of 4.

    Raises:
        ConfigError: the window is negative or not an integer, or the ends are none of the three.
    """

    window: int = 2
    ends: bool | Literal["small"] = True

    def __post_init__(self) -> None:
        at_least(0).check("window", self.window)
        one_of(True, False, "small").check("ends", self.ends)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairOptions:
        """Make options from plain values.

        Raises:
            ConfigError: a value is missing, of another type, or not an option.
        """
        if values.keys() != {"window", "ends"} or type(values["window"]) is not int:
            raise ConfigError("pairs", dict(values), "an integer as window, and ends")
        return cls(**values)


def pair_terms(tree: FormulaTree | None, options: PairOptions) -> list[str]:
    """List the symbol pairs of one tree as terms of an index, with repetitions."""
    if tree is None:
        return []
    small = all(parent == 0 for parent, _, _ in tree.edges)
    ends = small if options.ends == "small" else bool(options.ends)
    window = options.window
    # no symbol pair can be left out for its length, and no path is run-length encoded, wherever they are
    longest = 2 * max(map(len, tree.nodes), default=0) + window + max(SPELLED_PATH, 2 * len(tree.nodes)) + 3
    is_short = 0 < window <= SPELLED_PATH and longest <= LONGEST_PAIR
    if is_short and all(len(label) == 1 for _, _, label in tree.edges):
        terms = _short_terms(tree, window, ends)
    else:
        terms = [f"{above}\t{path}\t{below}" for above, below, path, _ in tree.tuples(window, ends)]
    return [term.replace("\n", " ") for term in terms] if any("\n" in node for node in tree.nodes) else terms


def _short_terms(tree: FormulaTree, window: int, ends: bool) -> list[str]:
    """List the terms from each node upwards, faster than by subtrees, which also give each pair's place."""
    nodes, above, edge = tree.nodes, [-1] * len(tree.nodes), [""] * len(tree.nodes)
    for parent, child, label in tree.edges:
        above[child], edge[child] = parent, label
    terms = []
    for parent, child, path in tree.edges:
        below = f"\t{nodes[child]}"
        terms.append(f"{nodes[parent]}\t{path}{below}")
        for _ in range(window - 1):
            path, parent = edge[parent] + path, above[parent]
            if parent < 0:
                break
            terms.append(f"{nodes[parent]}\t{path}{below}")
    if ends:
        last = "n" if tree.is_slt else "0"
        going_on = {parent for parent, _, label in tree.edges if not tree.is_slt or label == "n"}
        terms += [f"{node}\t{last}\t0!" for i, node in enumerate(nodes) if i not in going_on]
    return terms


class SymbolPairs(BothTrees[Postings]):
    """The symbol pairs of the layout trees and of the operator trees of expressions."""

    OF = Postings


def take_pairs(options: PairOptions, pair: FormulaPair) -> tuple[str, str]:
    """List the symbol pairs of both trees, in one text each, which other processes are handed faster."""
    slt, opt = ("\n".join(pair_terms(tree, options)) for tree in (pair.slt, pair.opt))
    return slt, opt


class SymbolPairsBuilder:
    """Counts the symbol pairs of expressions, one after another."""

    def __init__(self) -> None:
        self._slt, self._opt = PostingsBuilder(), PostingsBuilder()

    @property
    def nbytes(self) -> int:
        return self._slt.nbytes + self._opt.nbytes

    def add(self, taken: tuple[str, str]) -> None:
        for builder, terms in zip((self._slt, self._opt), taken, strict=True):
            builder.add(terms.split("\n") if terms else ())

    def payload(self) -> SymbolPairs:
        return SymbolPairs(self._slt.postings(), self._opt.postings())


TANGENT = expression_kind(
    SymbolPairs,
    *postings_fields("slt_", "x"),
    *postings_fields("opt_", "x"),
    type="sparse_index",
    format="mathamr_tangent",
    version=2,
    index="TangentIndex('{path}')",
)


def dice(postings: Postings, terms: Counter[str]) -> npt.NDArray[np.float64]:
    """Score all expressions by the symbol pairs that they share with the query."""
    shared = np.zeros(len(postings.lengths), dtype=np.int64)
    for term, times in terms.items():
        number = postings.terms.get(term)
        if number is not None:
            here = slice(postings.offsets[number], postings.offsets[number + 1])
            shared[postings.documents[here]] += np.minimum(postings.counts[here], times)
    sizes = postings.lengths + max(1, terms.total())
    score: npt.NDArray[np.float64] = 2 * shared / sizes
    return score


class TangentRetriever(FormulaRetriever):
    """Ranks formulas by the symbol pairs that they share with the query's formula; the text around it is not used.

    The score is w · D(layout trees) + (1 - w) · D(operator trees), D the harmonic mean of recall and precision of
    symbol pairs; if the query has only one tree, only that counts. Formulas with equal scores are in order of their
    ids. A query is ``latex``, or ``query`` that is one formula in LaTeX, with or without dollars. Other queries
    (blank text, prose, braces that do not pair) find nothing, with a warning.

    Args:
        tangent_index: the index.
        num_results: the number of formulas for each query; formulas without a common symbol pair are left out.
        slt_weight: w, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentIndex("formulas.tangent").retriever(num_results=100)
    """

    label, help_url = "Tangent", _PAPER
    checks: ClassVar[Mapping[str, Rule]] = {**FormulaRetriever.checks, "slt_weight": FRACTION}

    def __init__(
        self,
        tangent_index: TangentIndex,
        num_results: int = 1000,
        *,
        slt_weight: float = 0.5,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_index, self.num_results, self.slt_weight = tangent_index, num_results, slt_weight
        self.store, self.verbose = store, verbose

    def snapshot(self) -> TangentSnapshot:
        return self.tangent_index.snapshot()

    def scores(self, snapshot: TangentSnapshot, pair: FormulaPair) -> npt.NDArray[np.float64]:
        """Score all expressions of the index for the trees of one formula: float64 ``[x]``, 0 to 1."""
        total = np.zeros(len(snapshot.expressions.payload.slt.lengths), dtype=np.float64)
        for _, weight, similarities in self._terms(snapshot, pair):
            total += weight * similarities
        return total

    def terms(self, snapshot: TangentSnapshot, pair: FormulaPair, docno: str) -> Iterator[ScoreTerm]:
        """Compute the contributions of the two trees to the score of a formula."""
        expression = snapshot.expressions_of([docno])[0]
        for tree, weight, similarities in self._terms(snapshot, pair):
            similarity = float(similarities[expression])
            yield ScoreTerm(tree, weight * similarity, similarity, weight)

    def _terms(
        self, snapshot: TangentSnapshot, pair: FormulaPair
    ) -> Iterator[tuple[str, float, npt.NDArray[np.float64]]]:
        """Compute the terms of the score: the name and weight of each tree, and its similarity with all expressions."""
        content = snapshot.expressions.payload
        weights = (self.slt_weight if pair.slt else 0.0, 1 - self.slt_weight if pair.opt else 0.0)
        trees = zip(("layout tree", "operator tree"), pair, (content.slt, content.opt), weights, strict=True)
        for name, tree, postings, weight in trees:
            if weight:
                terms = Counter(pair_terms(tree, snapshot.pairs))
                yield name, weight / sum(weights), dice(postings, terms)


class TangentSnapshot(ExpressionSnapshot[SymbolPairs]):
    """A Tangent index as it was when it was opened."""

    @cached_property
    def pairs(self) -> PairOptions:
        """Which symbol pairs were taken."""
        return read_options(self, "pairs", PairOptions.from_dict)


class TangentIndex(ExpressionIndex[TangentSnapshot], SparseIndex):
    r"""An inverted index over symbol pairs of layout and operator trees, in the manner of Tangent-S.

    This is the first stage of Tangent-S. It ranks by the harmonic mean of recall, the share of the query's pairs that
    the formula has, and precision, the share of the formula's pairs that the query has; the later stages of Tangent-S
    are in ``systems.TangentS``. The text around formulas is not used. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = TangentIndex("formulas.tangent")
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND, PAYLOAD, SNAPSHOT = TANGENT, SymbolPairs, TangentSnapshot

    schematic: ClassVar[dict[str, str]] = {"label": "Tangent Index", "help_url": _PAPER}

    @staticmethod
    def example() -> TangentIndex:
        """Return an index that is not built."""
        return TangentIndex("index.tangent")

    retriever = method(TangentRetriever)

    def packing(self, pairs: PairOptions = PairOptions()) -> Packing:
        """Describe the stored data of an expression: its symbol ``pairs``."""
        return Packing(SymbolPairsBuilder, partial(take_pairs, pairs), {"pairs": pairs.to_dict()})

    def indexer(
        self,
        mode: Mode = "create",
        *,
        pairs: PairOptions = PairOptions(),
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        executor: Executor | None = None,
        verbose: bool = False,
    ) -> ExpressionIndexer:
        """Return the :class:`ExpressionIndexer` that stores these ``pairs``.

        Args:
            mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
            pairs: which symbol pairs are stored; with ``append``, as in the index.
            store: official trees by formula id; other formulas get their trees from LaTeX.
            visual_ids: formula id to visual id; missing formulas get the empty string. By default the store's.
            bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
            resume: keep finished parts if the call is interrupted, and continue one that was.
            executor: where to read formulas, by default in this process; the index is the same.
            verbose: show a progress bar.
        """
        return ExpressionIndexer(
            self,
            mode,
            packing=self.packing(pairs),
            store=store,
            visual_ids=visual_ids,
            bare_formulas=bare_formulas,
            resume=resume,
            executor=executor,
            verbose=verbose,
        )

    def pair_options(self) -> PairOptions:
        """Return the options of the stored symbol pairs (raises as :meth:`snapshot`)."""
        return self.snapshot().pairs

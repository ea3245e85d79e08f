"""The systems that Task 2 compares, by the names that tables and ``--systems`` have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.artifacts import TANGENT, Artifacts
from pyterrier_mathamr.experiments.measuring import Way
from pyterrier_mathamr.experiments.search import DISTINCT_FORMULAS, FORMULA_DEPTH, distinct
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRFormulaIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.systems import TangentS, ZScoreFusion

CANDIDATES = 2000
MATHAMR = "MathAMR+"
FUSED = f"{TANGENT} + MathAMR+"
ALONE = "MathAMR+ (formula alone)"
TANGENT_S = "Tangent-S"
DISTANCE = f"{TANGENT} % {CANDIDATES} >> edit distance"
ALL = "all"


@dataclass(frozen=True)
class FormulaParts:
    """What the systems are made of.

    Attributes:
        shared: the artifacts of the collection.
        model: encodes queries.
        index: the vectors of formulas.
        year: of the topics.
    """

    shared: Artifacts
    model: MathAMR
    index: MathAMRFormulaIndex
    year: str

    @cached_property
    def trees(self) -> FormulaStore | None:
        """The official trees of the topics' formulas."""
        return self.shared.topic_formulas(self.year)

    def tangent(self) -> Way:
        """Rank by pairs of symbols."""
        return Way(distinct(self.shared.tangent.retriever(FORMULA_DEPTH, store=self.trees)))

    def mathamr(self) -> Way:
        """Rank by the formula's vector within its question."""
        encode = GraphBuilder(store=self.trees) >> self.model.query_encoder()
        return Way(distinct(self.index.retriever(num_results=FORMULA_DEPTH)), encode)

    def alone(self) -> Way:
        """Rank by the formula's vector without its question."""
        encode = GraphBuilder(store=self.trees, queries="formula") >> self.model.query_encoder()
        return Way(distinct(self.index.retriever(num_results=FORMULA_DEPTH)), encode)

    def fused(self) -> Way:
        """Fuse pairs of symbols and vectors with equal weights."""
        pairs, vectors = self.tangent(), self.mathamr()
        return Way(ZScoreFusion(pairs.search, vectors.search, num_results=DISTINCT_FORMULAS), vectors.encode)

    def tangent_s(self) -> Way:
        """Align the trees of candidates by pairs of symbols."""
        trees = self.shared.formula_trees
        system = TangentS(self.shared.tangent, trees, num_results=FORMULA_DEPTH, complete=True, store=self.trees)
        return Way(distinct(system))

    def distance(self) -> Way:
        """Rank candidates by pairs of symbols anew by the edit distance of their trees."""
        reranker = self.shared.formula_trees.edit_distance(combine="weighted", store=self.trees)
        return Way(distinct(self.shared.tangent.retriever(CANDIDATES, store=self.trees) >> reranker))


FORMULA_SYSTEMS: Mapping[str, Callable[[FormulaParts], Way]] = MappingProxyType(
    {
        TANGENT: FormulaParts.tangent,
        MATHAMR: FormulaParts.mathamr,
        ALONE: FormulaParts.alone,
        FUSED: FormulaParts.fused,
        TANGENT_S: FormulaParts.tangent_s,
        DISTANCE: FormulaParts.distance,
    }
)
"""How each system is made, the baseline first."""

DEFAULT_SYSTEMS = (TANGENT, MATHAMR, ALONE, FUSED)


def chosen_systems(names: Sequence[str] | None) -> list[str]:
    """Choose the systems of a table.

    Args:
        names: of systems as in the tables, in any case, or ``all``; ``None`` for :data:`DEFAULT_SYSTEMS`.

    Returns:
        Names in the order of :data:`FORMULA_SYSTEMS`, the baseline and what a fusion is made of included.

    Raises:
        ConfigError: a name is none of a system.
    """
    if names is None:
        return list(DEFAULT_SYSTEMS)
    chosen = {TANGENT}
    for name in names:
        found = [each for each in FORMULA_SYSTEMS if each.lower() == name.lower()]
        if name.lower() == ALL:
            found = list(FORMULA_SYSTEMS)
        if not found:
            raise ConfigError("systems", name, f"{ALL}, or some of: {'; '.join(FORMULA_SYSTEMS)}")
        chosen.update(found)
    if FUSED in chosen:
        chosen.add(MATHAMR)
    return [name for name in FORMULA_SYSTEMS if name in chosen]

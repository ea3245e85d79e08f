"""The systems that Task 2 compares, by the names that tables and ``--systems`` have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.artifacts import TANGENT
from pyterrier_mathamr.experiments.measuring import Way
from pyterrier_mathamr.experiments.search import FORMULA_DEPTH, distinct
from pyterrier_mathamr.graph import GraphBuilder
from studies.formulas.learning import aligned, fit_ltr, ltr
from studies.formulas.variants import CANDIDATES, VARIANTS, edit_distance, in_out

from .parts import FormulaParts, FormulaSystem

MATHAMR = "MathAMR+"
ALONE = "MathAMR+ (formula alone)"
EQUAL = f"{TANGENT} + MathAMR+"
TANGENT_S = "Tangent-S"
LTR = "LtR"
DISTANCE = f"{TANGENT} % {CANDIDATES} >> edit distance"
CFT2, CFT2TED = "CFT2", "CFT2TED"
APPROACH0 = "Approach Zero"
IN_OUT = "In+Out"
FUSED = "Fused"
ALL = "all"


def _tangent(parts: FormulaParts) -> Way:
    """Rank by pairs of symbols."""
    return Way(distinct(parts.shared.tangent.retriever(FORMULA_DEPTH, store=parts.trees)))


def _mathamr(parts: FormulaParts) -> Way:
    """Rank by the formula's vector within its question."""
    encode = GraphBuilder(store=parts.trees) >> parts.model.query_encoder()
    return Way(distinct(parts.index.retriever(num_results=FORMULA_DEPTH)), encode)


def _alone(parts: FormulaParts) -> Way:
    """Rank by the formula's vector without its question."""
    encode = GraphBuilder(store=parts.trees, queries="formula") >> parts.model.query_encoder()
    return Way(distinct(parts.index.retriever(num_results=FORMULA_DEPTH)), encode)


def _tangent_s(parts: FormulaParts) -> Way:
    """Rank by how well trees align."""
    return Way(distinct(aligned(parts)))


def _approach0(parts: FormulaParts) -> Way:
    """Rank by common sub-structures of operator trees."""
    return Way(distinct(parts.shared.approach0.retriever(FORMULA_DEPTH, store=parts.trees)))


def _cft2(parts: FormulaParts) -> Way:
    """Rank by vectors that fastText learns from pairs of symbols."""
    return Way(distinct(parts.shared.cft.retriever(FORMULA_DEPTH, mode="cft2", store=parts.trees)))


def _cft2ted(parts: FormulaParts) -> Way:
    """Rank candidates by vectors anew by the edit distance of their trees."""
    reranker = parts.shared.formula_trees.edit_distance(combine="rrf", store=parts.trees)
    return Way(distinct(parts.shared.cft.retriever(CANDIDATES, mode="cft2", store=parts.trees) >> reranker))


FORMULA_SYSTEMS: Mapping[str, FormulaSystem] = MappingProxyType(
    {
        TANGENT: FormulaSystem(_tangent),
        TANGENT_S: FormulaSystem(_tangent_s),
        DISTANCE: FormulaSystem(edit_distance),
        LTR: FormulaSystem(ltr, fit_ltr),
        CFT2: FormulaSystem(_cft2),
        CFT2TED: FormulaSystem(_cft2ted),
        APPROACH0: FormulaSystem(_approach0),
        IN_OUT: FormulaSystem(in_out),
        MATHAMR: FormulaSystem(_mathamr),
        ALONE: FormulaSystem(_alone),
    }
)
"""How each system is made, the baseline first."""

FUSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {EQUAL: (TANGENT, MATHAMR), FUSED: (TANGENT, TANGENT_S, DISTANCE, APPROACH0, IN_OUT, MATHAMR)}
)
"""What is fused: with equal weights, and with weights fitted on other years. No part of a fusion is fitted itself: its
weights for the other years would have seen the year that those of the fusion are for."""

NAMES = (*FORMULA_SYSTEMS, *FUSIONS)
MAKERS: Mapping[str, FormulaSystem] = MappingProxyType({**FORMULA_SYSTEMS, **VARIANTS})
"""What is no fusion."""
DEFAULT_SYSTEMS = (TANGENT, MATHAMR, ALONE, EQUAL)


def chosen_systems(names: Sequence[str] | None) -> list[str]:
    """Choose the systems of a table."""
    if names is None:
        return list(DEFAULT_SYSTEMS)
    chosen, known = {TANGENT}, (*NAMES, *VARIANTS)
    groups: dict[str, Sequence[str]] = {ALL: NAMES, "variants": tuple(VARIANTS)}
    for name in names:
        found = groups.get(name.lower()) or [each for each in known if each.lower() == name.lower()]
        if not found:
            raise ConfigError("systems", name, f"{', '.join(groups)}, or some of: {'; '.join(known)}")
        chosen.update(found)
        chosen.update(part for each in found for part in FUSIONS.get(each, ()))
    return [name for name in known if name in chosen]

"""The indexes of a collection's formulas, one for each system of formula retrieval; each is made on first use.

::

    formulas-wide.tangent    symbol pairs of a wider window
    formulas.trees           trees of the formulas of all posts
    formulas.a0              paths of their operator trees
    formulas.cft             their vectors by Tangent-CFT
    formulas.inout           vectors of their nodes
"""

from __future__ import annotations

from functools import cache

from pyterrier_mathamr.experiments.workdir import FormulaArtifacts
from pyterrier_mathamr.sparse import PairOptions, TangentIndex
from pyterrier_mathamr.systems import ApproachZeroIndex, FastTextOptions, FormulaTrees, InOut, InOutIndex, TangentCFT

IN_OUT_MODEL = "in-out-mini"


@cache
def wide_tangent(shared: FormulaArtifacts) -> TangentIndex:
    """Index symbol pairs of a wider window, as in the runs of Tangent-S at ARQMath."""
    index, pairs = TangentIndex(shared.workdir / "formulas-wide.tangent"), PairOptions(window=4, ends="small")
    return shared.of_formulas("tangent, window 4", index, settings={"pairs": pairs.to_dict()}, pairs=pairs)


@cache
def formula_trees(shared: FormulaArtifacts) -> FormulaTrees:
    """Store both trees of all formulas, for systems that compare whole trees."""
    return shared.of_formulas("formula-trees", FormulaTrees(shared.workdir / "formulas.trees"))


@cache
def approach0(shared: FormulaArtifacts) -> ApproachZeroIndex:
    """Index the leaf-root paths of all formulas."""
    return shared.of_formulas("approach0", ApproachZeroIndex(shared.workdir / "formulas.a0"))


@cache
def cft(shared: FormulaArtifacts) -> TangentCFT:
    """Make vectors of all formulas by Tangent-CFT, trained on them in a few minutes."""
    training = FastTextOptions.small()
    index, settings = TangentCFT(shared.workdir / "formulas.cft"), {"training": training.to_dict()}
    return shared.of_formulas("cft", index, settings=settings, training=training)


@cache
def in_out(shared: FormulaArtifacts) -> InOutIndex:
    """Make vectors of the nodes of all formulas, by the bundled In+Out model."""
    model = InOut.from_pretrained(IN_OUT_MODEL)
    index = InOutIndex(shared.workdir / "formulas.inout", model)
    return shared.of_formulas("in-out", index, settings={"model": model.identity})

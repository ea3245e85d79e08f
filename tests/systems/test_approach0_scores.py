"""Scores equal values worked by hand and a plain scorer's; pruning changes no ranking."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from approach0_plain import PlainScorer

from mathamr_systems.approach0.index import Constants, PathSearch, score_expressions
from mathamr_systems.approach0.path_lists import PathLists, indexed_paths, path_query
from mathamr_systems.approach0.tree import OperatorTree, canonical_tree, formula_paths
from pyterrier_mathamr.formula import FormulaPair, trees_from_latex

PRINTED = Constants()
WORKED = ("x^2+1", "y^2+1", "x^2+x", "y^3", "z")
VARIED = (
    *WORKED,
    r"\frac{x+1}{x^2-1}",
    r"\sum_{i=1}^n i^2 = \frac{n(n+1)(2n+1)}{6}",
    r"\int_0^1 x^2 \sin(2x)\,dx",
    r"a=b=c",
    r"a<b\le c",
    r"x_i^2+x_j^2+2x_ix_j",
    r"\begin{pmatrix}1&x\\0&1\end{pmatrix}",
    r"(x,y)\in A",
    r"\{x, y, z\}",
    "7",
    r"\sqrt{a^2+b^2}+\sqrt{b^2+a^2}",
    r"\lim_{x\to 0}\frac{\sin x}{x}=1",
    "x+x+x+y",
    r"x^{x^{x^x}}",
    "-x-1",
)


def tree_of(latex: str) -> OperatorTree:
    opt = trees_from_latex(latex).opt
    assert opt is not None
    return canonical_tree(opt)


def index_of(formulas: Sequence[str]) -> PathLists:
    return PathLists.of_paths(indexed_paths(trees_from_latex(latex)) for latex in formulas)


def scores(index: PathLists, latex: str, constants: Constants = PRINTED) -> list[float]:
    query = path_query(formula_paths(tree_of(latex)), index)
    found = score_expressions(query, index.of, np.arange(len(index.of.leaves)), constants)
    return (found.structure * found.symbols * constants.penalties(index.of.leaves)).tolist()


def test_scores_are_those_worked_by_hand() -> None:
    index = index_of(WORKED)
    assert len(index.roots) == 28  # N
    assert scores(index, "x^2+1") == pytest.approx([6.5122, 6.5050, 3.6844, 3.3589, 1.7278], abs=5e-5)
    assert scores(index, "y^2")[:4] == pytest.approx([3.1869, 3.1949, 3.1869, 3.3840], abs=5e-5)


@pytest.mark.parametrize(
    "constants", [Constants(), Constants(eta=0.0), Constants(eta=1.0, b1=0.8, b2=0.2), Constants(b1=0.0, b2=0.0)]
)
def test_scores_equal_a_plain_scorer_s(constants: Constants) -> None:
    index = index_of(VARIED)
    plain = PlainScorer([tree_of(latex) for latex in VARIED], constants.eta, constants.b1, constants.b2)
    for latex in (*VARIED, r"\frac{y}{y+1}", "t", r"q^2=q\cdot q", "+"):
        assert scores(index, latex, constants) == pytest.approx(plain.scores(tree_of(latex))), latex


def test_a_formula_of_one_leaf_is_raised_and_one_without_leaves_is_accepted() -> None:
    assert Constants().penalties(np.array([0, 1, 5], dtype=np.int32)) == pytest.approx(
        [1.13281, 1.13281, 0.867433], abs=5e-6
    )
    index = PathLists.of_paths(map(indexed_paths, (FormulaPair(None, None), trees_from_latex("x"))))
    assert scores(index, "x")[0] == 0


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.feedback.PostWarning")
def test_pruning_gives_the_ranking_of_reading_every_list(shared_data: Path) -> None:
    from pyterrier_mathamr.arqmath import ARQMathCollection
    from pyterrier_mathamr.posts import document_post

    latex: dict[str, None] = {}
    for post in ARQMathCollection(shared_data / "arqmath-mini").posts():
        found = document_post({"docno": post.id, "html": post.body})
        latex |= dict.fromkeys(formula.latex for formula in found.formulas)
        if len(latex) > 1500:
            break
    pairs = [pair for pair in map(trees_from_latex, latex) if pair.opt is not None]
    index, constants = PathLists.of_paths(map(indexed_paths, pairs)), Constants()
    penalties = constants.penalties(index.of.leaves)
    sizes = np.random.default_rng(3).integers(1, 4, len(pairs))
    for pair in pairs[:: len(pairs) // 200]:
        query = path_query(formula_paths(canonical_tree(pair.opt)), index)
        for count in (10, 500):
            searches = [
                PathSearch(query, index, sizes, penalties, constants, count, prune=prune) for prune in (True, False)
            ]
            fast, whole = (search.run() for search in searches)
            every = score_expressions(query, index.of, np.arange(len(pairs)), constants)
            exact = every.structure * every.symbols * penalties
            order = np.argsort(-exact, kind="stable")
            least = exact[order[np.searchsorted(np.cumsum(sizes[order]), count)]]
            for found in (fast, whole):
                np.testing.assert_array_equal(found[exact >= least], exact[exact >= least])
                assert np.all(found[exact < least] <= exact[exact < least])
            assert searches[0].read <= searches[1].read

"""Common parts of trees, counted for all candidates at once, equal Tangent's symbol pairs one by one."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import trees

from mathamr_systems.formula_ltr.features import Numbered, match_labels, match_pairs
from pyterrier_mathamr.formula import FormulaTree, slt_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.sparse.tangent import PairOptions, pair_terms


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_pairs_and_labels_are_matched_as_in_single_calls(kind: Any) -> None:
    some = trees(kind, ("V!x", "V!y", "N!1", "+"), 12)

    @given(query=some, candidates=st.lists(some, min_size=1, max_size=4))
    def check(query: FormulaTree, candidates: list[FormulaTree]) -> None:
        both = Numbered.both(query, PackedTrees.of_trees([*candidates, None], kind))
        pairs, placed, labels = match_pairs(*both), match_pairs(*both, places=True), match_labels(*both)
        for row, candidate in enumerate(candidates):
            ours, theirs = (Counter(pair_terms(tree, PairOptions())) for tree in (query, candidate))
            dice = 2 * (ours & theirs).total() / (ours + theirs).total()
            assert pairs.dice()[row] == pytest.approx(dice)
            ours, theirs = (Counter(tree.tuples(window=2, eob=True)) for tree in (query, candidate))
            found = sum(times for pair, times in ours.items() if pair in theirs)
            recall, precision = found / ours.total(), found / theirs.total()
            assert placed.as_run()[row] == pytest.approx(2 * recall * precision / (recall + precision + 1))
            ours, theirs = Counter(query.nodes), Counter(candidate.nodes)
            assert labels.shared()[row] == (ours & theirs).total()
            assert labels.sizes[row] == len(candidate.nodes)
        assert pairs.dice()[-1] == placed.as_run()[-1] == labels.dice()[-1] == 0  # no tree

    check()


def test_six_symbol_pairs_against_the_same_six_are_two_thirds_as_run_and_1_as_dice() -> None:
    tree = slt_from_latex("x^2+1")
    matches = match_pairs(*Numbered.both(tree, PackedTrees.of_trees([tree], "slt")), places=True)
    assert matches.times.sum() == 6
    assert matches.as_run().tolist() == pytest.approx([2 / 3])
    assert matches.dice().tolist() == [1.0]


def test_the_place_of_a_pair_distinguishes_it_only_as_run() -> None:
    query, shifted = slt_from_latex("x^2"), slt_from_latex("yx^2")
    both = Numbered.both(query, PackedTrees.of_trees([shifted], "slt"))
    assert match_pairs(*both).shared().tolist() == [3]
    assert np.all(match_pairs(*both, places=True).as_run() == 0)

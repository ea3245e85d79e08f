"""Runs of neighbours: within the budget, as long as they can be, and never empty."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr._common.running.processes import runs_within


def test_what_fits_goes_together_and_what_is_too_large_stands_alone() -> None:
    assert runs_within([2, 3, 1, 9, 4, 1], 5) == [range(0, 2), range(2, 3), range(3, 4), range(4, 6)]
    assert runs_within([], 5) == []


@given(st.lists(st.integers(0, 20)), st.integers(1, 30))
def test_runs_hold_all_in_order_and_end_only_where_the_next_does_not_fit(sizes: list[int], budget: int) -> None:
    runs = runs_within(sizes, budget)
    assert [i for run in runs for i in run] == list(range(len(sizes)))
    for run in runs:
        assert len(run) == 1 or sum(sizes[i] for i in run) <= budget
    for run, following in pairwise(runs):
        assert sum(sizes[i] for i in run) + sizes[following.start] > budget

"""Work in other processes: started before it is known, on how many cores, cut into which runs, waiting how."""

import os
import subprocess
import sys
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr._common.running import processes
from pyterrier_mathamr._common.running.processes import Processes, StartedProcesses, WorkerDiedError, runs_within
from pyterrier_mathamr._common.running.worker import Worker

LIMIT = "__import__('sys').getrecursionlimit()"
PREPARE = partial(sys.setrecursionlimit, 4321)


def test_started_processes_are_prepared_and_yield_in_order() -> None:
    with StartedProcesses(Processes(2), PREPARE) as executor:
        executor.start()
        executor.start()
        items = iter([LIMIT, *["6 * 7"] * 100])
        results = executor.map(eval, items)
        assert next(results) == 4321
        assert len(list(items)) > 50  # a few were read ahead
        assert set(results) == {42}
        assert list(executor.map(eval, [LIMIT])) == [sys.getrecursionlimit()]  # as without a start


def evaluated(*items: str) -> list[object]:
    """Evaluate expressions in a started process."""
    with StartedProcesses(Processes(1), PREPARE) as executor:
        executor.start()
        if not items:
            raise ValueError("mine")  # nobody waits for the process
        return list(executor.map(eval, items))


def test_an_error_of_the_work_and_a_process_that_dies_end_the_block() -> None:
    with pytest.raises(ZeroDivisionError):
        evaluated("1", "1 / 0")
    with pytest.raises(WorkerDiedError):
        evaluated("__import__('os')._exit(1)")
    with pytest.raises(ValueError, match="mine"):
        evaluated()


def test_a_process_with_a_limit_counts_on_so_many_cores_at_most(monkeypatch):
    found = processes.usable_cores()
    monkeypatch.setattr(processes, "_cores_left", None)
    processes.limit_cores(found + 1)
    assert processes.usable_cores() == found
    processes.limit_cores(1)
    assert processes.usable_cores() == 1


@given(st.lists(st.integers(0, 20)), st.integers(1, 30))
def test_runs_hold_all_in_order_and_end_only_where_the_next_does_not_fit(sizes: list[int], budget: int) -> None:
    assert runs_within([2, 3, 1, 9, 4, 1], 5) == [range(0, 2), range(2, 3), range(3, 4), range(4, 6)]
    runs = runs_within(sizes, budget)
    assert [i for run in runs for i in run] == list(range(len(sizes)))
    for run in runs:
        assert len(run) == 1 or sum(sizes[i] for i in run) <= budget
    for run, following in pairwise(runs):
        assert sum(sizes[i] for i in run) + sizes[following.start] > budget


POLICY = "OMP_WAIT_POLICY"
PROGRAM = """
import os, sys
from pyterrier_mathamr.cli import main

sys.argv = ["mathamr", "--version"]
try:
    main()
except SystemExit:
    print(os.environ.get("OMP_WAIT_POLICY"), {"numpy", "torch"} & set(sys.modules))
"""


def policy_of(_: object = None) -> str | None:
    return os.environ.get(POLICY)


def test_libraries_wait_passively_in_all_processes_but_this_one_unless_the_user_chose_otherwise(monkeypatch) -> None:
    for chosen in ("ACTIVE", None):
        monkeypatch.delenv(POLICY) if chosen is None else monkeypatch.setenv(POLICY, chosen)
        assert Worker(policy_of)() == (chosen or "PASSIVE")
        assert policy_of() == chosen
    assert set(Processes(2).map(policy_of, range(9))) == {"PASSIVE"}
    assert policy_of() is None
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "PASSIVE set()"  # before libraries are loaded

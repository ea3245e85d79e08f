"""Processes that are started before their work is known."""

import sys
from functools import partial

import pytest

from pyterrier_mathamr._common.running.processes import Processes, StartedProcesses, WorkerDiedError

LIMIT = "__import__('sys').getrecursionlimit()"
PREPARE = partial(sys.setrecursionlimit, 4321)


def test_started_processes_are_prepared_and_yield_in_order() -> None:
    with StartedProcesses(Processes(2), PREPARE) as executor:
        executor.start()
        executor.start()
        items = iter([LIMIT, *["6 * 7"] * 300])
        results = executor.map(eval, items)
        assert next(results) == 4321
        assert len(list(items)) > 250  # a few were read ahead
        assert set(results) == {42}
        assert list(executor.map(eval, ["1", "2"])) == [1, 2]  # by processes as without a start


def test_without_a_start_the_work_is_done_as_without_these() -> None:
    with StartedProcesses(Processes(2), PREPARE) as executor:
        assert list(executor.map(eval, [LIMIT])) == [sys.getrecursionlimit()]


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

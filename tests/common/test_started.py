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
        items = iter([LIMIT, *map(str, range(30))])
        found = list(executor.map(eval, items))
        assert list(executor.map(eval, ["1", "2"])) == [1, 2]  # by processes as without a start
    assert found == [4321, *range(30)]


def test_items_are_read_a_few_ahead() -> None:
    items = map(str, range(1000))
    with StartedProcesses(Processes(1), PREPARE) as executor:
        executor.start()
        results = executor.map(eval, items)
        assert next(results) == 0
        assert int(next(items)) < 10


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

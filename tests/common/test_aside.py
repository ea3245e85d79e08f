"""Work beside other work: its result, its errors, and its end with whoever asked for it."""

import os
import signal
import time
from functools import partial

import pytest

from pyterrier_mathamr._common.running.aside import aside
from pyterrier_mathamr._common.running.processes import WorkerDiedError


def squares(up_to, tick):
    found = []
    for i in range(up_to):
        found.append(i * i)
        tick()
    return os.getpid(), found


def failing(tick):
    raise LookupError("no such post")


def killed(tick):
    os.kill(os.getpid(), signal.SIGKILL)


def endless(path, tick):
    path.write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def _stop_when_written(file):
    while not file.exists() or not file.read_text():
        time.sleep(0.01)
    raise KeyboardInterrupt


def test_work_is_done_in_another_process_and_its_result_comes_back() -> None:
    with aside(partial(squares, 5)) as work:
        pid, found = work.result("squaring", "numbers", total=5, verbose=False)
    assert pid != os.getpid()
    assert found == [0, 1, 4, 9, 16]


def test_waiting_counts_what_is_done(capfd) -> None:
    with aside(partial(squares, 700)) as work:
        work.result("squaring", "numbers", total=700, verbose=True)
    assert "700/700 numbers" in capfd.readouterr().err


def test_an_error_of_the_work_is_raised_where_its_result_is_asked_for() -> None:
    with pytest.raises(LookupError, match="no such post"), aside(failing) as work:
        work.result("failing", "posts", total=1, verbose=False)


def test_a_process_that_is_killed_is_named() -> None:
    with pytest.raises(WorkerDiedError), aside(killed) as work:
        work.result("dying", "posts", total=1, verbose=False)


def test_the_process_ends_with_an_error_of_the_body(tmp_path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(KeyboardInterrupt), aside(partial(endless, file)):
        _stop_when_written(file)
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)

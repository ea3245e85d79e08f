"""A call in a child ends within its limits, whatever it does, and the next one finds a child that works."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.worker import MEMORY, OverLimitError, Worker, WorkerDiedError
from tests.waiting import gone, until


def work(what, value=None):
    """The task of a child."""
    if what == "spin":
        while True:
            pass
    if what == "native":
        return pow(7, 10**9, None)  # one call of C code, which hears no signal of Python
    if what == "memory":
        return len(bytearray(64 << 30))
    if what == "crash":
        return ctypes.string_at(0)
    if what == "sleep":
        time.sleep(60)
    if what == "named":
        raise ConfigError("k", value, "a number")
    if what == "odd":
        raise _OddError(1, 2)
    if what == "said":
        print(value, flush=True)
    return os.getpid(), value


class _OddError(Exception):
    """Cannot be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


@pytest.fixture(scope="module")
def guarded():
    return Worker(work, seconds=0.3, memory=MEMORY)


@pytest.mark.parametrize(
    ("what", "message"),
    [("spin", "more than 0.3 s"), ("native", "more than 0.3 s"), ("sleep", "more than 0.3 s"), ("crash", "crashes")],
)
def test_a_call_that_does_not_end_is_ended_and_the_next_one_is_answered(guarded, what, message) -> None:
    with pytest.raises(OverLimitError, match=message):
        guarded(what)
    assert guarded("fine", "x")[1] == "x"


def test_its_own_errors_come_through_and_one_that_cannot_is_described(guarded) -> None:
    with pytest.raises((OverLimitError, MemoryError)):
        guarded("memory")
    with pytest.raises(ConfigError, match="k='y'"):
        guarded("named", "y")
    with pytest.raises(OverLimitError, match="_OddError: 1 2"):
        guarded("odd")


def test_one_child_serves_all_calls_and_threads(guarded) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: guarded("fine", i), range(200)))
    assert [value for _, value in answers] == list(range(200))
    assert len({pid for pid, _ in answers}) == 1


def test_an_interrupted_call_leaves_no_answer_for_the_next_one() -> None:
    guarded = Worker(work, seconds=60)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            guarded("spin")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert guarded("fine", "x")[1] == "x"


def test_a_worker_without_limits_reports_how_it_ended_and_is_replaced(tmp_path) -> None:
    worker = Worker(work, one_thread=True, log=tmp_path / "log")
    assert worker.pid is None
    first = worker("fine")[0]
    assert worker.pid == first
    with pytest.raises(WorkerDiedError, match="killed by signal 11"):
        worker("crash")
    threading.Thread(target=lambda: until(lambda: worker.pid is not None) and worker.stop()).start()
    with pytest.raises(WorkerDiedError, match="killed by signal 9"):
        worker("sleep")
    assert worker("said", "to the log")[1] == "to the log"
    assert (tmp_path / "log").read_text() == "to the log\n"
    worker.stop()
    assert worker.pid is None
    assert worker("fine")[0] != first


def test_a_child_ends_with_its_parent() -> None:
    code = (
        "import os, sys; sys.path.insert(0, 'tests/common'); import test_worker as t\n"
        "print(t.Worker(t.work, seconds=5)('fine')[0], flush=True); os._exit(0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pid = int(ran.stdout)
    assert until(lambda: gone(pid) or "Z" in _state(pid))


def _state(pid: int) -> str:
    ran = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return ran.stdout or "Z"

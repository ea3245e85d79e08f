"""The server ends on SIGTERM and SIGINT in every state, and its processes end with it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

import httpx

from tests.engine.conftest import QUERY

pytestmark = [pytest.mark.enable_socket, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")]

SIGNALS = [signal.SIGTERM, signal.SIGINT]
PATIENCE = 60  # seconds; two usually suffice


@contextlib.contextmanager
def served(path: Path) -> Iterator[subprocess.Popen]:
    """A server in a separate process."""
    command = [sys.executable, "-m", "pyterrier_mathamr", "serve", str(path), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen) -> str:
    return process.stdout.readline().split(": ", 1)[1].split()[0]


def children_of(process: subprocess.Popen) -> list[int]:
    return [int(name) for name in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()] + [
        int(number)
        for thread in Path(f"/proc/{process.pid}/task").iterdir()
        if thread.name != str(process.pid)
        for number in (thread / "children").read_text().split()
    ]


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def ends(process: subprocess.Popen, number: int) -> None:
    """Send a signal, and wait for the end of the server and of its processes."""
    children = children_of(process)
    process.send_signal(number)
    process.wait(PATIENCE)
    until = time.monotonic() + PATIENCE
    while any(map(alive, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, children))


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.1, 0.3, 0.6])
def test_a_server_that_starts_is_ended(engine, delay) -> None:
    with served(engine.path) as process:
        time.sleep(delay)
        ends(process, signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_server_that_opens_its_engine_is_ended(engine, number) -> None:
    with served(engine.path) as process:
        address = address_of(process)
        assert httpx.get(address, timeout=PATIENCE).status_code == 200  # the page is there before the engine
        ends(process, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_server_that_waits_is_ended(engine, number) -> None:
    with served(engine.path) as process:
        address = address_of(process)
        assert httpx.get(f"{address}api/search", params={"q": QUERY}, timeout=60).json()["systems"][0]["results"]
        ends(process, number)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_server_whose_requests_hang_is_ended_and_answers_other_requests_until_then(engine, number) -> None:
    with served(engine.path) as process:
        address = address_of(process)
        assert httpx.get(f"{address}api/search", params={"q": QUERY}, timeout=60).status_code == 200
        for child in children_of(process):
            os.kill(child, signal.SIGSTOP)

        def hang(path: str) -> None:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(address + path, params={"q": QUERY}, timeout=60)

        waiting = [threading.Thread(target=hang, args=(path,)) for path in 4 * ["api/search", "api/preview"]]
        for thread in waiting:
            thread.start()
        time.sleep(0.5)
        assert httpx.get(address, timeout=PATIENCE).status_code == 200
        ends(process, number)
        for thread in waiting:
            thread.join()

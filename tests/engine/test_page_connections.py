"""Connections that are slow, silent, broken or too many end without disturbing others."""

import asyncio
import contextlib
import http.client
import resource
import socket
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

from pyterrier_mathamr.engine.page import Answers, connections, make_app, server
from tests.engine.conftest import QUERY, listening

pytestmark = pytest.mark.enable_socket

RUN = "import sys; sys.argv[0] = 'mathamr'; runpy.run_module('pyterrier_mathamr', run_name='__main__')"
ASKED = b"GET /api/search?q=words HTTP/1.1\r\nHost: localhost\r\n"
TOKEN = "abcdefghijklmnop"
SIGNING_IN = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nt"
PATIENCE = 60  # seconds after which a test gives up, not what is promised


@pytest.fixture(scope="module")
def port(engine) -> Iterator[int]:
    """A server with short deadlines and few connections."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "SECONDS_TO_ASK", 0.6)
        patch.setattr(connections, "MOST", 30)
        with listening(make_app(Answers(engine))) as port:
            yield port


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def closed(connection: socket.socket) -> bool:
    """Read until the server closes a connection."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(65_536):
            pass
    return True


def answers(port: int) -> bool:
    asked = {"params": {"q": QUERY}, "headers": {"Authorization": f"Bearer {TOKEN}"}}
    found = httpx.get(f"http://127.0.0.1:{port}/api/search", timeout=PATIENCE, **asked).json()
    return found["systems"][0]["results"][0]["docno"] == "basel"


def test_a_request_that_is_sent_too_slowly_ends_though_it_goes_on(port) -> None:
    def send_slowly(connection: socket.socket) -> None:
        for byte in ASKED + 1_000 * b"x":
            time.sleep(0.05)
            connection.send(bytes([byte]))

    with opened(port) as slow, pytest.raises(ConnectionError):
        send_slowly(slow)
    assert answers(port)


def test_silent_connections_end(port) -> None:
    silent = [opened(port) for _ in range(10)]
    assert answers(port)
    assert all(closed(each) for each in silent)


def test_a_request_whose_body_never_ends_is_answered_and_its_connection_ends(port) -> None:
    with opened(port) as connection:
        connection.sendall(ASKED + b"Content-Length: 1000000\r\n\r\nx")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert closed(connection)


def test_a_request_is_not_waited_for_longer_because_its_body_has_begun(engine, monkeypatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_TO_ASK", 0.6)
    with listening(make_app(Answers(engine), token=TOKEN)) as port, opened(port) as connection:
        connection.sendall(SIGNING_IN)
        assert closed(connection)  # not after the two minutes for an answer, for which nobody waits here
        assert answers(port)


def test_a_second_request_on_a_connection_has_its_own_time(port) -> None:
    def pauses() -> bool:
        """Ask three times with pauses; return whether the connection was kept."""
        with contextlib.closing(http.client.HTTPConnection("localhost", port, timeout=PATIENCE)) as connection:
            connection.connect()
            first = connection.sock
            for _ in range(3):
                time.sleep(0.4)
                connection.request("GET", "/api/settings")
                assert connection.getresponse().read().startswith(b"{")
            return connection.sock is first

    assert any(pauses() for _ in range(20))  # on a busy machine a pause may be too long


def test_two_requests_sent_at_once_are_both_answered(port) -> None:
    with opened(port) as connection:
        connection.sendall(2 * (ASKED + b"\r\n"))
        received = b""
        with contextlib.suppress(TimeoutError):
            while received.count(b"HTTP/1.1 200") < 2 and (piece := connection.recv(65_536)):
                received += piece
        assert received.count(b"HTTP/1.1 200") == 2


def test_more_silent_connections_than_are_allowed_shut_nobody_out(port) -> None:
    silent = [opened(port) for _ in range(60)]
    assert answers(port)
    for each in silent:
        each.close()


@pytest.mark.parametrize("token", ["", TOKEN])
def test_more_slow_bodies_than_connections_are_allowed_shut_nobody_out(engine, monkeypatch, token) -> None:
    monkeypatch.setattr(connections, "MOST", 30)
    monkeypatch.setattr(connections, "SECONDS_TO_ASK", 10 * PATIENCE)
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(listening(make_app(Answers(engine), token=token)))
        for _ in range(60):
            stack.enter_context(opened(port)).sendall(SIGNING_IN)
        assert answers(port)


def test_connections_that_have_not_signed_in_are_closed_first(engine, monkeypatch) -> None:
    monkeypatch.setattr(connections, "MOST", 30)
    monkeypatch.setattr(connections, "SECONDS_TO_ASK", 10 * PATIENCE)
    refused = ASKED.replace(b"localhost", b"evil.example") + b"\r\n"
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(listening(make_app(Answers(engine), token=TOKEN)))
        signed_in = stack.enter_context(opened(port))
        for number in range(60):
            if number in (0, 59):
                signed_in.sendall(ASKED + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
                answer = signed_in.recv(65_536)
                while not answer.endswith(b"}"):  # the body may come after the headers
                    answer += signed_in.recv(65_536)
                assert answer.startswith(b"HTTP/1.1 200")
            stranger = stack.enter_context(opened(port))
            stranger.sendall([b"", SIGNING_IN, ASKED + b"\r\n", refused][number % 4])


def test_a_client_whose_requests_wait_on_all_connections_does_not_shut_another_one_out(monkeypatch) -> None:
    monkeypatch.setattr(connections, "MOST", 30)
    done = threading.Event()

    def answer(name: str, *_: object) -> dict[str, list]:
        if name != "settings":
            done.wait(PATIENCE)
        return {}

    with contextlib.ExitStack() as stack:
        port = stack.enter_context(listening(make_app(answer)))
        stack.callback(done.set)
        for _ in range(40):
            stack.enter_context(opened(port)).sendall(ASKED + b"X-Forwarded-For: 192.0.2.1\r\n\r\n")
        time.sleep(0.2)
        for _ in range(3):
            found = httpx.get(f"http://127.0.0.1:{port}/api/settings", timeout=PATIENCE)
            assert found.status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        ASKED + b"X: " + b"x" * 200_000,
    ],
)
def test_bytes_that_are_not_a_request_end_their_connection(port, sent) -> None:
    with opened(port) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
        assert closed(connection)
    assert answers(port)


def test_a_burst_of_idle_connections_within_the_limit_of_files_does_not_disturb_good_requests(engine) -> None:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed[1] != resource.RLIM_INFINITY and allowed[1] < 2_000:
        pytest.skip("this process may not have 2,000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(allowed[0], 2_000), allowed[1]))
    arguments = ["serve", str(engine.path), "--port", "0"]
    limited = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)); "
        "from pyterrier_mathamr.engine.page import connections; "
        f"connections.SECONDS_TO_ASK = {10 * PATIENCE}; {RUN}"  # idle connections do not end by themselves meanwhile
    )
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, allowed)
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-uc", limited, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
        stack.callback(process.kill)
        port = int(process.stdout.readline().decode().split(": ", 1)[1].split()[0].rstrip("/").rpartition(":")[2])
        assert answers(port)
        for _ in range(2):
            idle = [stack.enter_context(socket.socket()) for _ in range(1_500)]
            for each in idle:
                each.setblocking(False)  # all at once, not one after the other
                each.connect_ex(("127.0.0.1", port))
            assert answers(port)
            for each in idle:
                each.close()
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) < 1_024
        process.terminate()
        assert b"out of system resource" not in process.stderr.read()


def test_fewer_files_allow_fewer_connections(monkeypatch) -> None:
    monkeypatch.setattr(connections, "MOST", 400)
    found = []
    for files in (resource.RLIM_INFINITY, 4_096, 1_024, 256, 16):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        found.append(connections.most_connections())
    assert found == [400, 400, 400, 96, 8]


def test_an_answer_does_not_wait_until_the_one_before_is_acknowledged() -> None:
    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection: socket.socket = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with server._listening("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(connected, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                writer.close()
                return await found

    assert asyncio.run(accepted())

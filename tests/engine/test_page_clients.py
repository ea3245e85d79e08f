"""Clients: slow, silent, broken or too many connections end without disturbing others, and clients take turns."""

import asyncio
import contextlib
import http.client
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

import httpx

from pyterrier_mathamr.engine.page import Answers, connections, make_app, server, workers
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


def test_more_silent_connections_than_are_allowed_shut_nobody_out_and_end(port) -> None:
    silent = [opened(port) for _ in range(60)]
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


@pytest.fixture
def few_and_patient(monkeypatch) -> None:
    """Few connections, which do not end by themselves."""
    monkeypatch.setattr(connections, "MOST", 30)
    monkeypatch.setattr(connections, "SECONDS_TO_ASK", 10 * PATIENCE)


@pytest.mark.parametrize("token", ["", TOKEN])
@pytest.mark.usefixtures("few_and_patient")
def test_more_slow_bodies_than_connections_are_allowed_shut_nobody_out(engine, token) -> None:
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(listening(make_app(Answers(engine), token=token)))
        for _ in range(60):
            stack.enter_context(opened(port)).sendall(SIGNING_IN)
        assert answers(port)


@pytest.mark.usefixtures("few_and_patient")
def test_connections_that_have_not_signed_in_are_closed_first(engine) -> None:
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


NO_REQUESTS = [
    b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00",
    ASKED + b"X: " + b"x" * 200_000,
]  # fmt: skip


def test_bytes_that_are_not_a_request_end_their_connection(port) -> None:
    for sent in NO_REQUESTS:
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
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = stack.enter_context(subprocess.Popen([sys.executable, "-uc", limited, *arguments], **pipes))
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


# ---- turns


PLACES = 2
SLOW = 0.1  # seconds of a hostile search; a good one takes none
Ask = Callable[..., tuple[int, float]]


@pytest.fixture
def ask(monkeypatch) -> Iterator[Ask]:
    """Ask a server with two places; returns the status and the seconds that a client waited."""
    monkeypatch.setattr(server, "SEARCHES", PLACES)
    with listening(make_app(answer, token=TOKEN)) as port:
        yield asking(port)


def answer(_: str, q: str, *__: object) -> dict[str, str]:
    time.sleep(SLOW if q.startswith("slow") else 0)
    return {"q": q}


def asking(port: int) -> Ask:
    def ask(question: str, client: str, timeout: float = PATIENCE, **headers: str) -> tuple[int, float]:
        given = {"X-Forwarded-For": client, "Authorization": f"Bearer {TOKEN}", **headers}
        start = time.monotonic()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as connection:
            connection.request("GET", f"/api/search?q={question}", headers=given)
            return connection.getresponse().status, time.monotonic() - start

    return ask


@contextlib.contextmanager
def open_requests(ask: Ask, *requests: tuple[str, str], **headers: str) -> Iterator[list[int]]:
    """Keep requests open, each asked again when it is answered; yields the statuses so far."""
    ended, statuses = threading.Event(), list[int]()

    def keep(question: str, client: str) -> None:
        while not ended.is_set():
            statuses.append(ask(question, client, **headers)[0])

    threads = [threading.Thread(target=keep, args=request) for request in requests]
    for thread in threads:
        thread.start()
    time.sleep(3 * SLOW)
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_client_with_many_open_requests_delays_another_one_by_little(ask) -> None:
    hostile = [(f"slow{number}", "192.0.2.1") for number in range(60)]
    with open_requests(ask, *hostile):
        found = [ask("good", "192.0.2.2") for _ in range(10)]
    assert [status for status, _ in found] == 10 * [200]
    assert sorted(seconds for _, seconds in found)[5] < 5 * SLOW  # in order of arrival: 60 / PLACES · SLOW


def test_many_greedy_clients_delay_another_one_by_at_most_its_share(ask) -> None:
    hostile = [("slow", f"192.0.2.{number % 30}") for number in range(60)]
    with open_requests(ask, *hostile):
        found = [ask("good", "198.51.100.1") for _ in range(10)]
    assert [status for status, _ in found] == 10 * [200]
    assert max(seconds for _, seconds in found) < 2 * 30 / PLACES * SLOW
    assert sorted(seconds for _, seconds in found)[5] < 5 * SLOW  # the turn of a client that used little comes soon


def test_new_clients_that_come_all_the_time_do_not_keep_others_waiting(ask) -> None:
    fresh = iter(range(10_000))

    def ask_as_another(question: str, _: str) -> tuple[int, float]:
        return ask(question, f"192.0.{next(fresh) // 250}.{next(fresh) % 250}")

    with open_requests(ask_as_another, *10 * [("slow", "")]):
        found = [ask("slow", "198.51.100.1") for _ in range(3)]
    assert [status for status, _ in found] == 3 * [200]
    assert max(seconds for _, seconds in found) < 12 * 10 / PLACES * SLOW


def test_short_questions_come_before_long_ones_of_clients_that_used_as_much(ask) -> None:
    hostile = [("slow" + 3_000 * "x", f"192.0.2.{number}") for number in range(60)]
    with open_requests(ask, *hostile):
        status, seconds = ask("good", "198.51.100.1")
    assert (status, seconds < 10 * SLOW) == (200, True)  # in order of arrival: 60 / PLACES · SLOW


def test_a_place_is_kept_from_slow_requests(monkeypatch) -> None:
    monkeypatch.setattr(server, "SEARCHES", PLACES)
    monkeypatch.setattr(workers, "_SLOW", SLOW / 2)
    running, together = list[str](), list[int]()

    def counted(name: str, q: str, *_: object) -> dict[str, str]:
        running.append(q)
        together.append(len(running))
        try:
            return answer(name, q)
        finally:
            running.remove(q)

    slow = [(f"slow{number}", f"192.0.2.{number}") for number in range(6)]
    with listening(make_app(counted)) as port, open_requests(asking(port), *slow):
        time.sleep(10 * SLOW)  # by when each client has had an answer
        together.clear()
        time.sleep(5 * SLOW)
        assert set(together) == {1}


def test_a_client_has_a_cap_that_others_do_not_notice(ask, monkeypatch) -> None:
    monkeypatch.setattr(workers, "WAITING", 6)
    hostile = [(f"slow{number}", "192.0.2.1") for number in range(12)]
    with open_requests(ask, *hostile) as statuses:
        assert [ask("good", f"198.51.100.{number}")[0] for number in range(20)] == 20 * [200]
    assert set(statuses) == {200, 503}


def test_a_question_that_is_repeated_neither_delays_nor_refuses_another_one_of_the_same_client(
    ask, monkeypatch
) -> None:
    monkeypatch.setattr(workers, "WAITING", 60)
    with open_requests(ask, *40 * [("slow", "192.0.2.1")]) as statuses:
        found = [ask("good", "192.0.2.1") for _ in range(5)]
    assert [status for status, _ in found] == 5 * [200]
    assert sorted(seconds for _, seconds in found)[2] < 10 * SLOW  # in order of arrival: 30 · SLOW
    assert 503 in statuses


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),  # a household has a whole /64
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
    ],
)
def test_a_client_is_an_address(ask, monkeypatch, first, second, same) -> None:
    monkeypatch.setattr(workers, "WAITING", 2)
    statuses = set[int]()
    with open_requests(ask, *8 * [("slow", first)]):
        for _ in range(20 if same else 5):
            time.sleep(SLOW / 5)  # who asks as soon as it is answered has its place again
            statuses.add(ask("slow", second)[0])
            if 503 in statuses:  # a refusal takes a second
                break
    assert (503 in statuses) == same


def test_an_address_counts_only_from_a_trusted_proxy(monkeypatch) -> None:
    monkeypatch.setattr(workers, "WAITING", 2)
    with listening(make_app(answer), forwarded_allow_ips=["192.0.2.99"]) as port:
        ask = asking(port)
        with open_requests(ask, *((f"slow{number}", f"192.0.2.{number}") for number in range(8))) as statuses:
            time.sleep(SLOW)
    assert 503 in statuses


def test_readers_at_one_address_who_signed_in_are_different_clients(monkeypatch) -> None:
    monkeypatch.setattr(workers, "WAITING", 4)
    with listening(make_app(answer, token=TOKEN)) as port:

        def signed_in() -> dict[str, str]:
            cookie = httpx.post(f"http://127.0.0.1:{port}/", data={"token": TOKEN}).headers["set-cookie"]
            return {"Authorization": "", "Cookie": cookie.partition(";")[0]}

        ask, greedy, good = asking(port), signed_in(), signed_in()
        with open_requests(ask, *((f"slow{number}", "") for number in range(10)), **greedy) as statuses:
            assert [ask("good", "", **good)[0] for _ in range(10)] == 10 * [200]
            forged = {**good, "Cookie": good["Cookie"].replace("=", "=0")}
            assert ask("good", "", **forged)[0] == 401
        assert 503 in statuses


def test_a_client_that_left_while_it_waited_costs_nothing(ask) -> None:
    asked = []

    def counted(_: str, q: str, *__: object) -> dict[str, str]:
        asked.append(q)
        return answer(_, q)

    with listening(make_app(counted)) as port:
        ask = asking(port)
        with open_requests(ask, *8 * [("slow", "192.0.2.1")]):
            for number in range(5):
                with pytest.raises(TimeoutError):
                    ask(f"left{number}", "192.0.2.1", timeout=0.01)
    assert not [question for question in asked if question.startswith("left")]

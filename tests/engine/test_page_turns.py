"""Clients take turns: one with hundreds of requests delays the others by little, and none gets errors because of it."""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

import httpx

from pyterrier_mathamr.engine.page import make_app, server, turns
from tests.engine.conftest import listening

pytestmark = pytest.mark.enable_socket

TOKEN = "abcdefghijklmnop"
PLACES = 2
SLOW = 0.1  # seconds of a hostile search; a good one takes none
PATIENCE = 60  # seconds after which a test gives up, not what is promised
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
    monkeypatch.setattr(turns, "_SLOW", SLOW / 2)
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
    monkeypatch.setattr(turns, "WAITING", 6)
    hostile = [(f"slow{number}", "192.0.2.1") for number in range(12)]
    with open_requests(ask, *hostile) as statuses:
        assert [ask("good", f"198.51.100.{number}")[0] for number in range(20)] == 20 * [200]
    assert set(statuses) == {200, 503}


def test_a_question_that_is_repeated_neither_delays_nor_refuses_another_one_of_the_same_client(
    ask, monkeypatch
) -> None:
    monkeypatch.setattr(turns, "WAITING", 60)
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
    monkeypatch.setattr(turns, "WAITING", 2)
    found = list[int]()
    with open_requests(ask, *8 * [("slow", first)]):
        for _ in range(20 if same else 5):
            time.sleep(SLOW / 5)  # who asks as soon as it is answered has its place again
            found.append(ask("slow", second)[0])
    assert (503 in found) == same


def test_an_address_counts_only_from_a_trusted_proxy(monkeypatch) -> None:
    monkeypatch.setattr(turns, "WAITING", 2)
    with listening(make_app(answer), forwarded_allow_ips=["192.0.2.99"]) as port:
        ask = asking(port)
        with open_requests(ask, *((f"slow{number}", f"192.0.2.{number}") for number in range(8))) as statuses:
            time.sleep(SLOW)
    assert 503 in statuses


def test_readers_at_one_address_who_signed_in_are_different_clients(monkeypatch) -> None:
    monkeypatch.setattr(turns, "WAITING", 4)
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

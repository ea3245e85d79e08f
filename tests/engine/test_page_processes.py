"""The server's processes: questions made to occupy it are ended, others are answered meanwhile, and signals end all."""

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

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

import httpx
from starlette.testclient import TestClient

from pyterrier_mathamr._common.running.worker import OverLimitError
from pyterrier_mathamr.engine.page import SeparateAnswers, interface, make_app, workers
from tests.engine.conftest import QUERY, built, client_of, get

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, not a part of the package
from serving import HOSTILE


@pytest.fixture(scope="module")
def client(engine):
    """A client of the server with its processes."""
    answers = SeparateAnswers(engine.path)
    with TestClient(make_app(answers), base_url="http://localhost") as client:
        get(client, "/api/search", q=QUERY)
        yield client
    answers.close()


PATHS = [
    ("preview", {}), ("preview", {"mode": "formulas"}), ("search", {}), ("search", {"mode": "formulas"}),
    ("explain", {"docno": "basel"}), ("post", {"docno": "basel"}),
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_question_is_answered_or_ended_and_leaves_the_server_as_it_was(client, name) -> None:
    assert len(HOSTILE[name]) <= interface.LONGEST_QUERY
    for path, others in PATHS:
        answer = client.get(f"/api/{path}", params={"q": HOSTILE[name], **others})
        assert answer.status_code in (200, 503), (path, answer.text)
        assert answer.status_code == 200 or len(answer.json()["error"].splitlines()) == 1
    assert get(client, "/api/search", q=QUERY)["systems"][0]["results"][0]["docno"] == "basel"


def test_a_slow_request_is_ended_and_the_next_one_is_answered(engine, monkeypatch) -> None:
    monkeypatch.setattr(workers, "SECONDS", 0.05)  # less than the time to open the engine
    hasty = SeparateAnswers(engine.path)
    with TestClient(make_app(hasty), base_url="http://localhost") as client:
        answer = client.get("/api/search", params={"q": QUERY})
        assert answer.status_code == 503
        assert "too long" in answer.json()["error"]
        assert client.get("/").status_code == 200
        for processes in (hasty._searches, hasty._small):
            for process in processes._all:
                process.seconds = 60.0
        assert get(client, "/api/search", q=QUERY)["systems"][0]["results"][0]["docno"] == "basel"
    hasty.close()


def test_a_process_that_was_ended_has_started_again_when_the_request_is_refused(engine, monkeypatch) -> None:
    monkeypatch.setattr(workers, "SMALL", 1)
    answers = SeparateAnswers(engine.path)
    [process] = answers._small._all
    answers("settings")
    os.kill(process.pid, signal.SIGSTOP)
    threading.Timer(0.2, process.stop).start()
    with pytest.raises(OverLimitError):
        answers("settings")
    assert process.pid is not None
    answers.close()


def test_processes_answer_and_refuse_like_the_engine(client, engine) -> None:
    found = get(client, "/api/search", q=QUERY)["systems"][0]["results"]
    assert [each["docno"] for each in found] == engine.search(QUERY)["docno"].tolist()
    assert client.get("/api/post", params={"docno": "nobody"}).status_code == 404
    assert client.get("/api/graph/basel.svg", params={"sentence": 99}).status_code == 400
    assert client.get("/api/post", params={"docno": "basel", "start": "x"}).status_code == 400
    assert get(client, "/api/settings")["size"] == len(engine)


def test_warming_up_starts_each_searching_process_and_questions_are_answered_meanwhile(engine) -> None:
    answers = SeparateAnswers(engine.path)
    warming = threading.Thread(target=answers.warm_up)
    warming.start()
    found = answers("search", QUERY)["systems"][0]["results"]
    assert found[0]["docno"] == "basel"
    warming.join()
    assert None not in [process.pid for process in answers._searches._all]
    assert [process.pid is None for process in answers._small._all] == [True, False]  # another starts when needed
    answers.close()
    with pytest.raises(OverLimitError):
        answers.warm_up()
    assert [process for process in (*answers._searches._all, *answers._small._all) if process.pid] == []


def test_the_process_of_the_server_loads_neither_frames_nor_models() -> None:
    program = (
        "import sys; from pathlib import Path; "
        "from pyterrier_mathamr.engine.page import SeparateAnswers, make_app; "
        "make_app(SeparateAnswers(Path())); "
        "print([name for name in ('pandas', 'pyterrier', 'torch', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_long_post_is_sent_in_pieces_with_where_the_next_one_begins(tmp_path) -> None:
    text = " ".join(f"Sentence {i} has $x_{{{i}}}$ in it." for i in range(2_000))
    engine = built(tmp_path / "long", [{"id": "long", "title": "Long", "text": text}, {"id": "b", "text": "in it"}])
    with client_of(engine) as client:
        first = get(client, "/api/post", docno="long", q="sentence", start="0")
        assert (first["start"], first["html"].startswith('<p class="title">Long</p>')) == (0, True)
        assert first["end"] <= 50_000 < first["characters"]
        second = get(client, "/api/post", docno="long", start=first["end"])
        assert (second["start"], "title" in second["html"]) == (first["end"], False)
        explained = get(client, "/api/explain", docno="long", q="sentence $x_{1900}$")
        assert explained["document"]["end"] - explained["document"]["start"] <= 50_000
        total = sum(part["contribution"] for part in explained["parts"]) + explained["rest"]["contribution"]
        assert total == pytest.approx(explained["score"], abs=1e-6)
        short = get(client, "/api/post", docno="b")
        assert (short["start"], short["end"]) == (0, short["characters"])


# ---- signals


PATIENCE = 60  # seconds; two usually suffice
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


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


STATES = [
    *((delay, signal.SIGTERM) for delay in (0.1, 0.3, 0.6)),  # while it starts
    *(("", number) for number in (signal.SIGTERM, signal.SIGINT)),  # the page is there before the engine is open
    *(("api/search", number) for number in (signal.SIGTERM, signal.SIGINT)),  # while it waits
]


@needs_proc
@pytest.mark.slow
@pytest.mark.enable_socket
@pytest.mark.parametrize(("state", "number"), STATES)
def test_a_server_is_ended_in_each_state(engine, state: float | str, number: int) -> None:
    with served(engine.path) as process:
        if isinstance(state, float):
            time.sleep(state)
        else:
            address = address_of(process) + state
            assert httpx.get(address, params={"q": QUERY}, timeout=PATIENCE).status_code == 200
        ends(process, number)


@needs_proc
@pytest.mark.enable_socket
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

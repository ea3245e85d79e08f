"""The page's server: answers, limits and headers, and text that stays text whatever it holds."""

import json
import random
import string
import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from pyterrier_mathamr.engine.page import Answers, make_app, server
from tests.engine.conftest import QUERY, built

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> \"'> $<b>x</b>$ \\(a\\) </textarea>"


@pytest.fixture(scope="module")
def client(engine) -> Iterator[TestClient]:
    with TestClient(make_app(Answers(engine, ["bm25", "blend"])), base_url="http://localhost") as client:
        yield client  # in one event loop, as a server has it


def get(client: TestClient, path: str, **parameters) -> dict:
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_search_answers_with_each_system_and_what_moved(client, engine) -> None:
    answer = get(client, "/api/search", q=QUERY)
    assert [system["name"] for system in answer["systems"]] == ["BM25", "BM25 + MathAMR+"]
    blend = answer["systems"][1]["results"]
    assert [result["docno"] for result in blend] == engine.search(QUERY)["docno"].tolist()
    assert blend[0]["moved"] is not None
    assert 'class="formula part-0"' in answer["query_html"]
    assert 'class="formula part-0"' in blend[1]["snippet_html"]
    assert "<mark>converges</mark>" in blend[0]["snippet_html"]


def test_an_explanation_adds_up_and_colours_what_matches(client, engine) -> None:
    answer = get(client, "/api/explain", q=QUERY, docno="basel")
    assert answer["score"] == pytest.approx(engine.search(QUERY)["score"].iloc[0], abs=1e-4)
    assert sum(part["contribution"] for part in answer["parts"]) == pytest.approx(answer["score"], abs=1e-6)
    assert "part-0" in answer["query_html"]
    assert "part-0" in answer["document_html"]


def test_formulas_previews_posts_and_graphs_are_answered(client) -> None:
    found = get(client, "/api/search", q="√π", mode="formulas")["systems"][0]["results"]
    assert found[0]["docno"] == "gauss#1"
    assert found[0]["post_id"] == "gauss"
    assert "<math" in get(client, "/api/preview", q="$x^2$")["html"]
    assert "integral" in get(client, "/api/post", docno="gauss")["html"]
    graph = client.get("/api/graph/gauss.svg")
    assert graph.headers["content-type"].startswith("image/svg+xml")
    assert graph.text.startswith("<svg")
    assert client.get("/api/graph/gauss.svg?sentence=1").text.startswith("<svg")
    assert client.get("/api/graph/gauss.svg?sentence=99").status_code == 400


def test_what_a_person_wrote_is_never_html(tmp_path) -> None:
    posts = [
        {"docno": HOSTILE, "title": HOSTILE, "text": HOSTILE + " words"},
        {"docno": "b", "html": f"<p>{HOSTILE}</p>"},
    ]
    client = TestClient(make_app(Answers(built(tmp_path / "e", posts))), base_url="http://localhost")
    answers = [
        get(client, "/api/search", q=f"words {HOSTILE}"),
        get(client, "/api/explain", q=f"words {HOSTILE}", docno=HOSTILE),
        get(client, "/api/post", docno="b"),
        get(client, "/api/preview", q=HOSTILE),
        get(client, "/api/settings"),
    ]
    for html in _html_of(answers):
        assert "<script" not in html
        assert "<img" not in html
        assert "<b>" not in html
    assert "<script" not in client.get("/api/graph/b.svg").text


def _html_of(value) -> list[str]:
    if isinstance(value, dict):
        return [text for name, of in value.items() for text in ([of] if name.endswith("html") else _html_of(of))]
    return [text for of in value for text in _html_of(of)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("/api/search", {"q": "x" * 5_000}, 400),
        ("/api/search", {"q": "x", "mode": "other"}, 400),
        ("/api/explain", {"q": "x"}, 400),
        ("/api/explain", {"q": "x", "docno": "nobody"}, 404),
        ("/api/post", {"docno": "nobody"}, 404),
        ("/api/graph/nobody.svg", {}, 404),
        ("/api/nothing", {}, 404),
        ("/static/../server.py", {}, 404),
        ("/static/%2e%2e/server.py", {}, 404),
    ],
)
def test_a_wrong_request_is_answered_with_its_status(client, path, parameters, status) -> None:
    assert client.get(path, params=parameters).status_code == status


def test_headers_forbid_everything_from_elsewhere_and_other_names_are_refused(client) -> None:
    page = client.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "http" not in page.text.replace("http-equiv", "")
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.post("/api/search").status_code == 405


def test_a_fault_is_one_line_and_a_busy_server_says_so(engine, monkeypatch) -> None:
    answers = Answers(engine)
    client = TestClient(make_app(answers), base_url="http://localhost", raise_server_exceptions=False)
    monkeypatch.setattr(answers, "search", lambda *_: 1 / 0)
    answer = client.get("/api/search", params={"q": "x"})
    assert (answer.status_code, list(answer.json())) == (500, ["error"])
    assert "ZeroDivision" not in answer.text
    monkeypatch.setattr(server, "WAITING", 0)
    answer = client.get("/api/search", params={"q": "x"})
    assert answer.status_code == 503
    assert "retry-after" in answer.headers


def test_random_requests_never_fail(client) -> None:
    random_ = random.Random(1)
    alphabet = string.printable + "∑√²$\\{}<>&%\x00\ud7ff"
    for _ in range(150):
        text = "".join(random_.choices(alphabet, k=random_.randrange(60)))
        path = random_.choice(["/api/search", "/api/preview", "/api/explain", "/api/post"])
        answer = client.get(path, params={"q": text, "docno": random_.choice(["basel", text]), "mode": "posts"})
        assert answer.status_code in (200, 400, 404), (path, text, answer.text)
        json.loads(answer.text)


def test_requests_at_the_same_time_have_the_answers_of_requests_alone(client) -> None:
    queries = [QUERY, "groups and rings", "$A$", "√π"] * 4
    alone = {query: get(client, "/api/search", q=query)["systems"][1]["results"] for query in set(queries)}
    found: list[tuple[str, list]] = []

    def ask(query: str) -> None:
        found.append((query, get(client, "/api/search", q=query)["systems"][1]["results"]))

    threads = [threading.Thread(target=ask, args=(query,)) for query in queries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(queries)
    for query, results in found:
        assert [each["docno"] for each in results] == [each["docno"] for each in alone[query]]

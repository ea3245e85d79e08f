"""The page's server: its description, limits, headers and names, and many requests at a time."""

import json
import random
import string
import threading
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from pyterrier_mathamr.engine.page import Answers, make_app, server
from pyterrier_mathamr.engine.page.server import HEADERS
from tests.engine.conftest import QUERY, get

DESCRIPTION = json.loads((Path(server.__file__).parent / "static" / "openapi.json").read_text())


def described(path: str, answer) -> None:
    """Check an answer against the description of its path and status."""
    responses = DESCRIPTION["paths"][path]["get"]["responses"]
    response = responses[str(answer.status_code)]
    if "$ref" in response:
        response = DESCRIPTION["components"]["responses"][response["$ref"].rpartition("/")[2]]
    [(media, content)] = response["content"].items()
    assert answer.headers["content-type"].startswith(media)
    if media == "application/json":
        jsonschema.validate(answer.json(), {**content["schema"], "components": DESCRIPTION["components"]})


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("/api/settings", {}, 200),
        ("/api/search", {"q": QUERY}, 200),
        ("/api/search", {"q": ""}, 200),
        ("/api/search", {"q": "√π", "mode": "formulas"}, 200),
        ("/api/explain", {"q": QUERY, "docno": "basel"}, 200),
        ("/api/explain", {"q": QUERY, "docno": "words", "system": "bm25"}, 200),
        ("/api/preview", {"q": QUERY}, 200),
        ("/api/preview", {"q": "x^2", "mode": "formulas"}, 200),
        ("/api/post", {"docno": "basel", "q": QUERY}, 200),
        ("/api/graph/{docno}.svg", {"docno": "basel", "theme": "dark"}, 200),
        ("/api/search", {"q": "x" * 4_001}, 400),
        ("/api/search", {"q": "x", "mode": "other"}, 400),
        ("/api/explain", {"q": "x"}, 400),
        ("/api/explain", {"q": "x", "docno": "basel", "system": "other"}, 400),
        ("/api/explain", {"q": "x", "docno": "nobody"}, 404),
        ("/api/post", {"docno": "nobody"}, 404),
        ("/api/post", {"docno": "x" * 1_001}, 400),
        ("/api/graph/{docno}.svg", {"docno": "nobody"}, 404),
        ("/api/graph/{docno}.svg", {"docno": "basel", "theme": "other"}, 400),
    ],
)
def test_answers_and_errors_are_as_the_description_says(client, path, parameters, status) -> None:
    place = path.replace("{docno}", parameters.get("docno", ""))
    query = {name: value for name, value in parameters.items() if f"{{{name}}}" not in path}
    answer = client.get(place, params=query)
    assert answer.status_code == status
    described(path, answer)


def test_the_description_names_every_request_and_its_limits(client) -> None:
    jsonschema.Draft202012Validator.check_schema({"$defs": DESCRIPTION["components"]["schemas"]})
    routes = {route.path.replace(":path", "") for route in client.app.routes if route.path.startswith("/api/")}
    assert routes - {"/api/openapi.json"} == set(DESCRIPTION["paths"])
    assert client.get("/api/openapi.json").json() == DESCRIPTION
    longest = {"q": server.LONGEST_QUERY} | dict.fromkeys(
        ("docno", "in", "kind", "since", "until"), server.LONGEST_DOCNO
    )
    for path in DESCRIPTION["paths"].values():
        for parameter in path["get"]["parameters"]:
            assert parameter["schema"].get("maxLength") == (
                longest.get(parameter["name"]) if parameter["in"] == "query" else None
            )
    assert f"{server.WAITING} requests" in DESCRIPTION["components"]["responses"]["Busy"]["description"]


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/static/../server.py", "/static/%2e%2e/server.py", "/%00", "/api/search/x"]
)
def test_nothing_else_is_served(client, path) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert list(answer.json()) == ["error"]


def test_every_answer_has_the_headers_of_security(client) -> None:
    answers = [
        client.get("/"), client.get("/api"), client.get("/static/page.js"), client.get("/api/search"),
        client.get("/static/nothing"), client.get("/nothing"), client.post("/api/search"),
        client.get("/", headers={"host": "evil.example"}), client.get("/api/search", params={"mode": "other"}),
    ]  # fmt: skip
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 404, 404, 405, 400, 400]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "access-control-allow-origin" not in answer.headers
    assert "default-src 'none'" in client.get("/api/graph/basel.svg").headers["content-security-policy"]
    assert "http" not in client.get("/").text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:8000", 200), ("127.0.0.1:1", 200), ("[::1]:8000", 200), ("[::1]", 200),
        ("evil.example", 400), ("evil.example:8000", 400), ("localhost.evil.example", 400),
        ("", 400), ("localhost:x", 400),
    ],
)  # fmt: skip
def test_only_names_of_this_machine_are_answered(client, host, status) -> None:
    assert client.get("/api/settings", headers={"host": host}).status_code == status


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

"""Who may read the page: a token for people and programs, names of proxies, and a path below one."""

import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

import pytest
from click.testing import CliRunner

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine.page import Answers, make_app
from pyterrier_mathamr.engine.page.access import HEADERS
from tests.engine.conftest import address_of, get

TOKEN = "a token of Ángel's, 24 %"
BROWSER = {"accept": "text/html,*/*;q=0.8"}
STATIC = Path(__file__).parents[2] / "pyterrier_mathamr/engine/page/static"


def client_of(engine, *, url: str = "http://localhost", **options) -> TestClient:
    app = make_app(Answers(engine), **options)
    return TestClient(app, base_url=url, follow_redirects=False, raise_server_exceptions=False)


def bearer(token: str) -> dict[str, bytes]:
    return {"authorization": f"Bearer {token}".encode()}


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/openapi.json", "/api/settings", "/api/search?q=x", "/nothing", "//x"]
)
def test_nothing_but_files_of_the_page_is_read_without_the_token(engine, path) -> None:
    client = client_of(engine, token=TOKEN)
    for headers in ({}, bearer(TOKEN[:-1]), bearer(""), bearer(TOKEN + "x"), {"authorization": TOKEN.encode()}):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, list(answer.json())) == (401, ["error"])
        assert answer.headers["www-authenticate"] == "Bearer"
    page = client.get(path, headers=BROWSER)
    assert (page.status_code, page.headers["cache-control"]) == (401, "no-store")
    assert all(page.headers[name] == value for name, value in HEADERS.items())
    style = re.search('"stylesheet" href="([^"]*)"', page.text)[1]
    assert client.get(urljoin(f"http://localhost{path}", style)).status_code == 200
    assert client.get(path, headers=bearer(TOKEN)).status_code == client_of(engine).get(path).status_code != 401


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/", "./"), ("/?q=a%26b&mode=posts", "./?q=a%26b&mode=posts"), ("/api", "./api"),
        ("//evil.example", "./evil.example"), ("//evil.example/?x", "./?x"), ("/a/%5Cevil?", "./%5Cevil"),
    ],
)  # fmt: skip
def test_a_person_gives_the_token_once_and_comes_back_to_the_same_address(engine, path, place) -> None:
    client = client_of(engine, token=TOKEN)
    wrong = client.post(f"http://localhost{path}", data={"token": TOKEN + "x"}, headers=BROWSER)
    assert wrong.status_code == 401
    assert "This token is wrong." in wrong.text
    assert "set-cookie" not in wrong.headers
    answer = client.post(f"http://localhost{path}", data={"token": TOKEN}, headers=BROWSER)
    assert (answer.status_code, answer.headers["location"], answer.headers["cache-control"]) == (303, place, "no-store")
    cookie = answer.headers["set-cookie"].split("; ")
    assert cookie[1:] == ["HttpOnly", "Max-Age=31536000", "Path=/", "SameSite=lax"]
    assert TOKEN not in answer.headers["set-cookie"]
    assert client.get("/", headers=BROWSER).status_code == 200
    assert client.get("/api/settings").status_code == 200
    assert client_of(engine, token=TOKEN + "2").get("/", headers={"cookie": cookie[0]}).status_code == 401


def test_a_person_is_asked_for_the_token_and_a_program_is_told_the_header(engine) -> None:
    client = client_of(engine, token=TOKEN)
    page = client.get("/", headers=BROWSER).text
    assert 'name="token"' in page
    assert "Authorization" not in page
    assert "Authorization: Bearer" in client.get("/").json()["error"]


def test_the_cookie_is_kept_from_connections_that_others_can_read(engine) -> None:
    client = client_of(engine, token=TOKEN, url="https://localhost")
    assert "; Secure" in client.post("/", data={"token": TOKEN}).headers["set-cookie"]


def test_forms_that_are_none_are_refused(engine) -> None:
    client = client_of(engine, token=TOKEN)

    def chunks():
        yield b"token=" + TOKEN.encode()

    for content in (b"", b"\xff\xfe=\x00", b"token", b"token=&" * 1_000_000, chunks()):
        answer = client.post("/", content=content)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    answer = client.post("/", content=b"token=x", headers={"content-length": "9" * 5_000})
    assert answer.status_code == 401


LOCAL = {
    "localhost": 200, "LOCALHOST:8000": 200, "127.0.0.1:1": 200, "[::1]:8000": 200, "[::1]": 200, "evil.example": 400,
    "evil.example:8000": 400, "localhost.evil.example": 400, "": 400, "localhost:x": 400,
}  # fmt: skip
PROXIED = {
    "notes.example": 200, "NOTES.EXAMPLE:443": 200, "localhost:8000": 200, "evil.example": 400, "": 400,
    "notes.example.evil.example": 400, "127.0.0.1": 400,
}  # fmt: skip


def test_only_names_of_this_machine_or_of_a_proxy_are_answered(engine) -> None:
    for options, statuses in (({}, LOCAL), ({"hosts": ("localhost", "Notes.example")}, PROXIED)):
        client = client_of(engine, **options)
        for host, status in statuses.items():
            assert client.get("/api/settings", headers={"host": host}).status_code == status, host
    named = client_of(engine, token=TOKEN).get("/", headers={**bearer(TOKEN), **BROWSER, "host": "evil.example"})
    assert (named.status_code, "does not answer to this name" in named.text) == (400, True)


@pytest.mark.parametrize("removed", [False, True])
def test_below_a_path_each_address_of_the_page_leads_somewhere(engine, removed) -> None:
    client = client_of(engine, root_path="/my/notes")

    def asked(address: str, **headers) -> object:
        """Ask as a proxy does, which may remove the path."""
        path = address.removeprefix("http://localhost")
        return client.get(path.removeprefix("/my/notes") if removed else path, headers=headers)

    home = "http://localhost/my/notes/"
    for page in (home, urljoin(home, "api"), urljoin(home, "a/b/nothing")):
        text = asked(page, **BROWSER).text
        named = re.findall('(?:href|src)="([^"]*)"', text)
        assert len(named) > 2
        for address in (urljoin(page, each) for each in named):
            assert address.startswith(home)
            assert asked(address).status_code == 200, address
    asking = re.findall(r'(?:fetch\(|`)[`"]?(api/[\w.]*)', "".join(file.read_text() for file in STATIC.glob("*.js")))
    assert set(asking) == {"api/", "api/openapi.json", "api/graph"}  # relative to the page
    described = asked(urljoin(home, "api/openapi.json")).json()
    assert described["servers"] == [{"url": "/my/notes"}]
    assert asked(home + "api/settings").json()["size"] == len(engine)
    assert get(client, "/api/settings")["size"] == len(engine)  # as the server is called without a proxy
    if not removed:
        assert client.get("/my/notes?q=x").headers["location"] == "./notes/?q=x"
    assert asked("http://localhost/my/notes/api/graph/basel.svg").text.startswith("<svg")


def test_below_a_path_only_that_path_gets_the_cookie_and_files_need_no_token(engine) -> None:
    client = client_of(engine, root_path="/notes", token=TOKEN)
    page = client.get("/notes/", headers=BROWSER)
    assert page.status_code == 401
    assert client.get("/notes/" + address_of(page.text, "page.css")).status_code == 200
    assert client.get("/" + address_of(page.text, "page.css")).status_code == 200
    signed_in = client.post("/notes/?q=x", data={"token": TOKEN})
    assert (signed_in.headers["location"], "Path=/notes;" in signed_in.headers["set-cookie"]) == ("./?q=x", True)
    assert client.get("/notes/", headers=BROWSER).status_code == 200


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["--host", "0.0.0.0"], "", "Other machines could read the posts"),
        (["--allowed-host", "notes.example"], "", "Other machines could read the posts"),
        (["--host", "0.0.0.0", "--token", "short"], "", "A token of 5 characters could be guessed"),
        (["--host", "0.0.0.0"], "short", "A token of 5 characters could be guessed"),
        (["--root-path", "notes"], "", "--root-path notes is not accepted"),
        (["--root-path", "/notes/"], "", "--root-path /notes/ is not accepted"),
    ],
)
def test_what_would_show_posts_to_others_by_mistake_is_refused(engine, options, environment, reason) -> None:
    result = CliRunner().invoke(main, ["serve", str(engine.path), *options], env={"MATHAMR_TOKEN": environment})
    assert (result.exit_code, reason in result.output) == (1, True), result.output


@pytest.mark.enable_socket
def test_a_server_with_a_token_behind_a_proxy_says_nothing_of_the_token(engine) -> None:
    command = [sys.executable, "-m", "pyterrier_mathamr", "serve", str(engine.path), "--port", "0"]
    command += ["--allowed-host", "notes.example", "--root-path", "/notes"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MATHAMR_TOKEN": "abcdefghijklmnop"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            line = process.stdout.readline()
            port = int(re.search(r"http://localhost:(\d+)/notes/ ", line)[1])

            def ask(method: str, path: str, body: str = "", **headers: str) -> http.client.HTTPResponse:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request(method, path, body, {"Host": "notes.example", **headers})
                return connection.getresponse()

            assert ask("GET", "/notes/api/openapi.json").status == 401
            signed_in = ask("POST", "/notes/", "token=abcdefghijklmnop", **{"X-Forwarded-Proto": "https"})
            assert (signed_in.status, "; Secure" in signed_in.headers["set-cookie"]) == (303, True)
            cookie = signed_in.headers["set-cookie"].partition(";")[0]
            for path in ("/notes/api/openapi.json", "/api/openapi.json"):
                assert json.loads(ask("GET", path, Cookie=cookie).read())["servers"] == [{"url": "/notes"}]
            assert ask("GET", "/notes/api", Authorization="Bearer abcdefghijklmnop").status == 200
            assert ask("GET", "/notes/api", Host="evil.example", Cookie=cookie).status == 400
            process.terminate()
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "abcdefghijklmnop" not in line + out + err

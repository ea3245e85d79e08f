"""The page's server: its description, limits, headers and names, and many requests at a time."""

import json
import random
import re
import shutil
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urljoin

import jsonschema
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from pyterrier_mathamr.engine.page import Answers, make_app, pages, server, workers
from pyterrier_mathamr.engine.page.access import HEADERS
from pyterrier_mathamr.engine.page.interface import REQUESTS, as_text, description
from pyterrier_mathamr.posts import plain_text
from tests.engine.conftest import QUERY, address_of, get

STATIC = Path(server.__file__).parent / "static"
AS_A_BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

DESCRIPTION = json.loads(json.dumps(description()))


def described(path: str, answer) -> None:
    """Check an answer against the description of its path and status."""
    responses = DESCRIPTION["paths"][path]["get"]["responses"]
    response = responses[str(answer.status_code)]
    [(media, content)] = response["content"].items()
    assert answer.headers["content-type"].startswith(media)
    if media == "application/json":
        jsonschema.validate(answer.json(), {**content["schema"], "components": DESCRIPTION["components"]})


CASES = {
    ("/api/settings", 200): [{}, {"format": "text"}],
    ("/api/search", 200): [
        {"q": QUERY}, {"q": ""}, {"q": QUERY, "k": 1, "offset": 1, "weak": 1, "format": "text"},
        {"q": "√π", "mode": "formulas"}, {"q": "?a = 1", "mode": "formulas", "k": 100, "offset": 1000},
        {"q": "?a = 1", "mode": "formulas", "format": "text"},
    ],
    ("/api/explain", 200): [
        {"q": QUERY, "docno": "basel"}, {"q": QUERY, "docno": "words", "system": "bm25"},
        {"q": QUERY, "docno": "basel", "format": "text"},
    ],
    ("/api/preview", 200): [{"q": QUERY}, {"q": "x^2", "mode": "formulas"}],
    ("/api/post", 200): [{"docno": "basel", "q": QUERY}],
    ("/api/graph/{docno}.svg", 200): [{"docno": "basel", "theme": "dark"}],
    ("/api/search", 400): [
        {"q": "x" * 4_001}, {"q": "x", "mode": "other"}, {"q": "x", "k": "0"}, {"q": "x", "k": "101"},
        {"q": "x", "k": ""}, {"q": "x", "offset": "-1"}, {"q": "x", "offset": "1001"}, {"q": "x", "offset": "9" * 5000},
        {"q": "x", "in": "x" * 1_001}, {"q": "x", "mode": "formulas", "in": "x"}, {"q": ["x", "y"]},
    ],
    ("/api/post", 400): [{"docno": "basel", "start": "٣"}, {"docno": "x" * 1_001}],
    ("/api/settings", 400): [{"format": "xml"}],
    ("/api/explain", 400): [{"q": "x"}, {"q": "x", "docno": "basel", "system": "other"}],
    ("/api/graph/{docno}.svg", 400): [{"docno": "basel", "theme": "other"}],
    ("/api/explain", 404): [{"q": "x", "docno": "nobody"}],
    ("/api/post", 404): [{"docno": "nobody"}],
    ("/api/graph/{docno}.svg", 404): [{"docno": "nobody"}],
}  # fmt: skip


@pytest.mark.parametrize(("path", "status"), CASES)
def test_answers_and_errors_match_the_description(client, path, status) -> None:
    for parameters in CASES[path, status]:
        query = {name: value for name, value in parameters.items() if f"{{{name}}}" not in path}
        answer = client.get(path.replace("{docno}", parameters.get("docno", "")), params=query)
        assert answer.status_code == status, parameters
        described(path, answer)


def test_the_description_is_valid_and_names_every_request(client) -> None:
    for name in DESCRIPTION["components"]["schemas"]:
        jsonschema.Draft202012Validator.check_schema(DESCRIPTION["components"]["schemas"][name])
    routes = {route.path.replace(":path", "") for route in client.app.routes if route.path.startswith("/api/")}
    assert routes - {"/api/openapi.json"} == set(DESCRIPTION["paths"])
    assert client.get("/api/openapi.json").json() == DESCRIPTION
    referred = set(re.findall('"#/components/schemas/([A-Za-z]+)"', json.dumps(DESCRIPTION)))
    assert referred == set(DESCRIPTION["components"]["schemas"])
    assert (
        f"{workers.WAITING} requests" in DESCRIPTION["paths"]["/api/search"]["get"]["responses"]["503"]["description"]
    )


@pytest.mark.parametrize("path", REQUESTS)
def test_an_unknown_parameter_is_refused_with_the_names_of_the_known_ones(client, path) -> None:
    place = path.replace("{docno}", "basel")
    names = REQUESTS[path].parameters.split()
    needed = {name: value for name, value in (("docno", "basel"), ("q", QUERY)) if name in names}
    assert client.get(place, params=needed).status_code == 200
    answer = client.get(place, params={**needed, "K": "3"})
    described(path, answer)
    error = f"'K' is not a parameter; use {', '.join(names)}"
    assert (answer.status_code, answer.json()) == (400, {"error": error})


@pytest.mark.parametrize("asked", [{"q": QUERY, "weak": 1}, {"q": "n", "mode": "formulas"}])
def test_pages_of_results_are_one_ranking_and_show_whether_more_follow(client, asked) -> None:
    def systems(**of_page) -> list[dict]:
        return get(client, "/api/search", **asked, **of_page)["systems"]

    def docnos(system) -> list[str]:
        return [(each["docno"], each.get("rank_in_first")) for each in system["results"]]

    for number, whole in enumerate(systems(k=100)):
        ranking, pages = docnos(whole), []
        assert (len(ranking) > 1, whole["more"]) == (True, False)
        for offset in range(len(ranking)):
            page = systems(k=1, offset=offset)[number]
            pages += docnos(page)
            assert page["more"] == (offset + 1 < len(ranking))
        assert pages == ranking
        assert docnos(systems(k=100, offset=len(ranking))[number]) == []


def test_more_good_matches_follow_only_if_the_next_post_is_one(client) -> None:
    good = len(get(client, "/api/search", q=QUERY, k=100)["systems"][1]["results"])
    every = len(get(client, "/api/search", q=QUERY, k=100, weak=1)["systems"][1]["results"])
    assert 1 < good < every
    blend = [get(client, "/api/search", q=QUERY, k=k)["systems"][1] for k in (good - 1, good)]
    assert [(system["more"], system["weak"]) for system in blend] == [(True, 0), (False, 0)]
    assert get(client, "/api/search", q=QUERY, k=good, weak=1)["systems"][1]["more"]


def test_text_is_that_of_the_posts_with_latex_between_dollars(client, engine) -> None:
    for docno in engine.docnos():
        post = get(client, "/api/post", docno=docno, q=QUERY, format="text")
        assert (post["text"], "html" in post) == (plain_text(engine.post(docno)), False)
    html, text = (
        get(client, "/api/search", q=QUERY, format=kind)["systems"][1]["results"][0] for kind in ("html", "text")
    )
    assert set(html) - set(text) == {"title_html", "snippet_html"}
    assert text["title"] == "Basel problem"
    assert r"show that $\sum_{n=1}^\infty \frac{1}{n^2}$ converges?" in text["snippet"]
    explained = get(client, "/api/explain", q=QUERY, docno="basel", format="text")
    assert explained["document"]["text"] == plain_text(engine.post("basel"))
    assert explained["query"] == plain_text(engine.read_query(QUERY))
    for q, options in (("both & $a<b$", {}), ("$x$", {"mode": "formulas"})):
        assert get(client, "/api/preview", q=q, format="text", **options)["text"] == q


def test_text_of_html_keeps_what_looks_like_tags_and_is_read_in_linear_time() -> None:
    html = {"title_html": "a &lt;b&gt; &amp;lt;", "n": 1, "of": [{"html": "<p>x</p><p>y</p>"}]}
    assert as_text(html) == {"title": "a <b> &lt;", "n": 1, "of": [{"text": "x\ny"}]}
    for hostile in ("<span" * 200_000, '<span data-latex="' * 200_000, "<" * 1_000_000):
        as_text({"html": hostile})  # of an answer that is none; would take hours if it were quadratic


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/static/../server.py", "/static/%2e%2e/server.py", "/%00", "/api/search/x", "/a/b/",
             "/a/b%2Fc", "/api/graph/nothing", 20_000 * "/x"],
)  # fmt: skip
def test_nothing_else_is_served_and_the_page_about_it_leads_back(client, path) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"error": "There is nothing at this address."})
    assert client.get(path, headers={"accept": "application/json, text/html"}).json()["error"]
    answer = client.get(path, headers=AS_A_BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    page = answer.text
    assert '<p role="alert">There is nothing at this address.</p>' in page
    assert len(page) < 2_000
    home, style = re.search('<a href="([^"]*)">', page)[1], re.search('"stylesheet" href="([^"]*)"', page)[1]
    if len(path) < 100 and "." not in path:
        assert urljoin(f"http://localhost/below{path}", home) == "http://localhost/below/"
        assert client.get(urljoin(f"http://localhost{path}", style)).headers["content-type"].startswith("text/css")


def test_files_have_addresses_that_change_with_their_content_and_are_kept(client) -> None:
    for page in ("/", "/api", "/nothing"):
        html = client.get(page, headers=AS_A_BROWSER).text
        for address in re.findall('(?:src|href)="(static/[^"]*)"', html):
            assert client.get(f"/{address}").status_code == 200
    for file in STATIC.iterdir():
        answer = client.get("/" + address_of(html, file.name))
        if file.suffix == ".html":
            assert answer.status_code == 404
            continue
        assert answer.content == file.read_bytes()
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers.get("content-encoding") == (None if file.suffix == ".woff2" else "gzip")
        plain = client.get("/" + address_of(html, file.name), headers={"accept-encoding": "identity"})
        assert (plain.content, plain.headers.get("content-encoding")) == (answer.content, None)
    for imported in re.findall('(?:from|import) "(.*?)"', "".join(file.read_text() for file in STATIC.glob("*.js"))):
        assert client.get("/" + urljoin(address_of(html, "page.js"), imported)).status_code == 200
    assert client.get("/static/page.js").status_code == 404


def test_the_hash_of_the_files_is_another_one_when_any_of_them_changes(tmp_path, monkeypatch) -> None:
    shutil.copytree(STATIC, tmp_path / "static")
    monkeypatch.setattr(pages, "_STATIC", tmp_path / "static")
    folders = [pages.PageFiles().folder, pages.PageFiles().folder]
    for name in ("page.css", "dom.js"):
        (tmp_path / "static" / name).write_text("")
        folders.append(pages.PageFiles().folder)
    assert folders[0] == folders[1]
    assert len(set(folders)) == 3


def test_each_font_has_one_address(client) -> None:
    page = client.get("/").text
    preloaded = re.findall('<link rel="preload" href="([^"]*)" as="font"', page)
    named = re.findall(r'url\("?([^")]*)"?\)', client.get("/" + address_of(page, "page.css")).text)
    assert [urljoin(address_of(page, "page.css"), name) for name in named] == preloaded


def test_a_page_is_asked_for_each_time_and_sent_again_only_when_it_changed(client) -> None:
    first = client.get("/")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert client.get("/", headers={"if-none-match": 'W/"another"'}).status_code == 200


def test_title_description_and_preview_tags_name_what_an_address_shows(client) -> None:
    def head(**parameters) -> tuple[str, str]:
        page = client.get("/", params=parameters).text
        [title], [about] = (
            re.findall("<title>(.*)</title>", page),
            re.findall('name="description" content="(.*)"', page),
        )
        assert f'property="og:title" content="{title}"' in page
        assert f'property="og:description" content="{about}"' in page
        return title, about

    get(client, "/api/settings")  # opens the engine, which a title does not wait for
    assert head() == ("my", "Search posts by words and formulas.")
    assert head(q='<b> "sums"')[0] == "&lt;b&gt; &quot;sums&quot; – my"
    assert "&lt;b&gt;" in head(q="<b>")[1]
    title, about = head(post="basel", q="sums")
    assert title == "Basel problem – my"
    assert about.startswith("Basel problem How to show that")
    assert head(like="basel")[0] == "Basel problem – my"
    assert head(post="nobody")[0] == "my"


def test_without_javascript_the_form_finds_posts_and_keeps_the_query(client) -> None:
    first = client.get("/", params={"q": "groups & rings"}).text
    assert 'action="plain"' in first
    assert ">groups &amp; rings</textarea>" in first
    assert 'href="plain?q=groups+%26+rings"' in first
    found = client.get("/plain", params={"q": "groups & rings"}).text
    assert ">groups &amp; rings</textarea>" in found
    assert 'href="plain?q=groups+%26+rings&amp;post=words"' in found
    names = [system["name"] for system in get(client, "/api/search", q="groups & rings")["systems"]]
    assert re.findall("<h2>(.*?)</h2>", found) == names
    assert len(names) == found.count('<ol class="results">') == 2
    assert "<math" in client.get("/plain", params={"q": r"\frac{1}{n^2}"}).text
    assert "about groups and" in re.sub("<[^>]*>", "", client.get("/plain", params={"post": "words", "q": "x"}).text)
    assert "There is no such post" in client.get("/plain", params={"post": "nobody"}).text
    assert "is longer than" in client.get("/plain", params={"q": "x" * 5_000}).text
    assert client.get("/plain").status_code == 200


def test_long_answers_are_compressed_for_clients_that_read_it(client) -> None:
    for path, parameters in (("/api/search", {"q": QUERY}), ("/api/graph/basel.svg", {})):
        packed = client.get(path, params=parameters)
        plain = client.get(path, params=parameters, headers={"accept-encoding": "identity"})
        assert packed.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert int(packed.headers["content-length"]) < len(plain.content) / 2
        assert re.sub('"milliseconds":[0-9]+', "", packed.text) == re.sub('"milliseconds":[0-9]+', "", plain.text)
    assert "content-encoding" not in client.get("/api/preview", params={"q": "x"}).headers


def test_every_answer_has_the_headers_of_security(client) -> None:
    answers = [
        client.get("/"), client.get("/api"), client.get("/" + address_of(client.get("/").text, "page.js")),
        client.get("/api/search"),
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


def test_a_fault_is_one_line_and_a_busy_server_reports_it(engine, monkeypatch) -> None:
    answers = Answers(engine)
    client = TestClient(make_app(answers), base_url="http://localhost", raise_server_exceptions=False)
    monkeypatch.setattr(answers, "search", lambda *_: 1 / 0)
    answer = client.get("/api/search", params={"q": "x"})
    assert (answer.status_code, list(answer.json())) == (500, ["error"])
    assert "ZeroDivision" not in answer.text
    monkeypatch.setattr(workers, "WAITING", 0)
    answer = client.get("/api/search", params={"q": "x"})
    assert answer.status_code == 503
    assert "retry-after" in answer.headers


def test_random_requests_never_fail(client) -> None:
    random_ = random.Random(1)
    alphabet = string.printable + "∑√²$\\{}<>&%\x00\ud7ff"
    for _ in range(60):
        text = "".join(random_.choices(alphabet, k=random_.randrange(60)))
        path = random_.choice(["/api/search", "/api/preview", "/api/explain", "/api/post"])
        chosen = {"q": text, "docno": random_.choice(["basel", text]), "mode": "posts", "format": text[:4], text: text}
        names = [name for name in chosen if random_.random() < 0.7]
        answer = client.get(path, params={name: chosen[name] for name in names})
        assert answer.status_code in (200, 400, 404), (path, text, answer.text)
        json.loads(answer.text)


def test_simultaneous_requests_have_the_answers_of_single_requests(client) -> None:
    def ask(query: str) -> list[str]:
        return [each["docno"] for each in get(client, "/api/search", q=query)["systems"][1]["results"]]

    queries = [QUERY, "groups and rings", "$A$", "√π"]
    single = list(map(ask, queries))
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, 4 * queries)) == 4 * single

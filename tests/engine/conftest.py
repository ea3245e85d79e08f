"""A small engine over posts in every form, and what tests of engines and of the page share."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pyterrier_mathamr.engine import SearchEngine

POSTS = [
    {
        "id": "basel",
        "title": "Basel problem",
        "text": r"How to show that $\sum_{n=1}^\infty \frac{1}{n^2}$ converges? "
        r"Compare with 1/(n(n-1)). It is $\pi^2/6$.",
    },
    {
        "id": "gauss",
        "markdown": "# Gaussian integral\nThe *integral* ∫ e^(-x²) dx is √π:\n\n"
        "\\begin{align} I^2 &= \\int\\int e^{-(x^2+y^2)} dx dy \\\\ &= \\pi \\end{align}",
    },
    {"id": "harmonic", "contents": r"Why does $\sum 1/n$ diverge? The harmonic series is unbounded."},
    {
        "docno": "matrix",
        "html": '<p>Let <span class="math-container" id="m1">A</span> be invertible. Then det(A) ≠ 0.</p>',
    },
    {"docno": "words", "text": "A post of words only, about groups and rings."},
]
QUERY = r"How do I show that $\sum 1/n^2$ converges?"


def built(path: Path, posts=POSTS, **options) -> SearchEngine:
    return SearchEngine.build(posts, path, model="mathamr-plus-mini", verbose=False, **options)


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@contextlib.contextmanager
def stopped(step: str) -> Iterator[None]:
    """Stop a build or a change where it comes to a function that ``engine.search_engine`` calls, or another module."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step if "." in step and step[0].islower() else f"{SearchEngine.__module__}.{step}", stop)
        with pytest.raises(KeyboardInterrupt):
            yield


@pytest.fixture(scope="session")
def engine(tmp_path_factory) -> SearchEngine:
    return built(tmp_path_factory.mktemp("engine") / "my.engine")


@pytest.fixture(scope="session")
def client(engine):
    """A client of the page's server, in one event loop, as a server has it."""
    with client_of(engine, "bm25", "blend") as client:
        yield client


def client_of(engine: SearchEngine, *systems: str, link: str | None = None) -> Any:
    """A client of the server of an engine, in this process."""
    pytest.importorskip("starlette")
    testclient = pytest.importorskip("starlette.testclient")
    from pyterrier_mathamr.engine.page import Answers, make_app

    return testclient.TestClient(make_app(Answers(engine, systems or ("blend",), link)), base_url="http://localhost")


@pytest.fixture(scope="module")
def browser():
    from tests.engine.chromium import CHROMIUM, FLAGS, sync_api

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=["light", pytest.param("dark", marks=pytest.mark.slow)])
def page(browser, address, request):
    """The page at a module's ``address``, in each theme; errors, warnings and requests to elsewhere fail the test."""
    from tests.engine.chromium import PATIENCE

    page = browser.new_page(color_scheme=request.param, viewport={"width": 1000, "height": 900})
    page.set_default_timeout(PATIENCE)
    own = (address[: address.index("/", len("http://")) + 1], "data:")
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith(own) else wrong.append(sent.url))
    page.goto(address)
    yield page
    page.unroute_all(behavior="wait")
    page.close()
    assert wrong == []


@contextlib.contextmanager
def listening(app, **options) -> Iterator[int]:
    """Serve an application on a port of this machine, as ``mathamr serve`` does."""
    import uvicorn

    from pyterrier_mathamr.engine.page import connections

    config = uvicorn.Config(app, log_level="critical", **{**connections.limits(), **options})
    server = connections.PageServer(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def address_of(page: str, file: str) -> str:
    """The address of a file, relative to the page that names it or a file in its folder."""
    [folder] = set(re.findall('"(static/[0-9a-f]+/)', page))
    return folder + file


def get(client, path: str, **parameters) -> dict:
    """Ask, and read the answer."""
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()

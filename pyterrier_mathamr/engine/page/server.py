"""The server: a few routes, with everything that a request could do wrong answered as a short error.

A request computes in a thread of its own, as many at a time as the machine has cores; others wait in the order in which
they came, up to a number above which they are told to try again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError
from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr.engine.search_engine import SearchEngine
from pyterrier_mathamr.store import UnknownIdError

from .answers import Answers

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LONGEST_QUERY = 4_000
LONGEST_DOCNO = 1_000
WAITING = 200
"""Requests that may wait for a thread; further ones get status 503."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOG = logging.getLogger(__name__)


class ServeError(MathAMRError):
    """The page cannot be served at an address."""

    address: str
    reason: str
    template = "{address}: {reason}. Give another --host or --port."


class BadRequestError(MathAMRError):
    """A parameter of a request is missing or wrong."""

    reason: str
    template = "{reason}"


def make_app(answers: Answers, *, hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")) -> Starlette:
    """Make the web application.

    Args:
        answers: what it shows.
        hosts: names of the server that are accepted, so that no other site reaches it under its own; ``*`` for any.

    Raises:
        MissingExtraError: the extra ``serve`` is not installed.
    """
    require("starlette", "serve")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import FileResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    static = Path(str(resources.files(__package__) / "static"))
    work = _Work()

    async def index(_: Request) -> Response:
        return FileResponse(static / "index.html", headers=HEADERS)

    def route(path: str, answer: Callable[[Request], Any], kind: str = "json") -> Route:
        async def respond(request: Request) -> Response:
            return await _respond(request, answer, work, kind)

        return Route(path, respond, methods=["GET"])

    routes = [
        Route("/", index),
        route("/api/settings", lambda _: answers.settings()),
        route("/api/preview", lambda request: answers.preview(_text(request, "q", LONGEST_QUERY))),
        route("/api/search", lambda request: answers.search(_text(request, "q", LONGEST_QUERY), _mode(request))),
        route(
            "/api/explain",
            lambda request: answers.explain(_text(request, "q", LONGEST_QUERY), _text(request, "docno", LONGEST_DOCNO)),
        ),
        route("/api/post", lambda request: answers.post(_text(request, "docno", LONGEST_DOCNO))),
        route(
            "/api/graph/{docno:path}.svg",
            lambda request: answers.graph(
                request.path_params["docno"],
                request.query_params.get("theme", "light"),
                request.query_params.get("sentence", "")[:9],
            ),
            "svg",
        ),
        Mount("/static", StaticFiles(directory=static)),
    ]
    allowed = Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return Starlette(routes=routes, middleware=[allowed])


class _Work:
    """Threads for requests, and how many wait for one."""

    def __init__(self) -> None:
        self.waiting = 0
        self._limiter: Any = None

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[Any]:
        """Wait for a thread.

        Raises:
            BadRequestError: too many wait already.
        """
        import anyio

        self._limiter = self._limiter or anyio.CapacityLimiter(max(2, os.cpu_count() or 1))
        self.waiting += 1
        try:
            yield self._limiter
        finally:
            self.waiting -= 1


async def _respond(request: Request, answer: Callable[[Request], Any], work: _Work, kind: str) -> Response:
    """Compute an answer in a thread, and turn what goes wrong into a status and one line."""
    import anyio.to_thread
    from starlette.responses import JSONResponse, Response

    if work.waiting >= WAITING:
        error = {"error": "The server is busy; try again in a moment."}
        return JSONResponse(error, 503, headers={**HEADERS, "Retry-After": "2"})
    try:
        async with work.place() as limiter:
            made = await anyio.to_thread.run_sync(answer, request, limiter=limiter, abandon_on_cancel=False)
    except (BadRequestError, ConfigError) as error:
        return JSONResponse({"error": str(error)}, 400, headers=HEADERS)
    except UnknownIdError:
        return JSONResponse({"error": "There is no such post."}, 404, headers=HEADERS)
    except Exception:
        _LOG.exception("a request failed: %s", request.url.path)
        return JSONResponse({"error": "The server could not answer this request."}, 500, headers=HEADERS)
    if kind == "svg":
        style = {**HEADERS, "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(made, media_type="image/svg+xml", headers=style)
    return JSONResponse(made, headers={**HEADERS, "Cache-Control": "no-store"})


def _text(request: Request, name: str, longest: int) -> str:
    """Read a parameter that is text."""
    text = request.query_params.get(name, "")
    if len(text) > longest:
        raise BadRequestError(f"{name} is longer than {longest:,} characters")
    if name == "docno" and not text:
        raise BadRequestError("docno is missing")
    return "".join(character for character in text if not 0xD800 <= ord(character) <= 0xDFFF)


def _mode(request: Request) -> str:
    mode = request.query_params.get("mode", "posts")
    if mode not in ("posts", "formulas"):
        raise BadRequestError("mode is 'posts' or 'formulas'")
    return mode


def serve_page(
    path: Path, systems: Sequence[str], *, host: str, port: int, started: Callable[[str], None] = lambda _: None
) -> None:
    """Serve the page until the process is told to end.

    Args:
        path: the engine.
        systems: names from :data:`SYSTEMS`.
        host: the address to listen on; on any other than a loopback one the page answers to every name.
        port: 0 for any free one.
        started: called with the address once the page can be opened.

    Raises:
        MissingExtraError: the extra ``serve`` is not installed. ServeError: the address is taken.
    """
    uvicorn = require("uvicorn", "serve")
    answers = Answers(SearchEngine(path), systems)
    answers.warm_up()
    local = host in ("127.0.0.1", "localhost", "::1")
    app = make_app(answers) if local else make_app(answers, hosts=("*",))
    with _listening(host, port) as listener:
        name = "localhost" if local else host
        started(f"http://{name}:{listener.getsockname()[1]}/")
        options = {"log_level": "warning", "timeout_keep_alive": 15, "h11_max_incomplete_event_size": 32_768}
        uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """Open the socket, so that an address that is taken is an error before anything is served."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ServeError(f"{host}:{port}", error.strerror or str(error)) from error
    return listener

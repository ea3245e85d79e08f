"""The server: a few routes, with everything that a request could do wrong answered as a short error.

Searches compute in a few processes, for which clients take turns; a client with too many waiting ones is asked to try
again. Previews and posts, which need milliseconds, have separate processes, so that the page stays responsive while
searches wait. A client that left while it waited costs nothing, and a slow request is ended.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, require
from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr._common.ids import visible
from pyterrier_mathamr._common.running.worker import OverLimitError
from pyterrier_mathamr.engine.origins import Filter
from pyterrier_mathamr.store import META, UnknownIdError

from .access import LOCAL, Guard
from .interface import BadRequestError, as_text, description, read_parameters
from .pages import PageFiles, accepts_gzip
from .workers import QUICK, SEARCHES, SMALL, SeparateAnswers, Turns

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from .answers import Answers


_LONGEST_HEADERS = 131_072  # bytes; a query in percent encoding has at most 12 for each character
_SVG_POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_SHORTEST_TOKEN = 16
_SHORT, _LEVEL = 1_000, 5  # bytes of an answer that is not compressed; the level of gzip for others
_REFUSAL = 1.0  # seconds
_LOG = logging.getLogger(__name__)


def make_app(
    answers: Answers | SeparateAnswers, *, hosts: Collection[str] = LOCAL, token: str = "", root_path: str = ""
) -> Starlette:
    """Make the web application.

    Args:
        answers: computes the answers.
        hosts: the names by which it may be called; ``*`` for any.
        token: the token that readers need; empty for none.
        root_path: the path below which a proxy serves it, such as ``/notes``, whether the proxy removes it or not.
    """
    require("starlette", "serve")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse
    from starlette.routing import Mount, Route

    files, described = PageFiles(root_path), description(root_path)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = "There is nothing at this address." if status == 404 else f"{getattr(error, 'detail', 'Error')}."
        return files.error(request, status, message)

    api = _api(answers)
    routes = [*files.routes(api), Route("/api/openapi.json", openapi, methods=["GET"]), *api]
    guard = Middleware(Guard, hosts=hosts, files=files, token=token, root_path=root_path)
    return Starlette(
        routes=[*([Mount(root_path, routes=routes)] if root_path else []), *routes],
        middleware=[guard],
        exception_handlers={HTTPException: refused},
    )


def _api(answers: Answers | SeparateAnswers) -> list[Route]:
    from starlette.routing import Route

    searches, small = Turns(SEARCHES), Turns(SMALL)

    def route(path: str, name: str, *arguments: Callable[[dict[str, Any]], Any] | str) -> Route:
        """Make a route; its arguments are values of parameters, or made of them."""

        def answer(given: dict[str, Any]) -> Any:
            return answers(name, *(given[each] if isinstance(each, str) else each(given) for each in arguments))

        async def respond(request: Request) -> Response:
            return await _respond(request, path, answer, small if name in QUICK else searches)

        return Route(path.replace("{docno}", "{docno:path}"), respond, methods=["GET"])

    def is_weak(given: dict[str, Any]) -> bool:
        return bool(given["weak"] == "1")

    def chosen(given: dict[str, Any]) -> Filter:
        return Filter(given["in"], given["kind"], given["since"], given["until"])

    return [
        route("/api/settings", "settings"),
        route("/api/preview", "preview", "q", "mode"),
        route("/api/search", "search", "q", "mode", is_weak, chosen, "k", "offset"),
        route("/api/explain", "explain", "q", "docno", "system"),
        route("/api/post", "post", "docno", "q", "start"),
        route("/api/graph/{docno}.svg", "graph", "docno", "theme", lambda given: given["sentence"] or 0),
    ]


async def _respond(request: Request, path: str, answer: Callable[[dict[str, Any]], Any], turns: Turns) -> Response:
    """Compute an answer in a thread, and turn an error into a status and one line."""
    import anyio
    import anyio.to_thread
    from starlette.responses import JSONResponse, Response

    fresh, is_svg = {"Cache-Control": "no-store"}, path.endswith(".svg")
    client, question = request.state.client, str(request.url)
    if turns.full(client, question):
        await asyncio.sleep(_REFUSAL)  # who asks again at once would keep the server busy with refusals
        full = {"error": "Too many of your requests are waiting; try again in a moment."}
        return JSONResponse(full, 503, headers={**fresh, "Retry-After": "2"})
    try:
        given = {**read_parameters(path, request.query_params.multi_items()), **request.path_params}

        def job() -> tuple[bytes, bool]:
            made = answer(given)
            if not is_svg:
                made = as_text(made) if given["format"] == "text" else made
                made = json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            content = made.encode()
            pack = len(content) > _SHORT and accepts_gzip(request)
            return (gzip.compress(content, _LEVEL) if pack else content), pack

        with gathered():  # faults of a typed query do not belong into a server's log
            async with turns.turn(client, question):
                content, packed = b"", False  # for a client that left while it waited
                if not await request.is_disconnected():
                    limiter = anyio.CapacityLimiter(1)
                    content, packed = await anyio.to_thread.run_sync(job, abandon_on_cancel=True, limiter=limiter)
    except (BadRequestError, ConfigError) as error:
        return JSONResponse({"error": str(error)}, 400, headers=fresh)
    except OverLimitError:
        stopped = {"error": "This took too long and was stopped. Ask a shorter question."}
        return JSONResponse(stopped, 503, headers=fresh)
    except UnknownIdError:
        return JSONResponse({"error": "There is no such post."}, 404, headers=fresh)
    except Exception:
        _LOG.exception("a request failed: %s", visible(request.url.path))
        return JSONResponse({"error": "The server could not answer this request."}, 500, headers=fresh)
    headers = {**fresh, "Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if packed else {})}
    if is_svg:
        return Response(content, media_type="image/svg+xml", headers={**headers, **_SVG_POLICY})
    return Response(content, media_type="application/json", headers=headers)


def serve_page(
    path: Path,
    systems: Sequence[str],
    *,
    host: str,
    port: int,
    link: str | None = None,
    title: str = "",
    about: str = "",
    token: str | None = None,
    hosts: Collection[str] = (),
    root_path: str = "",
    proxies: Collection[str] = (),
    started: Callable[[str, bool], None] = lambda *_: None,
) -> None:
    """Serve the page until the process is asked to end.

    Args:
        path: the engine.
        systems: the systems to show.
        host: the address to listen on.
        port: the port, 0 for a free one.
        link: the template of links to sources.
        title: the name of the collection; by default the folder's.
        about: a sentence about it.
        token: the token that readers need; empty for none, ``None`` only for this machine.
        hosts: further names by which the server may be called, such as a proxy's.
        root_path: the path below which a proxy serves the page.
        proxies: addresses of proxies whose headers on client and https are trusted, besides this machine.
        started: called with the address, and whether everybody who reaches it may read.

    Raises:
        MathAMRError: there is no engine, the address is taken, or others could read without a token.
    """
    uvicorn = require("uvicorn", "serve")
    from .connections import SECONDS_TO_END, PageServer, limits

    if not (path / META).is_file():
        from pyterrier_mathamr.engine.search_engine import SearchEngine

        len(SearchEngine(path))  # raises an error that names the other contents of the folder
    local = host in ("127.0.0.1", "localhost", "::1")
    if token is None and (not local or hosts):
        raise MathAMRError(
            f"Other machines could read the posts at {host}. Set a token of at least {_SHORTEST_TOKEN} characters in "
            "MATHAMR_TOKEN, or let everybody read with --token ''."
        )
    if token and len(token) < _SHORTEST_TOKEN:
        raise MathAMRError(f"A token of {len(token)} characters could be guessed. Use {_SHORTEST_TOKEN} or more.")
    if root_path and not _ROOT_PATH.fullmatch(root_path):
        allowed = "a path that begins with a slash and ends without one, such as /notes"
        raise ConfigError("root_path", root_path, allowed)
    answers = SeparateAnswers(path, tuple(systems), link, title, about)
    names = (*LOCAL, *hosts) if local or hosts else ("*",)
    app = make_app(answers, hosts=names, token=token or "", root_path=root_path)
    with _listening(host, port) as listener:
        name = "localhost" if local else socket.gethostname() if host in ("0.0.0.0", "::") else host
        options = {
            "log_level": "error", "server_header": False, "h11_max_incomplete_event_size": _LONGEST_HEADERS,
            "timeout_graceful_shutdown": 2 * SECONDS_TO_END, **limits(),
            "forwarded_allow_ips": ["127.0.0.1", "::1", *proxies],
        }  # fmt: skip
        server = PageServer(uvicorn.Config(app, **options), answers.close)
        faults: list[MathAMRError] = []

        def warm_up() -> None:
            try:
                answers.warm_up()
            except OverLimitError:  # also at the end of the server
                _LOG.info("opening %s took too long; requests try again", path)
            except MathAMRError as error:
                faults.append(error)
                server.should_exit = True

        threading.Thread(target=warm_up, daemon=True).start()
        address = f"http://{f'[{name}]' if ':' in name else name}:{listener.getsockname()[1]}{root_path}/"
        started(address, token == "" and (not local or bool(hosts)))
        try:
            server.run(sockets=[listener])
        finally:
            answers.close()
    if faults:
        raise faults[0]


def _listening(host: str, port: int) -> socket.socket:
    """Open the socket, so that an address that is taken is an error before anything is served."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small packets without delay only over sockets that name their protocol: 40 ms of each answer
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # from when the address is known; who is early waits
    except OSError as error:
        listener.close()
        raise MathAMRError(f"{host}:{port}: {error.strerror or error}. Give another --host or --port.") from error
    return listener

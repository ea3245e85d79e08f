"""The files of the page: compressed once, at addresses that change with their content.

::

    page.js, page.css, the font, …  ──▶  /static/HASH/page.js   kept for a year; one HASH of all files
    index.html, api.html            ──▶  /, /plain, /api        asked for each time, and changed only with their ETag

Modules and styles name each other by relative addresses. With one hash for all files these need no rewriting, and the
font has one address for the page and its style.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_STATIC = Path(str(resources.files(__package__) / "static"))
_MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_DEEPEST = 50  # levels of an address that a page about an error leads back from
_FOREVER, _ASK = "public, max-age=31536000, immutable", "no-cache"


class _File(NamedTuple):
    content: bytes
    packed: bytes
    media_type: str
    etag: str


class PageFiles:
    """The files, read once; ``root_path`` as of :func:`~.server.make_app`."""

    def __init__(self, root_path: str = "") -> None:
        self._root_path = root_path
        self._contents = {path.name: path.read_bytes() for path in sorted(_STATIC.iterdir())}
        hashes = "".join(name + sha256(content).hexdigest() for name, content in self._contents.items())
        self.folder = f"static/{sha256(hashes.encode()).hexdigest()[:16]}"

    def html(self, name: str, home: str = "./") -> str:
        """Return a page with the addresses of the files; ``home`` is the relative address of the page ``/``."""
        text = self._contents[name].decode().replace('"./"', f'"{home}"')
        return text.replace('"static/', f'"{home.removeprefix("./")}{self.folder}/')

    def page(self, request: Request, name: str, parts: Mapping[str, str]) -> Response:
        """Answer with a page whose ``<!--NAME-->`` are replaced by HTML."""
        html = re.sub("<!--([a-z]+)-->", lambda mark: parts[mark[1]], self.html(name))
        return _response(request, _file(name, html.encode()), _ASK)

    def error(
        self,
        request: Request,
        status: int,
        text: str,
        *,
        person: str = "",
        form: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Answer with an error: a page for a person, JSON for a program.

        Args:
            request: the request.
            status: the status.
            text: one sentence.
            person: the sentence for a person, if that is another one.
            form: HTML below it.
            headers: of the answer.
        """
        from starlette.responses import HTMLResponse, JSONResponse

        headers = {"Cache-Control": "no-store", **(headers or {})}
        if not _prefers_html(request):
            return JSONResponse({"error": text}, status, headers=headers)
        path = request.scope.get("raw_path") or request.scope["path"].encode()
        deep = path.removeprefix(self._root_path.encode()).count(b"/") - 1
        page = self.html("error.html", "../" * min(deep, _DEEPEST) or "./")
        message = f'<p role="alert">{escape(person or text)}</p>{form}'
        return HTMLResponse(page.replace("<main></main>", f"<main>{message}</main>"), status, headers=headers)

    def routes(self) -> list[Route]:
        """Return the routes of all files but ``index.html``, for which see :mod:`~.first_page`."""
        from starlette.routing import Route

        def route(path: str, file: _File, cache: str) -> Route:
            async def respond(request: Request) -> Response:
                return _response(request, file, cache)

            return Route(path, respond, methods=["GET"])

        pages = [route("/api", _file("api.html", self.html("api.html").encode()), _ASK)]
        others = [(name, content) for name, content in self._contents.items() if not name.endswith(".html")]
        return [*pages, *(route(f"/{self.folder}/{name}", _file(name, content), _FOREVER) for name, content in others)]


def accepts_gzip(request: Request) -> bool:
    """Return whether an answer may be compressed."""
    return "gzip" in request.headers.get("accept-encoding", "")


def _prefers_html(request: Request) -> bool:
    """Return whether a person asks with a browser, whose header ``Accept`` names HTML before JSON."""
    return "text/html" in request.headers.get("accept", "").partition("json")[0]


def _file(name: str, content: bytes) -> _File:
    media_type = _MEDIA.get(Path(name).suffix, "font/woff2")
    packed = b"" if media_type == "font/woff2" else gzip.compress(content, mtime=0)  # which is compressed itself
    return _File(content, packed, media_type, f'W/"{sha256(content).hexdigest()[:16]}"')


def _response(request: Request, file: _File, cache: str) -> Response:
    from starlette.responses import Response

    headers = {"Cache-Control": cache, "ETag": file.etag, "Vary": "Accept-Encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if file.packed and accepts_gzip(request):
        return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)

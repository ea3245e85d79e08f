"""The pages of the server, and their files: compressed once, at addresses that change with their content.

::

    page.js, page.css, the font, …  ──▶  /static/HASH/page.js   kept for a year; one HASH of all files
    api.html                        ──▶  /api                   asked for each time, and changed only with its ETag
    index.html                      ──▶  /        ?q=… ?post=… ?like=…   with title, description and preview tags; its
                                                                         script asks for the content
                                         /plain   ?q=… ?post=…           the same page with the content, where there
                                                                         are no scripts; the form leads here

Modules and styles name each other by relative addresses. With one hash for all files these need no rewriting, and the
font has one address for the page and its style. The content of ``/plain`` comes from the routes of the interface, so
the limits and queues of ``/api`` hold here, too.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_STATIC = Path(str(resources.files(__package__) / "static"))
_MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_DEEPEST = 50  # levels of an address that a page about an error leads back from
_FOREVER, _ASK = "public, max-age=31536000, immutable", "no-cache"
_PATIENCE = 0.5  # seconds for a title; an engine that is being opened gets a general one
_LONGEST_NAME, _LONGEST_ABOUT = 60, 200  # characters
_GENERAL = "Math search"
_ABOUT = "Search posts by words and formulas."
_RESULTS = 30
_NOTHING = '<div class="nothing"><p class="title">No good match</p></div>'

Answer = dict[str, Any]


class _File(NamedTuple):
    content: bytes
    packed: bytes
    media_type: str
    etag: str


class PageFiles:
    """The files, read once, and the pages made of them; ``root_path`` as of :func:`~.server.make_app`."""

    def __init__(self, root_path: str = "") -> None:
        self._root_path = root_path
        self._api: Mapping[str, Callable[[Request], Awaitable[Response]]] = {}  # routes of the interface, by path
        self._contents = {path.name: path.read_bytes() for path in sorted(_STATIC.iterdir())}
        hashes = "".join(name + sha256(content).hexdigest() for name, content in self._contents.items())
        self.folder = f"static/{sha256(hashes.encode()).hexdigest()[:16]}"

    def html(self, name: str, home: str = "./") -> str:
        """Return a page with the addresses of the files; ``home`` is the relative address of the page ``/``."""
        text = self._contents[name].decode().replace('"./"', f'"{home}"')
        return text.replace('"static/', f'"{home.removeprefix("./")}{self.folder}/')

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
        """Answer with an error: a page for a person, with HTML (``form``) below the sentence, or JSON for a program."""
        from starlette.responses import HTMLResponse, JSONResponse

        headers = {"Cache-Control": "no-store", **(headers or {})}
        if not _prefers_html(request):
            return JSONResponse({"error": text}, status, headers=headers)
        path = request.scope.get("raw_path") or request.scope["path"].encode()
        deep = path.removeprefix(self._root_path.encode()).count(b"/") - 1
        page = self.html("error.html", "../" * min(deep, _DEEPEST) or "./")
        message = f'<p role="alert">{escape(person or text)}</p>{form}'
        return HTMLResponse(page.replace("<main></main>", f"<main>{message}</main>"), status, headers=headers)

    def routes(self, api: Sequence[Route]) -> list[Route]:
        """Return the routes of all files, and of the page itself, which asks the routes of the interface."""
        from starlette.routing import Route

        def route(path: str, file: _File, cache: str) -> Route:
            async def respond(request: Request) -> Response:
                return _response(request, file, cache)

            return Route(path, respond, methods=["GET"])

        self._api = {each.path: each.endpoint for each in api}
        pages = [route("/api", _file("api.html", self.html("api.html").encode()), _ASK)]
        pages += [Route("/", self._first, methods=["GET"]), Route("/plain", self._plain, methods=["GET"])]
        others = [(name, content) for name, content in self._contents.items() if not name.endswith(".html")]
        return [*pages, *(route(f"/{self.folder}/{name}", _file(name, content), _FOREVER) for name, content in others)]

    async def _first(self, request: Request) -> Response:
        q = request.query_params.get("q", "")
        link = f'<a href="plain?{escape(urlencode(dict(request.query_params)))}">Show the results without it</a>.'
        note = f"<noscript><p>JavaScript is off. {link if request.query_params else ''}</p></noscript>"
        return await self._page(request, q, note)

    async def _plain(self, request: Request) -> Response:
        q, docno = request.query_params.get("q", ""), request.query_params.get("post", "")
        content = await (self._post(request, docno, q) if docno else self._results(request, q))
        return await self._page(request, q, content)

    async def _page(self, request: Request, q: str, content: str) -> Response:
        """Answer with the page, which has the title and description of what its address shows."""
        import anyio

        settings, post, docno = Answer(), Answer(), request.query_params.get("post") or request.query_params.get("like")
        with anyio.move_on_after(_PATIENCE):
            settings = await self._ask(request, "/api/settings")
            if docno:
                post = await self._ask(request, "/api/post", docno=docno, format="text")
        collection = settings.get("title", _GENERAL)
        about = settings.get("about") or _ABOUT
        if post.get("title"):
            name, about = post["title"], " ".join(post["text"].split())
        elif q.strip():
            name, about = q, f"Results for “{q}” in {collection}. {about}"
        else:
            name = ""
        title = f"{_short(name, _LONGEST_NAME)} – {collection}" if name else collection
        tags = {"og:title": title, "og:description": _short(about, _LONGEST_ABOUT), "og:site_name": collection}
        head = f'<title>{escape(title)}</title>\n<meta name="description" content="{escape(tags["og:description"])}">'
        head += "".join(f'\n<meta property="{key}" content="{escape(tag)}">' for key, tag in tags.items())
        parts = {
            "head": f'{head}\n<meta property="og:type" content="website">',
            "kind": "reading" if request.query_params.get("post") else "found" if name else "home",
            "name": escape(collection),
            "q": escape(q),
            "content": content,
        }
        html = re.sub("<!--([a-z]+)-->", lambda mark: parts[mark[1]], self.html("index.html"))
        return _response(request, _file("index.html", html.encode()), _ASK)

    async def _ask(self, request: Request, path: str, **parameters: str | int) -> Answer:
        """Ask the interface; an error is an answer with ``error``."""
        from starlette.requests import Request

        headers = [(name, value) for name, value in request.scope["headers"] if name != b"accept-encoding"]
        scope = {**request.scope, "query_string": urlencode(parameters).encode(), "headers": headers, "path_params": {}}
        response = await self._api[path](Request(scope, request.receive))
        answer: Answer = json.loads(bytes(response.body) or b'{"error": ""}')  # of a client that has left
        return answer

    async def _post(self, request: Request, docno: str, q: str) -> str:
        post = await self._ask(request, "/api/post", docno=docno, q=q)
        if "error" in post:
            return _error(post)
        back = f'<a class="back" href="plain?{escape(urlencode({"q": q}))}">← Results</a>' if q else ""
        title = f'<h2 class="title" dir="auto">{post["title_html"] or escape(docno)}</h2>'
        return f'<article class="post">{back}{title}<div class="whole">{post["html"]}</div></article>'

    async def _results(self, request: Request, q: str) -> str:
        if not q.strip():
            return ""
        read = await self._ask(request, "/api/preview", q=q)
        mode = "formulas" if read.get("kind") == "formula" else "posts"
        answer = read if "error" in read else await self._ask(request, "/api/search", q=q, mode=mode, k=_RESULTS)
        if "error" in answer:
            return _error(answer)
        several = len(answer["systems"]) > 1
        listed = []
        for system in answer["systems"]:
            name = f"<h2>{escape(system['name'])}</h2>" if several else ""
            results = "".join(_result(result, q, "h3" if several else "h2") for result in system["results"])
            listed.append(name + (f'<ol class="results">{results}</ol>' if results else _NOTHING))
        return _suggested(answer) + ("".join(listed) or _NOTHING)


def accepts_gzip(request: Request) -> bool:
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


def _result(result: Answer, q: str, heading: str) -> str:
    address = escape("plain?" + urlencode({"q": q, "post": result["post_id"]}))
    title = f'<a href="{address}">{result["title_html"] or escape(result["post_id"])}</a>'
    context = " · ".join(filter(None, (result["file"], result["section"], result["date"])))
    return (
        f'<li><article><{heading} class="title" dir="auto">{title}</{heading}><p class="context">{escape(context)}</p>'
        f'<p class="snippet" dir="auto">{result["snippet_html"]}</p></article></li>'
    )


def _suggested(answer: Answer) -> str:
    """Name the words that no post has, with the question that was searched or may be searched instead."""
    if (suggestions := answer.get("suggestions")) is None:
        return ""
    words, q = ", ".join(f"“{each['word']}”" for each in suggestions["words"]), suggestions["corrected"]
    link = f'<a href="{escape("plain?" + urlencode({"q": q}))}">{escape(q)}</a>'
    then = f"Searched for {escape(q)} instead." if suggestions["replaced"] else f"Search for {link}"
    return f'<p class="note">No post has {escape(words)}. {then}</p>'


def _error(answer: Answer) -> str:
    return f'<p class="error" role="alert">{escape(answer["error"])}</p>'


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"

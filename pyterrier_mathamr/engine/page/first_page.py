"""The HTML that a browser gets first: what the page is about, and results where there are no scripts.

::

    /        ?q=… ?post=… ?like=…   the page, with title, description and preview tags; its script asks for the content
    /plain   ?q=… ?post=…           the same page with the content; the form leads here until the script takes over

The content comes from the routes of the interface, so the limits and queues of ``/api`` hold here, too.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from .files import PageFiles

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_PATIENCE = 0.5  # seconds for a title; an engine that is being opened gets a general one
_LONGEST_NAME, _LONGEST_ABOUT = 60, 200  # characters
_GENERAL = "Math search"
_ABOUT = "Search posts by words and formulas."
_RESULTS = 30

Answer = dict[str, Any]


def first_page_routes(files: PageFiles, api: Sequence[Route]) -> list[Route]:
    """Return the routes of the page itself.

    Args:
        files: the files of the page.
        api: the routes of the interface.
    """
    from starlette.routing import Route

    pages = _Pages(files, {route.path: route.endpoint for route in api})
    return [Route("/", pages.first, methods=["GET"]), Route("/plain", pages.plain, methods=["GET"])]


class _Pages:
    def __init__(self, files: PageFiles, api: Mapping[str, Callable[[Request], Awaitable[Response]]]) -> None:
        self._files, self._api = files, api

    async def first(self, request: Request) -> Response:
        """Answer with the page, whose content its script asks for."""
        q = request.query_params.get("q", "")
        link = f'<a href="plain?{escape(urlencode(dict(request.query_params)))}">Show the results without it</a>.'
        note = f"<noscript><p>JavaScript is off. {link if request.query_params else ''}</p></noscript>"
        return self._files.page(request, "index.html", {**await self._named(request, q), "content": note})

    async def plain(self, request: Request) -> Response:
        """Answer with the page and its content."""
        q, docno = request.query_params.get("q", ""), request.query_params.get("post", "")
        content = await (self._post(request, docno, q) if docno else self._results(request, q))
        return self._files.page(request, "index.html", {**await self._named(request, q), "content": content})

    async def _named(self, request: Request, q: str) -> dict[str, str]:
        """The title and description of an address."""
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
        head += "".join(f'\n<meta property="{key}" content="{escape(of)}">' for key, of in tags.items())
        return {
            "head": f'{head}\n<meta property="og:type" content="website">',
            "kind": "reading" if request.query_params.get("post") else "found" if name else "home",
            "name": escape(collection),
            "q": escape(q),
        }

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
        found = read if "error" in read else await self._ask(request, "/api/search", q=q, mode=mode, k=_RESULTS)
        if "error" in found:
            return _error(found)
        several = len(found["systems"]) > 1
        listed = []
        for system in found["systems"]:
            name = f"<h2>{escape(system['name'])}</h2>" if several else ""
            results = "".join(_result(result, q, "h3" if several else "h2") for result in system["results"])
            listed.append(name + (f'<ol class="results">{results}</ol>' if results else _NOTHING))
        return _suggested(found) + ("".join(listed) or _NOTHING)


_NOTHING = '<div class="nothing"><p class="title">No good match</p></div>'


def _result(result: Answer, q: str, heading: str) -> str:
    address = escape("plain?" + urlencode({"q": q, "post": result["post_id"]}))
    title = f'<a href="{address}">{result["title_html"] or escape(result["post_id"])}</a>'
    context = " · ".join(filter(None, (result["file"], result["section"], result["date"])))
    return (
        f'<li><article><{heading} class="title" dir="auto">{title}</{heading}><p class="context">{escape(context)}</p>'
        f'<p class="snippet" dir="auto">{result["snippet_html"]}</p></article></li>'
    )


def _suggested(found: Answer) -> str:
    """Name the words that no post has, with the question that was searched or may be searched instead."""
    if (suggestions := found.get("suggestions")) is None:
        return ""
    words, q = ", ".join(f"“{each['word']}”" for each in suggestions["words"]), suggestions["corrected"]
    link = f'<a href="{escape("plain?" + urlencode({"q": q}))}">{escape(q)}</a>'
    then = f"Searched for {escape(q)} instead." if suggestions["replaced"] else f"Search for {link}"
    return f'<p class="note">No post has {escape(words)}. {then}</p>'


def _error(answer: Answer) -> str:
    return f'<p class="error" role="alert">{escape(answer["error"])}</p>'


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"

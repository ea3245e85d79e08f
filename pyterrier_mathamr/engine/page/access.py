"""Who may read the page: the names by which it is called, and the headers that keep other sites out."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .files import PageFiles


HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_DEEPEST = 50  # levels of an address that a message leads back from
LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """Refuses names of other hosts and adds :data:`HEADERS`."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in given)]
            await send(message)

        if "*" in self._hosts or _host(scope) in self._hosts:
            await self._app(scope, receive, send_with_headers)
            return
        body = json.dumps({"error": "The server is not called by this name."}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send_with_headers({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _host(scope: Scope) -> str:
    """The name in the header ``Host``, without the port; empty where there is not exactly one."""
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        return ""
    host: str = values[0].decode("latin-1").lower()
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def prefers_html(scope: Scope) -> bool:
    """Tell whether a person asks with a browser, whose header ``Accept`` names HTML before JSON."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return b"text/html" in accepted.partition(b"json")[0]


def error_page(files: PageFiles, scope: Scope, message: str) -> str:
    """Make a page with a message, in HTML, and a link to the page ``/``."""
    path = scope.get("raw_path") or scope["path"].encode()
    deep = path.count(b"/") - scope.get("root_path", "").count("/") - 1
    return files.html("error.html", "../" * min(deep, _DEEPEST) or "./").replace(
        "<main></main>", f"<main>{message}</main>"
    )

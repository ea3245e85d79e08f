"""Who may read the page: the names by which it is called, a token, and the headers that keep other sites out.

::

    Host is another name                          ──▶  400, so that no other site can point its name here
    Authorization: Bearer TOKEN, or the cookie    ──▶  the page
    neither, a browser                            ──▶  401 with a form, which posts the token and gets the cookie
    neither, a program                            ──▶  401 with one line

The token is never part of an address, which browsers and proxies record. The cookie holds a number and its hash with
the token, and is sent when somebody follows a link to a search, but not with requests from another site.

A request that may be answered belongs to a client: whoever signed in with its cookie, or else its address, which
uvicorn takes from a trusted proxy. ``scope["state"]["client"]`` names the client for :mod:`.server` and
:mod:`.connections`.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from .pages import PageFiles

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL = ("localhost", "127.0.0.1", "[::1]")
_LONGEST_FORM = 4_096  # bytes
_YEAR = 31_536_000  # seconds
_FORM = """<form method="post">
<label>Token <input name="token" type="password" autocomplete="current-password" required autofocus></label>
<button type="submit">Open</button>
</form>"""


class Guard:
    """Refuses other host names and requests without a token, and adds :data:`HEADERS`."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], files: PageFiles, token: str, root_path: str) -> None:
        self._app, self._files = app, files
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token, self._root_path = token.encode(), root_path
        self._name = f"mathamr-{self._proof('')[:8]}"  # of each token, since the servers of a host share cookies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        from starlette.requests import Request

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in given)]
            await send(message)

        app: ASGIApp = await self._refusal(Request(scope, receive)) or self._app
        await app(scope, receive, send_with_headers)

    async def _refusal(self, request: Request) -> Response | None:
        """Answer a request that may not be passed on, or that signs in; nothing for any other."""
        if "*" not in self._hosts and _host(request.scope) not in self._hosts:
            return self._files.error(request, 400, "The server does not answer to this name; --allowed-host adds one.")
        path = request.scope["path"].removeprefix(self._root_path)
        if not path:
            return _redirection(
                request, f"{self._root_path.rpartition('/')[2]}/"
            )  # below which relative addresses lead
        if client := self._client(request):
            request.state.client = client
            return None
        if path.startswith(f"/{self._files.folder}/"):
            return None
        if request.method == "POST" and self._is_token(await _token_of_form(request)):
            return self._signed_in(request)
        wrong = "This token is wrong." if request.method == "POST" else ""
        message = wrong or "A token is needed; programs send it as Authorization: Bearer TOKEN."
        person = wrong or "This collection is private. Enter the token that you were given to open it."
        challenge = {"WWW-Authenticate": "Bearer"}
        return self._files.error(request, 401, message, person=person, form=_FORM, headers=challenge)

    def _client(self, request: Request) -> str:
        """Name the client of a request that may be answered; empty for any other."""
        number, _, proof = request.cookies.get(self._name, "").partition(".")
        if self._token and hmac.compare_digest(proof.encode(), self._proof(number).encode()):
            return number
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer" and self._is_token(given.strip().encode("latin-1"))
        return _client_at(request.client.host if request.client else "") if by_header or not self._token else ""

    def _proof(self, number: str) -> str:
        return hmac.digest(self._token, f"cookie of mathamr {number}".encode(), "sha256").hex()

    def _is_token(self, given: bytes) -> bool:
        return hmac.compare_digest(given, self._token)

    def _signed_in(self, request: Request) -> Response:
        response = _redirection(request, request.scope.get("raw_path", b"").decode("latin-1").rpartition("/")[2])
        number = secrets.token_hex(8)
        response.set_cookie(
            self._name, f"{number}.{self._proof(number)}", max_age=_YEAR, path=self._root_path or "/",
            secure=request.url.scheme == "https", httponly=True, samesite="lax",
        )  # fmt: skip
        return response


def _client_at(host: str) -> str:
    """Name the client at an address; one client may have 2⁶⁴ addresses of IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host or "unknown"
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))
    return host


def _redirection(request: Request, place: str) -> Response:
    """Lead to a place in the folder of an address, with the same query."""
    from starlette.responses import Response

    query = request.scope["query_string"].decode("latin-1")
    headers = {"Location": f"./{place}?{query}" if query else f"./{place}", "Cache-Control": "no-store"}
    return Response(status_code=303, headers=headers)


async def _token_of_form(request: Request) -> bytes:
    """The token in a form that was posted; empty where there is none."""
    from starlette.requests import ClientDisconnect

    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < 9 and int(length) <= _LONGEST_FORM):
        return b""
    try:
        form = parse_qs((await request.body()).decode("latin-1"))
    except ClientDisconnect:
        return b""
    return form.get("token", [""])[0].encode()


def _host(scope: Scope) -> str:
    """The name in the header ``Host``, without the port; empty where there is not exactly one."""
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        return ""
    host: str = values[0].decode("latin-1").lower()
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host

"""One connection to Qdrant: requests with retries, and errors that name the address.

A request that fails for a transient reason (no connection, no answer in time, too many requests, a fault of the server)
is sent again after a pause that doubles each time. All requests of this package are idempotent: the ids of points are
made from their docnos, so a point that is stored again replaces itself.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import time
import weakref
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError, require
from pyterrier_mathamr.store import LockedError, WriteError

from .errors import QdrantCollectionError, QdrantError

KEY_VARIABLE = "QDRANT_API_KEY"
"""The environment variable of the API key where none is given."""

_TRANSIENT = (408, 429, 500, 502, 503, 504)
_LONGEST_PAUSE = 30.0
_LOCAL: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # a folder allows one client in a process


@atexit.register
def _close_folders() -> None:
    """Close the folders of local mode before the interpreter shuts down; its own closing comes too late."""
    for client in list(_LOCAL.values()):
        client.close()


class Connection:
    """A client that is created on the first request."""

    def __init__(self, location: str, api_key: str | None, timeout: int, retries: int, pause: float) -> None:
        self.location, self.timeout, self.retries, self.pause = location, timeout, retries, pause
        self._api_key = api_key
        self._opened: Any = None

    @property
    def remote(self) -> bool:
        """Whether there is a server; local mode searches exactly and has no shards, replicas or graphs."""
        return "://" in self.location

    @property
    def models(self) -> Any:
        """``qdrant_client.models``."""
        return require("qdrant_client", "qdrant").models

    @property
    def client(self) -> Any:
        """The client, opened on first use."""
        if self._opened is None:
            self._opened = self._server() if self.remote else self._folder()
        return self._opened

    def _server(self) -> Any:
        client = require("qdrant_client", "qdrant").QdrantClient
        key = self._api_key or os.environ.get(KEY_VARIABLE) or None
        try:
            return client(url=self.location, api_key=key, timeout=self.timeout, check_compatibility=False)
        except ValueError as error:
            raise ConfigError("location", self.location, f"a URL such as http://localhost:6333 ({error})") from error

    def _folder(self) -> Any:
        package = require("qdrant_client", "qdrant")
        folder = str(Path(self.location).absolute())
        client = _LOCAL.get(folder)
        if client is None or client._client.closed:
            try:
                client = _LOCAL[folder] = package.QdrantClient(path=folder)
            except RuntimeError as error:
                raise LockedError(folder, "another process has it open in local mode") from error
            except OSError as error:
                raise WriteError(folder, str(error)) from error
        return client

    def call(self, method: str, address: str, doing: str, *, retries: int | None = None, **arguments: Any) -> Any:
        """Send one request, with retries."""
        send = getattr(self.client, method)
        left = self.retries if retries is None else retries
        pause = self.pause
        while True:
            try:
                return send(**arguments)
            except Exception as error:
                named, wait = self._named(error, address, doing)
                if wait is None or left == 0:
                    raise named from error
                time.sleep(max(wait, min(pause, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)))
                left, pause = left - 1, pause * 2

    def _named(self, error: Exception, address: str, doing: str) -> tuple[Exception, float | None]:
        """Return the error to raise, and the least seconds before a retry; ``None`` where a retry cannot help."""
        exceptions = require("qdrant_client.http.exceptions", "qdrant")
        common = require("qdrant_client.common.client_exceptions", "qdrant")
        if isinstance(error, exceptions.ResponseHandlingException):
            source = error.source
            if isinstance(source, require("httpx", "qdrant").TimeoutException):
                return _timeout(address, f"no answer within {self.timeout} s while {doing}"), 0.0
            return QdrantError(address, f"connection lost while {doing} ({source!r}); check that the server runs"), 0.0
        if isinstance(error, common.ResourceExhaustedResponse):
            return QdrantError(address, f"too many requests while {doing}", 429), float(error.retry_after_s)
        if isinstance(error, exceptions.UnexpectedResponse):
            return _of_status(error, address, doing)
        if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, common.QdrantException)):
            return QdrantError(address, f"an answer that cannot be read while {doing} ({error})"), 0.0
        if not self.remote:
            return _of_folder(error, address, doing), None
        return error, None


def _timeout(address: str, reason: str) -> QdrantError:
    return QdrantError(address, f"{reason}; a larger timeout=… waits longer", 408)


def _of_status(error: Any, address: str, doing: str) -> tuple[QdrantError, float | None]:
    """Return the error for an HTTP status."""
    status, said = int(error.status_code or 0), error.content[:500].decode("utf-8", "replace")
    if status in (401, 403):
        reason = f"the server refuses the API key while {doing}; give api_key=… or set {KEY_VARIABLE}"
        return QdrantError(address, reason, status), None
    if status == 404:
        return QdrantCollectionError(address, f"there is no such collection while {doing}"), None
    if status == 408 or status == 504:
        return _timeout(address, f"no answer in time while {doing} (status {status})"), 0.0
    if status in _TRANSIENT:
        return QdrantError(address, f"the server fails while {doing} (status {status}: {said})", status), 0.0
    return QdrantError(address, f"refused while {doing} (status {status}: {said})", status), None


def _of_folder(error: Exception, address: str, doing: str) -> Exception:
    """Return the error for an exception of local mode."""
    import sqlite3

    if isinstance(error, (OSError, sqlite3.Error)):
        return WriteError(address, f"{error} while {doing}")
    if isinstance(error, ValueError) and "not found" in str(error):
        return QdrantCollectionError(address, f"there is no such collection while {doing}")
    if isinstance(error, ValueError):
        return QdrantError(address, f"refused while {doing} ({error})")
    return error

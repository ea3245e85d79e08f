"""One connection to Qdrant: requests that are tried again when that can help, and errors with names.

A request that fails for a passing reason (no connection, no answer in time, too many requests, a server's fault) is
sent again after a pause that doubles each time. All requests of this package may arrive twice without harm: points have
ids made from their docnos, so that one that is stored again replaces itself.
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

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr.store import LockedError, WriteError

from .errors import (
    QdrantCollectionError,
    QdrantConnectionError,
    QdrantError,
    QdrantKeyError,
    QdrantRefusedError,
    QdrantTimeoutError,
)

KEY_VARIABLE = "QDRANT_API_KEY"
"""The environment variable that holds the API key where none is given."""

_PASSING = (408, 429, 500, 502, 503, 504)
_LONGEST_PAUSE = 30.0
_LOCAL: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # a folder takes one client a process


@atexit.register
def _close_folders() -> None:
    """Close what local mode has open while Python still stands; its own closing comes too late."""
    for client in list(_LOCAL.values()):
        client.close()


class Connection:
    """A client that is made on the first request.

    Args:
        location: the URL of a server (``https://host:6333``), or a folder for Qdrant's local mode.
        api_key: the key; by default that of :data:`KEY_VARIABLE`. It is shown nowhere, and never pickled.
        timeout: seconds to wait for an answer.
        retries: how often a request that failed for a passing reason is sent again.
        pause: seconds before it is sent again the first time.
    """

    def __init__(self, location: str, api_key: str | None, timeout: int, retries: int, pause: float) -> None:
        self.location, self.timeout, self.retries, self.pause = location, timeout, retries, pause
        self._api_key = api_key
        self._opened: Any = None

    @property
    def remote(self) -> bool:
        """Whether there is a server; local mode searches exactly and knows no shards, replicas or graphs."""
        return "://" in self.location

    @property
    def models(self) -> Any:
        """``qdrant_client.models``."""
        return require("qdrant_client", "qdrant").models

    @property
    def client(self) -> Any:
        """The client, opened on first use.

        Raises:
            MissingExtraError: qdrant-client is not installed.
            ConfigError: the URL cannot be read.
            LockedError: another process has the folder open.
        """
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
        """Send one request, again where it failed for a passing reason.

        Args:
            method: the method of ``QdrantClient``.
            address: what is named in errors.
            doing: what is being done, in words, for errors.
            retries: how often at most it is sent again; by default as the connection says.
            arguments: the method's.

        Raises:
            QdrantError: one of its kinds.
            WriteError: local mode cannot write its folder.
        """
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
        """The error with a name, and the seconds to wait at least before trying again; ``None`` where it is no use."""
        exceptions = require("qdrant_client.http.exceptions", "qdrant")
        common = require("qdrant_client.common.client_exceptions", "qdrant")
        if isinstance(error, exceptions.ResponseHandlingException):
            source = error.source
            if isinstance(source, require("httpx", "qdrant").TimeoutException):
                return QdrantTimeoutError(address, f"no answer within {self.timeout} s while {doing}"), 0.0
            return QdrantConnectionError(address, f"connection lost while {doing} ({source!r})"), 0.0
        if isinstance(error, common.ResourceExhaustedResponse):
            return QdrantConnectionError(address, f"too many requests while {doing}"), float(error.retry_after_s)
        if isinstance(error, exceptions.UnexpectedResponse):
            return _of_status(error, address, doing)
        if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, common.QdrantException)):
            return QdrantConnectionError(address, f"an answer that cannot be read while {doing} ({error})"), 0.0
        if not self.remote:
            return _of_folder(error, address, doing), None
        return error, None


def _of_status(error: Any, address: str, doing: str) -> tuple[QdrantError, float | None]:
    """The error that an HTTP status means."""
    status, said = int(error.status_code or 0), error.content[:500].decode("utf-8", "replace")
    if status in (401, 403):
        return QdrantKeyError(address, f"the server refuses the API key while {doing} (status {status})"), None
    if status == 404:
        return QdrantCollectionError(address, f"there is no such collection while {doing}"), None
    if status == 408 or status == 504:
        return QdrantTimeoutError(address, f"no answer in time while {doing} (status {status})"), 0.0
    if status in _PASSING:
        return QdrantConnectionError(address, f"the server fails while {doing} (status {status}: {said})"), 0.0
    return QdrantRefusedError(address, f"refused while {doing} (status {status}: {said})", status), None


def _of_folder(error: Exception, address: str, doing: str) -> Exception:
    """The error that an exception of local mode means."""
    import sqlite3

    if isinstance(error, (OSError, sqlite3.Error)):
        return WriteError(address, f"{error} while {doing}")
    if isinstance(error, ValueError) and "not found" in str(error):
        return QdrantCollectionError(address, f"there is no such collection while {doing}")
    if isinstance(error, ValueError):
        return QdrantRefusedError(address, f"refused while {doing} ({error})")
    return error

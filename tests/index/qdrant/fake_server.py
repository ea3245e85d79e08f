"""A Qdrant server without a socket: real requests of the real client, answered in this process, and failing on demand.

The client's own transport is replaced. Collections are shards of the real engine (:mod:`.engine`); HTTP, aliases and
the checks that a server makes before its engine are imitated after the server's source.
"""

import json
import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import numpy as np

from tests.index.qdrant.engine import Shards

MOST_BYTES = 32 << 20
"""The longest request that a server reads unless it is configured otherwise."""

NUMBERS = 1 << 20
"""The rows of a point have fewer numbers."""


class RefusedError(Exception):
    """A request that the server refuses, by its status and reason."""


class FakeServer:
    """Answers requests; ``fault`` may break one: of the request's name it makes a kind of failure, or ``None``.

    Kinds: ``unreachable`` and ``slow`` (nothing happened), ``lost`` and ``late`` (it happened, no answer came),
    ``garbled``, ``swallowed`` (nothing happened, without any sign), ``waiting`` (too few peers agreed in time; it
    happens at :meth:`commit`), or an HTTP status.

    Each host is a peer, and shows a change of metadata or of an alias only after its ``delays``, in seconds.
    """

    def __init__(self) -> None:
        self.collections: dict[str, Shards] = {}
        self.aliases: dict[str, str] = {}
        self.requests: list[tuple[str, Any]] = []
        self.sizes: list[int] = []
        self.fault: Callable[[str], Any] = lambda name: None
        self.retry_after: str | None = None
        self.key: str | None = None
        self.indexing_threshold: int | None = None
        self.waiting: list[tuple[str, str, Any]] = []
        self.delays: dict[str, float] = {}
        self.states: list[tuple[float, dict[str, str], dict[str, Any]]] = [(-math.inf, {}, {})]
        self.peer = ""

    def names(self) -> list[str]:
        return [name for name, _ in self.requests]

    def sent_ids(self) -> list[str]:
        return [point["id"] for name, body in self.requests if name == "upsert" for point in body["points"]]

    def restart(self) -> None:
        for collection in self.collections.values():
            collection.restart()

    def stop(self) -> None:
        for name in list(self.collections):
            self.drop(name, None)

    def commit(self) -> None:
        """Carry out what was waiting for more peers, in order."""
        for name, collection, body in self.waiting:
            with suppress(RefusedError):  # it was sent twice
                getattr(self, name)(collection, body)
            self.remember()
        self.waiting.clear()

    def settle(self) -> None:
        """Let every peer show what is there now."""
        self.remember()
        self.states = [(-math.inf, *self.states[-1][1:])]

    def remember(self) -> None:
        """Keep the aliases and metadata as they are now, for the peers that show them later."""
        now = {name: (of.params, dict(of.metadata)) for name, of in self.collections.items()}
        self.states.append((time.monotonic(), dict(self.aliases), now))

    def __call__(self, request: Any) -> Any:
        path, self.peer = request.url.path, request.url.host
        name, collection = next((name, found[1]) for name, rule in ROUTES.items() if (found := matched(rule, request)))
        body = json.loads(request.content, parse_constant=refused) if request.content else {}
        self.requests.append((name, body))
        self.sizes.append(len(request.content))
        if self.key and request.headers.get("api-key") != self.key:
            return httpx.Response(401, text="Must provide an API key or an Authorization bearer token")
        kind = self.fault(name)
        if kind in ("unreachable", "slow"):
            raise (httpx.ConnectError if kind == "unreachable" else httpx.ReadTimeout)("no", request=request)
        if kind == "waiting":
            self.waiting.append((name, collection, body))
            return httpx.Response(500, text="Service internal error: Waiting for consensus operation commit failed.")
        if isinstance(kind, int):
            headers = {"Retry-After": self.retry_after} if self.retry_after else {}
            return httpx.Response(kind, text=f"a fault at {path}", headers=headers)
        try:
            if len(request.content) > MOST_BYTES:
                raise RefusedError(413, f"{len(request.content)} bytes are larger than allowed ({MOST_BYTES})")
            result = {"status": "completed"} if kind == "swallowed" else getattr(self, name)(collection, body)
            if name in ("alias", "create", "update", "drop"):
                self.remember()
        except RefusedError as error:
            return httpx.Response(error.args[0], text=error.args[1])
        except (ValueError, TypeError) as error:
            return httpx.Response(400, text=str(error))
        if kind in ("lost", "late"):
            raise (httpx.ReadError if kind == "lost" else httpx.ReadTimeout)("no", request=request)
        text = "{" if kind == "garbled" else json.dumps({"result": printed(result), "status": "ok", "time": 0.0})
        return httpx.Response(200, text=text)

    def of(self, name: str) -> Shards:
        """Return a collection by its name or alias."""
        found = self.collections.get(self.aliases.get(name, name))
        if found is None:
            raise RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")
        return found

    def shown(self, name: str) -> tuple[Any, Any]:
        """Return the parameters and metadata of a collection that the asked peer shows."""
        if not (delay := self.delays.get(self.peer, 0.0)):
            found = self.of(name)
            return found.params, found.metadata
        aliases, known = next((of, known) for at, of, known in reversed(self.states) if at <= time.monotonic() - delay)
        if (name := aliases.get(name, name)) not in known:
            raise RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")
        return known[name]

    def get_collection(self, name: str, body: Any) -> Any:
        params, metadata = self.shown(name)
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizer = {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        }
        config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
        stated = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
        return {**stated, "config": {**config, "metadata": metadata}}

    def exists(self, name: str, body: Any) -> Any:
        return {"exists": self.aliases.get(name, name) in self.collections}

    def create(self, name: str, body: Any) -> Any:
        if name in self.collections or name in self.aliases:
            raise RefusedError(409, f"Wrong input: Collection `{name}` already exists!")
        self.collections[name] = Shards(body, self.indexing_threshold)
        return True

    def update(self, name: str, body: Any) -> Any:
        merged = {**self.of(name).metadata, **body["metadata"]}
        self.of(name).metadata = {key: value for key, value in merged.items() if value is not None}
        return True

    def drop(self, name: str, body: Any) -> Any:
        found = self.collections.pop(name, None)
        if found is not None:
            found.remove()
            self.aliases = {alias: of for alias, of in self.aliases.items() if of != name}
        return found is not None

    def alias(self, name: str, body: Any) -> Any:
        changed = dict(self.aliases)
        for action in body["actions"]:
            for kind, of in action.items():
                if kind == "delete_alias":
                    changed.pop(of["alias_name"], None)
                    continue
                self.of(of["collection_name"])
                if of["alias_name"] in self.collections:
                    raise RefusedError(409, f"Wrong input: Collection `{of['alias_name']}` already exists!")
                changed[of["alias_name"]] = of["collection_name"]
        self.aliases = changed
        return True

    def payload_index(self, name: str, body: Any) -> Any:
        self.of(name).index_payload(body["field_name"], body["field_schema"])
        return {"status": "completed"}

    def upsert(self, name: str, body: Any) -> Any:
        for point in body["points"]:
            for rows in point["vector"].values():
                if isinstance(rows[0], list) and sum(map(len, rows)) >= NUMBERS:
                    raise RefusedError(422, f"Total size of all vectors must be less than {NUMBERS}")
        self.of(name).upsert(body["points"])
        return {"status": "completed"}

    def retrieve(self, name: str, body: Any) -> Any:
        return self.of(name).retrieve(body["ids"], body["with_payload"], body["with_vector"])

    def scroll(self, name: str, body: Any) -> Any:
        points, place = self.of(name).scroll(body)
        return {"points": points, "next_page_offset": place}

    def count(self, name: str, body: Any) -> Any:
        return {"count": self.of(name).count(body.get("filter"))}

    def delete(self, name: str, body: Any) -> Any:
        self.of(name).delete(points=body.get("points", ()), where=body.get("filter"))
        return {"status": "completed"}

    def query(self, name: str, body: Any) -> Any:
        return [{"points": self.of(name).query(search)} for search in body["searches"]]


ROUTES = {
    "alias": ("POST", "/collections/(aliases)"),
    "get_collection": ("GET", "/collections/([^/]+)"),
    "exists": ("GET", "/collections/([^/]+)/exists"),
    "create": ("PUT", "/collections/([^/]+)"),
    "update": ("PATCH", "/collections/([^/]+)"),
    "drop": ("DELETE", "/collections/([^/]+)"),
    "payload_index": ("PUT", "/collections/([^/]+)/index"),
    "upsert": ("PUT", "/collections/([^/]+)/points"),
    "retrieve": ("POST", "/collections/([^/]+)/points"),
    "scroll": ("POST", "/collections/([^/]+)/points/scroll"),
    "count": ("POST", "/collections/([^/]+)/points/count"),
    "delete": ("POST", "/collections/([^/]+)/points/delete"),
    "query": ("POST", "/collections/([^/]+)/points/query/batch"),
}


def refused(name: str) -> None:
    raise AssertionError(f"{name} is not JSON, and a server refuses it")


def matched(rule: tuple[str, str], request: Any) -> Any:
    method, path = rule
    return request.method == method and re.fullmatch(path, request.url.path)


def printed(value: Any) -> Any:
    """Return an answer with each number as a server prints it: float32, in the fewest digits that identify it."""
    if isinstance(value, float):
        return float(str(np.float32(value)))
    if isinstance(value, dict):
        return {key: printed(of) for key, of in value.items()}
    return [printed(of) for of in value] if isinstance(value, (list, tuple)) else value

"""A Qdrant server without a socket: real requests of the real client, answered in this process, and failing on demand.

The client's own transport is replaced. Collections are shards of the real engine (:mod:`.engine`); HTTP, aliases and
the checks that a server makes before its engine are imitated after the server's source.
"""

import json
import math
import re
import time
from contextlib import suppress

import httpx
import numpy as np

from tests.index.qdrant.engine import RefusedError, Shards

MOST_BYTES = 32 << 20  # the longest request that a server reads unless it is configured otherwise


class FakeServer:
    """Answers requests; ``fault`` may break one: of the request's name it makes a kind of failure, or ``None``.

    Kinds: ``unreachable`` and ``slow`` (nothing happened), ``lost`` and ``late`` (it happened, no answer came),
    ``garbled``, ``swallowed`` (nothing happened, without any sign), ``waiting`` (too few peers agreed in time; it
    happens at :meth:`commit`), or an HTTP status.

    Each host is a peer, and shows a change of metadata or of an alias only after its ``delays``, in seconds.
    """

    def __init__(self):
        self.collections = {}
        self.aliases = {}
        self.requests = []  # name and body
        self.sizes = []
        self.fault = lambda name: None
        self.retry_after = self.key = self.indexing_threshold = None
        self.waiting = []
        self.delays = {}
        self.states = [(-math.inf, {}, {})]  # time, aliases, parameters and metadata of collections
        self.peer = ""

    def names(self):
        return [name for name, _ in self.requests]

    def sent_ids(self):
        return [point["id"] for name, body in self.requests if name == "upsert" for point in body["points"]]

    def stop(self):
        for name in list(self.collections):
            self.drop(name)

    def commit(self):
        """Carry out what was waiting for more peers, in order."""
        for request in self.waiting:
            with suppress(RefusedError):  # it was sent twice
                self.answer(*request)
        self.waiting.clear()

    def settle(self):
        """Let every peer show what is there now."""
        self.remember()
        self.states = [(-math.inf, *self.states[-1][1:])]

    def remember(self):
        """Keep the aliases and metadata as they are now, for the peers that show them later."""
        now = {name: (of.params, dict(of.metadata)) for name, of in self.collections.items()}
        self.states.append((time.monotonic(), dict(self.aliases), now))

    def __call__(self, request):
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
            result = {"status": "completed"} if kind == "swallowed" else self.answer(name, collection, body)
        except RefusedError as error:
            return httpx.Response(error.args[0], text=error.args[1])
        except (ValueError, TypeError) as error:
            return httpx.Response(400, text=str(error))
        if kind in ("lost", "late"):
            raise (httpx.ReadError if kind == "lost" else httpx.ReadTimeout)("no", request=request)
        text = "{" if kind == "garbled" else json.dumps({"result": printed(result), "status": "ok", "time": 0.0})
        return httpx.Response(200, text=text)

    def answer(self, name, collection, body):
        if hasattr(self, name):
            result = getattr(self, name)(collection, body)
        else:
            result = getattr(self.of(collection), name)(body)
        if name in ("alias", "create", "update", "drop"):
            self.remember()
        return result

    def of(self, name):
        """Return a collection by its name or alias."""
        return known(self.collections, self.aliases.get(name, name))

    def get_collection(self, name, body):
        """Describe a collection as the asked peer shows it."""
        if delay := self.delays.get(self.peer, 0.0):
            then = time.monotonic() - delay
            aliases, collections = next((aliases, of) for at, aliases, of in reversed(self.states) if at <= then)
            params, metadata = known(collections, aliases.get(name, name))
        else:
            params, metadata = self.of(name).params, self.of(name).metadata
        config = {"params": params, "hnsw_config": HNSW, "optimizer_config": OPTIMIZER, "metadata": metadata}
        stated = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
        return {**stated, "config": config}

    def exists(self, name, body):
        return {"exists": self.aliases.get(name, name) in self.collections}

    def create(self, name, body):
        if name in self.collections or name in self.aliases:
            raise RefusedError(409, f"Wrong input: Collection `{name}` already exists!")
        self.collections[name] = Shards(body, self.indexing_threshold)
        return True

    def drop(self, name, body=None):
        found = self.collections.pop(name, None)
        if found is not None:
            found.remove()
            self.aliases = {alias: of for alias, of in self.aliases.items() if of != name}
        return found is not None

    def alias(self, name, body):
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


HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
OPTIMIZER = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0}
OPTIMIZER["flush_interval_sec"] = 5
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


def known(collections, name):
    if name not in collections:
        raise RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")
    return collections[name]


def refused(name):
    raise AssertionError(f"{name} is not JSON, and a server refuses it")


def matched(rule, request):
    method, path = rule
    return request.method == method and re.fullmatch(path, request.url.path)


def printed(value):
    """Return an answer with each number as a server prints it: float32, in the fewest digits that identify it."""
    if isinstance(value, float):
        return float(str(np.float32(value)))
    if isinstance(value, dict):
        return {key: printed(of) for key, of in value.items()}
    return [printed(of) for of in value] if isinstance(value, (list, tuple)) else value

"""A Qdrant server that is not one: real requests of the real client, answered in this process, and failing on demand.

The client's own transport is replaced, so there is no socket; Qdrant's local mode in memory gives the answers.
"""

import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from pyterrier_mathamr.index import MathAMRIndex, QdrantIndex

httpx = pytest.importorskip("httpx", reason="needs the extra qdrant")
qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
models = qdrant_client.models
Client = qdrant_client.QdrantClient

LENGTHS = [1, 4, 2, 7, 3] * 8
KEY = "the-right-key"


class FakeServer:
    """Answers requests; ``fault`` may break one: of the request's name it makes a kind of failure, or ``None``.

    Kinds: ``unreachable`` and ``slow`` (nothing happened), ``lost`` and ``late`` (it happened, no answer came),
    ``garbled``, ``swallowed`` (nothing happened, and it says so nowhere), or an HTTP status.
    """

    def __init__(self) -> None:
        self.store = Client(":memory:")
        self.requests: list[tuple[str, Any]] = []
        self.fault: Callable[[str], Any] = lambda name: None
        self.retry_after: str | None = None
        self.key: str | None = None

    def names(self) -> list[str]:
        return [name for name, _ in self.requests]

    def sent_ids(self) -> list[str]:
        return [point["id"] for name, body in self.requests if name == "upsert" for point in body["points"]]

    def __call__(self, request: Any) -> Any:
        path = request.url.path
        name, collection = next((name, found[1]) for name, rule in ROUTES.items() if (found := matched(rule, request)))
        body = json.loads(request.content) if request.content else {}
        self.requests.append((name, body))
        if self.key and request.headers.get("api-key") != self.key:
            return httpx.Response(401, text="Must provide an API key or an Authorization bearer token")
        kind = self.fault(name)
        if kind in ("unreachable", "slow"):
            raise (httpx.ConnectError if kind == "unreachable" else httpx.ReadTimeout)("no", request=request)
        if isinstance(kind, int):
            headers = {"Retry-After": self.retry_after} if self.retry_after else {}
            return httpx.Response(kind, text=f"a fault at {path}", headers=headers)
        try:
            result = {"status": "completed"} if kind == "swallowed" else getattr(self, name)(collection, body)
        except ValueError as error:
            status = 404 if "not found" in str(error) else 409 if "already exists" in str(error) else 400
            return httpx.Response(status, text=str(error))
        if kind in ("lost", "late"):
            raise (httpx.ReadError if kind == "lost" else httpx.ReadTimeout)("no", request=request)
        text = "{" if kind == "garbled" else json.dumps({"result": result, "status": "ok", "time": 0.0})
        return httpx.Response(200, text=text)

    def get_collection(self, name: str, body: Any) -> Any:
        return json.loads(self.store.get_collection(name).model_dump_json())

    def exists(self, name: str, body: Any) -> Any:
        return {"exists": self.store.collection_exists(name)}

    def create(self, name: str, body: Any) -> Any:
        vectors = {key: models.VectorParams(**value) for key, value in body["vectors"].items()}
        return self.store.create_collection(name, vectors_config=vectors, metadata=body["metadata"])

    def update(self, name: str, body: Any) -> Any:
        return self.store.update_collection(name, metadata=body["metadata"])

    def drop(self, name: str, body: Any) -> Any:
        return self.store.delete_collection(name)

    def alias(self, name: str, body: Any) -> Any:
        kinds = {"create_alias": models.CreateAliasOperation, "delete_alias": models.DeleteAliasOperation}
        steps = [kinds[key](**{key: value}) for action in body["actions"] for key, value in action.items()]
        return self.store.update_collection_aliases(steps)

    def payload_index(self, name: str, body: Any) -> Any:
        return {"status": "completed"}

    def upsert(self, name: str, body: Any) -> Any:
        self.store.upsert(name, [models.PointStruct(**point) for point in body["points"]])
        return {"status": "completed"}

    def retrieve(self, name: str, body: Any) -> Any:
        found = self.store.retrieve(
            name, body["ids"], with_payload=body["with_payload"], with_vectors=body["with_vector"]
        )
        return [json.loads(point.model_dump_json()) for point in found]

    def scroll(self, name: str, body: Any) -> Any:
        points, place = self.store.scroll(
            name,
            scroll_filter=body.get("filter") and models.Filter(**body["filter"]),
            limit=body["limit"],
            offset=body.get("offset"),
            with_payload=body["with_payload"],
            with_vectors=body["with_vector"],
        )
        return {"points": [json.loads(point.model_dump_json()) for point in points], "next_page_offset": place}

    def count(self, name: str, body: Any) -> Any:
        where = body.get("filter") and models.Filter(**body["filter"])
        return {"count": int(self.store.count(name, count_filter=where).count)}

    def delete(self, name: str, body: Any) -> Any:
        kind = models.PointIdsList if "points" in body else models.FilterSelector
        self.store.delete(name, kind(**body))
        return {"status": "completed"}

    def query(self, name: str, body: Any) -> Any:
        asked = [{**search, "params": None} for search in body["searches"]]  # local mode searches exactly in any case
        found = self.store.query_batch_points(name, [models.QueryRequest(**search) for search in asked])
        return [json.loads(of.model_dump_json()) for of in found]


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


def matched(rule: tuple[str, str], request: Any) -> Any:
    method, path = rule
    return request.method == method and re.fullmatch(path, request.url.path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """A fake server behind every URL."""
    fake = FakeServer()
    transport = httpx.MockTransport(fake)
    monkeypatch.setattr(qdrant_client, "QdrantClient", partial(Client, transport=transport))
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    return fake


@pytest.fixture
def remote(server: FakeServer) -> Callable[..., QdrantIndex]:
    """Makes indexes on the fake server that do not wait before they try again."""
    return partial(QdrantIndex, "https://qdrant.test:6333", "some", pause=0, retries=3)


@pytest.fixture(params=["server", "folder", "real server"])
def some(request: Any, tmp_path: Any) -> Iterator[QdrantIndex]:
    """An empty index in each of the places where one can be; a real server where MATHAMR_QDRANT_URL is set."""
    if request.param == "server":
        yield request.getfixturevalue("remote")()
    elif request.param == "folder":
        yield QdrantIndex(tmp_path / "qdrant", "some")
    else:
        url = os.environ.get("MATHAMR_QDRANT_URL")
        if not url:
            pytest.skip("set MATHAMR_QDRANT_URL to the URL of a Qdrant server to test against it")
        request.getfixturevalue("socket_enabled")
        index = QdrantIndex(url, f"mathamr-test-{uuid.uuid4().hex[:8]}")
        yield index
        for slot in ("--a", "--b"):
            index.collection.drop(index.name + slot)


@pytest.fixture
def posts(documents: Callable[..., Any]) -> list[dict[str, Any]]:
    """Documents of one to seven rows, and 30 that are the same, so that there are ties."""
    made = documents(LENGTHS)
    made[4]["formula_ids"] = ["f1"]
    return made + [{"docno": f"tie{i:02}", "doc_embs": made[3]["doc_embs"]} for i in range(29, -1, -1)]


@pytest.fixture
def judge_index(tmp_path: Any, posts: list[dict[str, Any]]) -> MathAMRIndex:
    """The same documents in a folder of ours."""
    return MathAMRIndex(tmp_path / "judge").index(posts)

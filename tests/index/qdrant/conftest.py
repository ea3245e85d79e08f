"""Where the indexes of these tests are: on a server that this process imitates, in local mode, on a real server."""

import importlib
import os
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from pyterrier_mathamr.index import MathAMRIndex, QdrantIndex
from pyterrier_mathamr.index.qdrant import upload

httpx = pytest.importorskip("httpx", reason="needs the extra qdrant")
qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
pytest.importorskip("qdrant_edge", reason="needs qdrant-edge-py of the extra test")
fake_server = importlib.import_module("tests.index.qdrant.fake_server")
Client = qdrant_client.QdrantClient

LENGTHS = [1, 4, 2, 7, 3] * 8


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "BATCH_POINTS", 10)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A fake server behind every URL."""
    fake = fake_server.FakeServer()
    transport = httpx.MockTransport(fake)
    monkeypatch.setattr(qdrant_client, "QdrantClient", partial(Client, transport=transport))
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    yield fake
    fake.stop()


@pytest.fixture
def remote(server: Any) -> Callable[..., QdrantIndex]:
    """Makes indexes on the fake server that do not wait before they try again."""
    return partial(QdrantIndex, "https://qdrant.test:6333", "some", pause=0, retries=3)


@pytest.fixture
def peers(request: Any) -> list[str]:
    """The URLs of a real server: of one, or of the peers of a cluster."""
    urls = [url for url in os.environ.get("MATHAMR_QDRANT_URL", "").split(",") if url]
    if not urls:
        pytest.skip("set MATHAMR_QDRANT_URL to the URLs of a Qdrant server's peers to test against it")
    request.getfixturevalue("socket_enabled")
    return urls


@pytest.fixture(params=["server", "folder", "real server"])
def some(request: Any, tmp_path: Any) -> Iterator[QdrantIndex]:
    """An empty index in each of the places where one can be; a real server where MATHAMR_QDRANT_URL is set."""
    if request.param == "server":
        yield request.getfixturevalue("remote")()
    elif request.param == "folder":
        yield QdrantIndex(tmp_path / "qdrant", "some")
    else:
        index = QdrantIndex(request.getfixturevalue("peers")[0], f"mathamr-test-{uuid.uuid4().hex[:8]}")
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

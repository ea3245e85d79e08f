"""Collections of a Qdrant server, each of shards of its real engine, which qdrant-edge-py embeds.

Scores, filters, payloads, graphs, quantization and what the engine refuses are real. Imitated is what a server does
around its engine: it spreads points over shards, joins their answers, and stores metadata.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

edge = pytest.importorskip("qdrant_edge", reason="needs qdrant-edge-py of the extra test")

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # shards sync each file: 0.4 s on a disk, 0.04 s here


class Shards:
    """One collection of the body of the request that creates it.

    Attributes:
        metadata: what the user stores with it.
    """

    def __init__(self, body: dict[str, Any], indexing_threshold: int | None = None) -> None:
        self.params = {key: body.get(key) for key in ("vectors", "shard_number", "replication_factor")}
        self.metadata: dict[str, Any] = body.get("metadata") or {}
        self.folder = tempfile.mkdtemp(prefix="mathamr-qdrant-", dir=MEMORY)
        int8 = body.get("quantization_config") and edge.ScalarQuantizationConfig(edge.ScalarType.Int8, always_ram=True)
        maxsim = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        vectors = {
            name: edge.EdgeVectorParams(
                of["size"],
                getattr(edge.Distance, of["distance"]),
                on_disk=of.get("on_disk"),
                multivector_config=maxsim if of.get("multivector_config") else None,
            )
            for name, of in body["vectors"].items()
        }
        config = edge.EdgeConfig(
            vectors,
            quantization_config=int8,
            hnsw_config=edge.HnswIndexConfig(16, 100, 1),
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=indexing_threshold),
            max_search_threads=1,
        )
        paths = [os.path.join(self.folder, str(i)) for i in range(body.get("shard_number") or 1)]
        self.shards = [edge.EdgeShard.create(path, config) for path in paths]

    def restart(self) -> None:
        """Close every shard and open it again from its files, as a server that is started again does."""
        for i, shard in enumerate(self.shards):
            shard.close()
            self.shards[i] = edge.EdgeShard.load(os.path.join(self.folder, str(i)))

    def optimize(self) -> int:
        """Build the graphs that a server builds in the background; return the number of vectors in them."""
        for shard in self.shards:
            shard.optimize()
        return sum(shard.info().indexed_vectors_count for shard in self.shards)

    def remove(self) -> None:
        for shard in self.shards:
            shard.close()
        shutil.rmtree(self.folder)

    def _of(self, point: str) -> Any:
        return self.shards[UUID(point).int % len(self.shards)]

    def _update(self, operation: Any) -> None:
        for shard in self.shards:
            shard.update(operation)

    def index_payload(self, field: str, schema: str) -> None:
        self._update(edge.UpdateOperation.create_field_index(field, getattr(edge.PayloadSchemaType, schema.title())))

    def upsert(self, points: Sequence[dict[str, Any]]) -> None:
        made = [edge.Point(point["id"], point["vector"], point["payload"]) for point in points]
        for shard in self.shards:
            mine = [new for new, point in zip(made, points, strict=True) if self._of(point["id"]) is shard]
            if mine:
                shard.update(edge.UpdateOperation.upsert_points(mine))

    def delete(self, *, points: Sequence[str] = (), where: dict[str, Any] | None = None) -> None:
        if where is None:
            self._update(edge.UpdateOperation.delete_points(points))
        else:
            self._update(edge.UpdateOperation.delete_points_by_filter(_filter(where)))

    def count(self, where: dict[str, Any] | None = None) -> int:
        return sum(shard.count(edge.CountRequest(True, _filter(where))) for shard in self.shards)

    def retrieve(self, ids: Sequence[str], payload: Any, vector: Any) -> list[dict[str, Any]]:
        found = [of for shard in self.shards for of in shard.retrieve(list(ids), payload, vector)]
        return [_record(of) for of in found]

    def scroll(self, body: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        limit = body["limit"]
        asked = edge.ScrollRequest(
            body.get("offset"), limit + 1, _filter(body.get("filter")), body["with_payload"], body["with_vector"]
        )
        found = sorted((of for shard in self.shards for of in shard.scroll(asked)[0]), key=lambda of: of.id)
        return [_record(of) for of in found[:limit]], str(found[limit].id) if len(found) > limit else None

    def query(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        params = body.get("params") or {}
        quantized = edge.QuantizationSearchParams(**(params.get("quantization") or {}))
        asked = edge.QueryRequest(
            body["limit"],
            query=edge.Query.Nearest(body["query"]["nearest"], using=body["using"]),
            filter=_filter(body.get("filter")),
            params=edge.SearchParams(params.get("hnsw_ef"), bool(params.get("exact")), quantized),
        )
        found = [of for shard in self.shards for of in shard.query(asked)]
        best = sorted(found, key=lambda of: -of.score)[: body["limit"]]
        return [{"id": str(of.id), "version": of.version, "score": of.score} for of in best]


def _record(of: Any) -> dict[str, Any]:
    return {"id": str(of.id), "payload": of.payload, "vector": of.vector}


def _filter(body: dict[str, Any] | None) -> Any:
    """Return the engine's filter of a request's: points by their ids, and fields by value or range."""
    if body is None:
        return None
    kinds = {kind: [_condition(of) for of in conditions] for kind, conditions in body.items() if conditions}
    return edge.Filter(**kinds)


def _condition(of: dict[str, Any]) -> Any:
    if "key" not in of:
        return edge.HasIdCondition({UUID(name) for name in of["has_id"]}) if "has_id" in of else _filter(of)
    if of.get("range"):
        bounds = {name: value for name, value in of["range"].items() if value is not None}
        return edge.FieldCondition(of["key"], range=edge.RangeFloat(**bounds))
    return edge.FieldCondition(of["key"], match=edge.MatchValue(of["match"]["value"]))

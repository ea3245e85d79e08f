"""Collections of a Qdrant server, each of shards of its real engine, which qdrant-edge-py embeds.

Scores, filters, payloads, graphs, quantization and what the engine refuses are real. Imitated is what a server does
around its engine: it spreads points over shards, joins their answers, and stores metadata.
"""

import os
import shutil
import tempfile
from uuid import UUID

import pytest

edge = pytest.importorskip("qdrant_edge", reason="needs qdrant-edge-py of the extra test")

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # shards sync each file: 0.4 s on a disk, 0.04 s here
NUMBERS = 1 << 20  # the rows of a point have fewer


class RefusedError(Exception):
    """A request that the server refuses, by its status and reason."""


class Shards:
    """One collection of the body of the request that creates it, and the ``metadata`` that the user stores with it.

    A method without an underscore answers the request of its name: the body in, the result out.
    """

    def __init__(self, body, indexing_threshold=None):
        self.params = {key: body.get(key) for key in ("vectors", "shard_number", "replication_factor")}
        self.metadata = body.get("metadata") or {}
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

    def optimize(self):
        """Build the graphs that a server builds in the background; return the number of vectors in them."""
        for shard in self.shards:
            shard.optimize()
        return sum(shard.info().indexed_vectors_count for shard in self.shards)

    def remove(self):
        for shard in self.shards:
            shard.close()
        shutil.rmtree(self.folder)

    def update(self, body):
        merged = {**self.metadata, **body["metadata"]}
        self.metadata = {key: value for key, value in merged.items() if value is not None}
        return True

    def payload_index(self, body):
        schema = getattr(edge.PayloadSchemaType, body["field_schema"].title())
        return self._updated(edge.UpdateOperation.create_field_index(body["field_name"], schema))

    def upsert(self, body):
        for point in body["points"]:
            for rows in point["vector"].values():
                if isinstance(rows[0], list) and sum(map(len, rows)) >= NUMBERS:
                    raise RefusedError(422, f"Total size of all vectors must be less than {NUMBERS}")
        made = [edge.Point(point["id"], point["vector"], point["payload"]) for point in body["points"]]
        for number, shard in enumerate(self.shards):
            numbers = [UUID(point["id"]).int % len(self.shards) for point in body["points"]]
            mine = [point for point, own in zip(made, numbers, strict=True) if own == number]
            if mine:
                shard.update(edge.UpdateOperation.upsert_points(mine))
        return {"status": "completed"}

    def delete(self, body):
        if "filter" in body:
            return self._updated(edge.UpdateOperation.delete_points_by_filter(_filter(body["filter"])))
        return self._updated(edge.UpdateOperation.delete_points(body["points"]))

    def _updated(self, operation):
        for shard in self.shards:
            shard.update(operation)
        return {"status": "completed"}

    def count(self, body=None):
        asked = edge.CountRequest(True, _filter((body or {}).get("filter")))
        return {"count": sum(shard.count(asked) for shard in self.shards)}

    def retrieve(self, body):
        asked = body["ids"], body["with_payload"], body["with_vector"]
        return [_record(of) for shard in self.shards for of in shard.retrieve(*asked)]

    def scroll(self, body):
        limit, offset = body["limit"], body.get("offset")
        wanted = _filter(body.get("filter")), body["with_payload"], body["with_vector"]
        asked = edge.ScrollRequest(offset, limit + 1, *wanted)
        found = sorted((of for shard in self.shards for of in shard.scroll(asked)[0]), key=lambda of: of.id)
        return {
            "points": [_record(of) for of in found[:limit]],
            "next_page_offset": str(found[limit].id) if len(found) > limit else None,
        }

    def query(self, body):
        return [{"points": self._search(search)} for search in body["searches"]]

    def _search(self, body):
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


def _record(of):
    return {"id": str(of.id), "payload": of.payload, "vector": of.vector}


def _filter(body):
    """Return the engine's filter of a request's: points by their ids, and fields by value or range."""
    if body is None:
        return None
    kinds = {kind: [_condition(of) for of in conditions] for kind, conditions in body.items() if conditions}
    return edge.Filter(**kinds)


def _condition(of):
    if "key" not in of:
        return edge.HasIdCondition({UUID(name) for name in of["has_id"]}) if "has_id" in of else _filter(of)
    if of.get("range"):
        bounds = {name: value for name, value in of["range"].items() if value is not None}
        return edge.FieldCondition(of["key"], range=edge.RangeFloat(**bounds))
    return edge.FieldCondition(of["key"], match=edge.MatchValue(of["match"]["value"]))

"""A collection of Qdrant: its points, its metadata, and how a new one replaces it in one step.

The name that a user gives is an alias of one of two collections; a new one is built in the other::

    answers ──alias──▶ answers--a      complete: what readers see
                       answers--b      being built: unseen until the alias is moved, in one step

A point is one document or one formula::

    id       made from the docno, so that a document that is sent twice is stored once
    vectors  documents: doc [d] and all [n, d] (MaxSim); formulas: formula [d] (MathAMR+, section 3.5.1)
    payload  docno, and formula_ids or post_id and visual_id; build: the number of the call that stored it;
             print: a hash of all else; source: the fingerprint of its document in the corpus, where known;
             kept: the columns that were kept, by name

The distance is the inner product: the paper's cosine for rows of unit length, and vectors come back as stored.

The peers of a cluster agree on metadata and aliases by consensus. All apply the changes in the same order, but some
a moment after the request for a change has returned. So a call returns when it can read back what it wrote, and a
reader that has seen one build waits for a peer that shows no earlier one::

    build 6 ──append──▶ build 7     the number grows with every call, also from one collection to the other;
                                    a reader of build 6 asks for points of at most 6, whatever is stored meanwhile
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import random
import sqlite3
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, MathAMRWarning, require
from pyterrier_mathamr.index.backend import Field
from pyterrier_mathamr.index.errors import QdrantError
from pyterrier_mathamr.index.parts import Layout
from pyterrier_mathamr.store import WriteError

KEY_VARIABLE = "QDRANT_API_KEY"  # the environment variable of the API key where none is given

TRANSIENT = (408, 429, 500, 502, 503, 504)
"""Statuses of requests that are worth sending again, and that the server may have carried out, or may yet."""

_LONGEST_PAUSE = 30.0
_POLL = 0.05  # seconds between two looks at metadata that a peer has not applied yet

_BY_CONSENSUS = (
    "create_collection",
    "create_payload_index",
    "update_collection",
    "update_collection_aliases",
    "delete_collection",
)
"""Requests that more than half of the peers of a cluster have to agree to."""

_NO_CONSENSUS = ("Waiting for consensus operation commit failed", "leader is not established")
"""What a server answers, with status 500, when the peers did not agree in time."""

_LOCAL: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # a folder allows one client in a process


@atexit.register
def _close_folders() -> None:
    """Close the folders of local mode before the interpreter shuts down; its own closing comes too late."""
    for client in list(_LOCAL.values()):
        client.close()


FORMAT_VERSION = 1  # the version of this layout of points and metadata

VECTORS: dict[Layout, dict[Field, str]] = {
    "documents": {"doc": "doc", "all": "all"},
    "formulas": {"doc": "formula", "all": "formula"},
}
"""The named vector of each field."""

BUILD, PRINT, SOURCE, KEPT = "build", "print", "source", "kept"


@dataclass(frozen=True)
class CollectionOptions:
    """How a collection is created on a server; local mode ignores it.

    Args:
        shard_number: shards of a cluster; ``None`` lets the server choose.
        replication_factor: copies of each shard; ``None`` lets the server choose.
        on_disk: keep vectors and payload on disk, memory-mapped, instead of in memory.
        quantise: keep an int8 code of each vector in memory for approximate search; exact search ignores it.
    """

    shard_number: int | None = None
    replication_factor: int | None = None
    on_disk: bool = False
    quantise: bool = False


@dataclass(frozen=True)
class CollectionMeta:
    """The metadata of a collection, stored with it in Qdrant.

    ``job`` is the header of the call that stores the points of ``pending``; ``done`` that of the one that stored those
    of ``build``; empty for a call that cannot be resumed.
    """

    slot: str
    layout: Layout
    dimensions: int
    model: str | None
    max_norm: float
    build: int = 0
    pending: int = 0
    job: str = ""
    done: str = ""
    keep: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the stored form: without null, which would delete a key."""
        values = {**asdict(self), "model": self.model or ""}
        return {"package": "pyterrier-mathamr", "format_version": FORMAT_VERSION, **values}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None, address: str) -> CollectionMeta:
        if not data or data.get("package") != "pyterrier-mathamr":
            raise QdrantError(address, "the collection was not made by this package")
        if data.get("format_version") != FORMAT_VERSION:
            version = data.get("format_version")
            raise QdrantError(address, f"the collection has format {version}, this release reads {FORMAT_VERSION}")
        since = {"job": "", "done": "", "keep": ()}  # later than the format
        try:
            known = {field.name: {**since, **data}[field.name] for field in fields(cls)}
        except KeyError as error:
            raise QdrantError(address, f"the collection's metadata lacks {error}") from error
        return cls(**{**known, "model": known["model"] or None, "keep": tuple(known["keep"])})


def point_id(docno: str) -> str:
    """Return the id of a document's point: a UUID of the BLAKE2b hash of its docno, the same on every machine."""
    return str(uuid.UUID(bytes=hashlib.blake2b(docno.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


_SLOTS = ("--a", "--b")


class Collection:
    """A named collection of one layout, an alias of one of two, and the client, opened on the first request.

    Attributes:
        seen: the build that was read last through the alias; :meth:`read` returns no earlier one.
    """

    def __init__(
        self, location: str, name: str, layout: Layout, api_key: str | None, timeout: int, retries: int, pause: float
    ) -> None:
        self.location, self.name, self.layout = location, name, layout
        self.timeout, self.retries, self.pause = timeout, retries, pause
        self.address = f"{location}: collection {name}"
        self.seen = 0
        self._api_key = api_key
        self._opened: Any = None

    @property
    def remote(self) -> bool:
        """Whether there is a server; local mode searches exactly and has no shards, replicas or graphs."""
        return "://" in self.location

    @property
    def models(self) -> Any:
        return require("qdrant_client", "qdrant").models

    @property
    def client(self) -> Any:
        """The client, opened on first use."""
        if self._opened is not None:
            return self._opened
        package = require("qdrant_client", "qdrant")
        if self.remote:
            key = self._api_key or os.environ.get(KEY_VARIABLE) or None
            options = {"api_key": key, "timeout": self.timeout, "check_compatibility": False}
            try:
                self._opened = package.QdrantClient(url=self.location, **options)
            except ValueError as error:
                allowed = f"a URL such as http://localhost:6333 ({error})"
                raise ConfigError("location", self.location, allowed) from error
            return self._opened
        folder = str(Path(self.location).absolute())
        self._opened = _LOCAL.get(folder)
        if self._opened is None or self._opened._client.closed:
            try:
                self._opened = _LOCAL[folder] = package.QdrantClient(path=folder)
            except RuntimeError as error:
                raise WriteError(folder, "another process has it open in local mode") from error
            except OSError as error:
                raise WriteError(folder, str(error)) from error
        return self._opened

    def call(self, method: str, doing: str, *, retries: int | None = None, **arguments: Any) -> Any:
        """Send one request, with retries."""
        send = getattr(self.client, method)
        left = most = self.retries if retries is None else retries
        pause = self.pause
        while True:
            try:
                return send(**arguments)
            except Exception as error:
                named, wait = self._named(error, doing)
                if wait is None or left == 0:
                    raise named from error
                if method in _BY_CONSENSUS and left == most and getattr(named, "status", 0) == 408:
                    need = "In a cluster this waits for more than half of the peers, which must be running"
                    text = f"{self.address}: no answer in time while {doing}. {need}; trying again up to {left} times."
                    warnings.warn(MathAMRWarning(text), stacklevel=3)
                time.sleep(max(wait, min(pause, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)))
                left, pause = left - 1, pause * 2

    def _named(self, error: Exception, doing: str) -> tuple[Exception, float | None]:
        """Return the error to raise, and the least seconds before a retry; ``None`` where a retry cannot help."""
        exceptions = require("qdrant_client.http.exceptions", "qdrant")
        common = require("qdrant_client.common.client_exceptions", "qdrant")
        if isinstance(error, exceptions.ResponseHandlingException):
            source = error.source
            if isinstance(source, require("httpx", "qdrant").TimeoutException):
                return self._timeout(f"no answer within {self.timeout} s while {doing}"), 0.0
            reason = f"connection lost while {doing} ({source!r}); check that the server runs"
            return QdrantError(self.address, reason), 0.0
        if isinstance(error, common.ResourceExhaustedResponse):
            return QdrantError(self.address, f"too many requests while {doing}", 429), float(error.retry_after_s)
        if isinstance(error, exceptions.UnexpectedResponse):
            return self._of_status(error, doing)
        if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, common.QdrantException)):
            return QdrantError(self.address, f"an answer that cannot be read while {doing} ({error})"), 0.0
        if self.remote:
            return error, None
        if isinstance(error, (OSError, sqlite3.Error)):
            return WriteError(self.address, f"{error} while {doing}"), None
        if isinstance(error, ValueError) and "not found" in str(error):
            return QdrantError(self.address, f"there is no such collection while {doing}", 404), None
        if isinstance(error, ValueError):
            return QdrantError(self.address, f"refused while {doing} ({error})"), None
        return error, None

    def _of_status(self, error: Any, doing: str) -> tuple[QdrantError, float | None]:
        status, answer = int(error.status_code or 0), error.content[:500].decode("utf-8", "replace")
        if status == 500 and any(text in answer for text in _NO_CONSENSUS):
            return self._timeout(f"the peers of the cluster did not agree in time while {doing} ({answer})"), 0.0
        if status in (408, 504):
            return self._timeout(f"no answer in time while {doing} (status {status})"), 0.0
        if status in TRANSIENT:
            reason = f"the server fails while {doing} (status {status}: {answer})"
            return QdrantError(self.address, reason, status), 0.0
        reason = f"refused while {doing} (status {status}: {answer})"
        if status in (401, 403):
            reason = f"the server refuses the API key while {doing}; give api_key=… or set {KEY_VARIABLE}"
        elif status == 404:
            reason = f"there is no such collection while {doing}"
        return QdrantError(self.address, reason, status), None

    def _timeout(self, reason: str) -> QdrantError:
        return QdrantError(self.address, f"{reason}; a larger timeout=… waits longer", 408)

    def read(self, slot: str | None = None) -> CollectionMeta | None:
        """Read the metadata of the collection, or of one of the two; return ``None`` where there is none."""
        if slot is not None or not self.remote:
            return self._read(slot or self.name)

        def build_of(meta: CollectionMeta | None) -> int:
            return 0 if meta is None else meta.build

        seen = self.seen
        meta = self._read_until(self.name, lambda meta: build_of(meta) >= seen)
        self.seen = max(self.seen, build_of(meta)) if build_of(meta) >= seen else build_of(meta)
        if meta is not None and meta.build < seen:
            waited = f"for {self.timeout} s the server has shown an earlier state than before"
            raise QdrantError(self.address, f"{waited}; if the collection was made again, repeat the call to use it")
        return meta

    def _read_until(self, name: str, reached: Callable[[CollectionMeta | None], bool]) -> CollectionMeta | None:
        """Read metadata until they are as expected, at most as long as one request may take."""
        end = time.monotonic() + self.timeout
        while not reached(meta := self._read(name)) and time.monotonic() < end:
            time.sleep(_POLL)
        return meta

    def _read_back(self, name: str, meta: CollectionMeta, doing: str) -> None:
        """Wait until what was written can be read."""

        def shows(stored: CollectionMeta | None) -> bool:
            return stored is not None and replace(stored, max_norm=meta.max_norm) == meta  # a server may round a number

        if not shows(self._read_until(name, shows)):
            raise self._timeout(f"the server does not show it within {self.timeout} s of {doing}")

    def _read(self, name: str) -> CollectionMeta | None:
        try:
            answer = self.call("get_collection", "opening the collection", collection_name=name)
        except QdrantError as error:
            if error.status != 404:
                raise
            return None
        meta = CollectionMeta.from_dict(answer.config.metadata, self.address)
        if meta.layout != self.layout:
            raise QdrantError(self.address, f"it is a collection of {meta.layout}, not of {self.layout}")
        stored = answer.config.params.vectors
        for vector in set(VECTORS[self.layout].values()):
            size = stored[vector].size if isinstance(stored, Mapping) and vector in stored else None
            if size != max(1, meta.dimensions):
                raise QdrantError(
                    self.address, f"its vector {vector!r} has {size} dimensions where {meta.dimensions} were written"
                )
        return meta

    def other_slot(self, meta: CollectionMeta | None) -> str:
        """Return the one of the two collections that is not behind the alias."""
        first, second = (self.name + slot for slot in _SLOTS)
        return second if meta is not None and meta.slot == first else first

    def create(self, meta: CollectionMeta, options: CollectionOptions) -> None:
        """Create the collection ``meta.slot``, empty."""
        models, remote = self.models, self.remote
        maxsim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
        vectors = {
            name: models.VectorParams(
                size=max(1, meta.dimensions),  # an index without rows has no width yet
                distance=models.Distance.DOT,
                on_disk=options.on_disk,
                multivector_config=maxsim if name == "all" else None,
            )
            for name in dict.fromkeys(VECTORS[self.layout].values())
        }
        config: dict[str, Any] = {"vectors_config": vectors, "metadata": meta.to_dict()}
        if remote:
            config.update(shard_number=options.shard_number, replication_factor=options.replication_factor)
            config.update(on_disk_payload=options.on_disk)
        if remote and options.quantise:
            int8 = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
            config.update(quantization_config=models.ScalarQuantization(scalar=int8))
        try:
            self.call("create_collection", "creating the collection", collection_name=meta.slot, **config)
        except QdrantError as error:
            if error.status != 409 or self.read(meta.slot) != meta:  # 409: sent twice, as the answer was lost
                raise
        if remote:
            integer = models.PayloadSchemaType.INTEGER
            doing = "creating the collection's payload index"
            self.call("create_payload_index", doing, collection_name=meta.slot, field_name=BUILD, field_schema=integer)

    def write(self, meta: CollectionMeta) -> None:
        doing = "writing the collection's metadata"
        self.call("update_collection", doing, collection_name=meta.slot, metadata=meta.to_dict())
        self._read_back(meta.slot, meta, doing)

    def swap(self, meta: CollectionMeta, before: CollectionMeta | None) -> None:
        """Move the alias to ``meta.slot`` in one step, and drop the collection that it named before."""
        models = self.models
        gone = [models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.name))] if before else []
        new = models.CreateAlias(collection_name=meta.slot, alias_name=self.name)
        steps = [*gone, models.CreateAliasOperation(create_alias=new)]
        self.call("update_collection_aliases", "moving the alias", change_aliases_operations=steps)
        self._read_back(self.name, meta, "moving the alias")
        self.seen = meta.build
        if before:
            try:
                self.drop(before.slot)
            except MathAMRError as error:
                text = f"{error} The new collection is in use; {before.slot} remains until the next mode='overwrite'."
                warnings.warn(MathAMRWarning(text), stacklevel=2)

    def drop(self, slot: str, *, retries: int | None = None) -> None:
        try:
            self.call("delete_collection", "dropping a collection", collection_name=slot, retries=retries)
        except QdrantError as error:
            if error.status != 404:
                raise

    def exists(self, slot: str) -> bool:
        answer: bool = self.call("collection_exists", "looking for a collection", collection_name=slot)
        return answer

    def of_build(self, build: int) -> Any:
        models = self.models
        return models.Filter(must=[models.FieldCondition(key=BUILD, match=models.MatchValue(value=build))])

    def until_build(self, build: int) -> Any:
        """Return the filter of the points of a state: those that one call and all before it stored."""
        models = self.models
        return models.Filter(must=[models.FieldCondition(key=BUILD, range=models.Range(lte=build))])

    def count(self, slot: str, where: Any) -> int:
        counted = self.call("count", "counting", collection_name=slot, count_filter=where, exact=True)
        return int(counted.count)

    def stored(self, slot: str, ids: Sequence[str], *names: str) -> dict[str, dict[str, Any]]:
        """Return the named values of the payload of those points that are stored, by their ids."""
        doing = "looking for points"
        points = self.call("retrieve", doing, collection_name=slot, ids=list(ids), with_payload=list(names))
        return {str(point.id): point.payload for point in points}

    def remove(self, slot: str, build: int) -> None:
        models = self.models
        where = models.FilterSelector(filter=self.of_build(build))
        doing = "removing the points of an unfinished call"
        self.call("delete", doing, collection_name=slot, points_selector=where, wait=True)

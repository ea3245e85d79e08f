"""The indexes in Qdrant, of documents and of formulas: the database that the paper used; and a collection as opened."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.feedback import Counted, counted
from pyterrier_mathamr._common.ids import identified
from pyterrier_mathamr._common.parameters import COUNT, at_least, method
from pyterrier_mathamr.index.backend import NO_HITS, Backend, ExactScores, Field, Hits, How, Numbers, QueryBatch, Rows
from pyterrier_mathamr.index.errors import QdrantError, query_error
from pyterrier_mathamr.index.indexes import (
    DocumentVectorIndex,
    FormulaVectorIndex,
    VectorIndex,
    example_documents,
    example_folder,
    merged_model,
)
from pyterrier_mathamr.index.indexing import ArtifactIndexer, DocumentIndexer, FormulaIndexer, IndexPost, VisualIds
from pyterrier_mathamr.index.parts import TEXTS, Entry, described_rows
from pyterrier_mathamr.index.search.maxsim import best_of, exact_scores, float32_error
from pyterrier_mathamr.index.subsets import Condition, Group, read_where
from pyterrier_mathamr.index.transformers import explained
from pyterrier_mathamr.store import Mode, WriteError

from .collection import BUILD, KEPT, VECTORS, Collection, CollectionMeta, CollectionOptions, point_id
from .upload import Upload, discard

PAGE = 256  # points in one request: about 1.5 MB as JSON at the paper's 16 rows of 32 dimensions
REQUESTED = 16  # queries in one request


class QdrantSnapshot(Backend):
    """A :class:`~..backend.Backend` of a collection; points get numbers when they first occur."""

    def __init__(self, collection: Collection) -> None:
        meta = collection.read()
        if meta is None:
            raise QdrantError(collection.address, "there is no such collection; build it with indexer()", 404)
        self.meta: CollectionMeta = meta
        self.collection = collection
        self.path = collection.address
        self.ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._payloads: dict[int, dict[str, Any]] = {}
        self._held: dict[int, Rows] = {}
        self._held_field: Field = "all"

    @property
    def identity(self) -> str:
        """The collection, the build and, as points may be removed, their number."""
        return f"{self.meta.slot} {self.meta.build} {len(self)}"

    def __len__(self) -> int:
        return self.collection.count(self.meta.slot, self.visible())

    def call(self, method: str, doing: str, **arguments: Any) -> Any:
        """Send one request about the collection that was behind the alias when it was opened."""
        return self.collection.call(method, doing, collection_name=self.meta.slot, **arguments)

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents of each query: in lists of Qdrant that are lengthened until that is proven."""
        if not self.meta.dimensions:
            return [NO_HITS] * len(queries)
        ones = (queries.last_rows() if field == "doc" else queries).of_size(1)
        wanted = [_vectors(one, field) for one in ones]
        filters = [self._filter(None if one.among is None else one.among[0], how.where) for one in ones]
        hits = {i: NO_HITS for i, one in enumerate(ones) if one.among is not None and not len(one.among[0])}
        limit = k + 16 if how.exact else k
        left = [i for i in range(len(ones)) if i not in hits]
        while left:
            for start in range(0, len(left), REQUESTED):
                some = left[start : start + REQUESTED]
                asked = [(wanted[i], filters[i]) for i in some]
                for i, lists in zip(some, _ask(self, asked, limit, how), strict=True):
                    best = self._best(ones[i], lists, limit, k, field, how)
                    if best is not None:
                        hits[i] = best
            left, limit = [i for i in left if i not in hits], limit * 2
        return [hits[i] for i in range(len(ones))]

    def _best(
        self, query: QueryBatch, lists: Sequence[Hits], limit: int, k: int, field: Field, how: How
    ) -> Hits | None:
        """Rank the documents of some lists; ``None`` where the best ``k`` are not proven to be among them."""
        candidates = np.unique(np.concatenate([one.numbers for one in lists]))
        whole = not how.exact or any(len(one.numbers) < limit for one in lists)  # a short list contains every document
        error = float(float32_error(query, self.meta.max_norm, self.meta.dimensions)[0])
        outside = -np.inf if whole else sum(float(one.scores[-1]) for one in lists) + error
        if how.exact and len(lists) == 1 and len(lists[0].scores) > k:
            floor = float(lists[0].scores[k - 1]) - 2 * error  # the k-th best scores at least this and the error more
            if outside >= floor + error:
                return None
            candidates = lists[0].numbers[lists[0].scores >= floor]
        hits = best_of(self, candidates, exact_scores(query, [self.stored(candidates, field)], field), k)
        if whole or (len(hits.scores) == k and np.float32(outside) < hits.scores[-1]):  # scores are float32 numbers
            return hits
        return None

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field = "all") -> list[ExactScores]:
        each = zip(queries.of_size(1), numbers, strict=True)
        return [exact_scores(query, [self.stored(wanted, field)], field) for query, wanted in each]

    def sample(self, count: int) -> Numbers:
        """Return the first points by id; ids are hashes, so these are any points."""
        about = {"limit": count, "with_payload": False, "with_vectors": False}
        points, _ = self.call("scroll", "reading some points", scroll_filter=self.visible(), **about)
        return self.numbered([str(point.id) for point in points])

    def look_up(self, docnos: Sequence[str]) -> Numbers:
        ids = [point_id(docno) for docno in docnos]
        points = self._retrieve(list(dict.fromkeys(ids)), [BUILD])
        visible = {str(point.id) for point in points if point.payload[BUILD] <= self.meta.build}
        numbers: Numbers = np.where([name in visible for name in ids], self.numbered(ids), -1).astype(np.int64)
        return numbers

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        wanted = dict.fromkeys(numbers.tolist())
        missing = [self.ids[number] for number in wanted if number not in self._payloads]
        for point in self._retrieve(missing, [*TEXTS[self.meta.layout], KEPT]):
            self._payloads[self._numbers[str(point.id)]] = point.payload
        self._all_there(wanted, self._payloads)
        read = _kept if name == KEPT else lambda payload: str(payload[name])
        return [read(self._payloads[number]) for number in numbers.tolist()]

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some points end to end; those read last are held until others are read."""
        wanted = dict.fromkeys(numbers.tolist())
        if field != self._held_field:
            self._held, self._held_field = {}, field
        if missing := [self.ids[number] for number in wanted if number not in self._held]:
            self._held = {number: rows for number, rows in self._held.items() if number in wanted}
            vector = VECTORS[self.meta.layout][field]
            for point in self._retrieve(missing, [*TEXTS[self.meta.layout], KEPT], [vector]):
                number = self._numbers[str(point.id)]
                rows = np.asarray(point.vector[vector], dtype=np.float32)
                self._held[number] = rows.reshape(-1, self.meta.dimensions)
                self._payloads[number] = point.payload
            self._all_there(wanted, self._held)
        parts = [self._held[number] for number in numbers.tolist()]
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return np.concatenate([np.empty((0, self.meta.dimensions), np.float32), *parts]), offsets

    def entries(self) -> Iterator[Entry]:
        """Yield every point, in the order of their ids, read a page at a time."""
        names, vector = TEXTS[self.meta.layout], VECTORS[self.meta.layout]["all"]
        about: dict[str, Any] = {"with_payload": [*names, KEPT], "with_vectors": [vector], "limit": PAGE}
        place: Any = None
        while True:
            where = {"scroll_filter": self.visible(), "offset": place}
            points, place = self.call("scroll", "reading all points", **where, **about)
            for point in points:
                rows = np.asarray(point.vector[vector], dtype=np.float32).reshape(-1, self.meta.dimensions)
                yield Entry(tuple(str(point.payload[name]) for name in names), rows, _kept(point.payload))
            if place is None:
                return

    def visible(self) -> Any:
        """Return the filter that hides the points of later calls, complete or not; ``None`` if it can be left out."""
        if not self.collection.remote and not self.meta.pending:
            return None  # a folder is open in this process only, and filtered at 10 µs a point
        return self.collection.until_build(self.meta.build)

    def _filter(self, among: Numbers | None, where: str | None) -> Any:
        models, visible = self.collection.models, self.visible()
        if among is None and where is None:
            return visible
        must = [] if visible is None else [*visible.must]
        if among is not None:
            must.append(models.HasIdCondition(has_id=[self.ids[number] for number in among.tolist()]))
        if where is not None:
            must.append(_translated(read_where(where), where, models))
        return models.Filter(must=must)

    def numbered(self, ids: Sequence[str]) -> Numbers:
        for name in ids:
            if name not in self._numbers:
                self._numbers[name] = len(self.ids)
                self.ids.append(name)
        return np.array([self._numbers[name] for name in ids], dtype=np.int64)

    def _retrieve(self, ids: Sequence[str], payload: Any, vectors: Any = False) -> Iterator[Any]:
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            yield from self.call("retrieve", "reading points", ids=page, with_payload=payload, with_vectors=vectors)

    def _all_there(self, wanted: dict[int, None], read: dict[int, Any]) -> None:
        if any(number not in read for number in wanted):
            raise QdrantError(self.path, "points vanished during the search; search again")


def _vectors(query: QueryBatch, field: Field) -> list[tuple[Field, Any]]:
    """Return the lists that one query requests: a field, and a vector or rows."""
    if field == "doc":
        return [("doc", query.rows[0].tolist())]
    rows = query.rows.astype(np.float64)
    if query.weights is not None:
        if (query.weights < 0).any():
            reason = "query_weights contains a negative weight; scorer() and doc_vn() can search by it, but not Qdrant"
            raise query_error(query.qids[0], reason)
        rows = (rows * query.weights[:, None])[query.weights > 0]
    lists: list[tuple[Field, Any]] = []
    if len(rows):
        lists.append(("all", rows.astype(np.float32).tolist()))
    blend = 0.0 if query.document_weights is None else float(query.document_weights[0])
    if blend or not lists:
        lists.append(("doc", (blend * query.rows[-1].astype(np.float64)).astype(np.float32).tolist()))
    return lists


def _kept(payload: dict[str, Any]) -> str:
    return json.dumps(payload[KEPT], ensure_ascii=False) if payload.get(KEPT) else ""


def _translated(condition: Condition, where: str, models: Any) -> Any:
    if isinstance(condition, Group):
        parts = [_translated(one, where, models) for one in condition.conditions]
        return models.Filter(**{"must" if condition.every else "should": parts})
    key = f"{KEPT}.{condition.column}"
    if condition.sign != "in":
        [value] = condition.values
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ConfigError("where", where, "a condition that Qdrant has: by order, it compares only numbers")
        bound = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[condition.sign]
        return models.FieldCondition(key=key, range=models.Range(**{bound: value}))
    equal = [
        {"match": models.MatchValue(value=value)}
        if isinstance(value, str | bool)
        else {"range": models.Range(gte=value, lte=value)}
        for value in condition.values
    ]
    return models.Filter(should=[models.FieldCondition(key=key, **one) for one in equal])


def _ask(
    snapshot: QdrantSnapshot, wanted: Sequence[tuple[Sequence[tuple[Field, Any]], Any]], limit: int, how: How
) -> list[list[Hits]]:
    """Request the lists of some queries at once, each with a filter; the scores have the error of a float32 scan."""
    collection = snapshot.collection
    models, names = collection.models, VECTORS[snapshot.meta.layout]
    params = None  # local mode searches exactly, and warns of parameters
    if collection.remote:
        whole = models.QuantizationSearchParams(ignore=True)
        exact = models.SearchParams(exact=True, quantization=whole)
        params = exact if how.exact else models.SearchParams(hnsw_ef=how.hnsw_ef, exact=False)
    shared = {"limit": limit, "params": params, "with_payload": False, "with_vector": False}
    requests = [
        models.QueryRequest(query=vector, using=names[field], filter=allowed, **shared)
        for lists, allowed in wanted
        for field, vector in lists
    ]
    answers = iter(snapshot.call("query_batch_points", "searching", requests=requests))
    return [[_listed(snapshot, next(answers).points) for _ in lists] for lists, _ in wanted]


def _listed(snapshot: QdrantSnapshot, points: Sequence[Any]) -> Hits:
    numbers = snapshot.numbered([str(point.id) for point in points])
    return Hits(numbers, np.array([point.score for point in points], dtype=np.float64))


REMOVED = 1000  # points that one request of delete() removes


class QdrantIndexer(ArtifactIndexer):
    """Sends entries as points; readers see them in one step at the end.

    Args:
        mode: ``create`` refuses a collection that exists; ``overwrite`` replaces it and ``append`` adds to it, both in
            one step at the end.
        options: how the server keeps a new collection: shards, copies, on disk, int8 codes.
        resume: keep points if the upload is interrupted, and continue one that was, with the same documents and
            options; ``indexer.pending(documents)`` leaves out stored documents before they are encoded.
    """

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        options: CollectionOptions | None = None,
        model: str | None = None,
        keep: Sequence[str] | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        shared: dict[str, Any] = {"resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, model=model, keep=keep, **shared)
        self.options = options or CollectionOptions()
        self._upload: Upload | None = None

    def unfinished(self) -> Upload:
        self._upload = Upload(self._index.collection, self.mode, self.fingerprint() if self.resume else None)
        return self._upload

    def write(self, posts: Iterator[IndexPost], model: str | None) -> None:
        entries = chain.from_iterable(post.entries for post in posts)
        upload, self._upload = self._upload or self.unfinished(), None
        upload.run(entries, self.options, model, self.kept())


@explained
class QdrantDocumentIndexer(QdrantIndexer, DocumentIndexer):
    """Stores ``{docno, doc_embs, (formula_ids)}``: each document with its vectors ``doc`` and ``all``."""


@explained
class QdrantFormulaIndexer(QdrantIndexer, FormulaIndexer):
    """Stores ``{docno, doc_embs, formula_ids}``: each formula with its own vector.

    Args:
        resume: keep points if the upload is interrupted, and continue one that was, with the same documents and
            options.
    """

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        visual_ids: VisualIds | None = None,
        options: CollectionOptions | None = None,
        model: str | None = None,
        keep: Sequence[str] | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        shared: dict[str, Any] = {"resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, options=options, model=model, keep=keep, **shared)
        self.visual_ids = visual_ids

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Return the whole corpus: which posts are stored completely is not known from their formulas."""
        return identified(stream)


class QdrantBase(Counted, VectorIndex):
    """An index in Qdrant. Constructing the object sends no request; the collection need not exist yet.

    Args:
        location: the URL of a server, or a folder for Qdrant's local mode, which is exact and allows one process at a
            time.
        collection: its name, without characters such as ``/`` and ``:``.
        api_key: of the server; by default the environment variable ``QDRANT_API_KEY``. It is never pickled.
        timeout: seconds to wait for the answer to a request, and for a peer of a cluster to show what was written.
        retries: how often a failed request is repeated where that can help, such as after a lost connection.
        pause: seconds before the first retry; each further one waits twice as long, at most 30 seconds.
    """

    def __init__(
        self,
        location: str | Path,
        collection: str = "mathamr",
        *,
        api_key: str | None = None,
        timeout: int = 60,
        retries: int = 6,
        pause: float = 0.5,
    ) -> None:
        super().__init__()
        COUNT.check("timeout", timeout)
        at_least(0).check("retries", retries)
        if not collection or set(collection) & set('<>:"/\\|?*\0\x1f'):
            raise ConfigError("collection", collection, 'a name without any of < > : " / \\ | ? *')
        self.location, self.name = str(location), collection
        self.timeout, self.retries, self.pause = timeout, retries, pause
        self.collection = Collection(self.location, collection, self.LAYOUT, api_key, timeout, retries, pause)

    @classmethod
    def example(cls) -> Self:
        """Return a small index of random vectors in local mode, in a temporary folder removed when Python ends."""
        return cls(example_folder(), "example").index(example_documents())

    @property
    def path(self) -> str:
        """The address and the collection."""
        return self.collection.address

    @property
    def nickname(self) -> str:
        """What the names of transformers call it."""
        return self.name

    def __reduce__(self) -> Any:
        options: dict[str, Any] = {"timeout": self.timeout, "retries": self.retries, "pause": self.pause}
        return partial(type(self), **options), (self.location, self.name)  # without the key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QdrantBase) and other._identity() == self._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        remote = self.collection.remote
        return type(self), self.location if remote else Path(self.location).absolute(), self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r}, {self.name!r})"

    def counts(self) -> list[str]:
        """List the number of points, and the width and dtype of their vectors; it asks the server."""
        snapshot = self.snapshot()
        what = "document" if self.LAYOUT == "documents" else "formula"
        return [counted(len(snapshot), what), described_rows(snapshot.meta.dimensions, "float32")]

    def built(self) -> bool:
        """Return whether the collection exists and is complete, unlike one of an unfinished upload."""
        return self.collection.read() is not None

    def snapshot(self) -> QdrantSnapshot:
        """Return the current state of the collection."""
        return QdrantSnapshot(self.collection)

    @classmethod
    def merge(
        cls,
        location: str | Path,
        collection: str,
        *indexes: QdrantBase,
        options: CollectionOptions | None = None,
        **connection: Any,
    ) -> Self:
        """Build a new collection of all entries of some others.

        Args:
            location: of the new collection: a URL or a folder.
            collection: its name; it must not exist.
            indexes: the collections to read, of the same class.
            options: how the server keeps the new collection: shards, copies, on disk, int8 codes.
            connection: further arguments of the class, such as ``api_key`` and ``timeout``.
        """
        index = cls(location, collection, **connection)
        for source in indexes:
            if type(source) is not cls:
                raise QdrantError(source.path, f"only a {cls.__name__} can be merged here")
        model = merged_model(index.path, indexes)
        entries = chain.from_iterable(source.snapshot().entries() for source in indexes)
        keep = dict.fromkeys(name for source in indexes for name in source.snapshot().meta.keep)
        Upload(index.collection, "create").run(entries, options or CollectionOptions(), model, tuple(keep))
        return index

    def discard(self) -> None:
        """Remove the points of an interrupted call; the collection that readers see is unchanged."""
        discard(self.collection)

    def delete(self, docnos: Iterable[str]) -> None:
        """Remove documents (or formulas, by their ids), a thousand at a time.

        After an interruption, repeat the call with the same ids: those that are gone are left out, with a warning that
        counts them.

        Raises:
            UnknownIdError: the collection has none of the ids; the error names them.
            QdrantError: the server did not answer; the error says how many of the ids are removed for certain.
        """
        names = list(dict.fromkeys(map(str, docnos)))
        snapshot = self.snapshot()
        present = [name for name, number in zip(names, snapshot.look_up(names), strict=True) if number >= 0]
        if not present:
            snapshot.find(names)
        models = self.collection.models
        for start in range(0, len(present), REMOVED):
            ids = [point_id(name) for name in present[start : start + REMOVED]]
            try:
                snapshot.call("delete", "deleting", points_selector=models.PointIdsList(points=ids), wait=True)
            except (QdrantError, WriteError) as error:
                left = (
                    f"{start} of {len(present)} were removed, and perhaps more; call delete() with the same ids again"
                )
                raise QdrantError(self.path, f"{error.reason}; {left}", getattr(error, "status", 0)) from error
        if absent := sorted(set(names).difference(present)):
            text = f"{len(absent)} of {len(names)} ids were not there, perhaps since an earlier call removed them"
            shown = f"{', '.join(map(repr, absent[:5]))}{', …' if len(absent) > 5 else ''}"
            warnings.warn(MathAMRWarning(f"{self.path}: {text}: {shown}; the rest was removed."), stacklevel=2)


@explained
class QdrantIndex(DocumentVectorIndex, QdrantBase):
    """The vectors of all virtual nodes of each document in a Qdrant collection (MathAMR+, section 3.5.1).

    It has the methods and columns of ``MathAMRIndex``; in exact mode, its rankings and scores, too::

        index = QdrantIndex("http://localhost:6333", "arqmath")        # or a folder: Qdrant's local mode
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Called directly, it accepts queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`.
    """

    indexer = method(QdrantDocumentIndexer)


@explained
class QdrantFormulaIndex(FormulaVectorIndex, QdrantBase):
    """One vector for each formula virtual node in a Qdrant collection, for formula retrieval (ARQMath Task 2).

    It has the methods and columns of ``MathAMRFormulaIndex``; in exact mode, its rankings and scores, too::

        formulas = QdrantFormulaIndex("http://localhost:6333", "arqmath-formulas")
        (graphs >> model.doc_encoder() >> formulas.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()
    """

    indexer = method(QdrantFormulaIndexer)

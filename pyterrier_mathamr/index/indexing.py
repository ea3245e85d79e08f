"""From a stream of documents to the parts of an index on disk.

::

    records {docno, doc_embs, …}
        │ records_to_posts                  one entry for each document, or for each formula of it
        │ Corpus                            which documents an interrupted job has finished
        ▼
    Build                                   gathers entries, 64 MB of rows for each part
        ▼
    store.Job                               writes the parts and publishes them in one step

A docno that occurs twice ends a build. A formula may occur in several posts, as some of ARQMath do: its first
occurrence is indexed, as in ARQMath's tables, and the others are left out with a warning. A build holds the rows of one
part in memory, however long the stream is.

Each part stores two numbers of every document that it was made from: a hash of its docno and the fingerprint of its
content. To resume a job, a batch of the corpus is left out where all its documents are done; any other is encoded
whole, in the same batch as the first time, so that its vectors are the same.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import eq
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.feedback import Overheard, overheard, progress, reported_once
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.ids import identified, valid_id
from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.transformers import Indexer, Leaf, Transformer
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import DOCUMENT_COLUMNS, TITLE_FORMULA, formula_id
from pyterrier_mathamr.store import (
    META,
    DuplicateIdError,
    Job,
    Mode,
    StoredPart,
    UnfinishedJobError,
    changed_row,
    file_fingerprint,
    row_fingerprint,
)

from .backend import Numbers, Rows, Sources
from .errors import EmbeddingError, check_model, resumed_model
from .parts import (
    CODES,
    DTYPES,
    TEXTS,
    DType,
    Entry,
    IndexMeta,
    Layout,
    VectorParts,
    default_dtype,
    part_content,
    stored_as,
)
from .subsets import KEEP, kept_text
from .transformers import explained

VisualIds = Mapping[str, str] | FormulaStore  # formula id to visual id


class IndexPost(NamedTuple):
    """A document of a stream, and the entries that it becomes."""

    docno: str
    entries: list[Entry]


def check_rows(docno: str, value: Any) -> Rows:
    try:
        rows = np.asarray(value)
        if rows.dtype.kind not in "fiu":
            raise ValueError(f"dtype {rows.dtype}")
        if rows.dtype != np.float32:
            with np.errstate(over="ignore"):  # a number that is too large becomes infinite and is refused with the part
                rows = rows.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(docno, f"doc_embs is not an array of numbers ({error})") from error
    if rows.ndim != 2:
        raise EmbeddingError(docno, f"doc_embs has shape {rows.shape}, not [rows, dimensions]")
    if 0 in rows.shape:
        raise EmbeddingError(docno, f"doc_embs is empty (shape {rows.shape}); a post has its document's vector")
    return np.ascontiguousarray(rows)


def document_posts(stream: Iterable[Mapping[str, Any]], keep: Sequence[str] = ()) -> Iterator[IndexPost]:
    """Turn ``{docno, doc_embs, (formula_ids)}`` and kept columns into one entry for each document."""
    for record in stream:
        docno = record["docno"]
        rows = check_rows(docno, record.get("doc_embs"))
        ids = _formula_ids(docno, record, len(rows))
        texts = docno, "" if ids is None else json.dumps(ids, ensure_ascii=False)
        yield IndexPost(docno, [Entry(texts, rows, kept_text(docno, record, keep))])


def _formula_ids(docno: str, record: Mapping[str, Any], rows: int) -> list[str] | None:
    ids = record.get("formula_ids")
    if ids is None or is_missing(ids):
        return None
    place = f"document {docno!r:.80}"
    ids = ["" if is_missing(formula) or formula == "" else valid_id(formula, place, "formula id") for formula in ids]
    if len(ids) > rows:
        raise EmbeddingError(docno, f"it has {len(ids)} formula_ids but only {rows} rows")
    return ids


class Corpus:
    """The documents of a corpus: documents that an unfinished job has indexed, and documents to encode now."""

    def __init__(self, path: Path, parts: Sequence[StoredPart]) -> None:
        self.path, self._parts = path, [part.meta.name for part in parts]
        sources = np.concatenate([np.zeros((0, 2), dtype=np.uint64), *(part["sources"] for part in parts)])
        self._order = np.argsort(sources[:, 0], kind="stable")
        self._names, self._prints = np.ascontiguousarray(sources[self._order].T)
        self._cuts = np.cumsum([0, *(len(part["sources"]) for part in parts)])
        self._repeated = np.zeros(len(sources), dtype=np.bool_)
        self._new: dict[str, tuple[int, int]] = {}
        self._encoded_again: set[str] = set()

    @property
    def done(self) -> int:
        return len(self._repeated)

    def __contains__(self, docno: object) -> bool:
        """Return whether a document is done and encoded again only because others of its batch are not."""
        return docno in self._encoded_again

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[Mapping[str, Any]]:
        """Leave out the batches in which every document is done."""
        records = iter(stream)
        while batch := list(islice(records, batch_size)):
            docnos = [record["docno"] for record in batch]
            pairs = [(row_fingerprint({"docno": record["docno"]}), row_fingerprint(record)) for record in batch]
            done = self._repeat(docnos, np.array(pairs, dtype=np.uint64))
            if not done.all():
                self._new.update(zip(docnos, pairs, strict=True))
                self._encoded_again.update(np.array(docnos, dtype=object)[done])
                yield from batch

    def _repeat(self, docnos: Sequence[str], pairs: Sources) -> npt.NDArray[np.bool_]:
        """Record that documents came again; return which of them are done."""
        if not len(self._names):
            return np.zeros(len(pairs), dtype=np.bool_)
        nearest = np.minimum(np.searchsorted(self._names, pairs[:, 0]), len(self._names) - 1)
        done: npt.NDArray[np.bool_] = self._names[nearest] == pairs[:, 0]
        if (changed := np.flatnonzero(done & (self._prints[nearest] != pairs[:, 1]))).size:
            raise changed_row(self.path, docnos[changed[0]])
        positions = self._order[nearest[done]]
        twice = self._repeated[positions]
        twice |= ~np.isin(np.arange(len(positions)), np.unique(positions, return_index=True)[1])
        if twice.any():
            raise DuplicateIdError(self.path, [docnos[i] for i in np.flatnonzero(done)[twice]])
        self._repeated[positions] = True
        return done

    def sources(self, docnos: Iterable[str]) -> Sources:
        """Return the stored numbers of some documents, uint64 ``[s, 2]``; none where one is unknown."""
        known = [self._new.pop(docno, None) for docno in docnos]
        pairs = [pair for pair in known if pair]
        return np.array(pairs if len(pairs) == len(known) else [], dtype=np.uint64).reshape(-1, 2)

    def tell(self, job: Job) -> None:
        """Tell a resumed job which of its rows were left out of the stream."""
        parts, bases = job.done.parts, job.done.bases.tolist()
        if self._repeated.any() and (names := [part.meta.name for part in parts]) != self._parts:
            raise UnfinishedJobError(self.path, {"parts": (self._parts, names)})
        for (first, last), base, part in zip(pairwise(self._cuts), bases, parts, strict=False):
            if first < last and self._repeated[first:last].all():
                job.came_again(np.arange(base, base + len(part)))


PART_BYTES = 64 << 20  # bytes of float32 rows after which a part is closed; a build needs a few times that
_LOOKED_UP = 1024
_SAME = 1e-5  # the greatest difference of a row that is resumed from the stored one


class Build:
    """One build of an index."""

    def __init__(
        self,
        job: Job,
        layout: Layout,
        corpus: Corpus,
        model: str | None,
        dtype: DType | None,
        keep: tuple[str, ...] = (),
    ) -> None:
        self.job, self.layout, self.corpus, self.keep = job, layout, corpus, keep
        base = job.base and IndexMeta.read(job.base.details, job.path)
        if base:
            check_model(job.path, base.model, model)
            if dtype not in (None, base.dtype):
                copy = f"a copy with rows of {dtype} is made by merge(path, index, dtype={dtype!r})"
                raise ConfigError("dtype", dtype, f"None: {job.path} stores {base.dtype}; {copy}")
        self.model, self.asked = (base and base.model) or model, base.dtype if base else dtype
        self.dimensions = base.dimensions if base else 0
        self.done = VectorParts(job.done.parts)
        self._came = np.zeros(int(self.done.bases[-1]), dtype=np.bool_)
        for part in self.done.parts:
            _, self.dimensions = stored_as(part)
            self.model = resumed_model(job.path, part.meta.details.get("model"), self.model)
        self._entries: list[Entry] = []
        self._docnos: list[str] = []
        self._again: list[str] = []
        self._bytes = 0

    @property
    def dtype(self) -> DType:
        """How rows are stored, once their width is known."""
        return self.asked or default_dtype(self.dimensions)

    def meta(self) -> IndexMeta:
        return IndexMeta(self.dimensions, self.model, self.dtype, self.keep)

    def run(self, posts: Iterable[IndexPost]) -> None:
        """Add all documents and make the result the index, in one step."""
        for post in self._without_done(posts) if self.done.parts else posts:
            for entry in post.entries:
                width = entry.rows.shape[1]
                self.dimensions = self.dimensions or width
                if width != self.dimensions:
                    text = f"its rows have {width} dimensions, but the index has {self.dimensions}"
                    raise EmbeddingError(entry.docno, text)
                self._entries.append(entry)
                self._bytes += entry.rows.nbytes
            self._docnos.append(post.docno)
            if self._bytes >= PART_BYTES:
                self._close_part()
        self._close_part()
        self.corpus.tell(self.job)
        self.job.commit(self.meta().details())
        warn_of_repeated(self.job.path, self._again)

    def _close_part(self) -> None:
        """Write the gathered entries as one part; documents without an entry wait for the next part."""
        entries = self._entries
        if self.layout == "formulas":  # leave out those that occurred before, in a part or among themselves
            first: dict[str, Entry] = {}
            for entry in entries:
                if first.setdefault(entry.docno, entry) is not entry:
                    self._again.append(entry.docno)
            known = self.job.look_up(list(first)) >= 0
            self._again += [name for name, repeated in zip(first, known.tolist(), strict=True) if repeated]
            entries = [entry for entry, repeated in zip(first.values(), known.tolist(), strict=True) if not repeated]
        if entries:
            sources = self.corpus.sources(self._docnos)
            self.job.add(part_content(self.layout, self.dtype, entries, sources, self.model))
            self._docnos = []
        self._entries, self._bytes = [], 0

    def _without_done(self, posts: Iterable[IndexPost]) -> Iterator[IndexPost]:
        """Leave out the entries in parts of an earlier run of the job, after comparing them."""
        stream = iter(posts)
        while some := list(islice(stream, _LOOKED_UP)):
            entries = [entry for post in some for entry in post.entries]
            done = iter(self._done(entries).tolist())
            for post in some:
                rest = [entry for entry in post.entries if not next(done)]
                if post.docno in self.corpus:  # the rest of it was left out before
                    names = [entry.docno for entry in rest]
                    if (self.job.look_up(names) < 0).any():
                        raise self.job.changed(post.docno)
                    self._again += names
                elif rest or not post.entries:
                    yield IndexPost(post.docno, rest)

    def _done(self, entries: Sequence[Entry]) -> npt.NDArray[np.bool_]:
        names = [entry.docno for entry in entries]
        if self.layout == "documents":
            rows = self.job.rows_done(names)
        else:  # a formula of another post, or repeated in this one, is new: it is left out later
            rows = self.done.look_up(names)
            known = np.flatnonzero(rows >= 0)
            stored = rows[known]
            _, first = np.unique(stored, return_index=True)
            posts = zip(self.done.texts("post_id", stored), known.tolist(), strict=True)
            same = np.array([post == entries[i].texts[1] for post, i in posts], dtype=np.bool_)
            same &= np.isin(np.arange(len(known)), first) & ~self._came[stored]
            self._came[stored[same]] = True
            rows[known[~same]] = -1
            self.job.came_again(rows[rows >= 0])
        done: npt.NDArray[np.bool_] = rows >= 0
        self._compare(rows[done], [entries[i] for i in np.flatnonzero(done).tolist()])
        return done

    def _compare(self, rows: Numbers, entries: Sequence[Entry]) -> None:
        """Raise an error for entries that differ from the stored ones."""
        if not entries:
            return
        stored, offsets = self.done.rows(rows)
        names = TEXTS[self.layout][1:]
        known = zip(*(self.done.texts(name, rows) for name in (*names, "kept")), np.diff(offsets).tolist(), strict=True)
        given = [(*entry.texts[1:], entry.kept, len(entry.rows)) for entry in entries]
        shapes = [entry.rows.shape[1] == self.dimensions for entry in entries]
        same = np.array(list(map(eq, known, given)), dtype=np.bool_) & np.array(shapes, dtype=np.bool_)
        if same.all():
            room = _SAME * (1 + np.abs(stored))
            if self.dtype == "float16":
                room += np.spacing(np.abs(stored).astype(np.float16))
            elif self.dtype in CODES:
                steps = 127 if self.dtype == "int8" else 2  # of int4, a clipped number is several steps away
                room += np.abs(stored).max(axis=1, keepdims=True) / steps
            close = np.abs(np.concatenate([entry.rows for entry in entries]) - stored) <= room
            same = np.logical_and.reduceat(close.all(axis=1), offsets[:-1])
        if not same.all():
            raise self.job.changed(entries[int(np.argmin(same))].docno)


def warn_of_repeated(path: Path | str, formulas: Sequence[str]) -> None:
    """Warn of formulas that occurred more than once; all but the first were left out."""
    if formulas:
        shown = ", ".join(sorted(set(formulas))[:5])
        text = f"{len(formulas)} formulas occurred again and were left out; the first occurrence is indexed: {shown}"
        warnings.warn(MathAMRWarning(f"{path}: {text}"), stacklevel=3)


class ArtifactIndexer(Leaf, Indexer):
    """Writes a stream of documents into an index; subclasses define how records become entries.

    Args:
        index: the index.
        mode: ``create`` refuses an index that exists; ``overwrite`` replaces it and ``append`` adds to it, both in one
            step at the end.
        model: the identity of the model of the vectors, by default ``doc_model`` of the first document; others are
            refused.
        dtype: how rows are stored. By default, rows of 256 numbers and more, as of text encoders, are ``int8`` with a
            scale each, a fifth of the size of ``float32``, and scores are rounded a little; shorter rows are
            ``float32``. ``float16`` is between the two. ``int4`` needs half the space of ``int8`` and finds 97 to 98 %
            of the best documents; the width of rows must be a multiple of 8. ``append`` keeps the dtype of the index.
        keep: columns to keep of each document for ``where=`` of retrievers: text, numbers or lists of them. ``append``
            keeps the columns of the index.
        resume: keep finished parts if the build is interrupted, and continue one that was, with the same documents and
            options; ``indexer.pending(documents)`` leaves out finished documents before they are encoded.
        sources: what else the vectors depend on, such as checksums, as plain JSON values; with ``resume``, an
            interrupted build with others is refused.
        verbose: show a progress bar.
        total: the number of documents, for the progress bar.
    """

    checks: ClassVar[Mapping[str, Rule]] = {
        "mode": one_of("create", "overwrite", "append"),
        "dtype": one_of(*DTYPES).or_none(),
        "keep": KEEP,
    }

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        model: str | None = None,
        dtype: DType | None = None,
        keep: Sequence[str] | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        super().__init__()
        self._index, self.mode, self.model, self.dtype, self.keep = index, mode, model, dtype, keep
        self.resume, self.sources, self.verbose, self.total = resume, sources, verbose, total
        self._corpus: Corpus | None = None
        self.note: Callable[[], str] | None = None
        """Returns the text after the bar."""

    def kept(self) -> tuple[str, ...]:
        """Return the columns to keep: of ``append``, the columns of the index."""
        asked = None if self.keep is None else tuple(self.keep)
        if self.mode != "append" or not self._index.built():
            return asked or ()
        known: tuple[str, ...] = self._index.snapshot().meta.keep
        if asked not in (None, known):
            raise ConfigError("keep", self.keep, f"None: {self._index.path} keeps {', '.join(known) or 'no columns'}")
        return known

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[IndexPost]:
        """Convert the records of the stream to entries."""
        raise NotImplementedError

    def index_inputs(self) -> list[list[str]]:
        """Return the fields that each record must have."""
        raise NotImplementedError

    def index(self, iter: Iterable[Mapping[str, Any]]) -> Any:
        """Write a stream of documents; the index changes in one step at the end, or not at all."""
        stream, model = pt.utils.peekable(identified(iter)), self.model
        with suppress(StopIteration):  # there is no document
            first = stream.peek()
            model = model or first.get("doc_model")
            pt.validate.columns_iter(stream, includes=[*self.index_inputs()[0], *self.kept()], context=self)
        total = None if self.total is None else max(self.total - (self._corpus.done if self._corpus else 0), 0)
        bar: dict[str, Any] = {"verbose": self.verbose, "total": total, "note": self.note}
        shown = progress(stream, f"vectors of {self._index.LAYOUT}", "documents", **bar)

        def of_one_model() -> Iterator[Mapping[str, Any]]:
            for record in shown:
                check_model(self._index.path, model, record.get("doc_model"))
                yield record

        self.write(self.records_to_posts(of_one_model()), model)
        return self._index

    def write(self, posts: Iterator[IndexPost], model: str | None) -> None:
        fingerprint = self.fingerprint() if self.resume else {}
        with self._index.job(self.mode, fingerprint, resume=self.resume) as job:
            corpus, self._corpus = self._corpus or Corpus(self._index.path, ()), None
            Build(job, self._index.LAYOUT, corpus, model, self.dtype, self.kept()).run(posts)

    def index_encoded(
        self,
        documents: Iterable[Mapping[str, Any]],
        encoder: pt.Transformer,
        *,
        executor: Executor | None = None,
        load: Transformer | None = None,
        batch_size: int | None = None,
    ) -> Any:
        """Encode documents and write them, as ``(encoder >> indexer).index(indexer.pending(documents))`` does.

        Args:
            documents: the corpus; documents that an interrupted job has finished are not encoded again.
            encoder: adds ``doc_embs``; it works where ``executor`` runs, by default in this process.
            executor: ``Processes(n)`` or ``RayCluster(address)``.
            load: a stage before the encoder that works in this process.
            batch_size: documents encoded at once; by default the encoder's, at least 100.
        """
        where = executor or Processes(1)
        size = batch_size or max(100, getattr(encoder, "batch_size", 0))  # that of PyTerrier's pipeline
        pending = iter(self.pending(documents, size))
        batches: Iterable[Sequence[Mapping[str, Any]]] = iter(lambda: list(islice(pending, size)), [])
        if load is not None:
            batches = map(load.transform_iter, batches)
        self.note = where.doing
        with reported_once(), closing(where.map(Encode(encoder), batches)) as encoded:

            def records() -> Iterator[dict[str, Any]]:
                for batch, warned in encoded:
                    warned.repeat()
                    yield from batch

            return self.index(records())

    def fingerprint(self) -> dict[str, Any]:
        """Return what determines the vectors, besides the documents; work with another fingerprint is not resumed."""
        inputs: dict[str, Any] = {"entries": self._index.LAYOUT, "model": self.model, "dtype": self.dtype}
        if self.keep:
            inputs["keep"] = list(self.keep)
        return {**inputs, "sources": None if self.sources is None else dict(self.sources)}

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out documents that an interrupted job has finished, so that they are not encoded again."""
        documents = identified(stream)
        yield from self.unfinished().pending(documents, batch_size) if self.resume else documents

    def unfinished(self) -> Any:
        """Return the work of an interrupted job, whose ``pending`` leaves out its documents."""
        done = self._index.unfinished_parts(self.mode, self.fingerprint())
        self._corpus = Corpus(self._index.path, done.parts)
        return self._corpus


@explained
class DocumentIndexer(ArtifactIndexer):
    """Indexes ``{docno, doc_embs, (formula_ids)}``: each document with all its rows.

    ``index.indexer()`` constructs one.

    Example::

        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
    """

    def index_inputs(self) -> list[list[str]]:
        """Return ``docno`` and ``doc_embs``; ``formula_ids``, the ids of the first rows, are optional."""
        return [["docno", "doc_embs"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[IndexPost]:
        return document_posts(stream, self.kept())


@explained
class FormulaIndexer(ArtifactIndexer):
    """Indexes ``{docno, doc_embs, formula_ids}``: each formula with its own row.

    ``formula_index.indexer()`` constructs one.

    Example::

        (graphs >> model.doc_encoder() >> formula_index.indexer(visual_ids=ids)).index(arqmath.get_corpus_iter())

    Args:
        visual_ids: formula id to visual id, the id that equal formulas share in ARQMath, or a ``FormulaStore`` of them;
            others get the empty string.
    """

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        visual_ids: VisualIds | None = None,
        model: str | None = None,
        dtype: DType | None = None,
        keep: Sequence[str] | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        options = {"keep": keep, "resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, model=model, dtype=dtype, **options)  # type: ignore[arg-type]
        self.visual_ids = visual_ids
        self._posts = self._formulas = 0  # of the last call of index

    def index_inputs(self) -> list[list[str]]:
        """Return ``docno``, ``doc_embs`` and ``formula_ids``; its entry ``i`` is the id of row ``i``."""
        return [["docno", "doc_embs", "formula_ids"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[IndexPost]:
        """Convert each formula virtual node to one entry (MathAMR+, 3.5.1).

        The formulas in the title of a document's question are left out: they belong to the question.
        """
        self._posts = self._formulas = 0
        visual_ids: VisualIds = {} if self.visual_ids is None else self.visual_ids
        keep = self.kept()
        for record in stream:
            docno = record["docno"]
            rows = check_rows(docno, record.get("doc_embs"))
            ids = _formula_ids(docno, record, len(rows))
            if ids is None:
                raise EmbeddingError(docno, "it has no formula_ids, the ids of its first rows")
            first: dict[str, int] = {}
            for row, formula in enumerate(ids):
                first.setdefault(formula or formula_id(docno, row), row)
            first.pop(TITLE_FORMULA, None)
            visual = visual_ids.visual_ids(first) if isinstance(visual_ids, FormulaStore) else visual_ids
            kept = kept_text(docno, record, keep)
            entries = [
                Entry((formula, docno, str(visual.get(formula, ""))), rows[row : row + 1], kept)
                for formula, row in first.items()
            ]
            self._posts += 1
            self._formulas += len(entries)
            yield IndexPost(docno, entries)

    def index(self, iter: Iterable[Mapping[str, Any]]) -> Any:
        """Write a stream of posts, as :meth:`ArtifactIndexer.index`.

        Warns:
            MathAMRWarning: none of the posts has a formula, and the index is empty.
        """
        index = super().index(iter)
        if self._posts and not self._formulas and not len(index):
            text = f"the index is empty: none of {self._posts:,} posts has formula_ids: no formula is between "
            advice = "delimiters (GraphBuilder(bare_formulas=True) also reads others) or the model uses no formulas."
            warnings.warn(MathAMRWarning(f"{self._index!r}: {text}{advice}"), stacklevel=2)
        return index

    def fingerprint(self) -> dict[str, Any]:
        """Return what determines the vectors and their visual ids."""
        ids = self.visual_ids
        if isinstance(ids, FormulaStore):
            meta = ids.path / META
            return {**super().fingerprint(), "visual_ids": file_fingerprint(meta if meta.exists() else ids.path)}
        return {**super().fingerprint(), "visual_ids": row_fingerprint(ids or {})}


_READ = {*DOCUMENT_COLUMNS, "title", "graph"}  # by an encoder, and by no indexer


@dataclass(frozen=True, eq=False)
class Encode:
    """Work of a batch of documents: encode them, as a pipeline of PyTerrier does."""

    encoder: pt.Transformer

    def __call__(self, batch: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], Overheard]:
        with overheard() as warned:
            frame = self.encoder.transform(pd.DataFrame(list(batch)))
        read = [name for name in frame.columns if name in _READ]
        return frame.drop(columns=read).to_dict("records"), warned

"""Indexers: a stream of documents becomes entries, and entries become parts of an artifact."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import pyterrier as pt

from pyterrier_mathamr._common.errors import EmptyIndexWarning
from pyterrier_mathamr._common.feedback import progress, told_once
from pyterrier_mathamr._common.frames import documents as documents_of
from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.transformers import Indexer, Leaf
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.index.errors import check_model
from pyterrier_mathamr.store import META, Mode, file_fingerprint, row_fingerprint, unfinished_parts

from .builder import Build
from .encoded import EncodedRows, records_of
from .entries import DType, Post, VisualIds, document_posts, formula_posts
from .resume import Corpus

if TYPE_CHECKING:
    from pyterrier_mathamr.index.artifacts import IndexArtifact

MODEL_COLUMN = "doc_model"
"""The identity of the model of ``doc_embs``; the index stores it and compares it with that of every query."""


class ArtifactIndexer(Leaf, Indexer):
    """Writes a stream of documents into an index; subclasses say how records become entries."""

    checks: ClassVar[Mapping[str, Rule]] = {
        "mode": one_of("create", "overwrite", "append"),
        "dtype": one_of("float32", "float16").or_none(),
    }

    def __init__(
        self,
        index: IndexArtifact,
        mode: Mode = "create",
        *,
        model: str | None = None,
        dtype: DType | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        super().__init__()
        self._index, self.mode, self.model, self.dtype = index, mode, model, dtype
        self.resume, self.sources, self.verbose, self.total = resume, sources, verbose, total
        self._corpus: Corpus | None = None
        self.beside: Callable[[], str] | None = None
        """Gives what is shown after the bar."""

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
        """Convert the records of the stream to entries."""
        raise NotImplementedError

    def index_inputs(self) -> list[list[str]]:
        """Return the fields that each record must have."""
        raise NotImplementedError

    def index(self, iter: Iterable[Mapping[str, Any]], **kwargs: object) -> IndexArtifact:
        """Write a stream of documents; the index changes in one step at the end, or not at all."""
        stream = pt.utils.peekable(documents_of(iter))
        model = self.model
        if (first := _first(stream)) is not None:
            pt.validate.columns_iter(stream, includes=self.index_inputs()[0], context=self)
            model = model or first.get(MODEL_COLUMN)
        total = None if self.total is None else max(self.total - (self._corpus.done if self._corpus else 0), 0)
        bar: dict[str, Any] = {"verbose": self.verbose, "total": total, "beside": self.beside}
        shown = progress(stream, f"vectors of {self._index.LAYOUT}", "documents", **bar)
        self.write(self.records_to_posts(self._of_one_model(shown, model)), model)
        return self._index

    def index_encoded(
        self,
        documents: Iterable[Mapping[str, Any]],
        encoder: pt.Transformer,
        *,
        executor: Executor | None = None,
    ) -> IndexArtifact:
        """Encode documents and write them, as ``(encoder >> indexer).index(indexer.pending(documents))`` does."""
        where = executor or Processes(1)
        size = max(100, getattr(encoder, "batch_size", 0))  # that of PyTerrier's pipeline
        pending = iter(self.pending(documents_of(documents), size))
        batches = iter(lambda: list(islice(pending, size)), [])
        self.beside = where.doing
        with told_once(), closing(where.map(EncodedRows(encoder), batches)) as encoded:
            return self.index(records_of(encoded))

    def write(self, posts: Iterator[Post], model: str | None) -> None:
        """Write documents to the index, in one step at the end."""
        fingerprint = self.fingerprint() if self.resume else {}
        with self._index.job(self.mode, fingerprint, resume=self.resume) as job:
            corpus, self._corpus = self._corpus or Corpus(self._index.path, ()), None
            Build(job, self._index.LAYOUT, corpus, model, self.dtype).run(posts)

    def fingerprint(self) -> dict[str, Any]:
        """Return what determines the vectors, beside the documents; work with another fingerprint is not resumed."""
        dtype = self.dtype or (None if self.mode == "append" else "float32")
        own = {"entries": self._index.LAYOUT, "model": self.model, "dtype": dtype}
        return {**own, "sources": None if self.sources is None else dict(self.sources)}

    def _of_one_model(self, stream: Iterable[Mapping[str, Any]], model: str | None) -> Iterator[Mapping[str, Any]]:
        """Refuse vectors of another model."""
        for record in stream:
            check_model(self._index.path, model, record.get(MODEL_COLUMN))
            yield record

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus what an interrupted job has finished, so that it is not encoded again."""
        if not self.resume:
            yield from stream
            return
        done = unfinished_parts(self._index.path, self._index.KIND, self.mode, self.fingerprint())
        self._corpus = Corpus(self._index.path, done.parts)
        yield from self._corpus.pending(stream, batch_size)


def _first(stream: Any) -> Mapping[str, Any] | None:
    try:
        first: Mapping[str, Any] = stream.peek()
    except StopIteration:
        return None
    return first


class DocumentIndexer(ArtifactIndexer):
    """Indexes ``{docno, doc_embs, (formula_ids)}``: each document with all its rows.

    ``index.indexer()`` constructs one; the options are those of :class:`ArtifactIndexer`.

    Example::

        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
    """

    def index_inputs(self) -> list[list[str]]:
        """Return ``docno`` and ``doc_embs``; ``formula_ids``, the ids of the first rows, are optional."""
        return [["docno", "doc_embs"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
        """Convert each document to one entry."""
        return document_posts(stream)


class FormulaIndexer(ArtifactIndexer):
    """Indexes ``{docno, doc_embs, formula_ids}``: each formula with its own row.

    ``formula_index.indexer()`` constructs one.

    Example::

        (graphs >> model.doc_encoder() >> formula_index.indexer(visual_ids=ids)).index(arqmath.get_corpus_iter())

    Args:
        index: the index.
        mode: and the others, as for :class:`ArtifactIndexer`.
        visual_ids: formula id to visual id, or a ``FormulaStore`` of them; others get the empty string.
    """

    def __init__(
        self,
        index: IndexArtifact,
        mode: Mode = "create",
        *,
        visual_ids: VisualIds | None = None,
        model: str | None = None,
        dtype: DType | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        options = {"dtype": dtype, "resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, model=model, **options)  # type: ignore[arg-type]
        self.visual_ids = visual_ids
        self._posts = self._formulas = 0  # of the last call of index

    def index_inputs(self) -> list[list[str]]:
        """Return ``docno``, ``doc_embs`` and ``formula_ids``, of which number ``i`` is the id of row ``i``."""
        return [["docno", "doc_embs", "formula_ids"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
        """Convert each formula to one entry."""
        self._posts = self._formulas = 0
        for post in formula_posts(stream, self.visual_ids or {}):
            self._posts += 1
            self._formulas += len(post.entries)
            yield post

    def index(self, iter: Iterable[Mapping[str, Any]], **kwargs: object) -> IndexArtifact:
        """Write a stream of posts, as :meth:`ArtifactIndexer.index`.

        Warns:
            EmptyIndexWarning: none of the posts has a formula, and the index is empty.
        """
        index = super().index(iter, **kwargs)
        if self._posts and not self._formulas and not len(index):
            text = f"the index is empty: none of {self._posts:,} posts has formula_ids: no formula stands between "
            advice = "delimiters (GraphBuilder(bare_formulas=True) reads others, too) or the model takes no formulas."
            warnings.warn(EmptyIndexWarning(f"{self._index!r}: {text}{advice}"), stacklevel=2)
        return index

    def fingerprint(self) -> dict[str, Any]:
        """Return what determines the vectors and their visual ids."""
        ids = self.visual_ids
        if isinstance(ids, FormulaStore):
            meta = ids.path / META
            return {**super().fingerprint(), "visual_ids": file_fingerprint(meta if meta.exists() else ids.path)}
        return {**super().fingerprint(), "visual_ids": row_fingerprint(ids or {})}

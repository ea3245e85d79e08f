"""Indexers: a stream of documents becomes entries, and entries become parts of an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import documents
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import Indexer
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.index.errors import check_model
from pyterrier_mathamr.store import META, Mode, file_fingerprint, row_fingerprint, unfinished_parts

from .builder import Build
from .entries import DTYPES, DType, Post, VisualIds, document_posts, formula_posts
from .resume import Corpus

if TYPE_CHECKING:
    from pyterrier_mathamr.index.base import IndexArtifact

MODEL_COLUMN = "doc_model"
"""Who made ``doc_embs``, as encoders say it; kept in the index and compared with that of every query."""


class ArtifactIndexer(Indexer):
    """Puts a stream of documents into an index; subclasses say how records become entries.

    Args:
        index: the index.
        mode: ``create`` refuses a built index, ``overwrite`` replaces it, ``append`` adds to it.
        model: who makes the vectors, a name or ``name@hash``; by default what the records carry in ``doc_model``,
            if any. Records of another model are refused.
        dtype: how rows are stored, ``float32`` or ``float16``: half the size, and what is searched, exactly, are the
            rounded rows. By default as the index that is added to has them, float32 in a new one.
        resume: take over what an earlier such call that died had finished, and keep what this one finishes if it dies.
            What was made from something else (another model, ``dtype``, ``sources``) is refused, and so are documents
            that come again with other vectors.
        sources: what the documents are made from, as plain values: files, options. Read where ``resume`` is given.
        verbose: show a progress bar.
        total: how many documents will come, for the bar.
    """

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
        if mode not in ("create", "overwrite", "append"):
            raise ConfigError("mode", mode, "'create', 'overwrite' or 'append'")
        if dtype is not None and dtype not in DTYPES:
            raise ConfigError("dtype", dtype, "'float32' or 'float16'")
        self._index, self.mode, self.model, self.dtype = index, mode, model, dtype
        self.resume, self.sources, self.verbose, self.total = resume, sources, verbose, total
        self._corpus: Corpus | None = None

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the index is a store, not a stage."""
        return {}

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
        """Turn the stream's records into what is written."""
        raise NotImplementedError

    def index_inputs(self) -> list[list[str]]:
        """The fields that each record must have."""
        raise NotImplementedError

    def index(self, iter: Iterable[Mapping[str, Any]], **kwargs: object) -> IndexArtifact:
        """Write a stream of documents; the index changes in one step at the end, or not at all.

        Args:
            iter: a DataFrame or dictionaries with the fields of :meth:`index_inputs`.
            kwargs: none; PyTerrier's base class names it.

        Returns:
            The index.

        Raises:
            MathAMRIndexError: one of its kinds, naming the document; what stood before is unharmed.
        """
        stream = pt.utils.peekable(documents(iter))
        model = self.model
        if (first := _first(stream)) is not None:
            pt.validate.columns_iter(stream, includes=self.index_inputs()[0], context=self)
            model = model or first.get(MODEL_COLUMN)
        shown = progress(stream, f"indexing {self._index!r}", "doc", verbose=self.verbose, total=self.total)
        self.write(self.records_to_posts(self._of_one_model(shown, model)), model)
        return self._index

    def write(self, posts: Iterator[Post], model: str | None) -> None:
        """Put documents where the index lies, in one step at the end.

        Args:
            posts: what is indexed; read once.
            model: the identity of the model that made the vectors.
        """
        fingerprint = self.fingerprint() if self.resume else {}
        with self._index.job(self.mode, fingerprint, resume=self.resume) as job:
            corpus, self._corpus = self._corpus or Corpus(self._index.path, ()), None
            Build(job, self._index.LAYOUT, corpus, model, self.dtype).run(posts)

    def fingerprint(self) -> dict[str, Any]:
        """What makes the vectors, beside the documents; unfinished work of another such is not taken over."""
        dtype = self.dtype or (None if self.mode == "append" else "float32")
        own = {"entries": self._index.LAYOUT, "model": self.model, "dtype": dtype}
        return {**own, "sources": None if self.sources is None else dict(self.sources)}

    def _of_one_model(self, stream: Iterable[Mapping[str, Any]], model: str | None) -> Iterator[Mapping[str, Any]]:
        """Refuse a stream in which vectors of another model come."""
        for record in stream:
            check_model(self._index.path, model, record.get(MODEL_COLUMN))
            yield record

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus what a job that stopped has finished already, so that it is not encoded again.

        ``(encode >> indexer).index(indexer.pending(corpus))`` goes on where the earlier such call ended, with an
        indexer made with ``resume=True``. Whole batches are left out, counted from the beginning of the corpus, so that
        each document is encoded together with the same others as if nothing had happened.

        Args:
            stream: dictionaries with ``docno``; the same documents each time.
            batch_size: documents that the pipeline hands over at once: PyTerrier's 100, or the greatest ``batch_size``
                of its stages where that is more.

        Raises:
            UnfinishedJobError: the finished work was made from something else, or a document was changed since.
        """
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

    ``index.indexer()`` makes one::

        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
    """

    def index_inputs(self) -> list[list[str]]:
        """``docno`` and ``doc_embs``; ``formula_ids`` says which rows are formulas, where it is known."""
        return [["docno", "doc_embs"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
        """One entry for each document."""
        return document_posts(stream)


class FormulaIndexer(ArtifactIndexer):
    """Indexes ``{docno, doc_embs, formula_ids}``: each formula that has an id with its own row.

    ``formula_index.indexer()`` makes one::

        (graphs >> model.doc_encoder() >> formula_index.indexer(visual_ids=ids)).index(arqmath.get_corpus_iter())

    Args:
        index: the index.
        mode: ``create``, ``overwrite`` or ``append``.
        visual_ids: formula id to visual id, or a ``FormulaStore`` of them; others get the empty string.
        model: as for :class:`ArtifactIndexer`.
        dtype: as for :class:`ArtifactIndexer`.
        resume: as for :class:`ArtifactIndexer`.
        sources: as for :class:`ArtifactIndexer`.
        verbose: show a progress bar.
        total: how many documents will come, for the bar.
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

    def index_inputs(self) -> list[list[str]]:
        """``docno``, ``doc_embs`` and ``formula_ids``, of which number ``i`` is the id of row ``i``."""
        return [["docno", "doc_embs", "formula_ids"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
        """One entry for each formula that has an id."""
        return formula_posts(stream, self.visual_ids or {})

    def fingerprint(self) -> dict[str, Any]:
        """What makes the vectors and their visual ids."""
        ids = self.visual_ids
        if isinstance(ids, FormulaStore):
            meta = ids.path / META
            return {**super().fingerprint(), "visual_ids": file_fingerprint(meta if meta.exists() else ids.path)}
        return {**super().fingerprint(), "visual_ids": row_fingerprint(ids or {})}

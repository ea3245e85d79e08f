"""Indexers of a Qdrant collection: those of a folder, but entries become points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index.indexers import ArtifactIndexer, DocumentIndexer, FormulaIndexer
from pyterrier_mathamr.index.records import Post
from pyterrier_mathamr.store import Mode

from .meta import CollectionOptions
from .upload import stored_ids, upload


class QdrantIndexer(ArtifactIndexer):
    """What the two indexers share: how a collection is created, and that points are sent to it.

    Args:
        index: the index.
        mode: ``create`` refuses a collection that is there, ``overwrite`` replaces it, ``append`` adds to it.
        options: how a new collection is created.
        others: as for :class:`~..indexers.ArtifactIndexer`; ``dtype`` is a folder's alone.

    Raises:
        ConfigError: ``dtype`` is given: a collection stores float32, and a smaller code by ``options``.
    """

    def __init__(
        self, index: Any, mode: Mode = "create", *, options: CollectionOptions | None = None, **others: Any
    ) -> None:
        super().__init__(index, mode, **others)
        if self.dtype is not None:
            raise ConfigError(
                "dtype",
                self.dtype,
                "None: a collection stores float32, and codes beside them by CollectionOptions(quantise=True)",
            )
        self.others = others
        self.options = options or CollectionOptions()

    def write(self, posts: Iterator[Post], model: str | None) -> None:
        """Send entries as points; readers see them in one step at the end."""
        entries = chain.from_iterable(post.entries for post in posts)
        upload(self._index.collection, self.mode, entries, self.options, model=model, resume=self.resume)


class QdrantDocumentIndexer(QdrantIndexer, DocumentIndexer):
    """Stores ``{docno, doc_embs, (formula_ids)}``: each document with its vectors ``doc`` and ``all``."""

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus whole batches that a call that died has stored already.

        Args:
            stream: dictionaries with ``docno``.
            batch_size: as for :meth:`..indexers.ArtifactIndexer.pending`.
        """
        records = iter(stream)
        while some := list(islice(records, batch_size)):
            docnos = [str(record["docno"]) for record in some]
            done = stored_ids(self._index.collection, docnos, self.mode) if self.resume else ()
            if not all(docno in done for docno in docnos):
                yield from some


class QdrantFormulaIndexer(QdrantIndexer, FormulaIndexer):
    """Stores ``{docno, doc_embs, formula_ids}``: each formula that has an id with its own vector."""

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """All of the corpus: which posts are whole is not known from their formulas."""
        return iter(stream)

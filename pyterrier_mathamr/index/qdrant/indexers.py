"""Indexers of a Qdrant collection: those of a folder, but entries become points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index.indexers import ArtifactIndexer, DocumentIndexer, FormulaIndexer
from pyterrier_mathamr.index.records import Entry
from pyterrier_mathamr.index.write import IndexMode

from .meta import CollectionOptions
from .sending import BATCH_POINTS
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
        self, index: Any, mode: IndexMode = "create", *, options: CollectionOptions | None = None, **others: Any
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

    def write(self, entries: Iterator[Entry], model: str | None) -> None:
        """Send entries as points; readers see them in one step at the end."""
        collection = self._index.collection
        upload(collection, self.mode, entries, self.options, model=model, resume=self.resume)


class QdrantDocumentIndexer(QdrantIndexer, DocumentIndexer):
    """Stores ``{docno, doc_embs, (formula_ids)}``: each document with its vectors ``doc`` and ``all``."""

    def pending(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus what a call that died has stored already, so that it is not encoded again.

        Args:
            stream: dictionaries with ``docno``.
        """
        records = iter(stream)
        while some := list(islice(records, BATCH_POINTS)):
            docnos = [str(record["docno"]) for record in some]
            collection = self._index.collection
            done = stored_ids(collection, docnos, self.mode) if self.resume else ()
            yield from (record for record in some if record["docno"] not in done)


class QdrantFormulaIndexer(QdrantIndexer, FormulaIndexer):
    """Stores ``{docno, doc_embs, formula_ids}``: each formula that has an id with its own vector."""

    def pending(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """All of the corpus: which posts are whole is not known from their formulas."""
        return iter(stream)

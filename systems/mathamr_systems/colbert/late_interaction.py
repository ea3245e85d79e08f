"""`LateInteraction`: a ColBERT-style checkpoint as encoders and as an index of its vectors, in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mathamr_systems.language_models import Precision
from pyterrier_mathamr._common.transformers import Pipeline
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model.transformers import DocEncoder, QueryEncoder, TextScorer

from .model import ColBERT


class LateInteraction:
    """Any checkpoint of PyLate, of Stanford's ColBERT or of sentence-transformers (extra ``colbert``).

    It encodes documents and queries, and indexes documents in batches::

        late = LateInteraction("hf:lightonai/GTE-ModernColBERT-v1")
        index = late.index("late.mathamr", dataset.get_corpus_iter())
        late.retriever(index, num_results=100)(topics)
        bm25 >> late.query_encoder() >> index.scorer()

    Args:
        name_or_path: the folder of a checkpoint, or ``hf:organization/name`` (extra ``hub``).
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        precision: ``auto`` is bfloat16 if the processor multiplies in it.
        verbose: show progress.

    Raises:
        ModelFileError: its form is unknown, such as a bare encoder.
        ModelNotFoundError: there is no such folder, or the hub cannot be reached.
        UnsafeModelError: loading it could run code of its author.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        device: str | None = None,
        precision: Precision = "auto",
        verbose: bool = False,
    ) -> None:
        self.model = ColBERT.from_pretrained(name_or_path)
        self._options: dict[str, Any] = {"device": device, "precision": precision, "verbose": verbose}

    def doc_encoder(self) -> DocEncoder:
        """Return the transformer that adds ``doc_embs`` to documents with a ``text``."""
        return self.model.doc_encoder(**self._options)

    def query_encoder(self) -> QueryEncoder:
        """Return the transformer that adds ``query_embs`` to queries."""
        return self.model.query_encoder(**self._options)

    def text_scorer(self) -> TextScorer:
        """Return the transformer that scores a ranking with texts, without an index."""
        return self.model.text_scorer(**self._options)

    def index(
        self, path: str | Path, documents: pd.DataFrame | Iterable[Mapping[str, Any]], **options: Any
    ) -> MathAMRIndex:
        """Encode documents and index their vectors.

        Args:
            path: the folder of the index.
            documents: dictionaries or a frame with ``docno`` and ``text``.
            options: of :meth:`MathAMRIndex.indexer`, such as ``mode``, ``dtype`` and ``keep``.

        Returns:
            The index.
        """
        index = MathAMRIndex(path)
        (self.doc_encoder() >> index.indexer(**options)).index(documents)
        return index

    def retriever(self, index: Any, **options: Any) -> Pipeline:
        """Return the pipeline that encodes queries and searches an index, in a folder, in parts or in Qdrant.

        Args:
            index: an index of this model's vectors.
            options: of ``index.retriever()``, such as ``num_results`` and ``where``.
        """
        pipeline: Pipeline = self.query_encoder() >> index.retriever(**options)
        return pipeline

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

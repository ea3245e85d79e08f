"""What all indexes share: the artifact, merging, and the methods of an index of documents."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import HELP_URL
from pyterrier_mathamr.store import OtherArtifactError, StoredArtifact

from .building.builder import Build
from .building.entries import DType, Entry, Layout, Post, stored_formula_ids
from .building.resume import Corpus
from .errors import DtypeMismatchError, check_model
from .explain import explain
from .snapshot import Snapshot
from .transformers import MaxSimScorer, VectorLoader, Vectors, search_of

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph

Index = TypeVar("Index", bound="IndexFace")


class IndexFace(pt.Indexer):  # type: ignore[misc]
    """An index with :meth:`indexer` and :meth:`snapshot`, which subclasses give; making the object reads nothing."""

    transform_iter = pt.Transformer.transform_iter  # stated, or pt.Indexer plants a bound method that cannot be pickled

    def __len__(self) -> int:
        return len(self.snapshot())

    def __bool__(self) -> bool:
        return True  # an index is there even when it is empty or not yet built: it has no length then

    def indexer(self) -> Any:
        """The transformer that fills this index; subclasses say with which options."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """The index as it is now; subclasses say what is wrong where there is none."""
        raise NotImplementedError

    def index(self: Index, iter: Iterable[Mapping[str, Any]], **kwargs: object) -> Index:
        """The same as ``indexer().index(iter)``."""
        self.indexer().index(iter)
        return self

    def index_inputs(self) -> list[list[str]]:
        """The fields that each record of :meth:`index` must have."""
        fields: list[list[str]] = self.indexer().index_inputs()
        return fields

    @property
    def model(self) -> str | None:
        """The identity of the model that made the vectors, where it was given."""
        found: str | None = self.snapshot().meta.model
        return found

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """What ``pt.schematic`` draws, without asking the network."""
        return {"label": type(self).__name__, "help_url": HELP_URL}


class IndexArtifact(StoredArtifact, IndexFace):
    """An index in a folder. Making the object reads nothing; the folder need not exist yet.

    Args:
        path: the folder.
    """

    LAYOUT: ClassVar[Layout]

    def open_snapshot(self) -> Snapshot:
        """Open the index."""
        return Snapshot(self.path, self.KIND)

    def snapshot(self) -> Snapshot:
        """The index as it is now; see :meth:`StoredArtifact.snapshot`."""
        found: Snapshot = super().snapshot()  # type: ignore[assignment]
        return found

    def entries(self, *, verbose: bool = False) -> Iterator[Entry]:
        """Every entry of the index, in the order in which they came, read a little at a time."""
        snapshot = self.snapshot()
        return iter(progress(snapshot.entries(), "reading", "doc", verbose=verbose, total=len(snapshot)))

    def _merge(self, indexes: Iterable[IndexArtifact], dtype: DType | None) -> None:
        """Build this index from others; see the public ``merge``."""
        sources = list(indexes)
        model = merged_model(str(self.path), sources)
        for source in sources:
            if type(source) is not type(self):
                raise OtherArtifactError(source.path, f"only a {type(self).__name__} can be merged here")
        kinds: dict[DType, None] = dict.fromkeys(source.snapshot().meta.dtype for source in sources)
        if dtype is None and len(kinds) > 1:
            raise DtypeMismatchError(self.path, " and ".join(sorted(kinds)), None)
        entries = chain.from_iterable(source.entries() for source in sources)
        posts = (Post(entry.docno, [entry]) for entry in entries)
        with self.job("create", {}, resume=False) as job:
            Build(job, self.LAYOUT, Corpus(self.path, ()), model, dtype or next(iter(kinds), None)).run(posts)


def merged_model(path: str, indexes: Iterable[IndexFace]) -> str | None:
    """The model of several indexes that become one.

    Raises:
        ModelMismatchError: they have two.
    """
    models = [index.model for index in indexes if index.model is not None]
    for other in models[1:]:
        check_model(path, models[0], other)
    return next(iter(models), None)


def example_folder() -> Path:
    """A temporary folder that is removed when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="mathamr-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class DocumentFace(IndexFace):
    """Scorer, loader of vectors, explanation, and what an index does that is itself a stage of a pipeline."""

    def scorer(
        self,
        *,
        num_results: int | None = None,
        vectors: Vectors = "all",
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> MaxSimScorer:
        """Scores a ranking by exact MaxSim: ``query_embs`` and ``docno`` to ``score``, ``rank``.

        Args:
            num_results: documents kept for each query; ``None`` keeps all.
            vectors: ``all`` for MaxSim, ``document`` for the product of the document vectors alone.
            exact: ``True`` or ``None``; a scorer is exact.
            search: ``exact`` or ``None``.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: accepted as everywhere; a scorer goes query by query.
            device: accepted as everywhere; the processor computes this.
        """
        return MaxSimScorer(
            self,
            num_results=num_results,
            vectors=vectors,
            search=search_of(exact, search),
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def vec_loader(self, *, verbose: bool = False) -> VectorLoader:
        """Adds ``doc_embs``, float32 ``[n, d]``, to documents or rankings by ``docno``."""
        return VectorLoader(self, verbose=verbose)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Queries are retrieved for, rankings scored, documents given their vectors; by the columns of ``inp``."""
        with pt.validate.any(inp, context=self) as mode:
            mode.query_frame(extra_columns=["query_embs"], mode="retriever")
            mode.result_frame(extra_columns=["query_embs"], mode="scorer")
            mode.document_frame(mode="vec_loader")
        result: pd.DataFrame = getattr(self, mode.mode)()(inp)
        return result

    def explain(
        self,
        query_embs: Any,
        docno: str,
        *,
        query_formula_ids: Sequence[str] | None = None,
        query_weights: Any = None,
        query_document_weight: float | None = None,
        query_graph: MathAMRGraph | None = None,
        document_graph: MathAMRGraph | None = None,
        query_texts: Sequence[str] | None = None,
        document_texts: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Say which virtual node of a document each node of a query met, and what that gave to the score.

        Args:
            query_embs: float32 ``[q, d]``.
            docno: the document.
            query_formula_ids: the ids of the query's formulas, which are its first rows.
            query_weights: a number for each row of the query; 1 where not given.
            query_document_weight: what the product of the two document vectors counts beside MaxSim; nothing where
                not given.
            query_graph: the graph that the query's vectors were made from: it says what each row is and keeps the LaTeX
                of formulas and the text of sentences (column ``query_graph`` of an encoded query).
            document_graph: the same of the document (column ``graph``, as a ``GraphStore`` loads it).
            query_texts: what each row of the query stands for, instead of what the graph says.
            document_texts: the same for the rows of the document.

        Returns:
            One row for each row of the query, and one more where the documents' product counts, the greatest
            contribution first: ``term`` (``MaxSim`` or ``document``), ``query_row``, ``query_kind`` (formula,
            sentence or document), ``query_formula_id``, ``query_text`` (LaTeX, a sentence or the post; empty without
            graph and texts), the same four of the ``document``, ``similarity``, ``weight`` and ``contribution`` (they
            sum to the score).

        Raises:
            UnknownIdError: the index does not hold the document.
            QueryError: the query's vectors or weights do not fit, or a graph is not that of the vectors.
            MissingTextsError: a graph keeps no texts, and none are given.
        """
        snapshot = self.snapshot()
        ids = snapshot.texts("formula_ids", snapshot.find([docno]))[0]
        return explain(
            snapshot,
            query_embs,
            docno,
            query_formula_ids=query_formula_ids,
            document_formula_ids=stored_formula_ids(ids, snapshot.path),
            query_weights=query_weights,
            query_document_weight=query_document_weight,
            query_graph=query_graph,
            document_graph=document_graph,
            query_texts=query_texts,
            document_texts=document_texts,
        )

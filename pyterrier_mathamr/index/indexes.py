"""The indexes of vectors: how they are filled, read, searched and merged, wherever they are.

::

    VectorIndex ── DocumentVectorIndex ── MathAMRIndex, ShardedIndex, QdrantIndex
               └── FormulaVectorIndex ─── MathAMRFormulaIndex, QdrantFormulaIndex

The two in folders are here; the others have separate folders.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import counted, progress
from pyterrier_mathamr._common.ids import as_id
from pyterrier_mathamr._common.parameters import COUNT, ConstructorSignature, Rule, method
from pyterrier_mathamr._common.transformers import HELP_URL, Composing, Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.store import OtherArtifactError, StoredArtifact

from .adaptive import GAR, LADR, build_corpus_graph
from .errors import check_model
from .indexing import Build, Corpus, DocumentIndexer, FormulaIndexer, IndexPost
from .parts import DOCUMENTS, DTYPES, FORMULAS, DType, Entry, Layout, described_rows, stored_formula_ids
from .search.folder import FolderSnapshot
from .subsets import kept_columns
from .transformers import (
    ColBERTRetriever,
    DocVNRetriever,
    FormulaVectorRetriever,
    IndexTransformer,
    MaxSimScorer,
    SingleVectorRetriever,
    TextLoader,
    VectorLoader,
)
from .vector_prf import VectorPRF

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import GraphBuilder
    from pyterrier_mathamr.model import MathAMR


class VectorIndex(Composing, Leaf, pt.Indexer):  # type: ignore[misc]
    """An index of vectors. Subclasses define where it is, ``indexer``, ``retriever`` and :meth:`snapshot`."""

    LAYOUT: ClassVar[Layout]
    APPROXIMATE: ClassVar[bool] = True
    """Whether there is approximate search."""

    indexer: Any  # methods whose options differ
    retriever: Any

    __signature__ = ConstructorSignature()
    transform_iter = Transformer.transform_iter

    def __len__(self) -> int:
        return len(self.snapshot())

    def __bool__(self) -> bool:
        return True  # not by its length, which an index that is not built does not have

    def __contains__(self, docno: object) -> bool:
        name = as_id(docno)
        return name is not None and bool(self.snapshot().look_up([name])[0] >= 0)

    def snapshot(self) -> Any:
        """Return the current state of the index."""
        raise NotImplementedError

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> Self:
        """Index documents, as dictionaries or a DataFrame, with the defaults of :meth:`indexer`."""
        self.indexer().index(iter)
        return self

    def index_inputs(self) -> list[list[str]]:
        """Return the fields that each record of :meth:`index` must have."""
        fields: list[list[str]] = self.indexer().index_inputs()
        return fields

    text_loader = method(TextLoader)

    @property
    def model(self) -> str | None:
        """The identity of the model of the vectors, where known."""
        model: str | None = self.snapshot().meta.model
        return model

    def entries(self, *, verbose: bool = False) -> Iterator[Entry]:
        """Read every entry of the index, a few at a time; ``verbose`` shows a progress bar."""
        snapshot = self.snapshot()
        total = len(snapshot) if verbose else None
        return iter(progress(snapshot.entries(), "reading", self.LAYOUT, verbose=verbose, total=total))

    def search(
        self,
        query: str,
        qid: str = "1",
        sort: bool = True,
        *,
        model: MathAMR | str | Path | None = None,
        graphs: GraphBuilder | None = None,
        num_results: int = 1000,
    ) -> pd.DataFrame:
        r"""Search for a typed query: ``index.search(r"Why does $\int_0^\infty e^{-x^2}\,dx$ converge?")``.

        Args:
            query: the text, formulas between dollars; of an index of formulas, one formula in LaTeX.
            qid: its id in the result.
            sort: no effect: the result is ordered by rank; PyTerrier's method has the argument.
            model: the model of the index, its name or its folder; by default the bundled model that the index names.
            graphs: how the query is read; by default as ``GraphBuilder()`` does, but only what the model reads.
            num_results: the most results.
        """
        from pyterrier_mathamr.graph import GraphBuilder

        retriever = self.retriever(num_results=num_results)
        encoder = _model_of(self, model)
        graphs = graphs or GraphBuilder(reads=encoder.reads)
        queries = "formula" if self.LAYOUT == "formulas" else "post"
        builder = pt.inspect.transformer_apply_attributes(graphs, side="auto", queries=queries)
        encode = builder >> encoder.query_encoder()
        pipeline: pt.Transformer = encode >> retriever
        ranking = pipeline(pd.DataFrame({"qid": [qid], "query": [query]}))
        result: pd.DataFrame = ranking[["qid", "query", *retriever.gives, "score", "rank"]]
        return result

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the score of a document: ``retriever().explain(query, docno)``.

        Args:
            query: a row with the columns that the retriever needs, or a frame of one query; with graphs, rows are
                named.
            docno: the document (or formula); by default the one in the row.
        """
        explanation: Explanation = self.retriever().explain(query, docno)
        return explanation

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """Return what ``pt.schematic`` draws, whatever the ``input_columns``."""
        return {"label": type(self).__name__, "help_url": HELP_URL}


class DocumentVectorIndex(VectorIndex):
    """An index of documents with all their vectors."""

    LAYOUT = "documents"

    single_vector = method(SingleVectorRetriever)
    doc_vn = method(DocVNRetriever)
    colbert = retriever = method(ColBERTRetriever)
    scorer = method(MaxSimScorer)
    vec_loader = method(VectorLoader)
    corpus_graph = method(build_corpus_graph)
    gar = method(GAR)
    ladr = method(LADR)
    prf = method(VectorPRF)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for queries, score rankings, load the vectors of documents; by the columns of ``inp``."""
        return _ByColumns(self).transform(inp)

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the same transformer with at most ``k`` results for each query."""
        return _ByColumns(self).fuse_rank_cutoff(k)

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the documents: ``docno``, ``doc_embs``, kept columns, and ``formula_ids`` and ``doc_model`` if known.

        ``verbose`` shows a progress bar.
        """
        model = self.model
        for entry in self.entries(verbose=verbose):
            docno, ids = entry.texts
            known = {"formula_ids": stored_formula_ids(ids, self.path), "doc_model": model}
            known = {name: value for name, value in known.items() if value is not None}
            yield {"docno": docno, "doc_embs": entry.rows, **known, **kept_columns(entry.kept)}


class _ByColumns(IndexTransformer):
    """An index of documents as a stage: retriever, scorer or vector loader, by the columns of a frame."""

    checks: ClassVar[Mapping[str, Rule]] = {"num_results": COUNT.or_none()}

    def __init__(self, index: Any, num_results: int | None = None) -> None:
        super().__init__(index)
        self.num_results = num_results

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Pass a frame on to the transformer that its columns call for."""
        with pt.validate.any(inp, context=self) as mode:
            mode.query_frame(extra_columns=["query_embs"], mode="retriever")
            mode.result_frame(extra_columns=["query_embs"], mode="scorer")
            mode.document_frame(mode="vec_loader")
        cut = self.num_results is not None and mode.mode != "vec_loader"
        options = {"num_results": self.num_results} if cut else {}
        result: pd.DataFrame = getattr(self.index, mode.mode)(**options)(inp)
        return result


class FormulaVectorIndex(VectorIndex):
    """An index of formulas, each with one vector; called directly, it accepts queries as :meth:`retriever`."""

    LAYOUT = "formulas"

    retriever = method(FormulaVectorRetriever)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The same as ``retriever()(inp)``."""
        result: pd.DataFrame = self.retriever()(inp)
        return result

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """The same as ``retriever().fuse_rank_cutoff(k)``."""
        fused: pt.Transformer | None = self.retriever().fuse_rank_cutoff(k)
        return fused

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the formulas: ``docno`` (its id), ``post_id``, ``visual_id``, ``formula_vec`` and kept columns.

        ``verbose`` shows a progress bar.
        """
        for entry in self.entries(verbose=verbose):
            docno, post_id, visual_id = entry.texts
            known = {"post_id": post_id, "visual_id": visual_id, "formula_vec": entry.rows[0]}
            yield {"docno": docno, **known, **kept_columns(entry.kept)}


def merged_model(path: str, indexes: Iterable[VectorIndex]) -> str | None:
    models = [index.model for index in indexes if index.model is not None]
    for other in models[1:]:
        check_model(path, models[0], other)
    return next(iter(models), None)


def example_folder() -> Path:
    """Create a temporary folder that is removed when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="mathamr-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def example_documents() -> list[dict[str, Any]]:
    """Return three documents of random unit vectors, the first two with formulas."""
    random = np.random.default_rng(42)
    documents = []
    for i, (rows, ids) in enumerate(((3, ["f1", "f2"]), (1, ["f3"]), (5, [])), 1):
        vectors = random.standard_normal((rows, 4)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        documents.append({"docno": f"d{i}", "doc_embs": vectors, "formula_ids": ids})
    return documents


class IndexArtifact(StoredArtifact, VectorIndex):
    """An index in a folder."""

    @classmethod
    def example(cls) -> Self:
        """Return a small index of random vectors in a temporary folder that is removed when Python ends."""
        return cls(example_folder() / "example.mathamr").index(example_documents())

    def open_snapshot(self) -> FolderSnapshot:
        return FolderSnapshot(self.path, self.KIND)

    if TYPE_CHECKING:

        def snapshot(self) -> FolderSnapshot: ...

    def more_counts(self) -> list[str]:
        """List the number of vectors, deleted ones included, with their width and dtype, and the model."""
        snapshot = self.snapshot()
        vectors = counted(sum(len(part["rows"]) for part in snapshot.parts), "vector")
        made_by = [f"by {snapshot.meta.model}"] if snapshot.meta.model else []
        return [f"{vectors} of {described_rows(snapshot.meta.dimensions, snapshot.meta.dtype)}", *made_by]

    @classmethod
    def merge(cls, path: str | Path, *indexes: Self, dtype: DType | None = None) -> Self:
        """Build a new index of all entries of some others, in their order; of a formula the first is kept.

        Args:
            path: the folder of the new index, which must not exist.
            indexes: the indexes to read, of the same class and model.
            dtype: how rows are stored; by default as in the indexes, which must then agree.
        """
        model = merged_model(str(path), indexes)
        for source in indexes:
            if type(source) is not cls:
                raise OtherArtifactError(source.path, f"only a {cls.__name__} can be merged here")
        dtypes: dict[DType, None] = dict.fromkeys(source.snapshot().meta.dtype for source in indexes)
        if dtype is None and len(dtypes) > 1:
            names = " or ".join(map(repr, DTYPES))
            allowed = f"{names}: the indexes store rows as {' and '.join(sorted(dtypes))}"
            raise ConfigError("dtype", dtype, allowed)
        keep = dict.fromkeys(name for source in indexes for name in source.snapshot().meta.keep)
        entries = chain.from_iterable(source.entries() for source in indexes)
        posts = (IndexPost(entry.docno, [entry]) for entry in entries)
        index = cls(path)
        with index.job("create", {}, resume=False) as job:
            of_all = Corpus(index.path, ()), model, dtype or next(iter(dtypes), None), tuple(keep)
            Build(job, cls.LAYOUT, *of_all).run(posts)
        return index


class MathAMRIndex(DocumentVectorIndex, IndexArtifact):
    """The vectors of all virtual nodes of each document (MathAMR+, section 3.5), memory-mapped in a folder.

    Called directly, it accepts queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`::

        index = MathAMRIndex("arqmath.mathamr")
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Args:
        path: the folder; constructing the object reads nothing, and it need not exist yet.
    """

    KIND = DOCUMENTS
    HOLDS = "document"
    _USAGE = (
        "encode = mathamr.GraphBuilder() >> mathamr.MathAMR.from_pretrained('{model}').query_encoder()\n"
        "pipeline = encode >> found.retriever()"
    )

    indexer = method(DocumentIndexer)


class MathAMRFormulaIndex(FormulaVectorIndex, IndexArtifact):
    r"""One vector for each formula virtual node (MathAMR+, section 3.5.1), memory-mapped in a folder.

    ``docno`` is the formula's id; ``post_id`` and ``visual_id`` come with it. Called directly, it accepts queries as
    :meth:`retriever`::

        formulas = MathAMRFormulaIndex("formulas.mathamr")
        encode = graphs >> model.doc_encoder()
        (encode >> formulas.indexer(visual_ids=formula_store)).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")

    Args:
        path: the folder; constructing the object reads nothing, and it need not exist yet.
    """

    KIND = FORMULAS
    HOLDS = "formula"

    indexer = method(FormulaIndexer)


def _model_of(index: Any, model: MathAMR | str | Path | None) -> MathAMR:
    """Return the given model, or open the bundled one that the index names."""
    from pyterrier_mathamr.model import MathAMR, ModelNotFoundError

    if isinstance(model, MathAMR):
        return model
    if model is not None:
        return _opened(str(model))
    name = index.model
    try:
        return _opened(str(name).partition("@")[0])
    except ModelNotFoundError as error:
        reason = f"{name!r}, which is not bundled" if name else "a model that it does not name"
        allowed = f"the model of the index, as an object, a name or a folder: {index.path} was made by {reason}"
        raise ConfigError("model", None, allowed) from error


@lru_cache(maxsize=1)
def _opened(name: str) -> MathAMR:
    from pyterrier_mathamr.model import MathAMR

    return MathAMR.from_pretrained(name)

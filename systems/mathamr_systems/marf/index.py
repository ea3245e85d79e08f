"""`MaRFIndex`: the views of documents in a folder, and how it is filled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems.errors import SystemsError
from mathamr_systems.language_models import EncoderPrecision
from pyterrier_mathamr.explain import Explanation, QueryRow, read_asked
from pyterrier_mathamr.extending import (
    DOCUMENTS,
    NO_HITS,
    QUERY_ROWS,
    ArtifactIndexer,
    DType,
    Entry,
    ExactScores,
    Field,
    FolderSnapshot,
    Hits,
    How,
    IndexArtifact,
    IndexPost,
    IndexRetriever,
    IndexTransformer,
    MaxSimScorer,
    Numbers,
    QueryBatch,
    Rule,
    Scores,
    as_id,
    best_of,
    blocks,
    check_model,
    check_rows,
    counted,
    empty_output,
    exact_scores,
    first_values,
    float32_error,
    method,
    need_values,
    ordered_by_score,
    progress,
    query_batch,
    read_entries,
    scan,
    stored_formula_ids,
    without_query_rows,
)
from pyterrier_mathamr.index import EmbeddingError
from pyterrier_mathamr.store import Mode, UnknownIdError, ranges

from .model import FORMULAS, MaRF, view_parts, view_scores
from .network import Symbols, TokenView

MOST_ROWS = 15_000_000
"""Rows that a retriever scans for each query, such as 20,000 documents with six views of 128 tokens have."""


class _Explained:
    """A system that explains the contribution of each view."""

    index: Any
    label: ClassVar[str]

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each view of a document to its score."""
        asked = read_asked(query, docno, self.label, ["query_embs"])
        snapshot = self.index.snapshot()
        numbers = snapshot.find([asked.docno])
        batch = query_batch(asked.frame(), snapshot)
        readings = asked.query_reading(), asked.document_reading()
        if not len(batch):  # a blank query
            return Explanation.of(asked.docno, [], *readings)
        views, _ = snapshot.views(numbers)
        scores = _exact(snapshot, batch, views)
        return Explanation.of(asked.docno, view_parts(self.label, scores, snapshot.formulas(views)), *readings)


class MaRFScorer(_Explained, MaxSimScorer):
    """Scores each document of a ranking by the mean of exact MaxSim over its views, all of them.

    ``index.scorer()`` constructs one.

    Example::

        bm25 >> marf.query_encoder() >> marf_index.scorer()

    Args:
        index: the index.
        num_results: the most documents kept for a query; ``None`` keeps all.
        vectors: no effect: all views are compared.
        exact: always ``True``: a scorer has no approximation.
        normalise: divide scores by the query's number of rows.
        subset: only these documents: docnos, or a frame of ``qid`` and ``docno`` with those of each query.
        where: no effect but an error: a MaRF index keeps no columns.
        verbose: show a progress bar over batches of queries.
        batch_size: queries scored together; the results are the same.
        device: no effect: it computes on the CPU.
    """

    label = "MaRF index scorer"


class MaRFRetriever(_Explained, IndexRetriever):
    """Ranks all documents by the mean of MaxSim over their views, exactly.

    Every view is scanned for every query: for at most 15 million rows, such as 20,000 documents with six views of 128
    tokens; for more, put a first stage before ``index.scorer()``. ``index.retriever()`` constructs one.

    Example::

        marf.query_encoder() >> marf_index.retriever(num_results=100)

    Args:
        index: the index.
        num_results: the most documents returned for a query.
        exact: always ``True``: every view is scanned.
        hnsw_ef: no effect: there is no approximate search.
        subset: only these documents: docnos, or a frame of ``qid`` and ``docno`` with those of each query.
        where: no effect but an error: a MaRF index keeps no columns.
        verbose: show a progress bar over batches of queries.
        batch_size: queries searched together; the results are the same.
        device: no effect: it computes on the CPU.
    """

    label = "MaRF retriever"
    selected_by = field = "all"
    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexRetriever.checks,
        "exact": Rule("True: every view is scanned", lambda value: value is True),
    }


_FUSED = 64  # documents whose views are in memory at once


class MaRFPartsScorer(IndexTransformer):
    """Scores each document of a ranking by its views, which it computes from the parts in the index.

    ``index.parts_scorer(marf)`` constructs one for an index built with ``marf.doc_encoder(store="parts")``. Such an
    index stores a document's token vectors once, not once for each of up to six views, but fusing the candidates needs
    time: put the scorer behind a first stage that keeps few documents. Views are computed once for all queries of a
    frame, and the scores equal the scores of ``marf.text_scorer()``.

    Example::

        (marf.doc_encoder(store="parts") >> marf_index.indexer()).index(dataset.get_corpus_iter())
        pipeline = bm25 % 100 >> marf.query_encoder() >> marf_index.parts_scorer(marf)

    Args:
        index: the index.
        model: the model of its parts.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        precision: ``auto`` is bfloat16 if the processor multiplies in it.
        verbose: show a progress bar.
    """

    label = "MaRF parts scorer"

    def __init__(
        self,
        index: Any,
        model: MaRF,
        *,
        device: str | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(index)
        self.model, self.device, self.precision, self.verbose = model, device, precision, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking with ``query_embs``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; the error names them.
            ModelMismatchError: the index has no parts of this model, or the queries are of another.
            MissingValueError: queries without ``query_embs``; the error names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_embs"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self._snapshot(inp)
        asked = first_values(inp, "query_embs")
        need_values(asked, "query_embs", inp["qid"])
        queries = {qid: {"query_embs": rows} for qid, rows in asked.items() if len(rows)}
        if "query_weights" in inp.columns:
            weights = first_values(inp, "query_weights")
            for qid, query in queries.items():
                query["query_weights"] = weights[qid]
        places, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        numbers = snapshot.find([str(docno) for docno in docnos])
        rows_of = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])
        qids, scores = inp["qid"].tolist(), np.zeros(len(inp))
        starts = range(0, len(numbers), _FUSED)
        for start in progress(starts, "fusing formulas", "blocks", verbose=self.verbose):
            for place, views in enumerate(self._views(snapshot, numbers[start : start + _FUSED])[0], start):
                for row in rows_of[place].tolist():
                    if qids[row] in queries:
                        scores[row] = np.float32(view_scores(queries[qids[row]], views).mean())
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each view of a document to its score."""
        asked = read_asked(query, docno, self.label, ["query_embs"])
        snapshot = self._snapshot(asked.frame())
        readings = asked.query_reading(), asked.document_reading()
        if not len(asked.row["query_embs"]):
            return Explanation.of(asked.docno, [], *readings)
        (views,), (formulas,) = self._views(snapshot, snapshot.find([asked.docno]))
        texts = [" ".join(one) for one in formulas] or [""]
        return Explanation.of(asked.docno, view_parts(self.label, view_scores(asked.row, views), texts), *readings)

    def _snapshot(self, frame: pd.DataFrame) -> MaRFSnapshot:
        snapshot: MaRFSnapshot = self.index.snapshot()
        check_model(snapshot.path, snapshot.meta.model, self.model.parts_name)
        for name in frame["query_model"].unique() if "query_model" in frame.columns else ():
            check_model(snapshot.path, self.model.name, str(name))
        return snapshot

    def _views(self, snapshot: MaRFSnapshot, numbers: Numbers) -> tuple[list[list[TokenView]], list[list[Symbols]]]:
        """Compute the views of some documents, and name their formulas."""
        rows, offsets = snapshot.rows(numbers)
        contexts = [rows[start:end] for start, end in pairwise(offsets.tolist())]
        formulas = [
            [tuple(one.split(" ")) for one in text.split(FORMULAS) if one] for text in snapshot.formulas(numbers)
        ]
        made = self.model.fuse(contexts, formulas, device=self.device, precision=self.precision)
        return made, formulas


def document_scores(snapshot: MaRFSnapshot, query: QueryBatch, numbers: Numbers) -> ExactScores:
    """Score documents by the mean over all of their views, rounded to float32 precision: float64 ``[m]``."""
    if not len(numbers):
        return np.empty(0)
    views, offsets = snapshot.views(numbers)
    means = np.add.reduceat(_exact(snapshot, query, views), offsets[:-1]) / np.diff(offsets)
    return means.astype(np.float32).astype(np.float64)


def _exact(snapshot: MaRFSnapshot, query: QueryBatch, views: Numbers) -> ExactScores:
    """Score views exactly, read in the order of the file."""
    order = np.argsort(views)
    scores = np.empty(len(views))
    scores[order] = exact_scores(query, map(snapshot.stored, snapshot.pieces(views[order])))
    return scores


VIEWS = replace(DOCUMENTS, type="marf_index", rebuild="MaRFIndex('{path}').indexer('overwrite').index(…)")
"""The kind of a MaRF index: an index of documents in which each entry is a view ``docno#k``."""


class MaRFIndexer(ArtifactIndexer):
    """Indexes ``{docno, doc_views, (doc_formulas)}``: each document with all its views.

    ``index.indexer()`` constructs one.

    Example::

        (marf.doc_encoder() >> marf_index.indexer()).index(dataset.get_corpus_iter())

    Args:
        index: the index.
        mode: ``create`` refuses an index that exists; ``overwrite`` replaces it and ``append`` adds to it, both in one
            step at the end.
        model: the identity of the model of the views, by default ``doc_model`` of the first document; others are
            refused.
        dtype: how rows are stored: ``float32``, ``float16``, or ``int8``, which is smaller and rounds scores a little.
            ``None`` is ``int8`` for rows of 256 numbers and more, else ``float32``.
        resume: keep finished parts if the build is interrupted, and continue one that was, with the same documents and
            options; ``indexer.pending(documents)`` leaves out finished documents before they are encoded.
        sources: what else the views depend on, such as checksums, as plain JSON values; with ``resume``, an interrupted
            build with others is refused.
        verbose: show a progress bar.
        total: the number of documents, for the progress bar.
    """

    def __init__(
        self,
        index: IndexArtifact,
        mode: Mode = "create",
        *,
        model: str | None = None,
        dtype: DType | None = "float16",
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        options = {"dtype": dtype, "resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, model=model, **options)  # type: ignore[arg-type]

    def index_inputs(self) -> list[list[str]]:
        """Return ``docno`` and ``doc_views``; ``doc_formulas``, the formula of each view, is optional."""
        return [["docno", "doc_views"]]

    def records_to_posts(self, stream: Iterable[Mapping[str, Any]]) -> Iterator[IndexPost]:
        """Convert each document to one entry for each view."""
        for record in stream:
            docno, views = record["docno"], record.get("doc_views")
            if not isinstance(views, (list, tuple, np.ndarray)) or not len(views):
                raise EmbeddingError(docno, "doc_views is not a list of at least one view")
            formulas = record.get("doc_formulas")
            named = list(map(str, formulas)) if isinstance(formulas, (list, tuple)) else [""] * len(views)
            if len(named) != len(views):
                raise EmbeddingError(docno, f"it has {len(views)} views but {len(named)} doc_formulas")
            yield IndexPost(
                docno,
                [
                    Entry((f"{docno}#{k}", json.dumps([formula], ensure_ascii=False)), check_rows(docno, rows))
                    for k, (rows, formula) in enumerate(zip(views, named, strict=True))
                ],
            )


class MaRFSnapshot(FolderSnapshot):
    """A MaRF index as it was when it was opened. The number of a document is the number of its first view."""

    def find(self, docnos: Iterable[str]) -> Numbers:
        """Return the number of each document; ``UnknownIdError`` names unknown ones."""
        names = list(docnos)
        numbers = self.look_up([f"{docno}#0" for docno in names])
        if (numbers < 0).any():
            raise UnknownIdError(self.path, [names[i] for i in np.flatnonzero(numbers < 0).tolist()])
        return numbers

    @cached_property
    def table(self) -> tuple[Numbers, Numbers]:
        """The views of all documents, a document's together and in order: int64 ``[v]``, and offsets ``[m + 1]``."""
        numbers = self.live
        split = [name.rpartition("#") for name in self.view_names(numbers)]
        order = sorted(range(len(split)), key=lambda i: (split[i][0], int(split[i][2])))
        starts = [place for place, i in enumerate(order) if split[i][2] == "0"]
        return numbers[order], np.array([*starts, len(order)], dtype=np.int64)

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text of each document, such as its ``docno``."""
        names = super().texts(name, numbers)
        return [view.rpartition("#")[0] for view in names] if name == "docno" else names

    def view_names(self, views: Numbers) -> list[str]:
        """Return the name ``docno#k`` of each view."""
        return super().texts("docno", views)

    def views(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the views of some documents, end to end, and offsets, int64 ``[m + 1]``."""
        views, offsets = self.table
        place = np.empty(int(self.bases[-1]), dtype=np.int64)
        place[views[offsets[:-1]]] = np.arange(len(offsets) - 1)
        places = place[numbers]
        lengths = offsets[places + 1] - offsets[places]
        return views[ranges(offsets[places], lengths)], np.cumsum([0, *lengths.tolist()], dtype=np.int64)

    def entries(self) -> Iterator[Entry]:
        """Yield every view in the order of indexing, with its own name."""
        views: Any = super()
        return read_entries(views, "documents", self.in_order())

    def formulas(self, views: Numbers) -> list[str]:
        """Return the formula of each view as math tokens, or empty."""
        stored = (stored_formula_ids(text, self.path) for text in self.texts("formula_ids", views))
        return [ids[0] if ids else "" for ids in stored]

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents: candidates by a scan of all views whose error is known, then exact scores."""
        views, offsets = self.table
        if (rows := sum(len(part["rows"]) for part in self.parts)) > MOST_ROWS:
            raise SystemsError(
                f"{self.path}: it has {rows:,} rows, and at most {MOST_ROWS:,} are scanned for a query. Put a first "
                "stage before the scorer: bm25 >> marf.query_encoder() >> index.scorer()."
            )
        documents = len(offsets) - 1
        if not documents:
            return [NO_HITS] * len(queries)
        first, selected = views[offsets[:-1]], []
        for start, end in blocks(queries.offsets, QUERY_ROWS):
            group = queries.part(start, end)
            scanned: Scores = np.concatenate([scan(*shard.field("all"), group) for shard in self.shards], axis=1)
            means = np.add.reduceat(scanned[:, views].astype(np.float64), offsets[:-1], axis=1) / np.diff(offsets)
            errors = float32_error(group, self.max_norm, self.meta.dimensions)
            for query, scores, error in zip(group.of_size(1), means, errors, strict=True):
                kept = np.arange(documents) if query.among is None else np.flatnonzero(np.isin(first, query.among[0]))
                if len(kept) > k:
                    floor = np.partition(scores[kept], -k)[-k]
                    kept = kept[scores[kept] >= floor - 2 * error - 1e-6 * abs(floor)]
                selected.append(best_of(self, first[kept], document_scores(self, query, first[kept]), k))
        return selected

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field = "all") -> list[ExactScores]:
        """Score some documents of each query by the mean over all of their views: float64 for each."""
        return [
            document_scores(self, query, documents)
            for query, documents in zip(queries.of_size(1), numbers, strict=True)
        ]


class MaRFIndex(IndexArtifact):
    """The views of all documents, float16, searched by the mean of MaxSim over each document's views.

    An index like :class:`~pyterrier_mathamr.MathAMRIndex` whose entries are views ``docno#k``, with a table of the
    views of each document. All views of a candidate are scored exactly, not only the views that were found. Called
    directly it handles queries like :meth:`retriever` and rankings like :meth:`scorer`.

    Args:
        path: the folder; constructing the object reads nothing, and it need not exist yet.

    Example::

        index = MaRFIndex("answers.marf")
        (marf.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
        pipeline = marf.query_encoder() >> index.retriever(num_results=100)
    """

    KIND = VIEWS
    HOLDS = "document"
    LAYOUT = "documents"

    retriever = method(MaRFRetriever)
    scorer = method(MaRFScorer)
    parts_scorer = method(MaRFPartsScorer)
    indexer = method(MaRFIndexer)

    def __len__(self) -> int:
        return len(self.snapshot().table[1]) - 1

    def __contains__(self, docno: object) -> bool:
        name = as_id(docno)
        return name is not None and super().__contains__(f"{name}#0")

    def open_snapshot(self) -> MaRFSnapshot:
        return MaRFSnapshot(self.path, self.KIND)

    def snapshot(self) -> MaRFSnapshot:
        """Return the current state of the index."""
        snapshot: MaRFSnapshot = super().snapshot()  # type: ignore[assignment]
        return snapshot

    def more_counts(self) -> list[str]:
        """List the number of views, of their vectors with their width, and the model."""
        return [counted(len(self.snapshot().table[0]), "view"), *super().more_counts()]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for queries, score rankings; by the columns of ``inp``."""
        system = self.scorer() if "docno" in inp.columns else self.retriever()
        ranking: pd.DataFrame = system(inp)
        return ranking

    def search(  # type: ignore[override]
        self, query: str, qid: str = "1", sort: bool = True, *, model: MaRF, num_results: int = 1000
    ) -> pd.DataFrame:
        """Search for a typed query, formulas between dollars.

        Args:
            query: the query.
            qid: its id in the result.
            sort: no effect: the result is sorted by rank; PyTerrier's method has the argument.
            model: the model of the index.
            num_results: results at most.
        """
        asked = pd.DataFrame({"qid": [qid], "query": [query]})
        ranking: pd.DataFrame = self.retriever(num_results=num_results)(model.query_encoder()(asked))
        return without_query_rows(ranking)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents with all their views, in one step.

        Raises:
            UnknownIdError: some are not in it; the error names them, and nothing is removed.
        """
        snapshot = self.snapshot()
        views, _ = snapshot.views(snapshot.find(list(dict.fromkeys(ids))))
        super().delete(snapshot.view_names(views))

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the indexed documents: ``docno``, ``doc_views``, ``doc_formulas``, and ``doc_model`` where known.

        ``verbose`` shows a progress bar.
        """
        model = self.model
        entries = self.entries(verbose=verbose)
        for docno, group in groupby(entries, key=lambda entry: entry.docno.rpartition("#")[0]):
            views = sorted(group, key=lambda entry: int(entry.docno.rpartition("#")[2]))
            formulas = [(stored_formula_ids(entry.texts[1], self.path) or [""])[0] for entry in views]
            known = {} if model is None else {"doc_model": model}
            yield {"docno": docno, "doc_views": [entry.rows for entry in views], "doc_formulas": formulas, **known}

"""A BM25 index of math-aware tokens: built, added to, searched, and its queries expanded by feedback (RM3).

::

    post ──tokens──▶ words, symbols (, pairs) ──indexer──▶ postings on disk ──bm25_search──▶ weights ──▶ ranking
                                                                                                            │
    query ──▶ λ · q(w) + (1 − λ) · p(w|R) ──query_toks──▶ BM25                ◀──rm3── its best documents ◀─┘

An index is built as one of :data:`~.bm25_search.PRESETS`, which has its tokens and the defaults of its searches.

RM3 has Terrier's formula: p(w|R) = Σ_d p(d) · count(w, d) / |d| with p(d) ∝ exp(score of d), of the best terms, scaled
to sum to 1. As in Terrier, only terms are added that occur in at least two documents and in less than a tenth of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import (
    empty_output,
    is_missing,
    ordered_by_score,
    ranking_frame,
    with_objects,
)
from pyterrier_mathamr._common.parameters import COUNT, FRACTION, Rule, between, method, one_of
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.explain import AskedError, Explanation, QueryRow, read_asked
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.posts.topics import TOPIC_FORMS, distinct_queries, with_query
from pyterrier_mathamr.store import Content, DuplicateIdError, Job, Mode, Rows, row_fingerprint

from . import index as sparse
from .bm25_search import (
    BM25,
    PRESETS,
    BM25Snapshot,
    PresetName,
    Query,
    QueryTokens,
    QueryWeights,
    Scheme,
    Weighting,
    explain_tokens,
    read_query,
)
from .index import SparseIndex, SparseIndexer, SparseRetriever, best_first, document_or_empty, warn_of_queries
from .postings import Postings, PostingsBuilder
from .tokens import TokenOptions, post_tokens

_SURVEY = "https://doi.org/10.1561/1500000019"
_LEAST, _SHARE = 2, 0.1  # documents that contain a term that RM3 adds: Terrier's prf.mindf and prf.maxdp

_INPUTS = (*TOPIC_FORMS, ("query_toks",))
"""The columns of a query besides ``qid``, one tuple for each form."""

_WEIGHTS: Mapping[str, Rule] = {
    "k1": between(0).or_none(),
    "b": FRACTION.or_none(),
    "delta": between(0).or_none(),
    "query_weights": one_of(*get_args(QueryWeights)).or_none(),
    "weighting": one_of(*get_args(Scheme)),
}
"""The options of the retriever and of the scorer."""


class BM25Indexer(SparseIndexer):
    """Builds a :class:`BM25Index`, or adds to one, in one step at the end.

    An answer of ARQMath has some 130 distinct tokens; building needs about 1 ms for each. It needs the memory of a
    part, some 130 MB; ids, vocabulary and counts are united on the disk.

    Finished parts are kept if the process is killed: the same call with ``resume=True`` continues after the last one. A
    document that differs from the earlier call's is then an error.

    Args:
        bm25_index: the index; its preset determines the tokens, and later k1, b and the weights of queries.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        tokens: how posts, and later queries, are cut into tokens; ``None`` for the tokens of the preset.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``, in posts and later in queries.
        resume: continue an earlier call that was interrupted.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label, help_url = "BM25 Indexer", _SURVEY

    def __init__(
        self,
        bm25_index: BM25Index,
        mode: Mode = "create",
        *,
        tokens: TokenOptions | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.bm25_index, self.mode, self.tokens = bm25_index, mode, tokens
        self.bare_formulas, self.resume, self.verbose = bare_formulas, resume, verbose

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> BM25Index:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index.

        Raises:
            ConfigError: the index that is added to was built with other options.
            DuplicateIdError: a ``docno`` occurs twice, or is in the index that is added to; nothing was changed.
            StoreError: anything else failed; nothing was changed.
        """
        with self._begun(self.reading().tokens) as part:
            for batch in self.batches(iter):
                part.add([(row["docno"], row_fingerprint(row), row) for row in batch])
        return self.bm25_index

    def reading(self) -> ReadTokens:
        """Return what reads documents, by itself or for :meth:`adding`; it can be pickled."""
        return ReadTokens(self._tokens(), self.bare_formulas)

    @contextmanager
    def adding(self) -> Iterator[Callable[[Sequence[Read]], None]]:
        """Build the index of documents that :meth:`reading` has read; pass them, in order, to the yielded function."""
        with self._begun(str.split) as part:
            yield part.add

    @contextmanager
    def _begun(self, tokens: Callable[[Any], list[str]]) -> Iterator[_Growing]:
        details = {"preset": self.bm25_index.preset_of(self.mode), "tokens": self._tokens().to_dict()}
        with self.begun(self.bm25_index, details, {}) as job:
            part = _Growing(job, tokens)
            yield part
            part.write()

    def _tokens(self) -> TokenOptions:
        return self.tokens or PRESETS[self.bm25_index.preset_of(self.mode)].tokens


Read = tuple[DocNo, int, str]
"""A document that was read: its hash, and its tokens, which have no white space, in one text."""


@dataclass(frozen=True)
class ReadTokens:
    """Reads documents."""

    options: TokenOptions
    bare_formulas: bool

    def tokens(self, document: Mapping[str, Any]) -> list[str]:
        return post_tokens(document_or_empty(document, bare_formulas=self.bare_formulas), self.options)

    def __call__(self, documents: Sequence[Mapping[str, Any]]) -> list[Read]:
        """Read documents in a worker."""
        return [(row["docno"], row_fingerprint(row), " ".join(self.tokens(row))) for row in documents]


class _Growing:
    """Documents that are counted, and which are not written yet."""

    def __init__(self, job: Job, tokens: Callable[[Any], list[str]]) -> None:
        self._job, self._tokens, self._builder = job, tokens, PostingsBuilder()
        self._done = sparse.sources_of(job.done)
        self._sources: dict[DocNo, int] = {}

    def add(self, documents: Sequence[tuple[DocNo, int, Any]]) -> None:
        """Count new documents, each with its hash; write a part when it is large enough."""
        docnos = [docno for docno, _, _ in documents]
        rows = self._job.rows_done(docnos).tolist()
        stored = self._job.look_up(docnos).tolist()
        for (docno, source, document), row, old in zip(documents, rows, stored, strict=True):
            if row >= 0:
                if self._done[row] != source:
                    raise self._job.changed(docno)
                continue
            if old >= 0 or docno in self._sources:
                raise DuplicateIdError(self._job.path, [docno])
            self._sources[docno] = source
            self._builder.add(self._tokens(document))
            if self._builder.nbytes >= sparse.PART_BYTES:
                self.write()

    def write(self) -> None:
        """Write the counts since the last part."""
        if self._sources:
            sources = np.fromiter(self._sources.values(), dtype=np.uint64, count=len(self._sources))
            self._job.add(Content(list(self._sources), {**self._builder.postings().arrays(), "sources": sources}))
            self._sources, self._builder = {}, PostingsBuilder()


class _Weighted:
    """The options of the weights, which the retriever and the scorer share."""

    bm25_index: BM25Index
    k1: float | None
    b: float | None
    query_weights: QueryWeights | None
    delta: float | None
    weighting: Scheme

    def check_delta(self) -> None:
        """Refuse a delta of TF-IDF."""
        if self.weighting == "tf-idf" and self.delta is not None:
            raise ConfigError("delta", self.delta, "None for weighting='tf-idf', since it belongs to BM25+")

    def tokens_of(self, query: Query, snapshot: BM25Snapshot | None = None) -> QueryTokens:
        """Weigh the tokens of ``query`` by the counts of ``snapshot``, by default the current state of the index."""
        snapshot = snapshot or self.bm25_index.snapshot()
        options = (self.weighting, self.k1, self.b, self.query_weights, self.delta)
        return QueryTokens(snapshot, query, Weighting.of(*options, snapshot.preset))


class BM25Scorer(_Weighted, Leaf, Transformer):
    """Scores each document of any ranking by BM25.

    The rows come back by query (in order of appearance), descending score, ascending docno, with all their columns. A
    document without a token of the query scores 0.

    Args:
        bm25_index: the index.
        k1: at least 0; how slowly repetition in a document saturates. ``None`` for the preset's, as all of these.
        b: 0 to 1; how much long documents are discounted.
        query_weights: the weight of a token that occurs ``f`` times in the query: ``"linear"``, ``f``, or ``"log"``,
            ``1 + ln f``.
        delta: of BM25+, at least 0; ``None`` for BM25.
        weighting: ``"bm25"`` or ``"tf-idf"``, with other defaults. :class:`BM25Retriever` says more of each option.

    Raises:
        ConfigError: an option is out of its range, or TF-IDF has a delta.

    Example::

        graphs >> model.query_encoder() >> index.colbert() >> bm25_index.scorer()
    """

    checks: ClassVar[Mapping[str, Rule]] = _WEIGHTS
    label = "BM25 scorer"

    def __init__(
        self,
        bm25_index: BM25Index,
        *,
        k1: float | None = None,
        b: float | None = None,
        query_weights: QueryWeights | None = None,
        delta: float | None = None,
        weighting: Scheme = "bm25",
    ) -> None:
        super().__init__()
        self.bm25_index, self.k1, self.b = bm25_index, k1, b
        self.query_weights, self.delta, self.weighting = query_weights, delta, weighting
        self.check_delta()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking."""
        with pt.validate.any(inp, context=self) as validation:
            for columns in _INPUTS:
                validation.result_frame(extra_columns=list(columns))
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self.bm25_index.snapshot()
        documents = snapshot.rows_of(list(map(str, inp["docno"].tolist())))
        codes, scores = pd.factorize(inp["qid"])[0], np.empty(len(inp))
        for number, query in enumerate(distinct_queries(inp).to_dict("records")):
            rows = np.flatnonzero(codes == number)
            tokens = self.tokens_of(read_query(query, snapshot), snapshot)
            scores[rows] = tokens.shares(documents[rows]).sum(axis=1)
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each word and each formula's symbols of a query to the score of a document."""
        asked = read_asked(query, docno, self.label)
        if all(is_missing(asked.row.get(name)) for name in ("query", "title", "body", "query_toks")):
            raise AskedError(self.label, "the row has no query", "Give it `query`, or `title` and `body`.")
        snapshot = self.bm25_index.snapshot()
        query_read = read_query(asked.row, snapshot)
        post = query_read if isinstance(query_read, MathPost) else snapshot.read_query(asked.row)
        return explain_tokens(asked, post, self.tokens_of(query_read, snapshot), snapshot)


class BM25Retriever(_Weighted, SparseRetriever):
    """Ranks documents by BM25: queries to ``docno``, ``score``, ``rank``, with the query's columns.

    A query is ``title`` and ``body`` where a frame has them, else ``query``: HTML, or text with formulas between
    dollars. Where it has PyTerrier's ``query_toks``, it is these tokens with their weights instead. Documents with the
    same score are in order of ``docno``. A blank query finds nothing, with a warning.

    Args:
        bm25_index: the index.
        num_results: the number of documents for each query; those without a common token are left out.
        k1: at least 0; how slowly repetition in a document saturates. ``None`` for the default of the index's preset:
            .9 for a standard BM25, 2 for ``math``. With TF-IDF 1.2.
        b: 0 to 1; how much long documents are discounted. ``None`` for the default of the index's preset: .4 for a
            standard BM25, 1 for ``math``. With TF-IDF .75.
        query_weights: the weight of a token that occurs ``f`` times in the query: ``f`` (``"linear"``) or ``1 + ln f``
            (``"log"``), since posts as queries repeat themselves. ``None`` for the default of the index's preset:
            linear for a standard BM25, log for ``math``. With TF-IDF linear.
        delta: of BM25+ (Lv and Zhai, CIKM 2011), at least 0, 1 there; ``None`` for BM25.
        weighting: ``"bm25"``, or ``"tf-idf"`` for Terrier's TF-IDF, the baseline of ARQMath, whose index keeps every
            word: ``indexer(tokens=TokenOptions(stop_words=False, stem=False))``. One index serves all weightings, since
            it keeps counts.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range, or TF-IDF has a delta.

    Example::

        index.retriever(num_results=100) >> encode >> mathamr_index.scorer()
    """

    label, help_url = "BM25", _SURVEY
    inputs = _INPUTS
    outputs = ("docno", "score", "rank")
    checks: ClassVar[Mapping[str, Rule]] = {**SparseRetriever.checks, **_WEIGHTS}

    def __init__(
        self,
        bm25_index: BM25Index,
        num_results: int = 1000,
        *,
        k1: float | None = None,
        b: float | None = None,
        query_weights: QueryWeights | None = None,
        delta: float | None = None,
        weighting: Scheme = "bm25",
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.bm25_index, self.num_results, self.k1, self.b = bm25_index, num_results, k1, b
        self.query_weights, self.delta, self.weighting, self.verbose = query_weights, delta, weighting, verbose
        self.check_delta()

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row."""
        snapshot = self.bm25_index.snapshot()
        asked = [read_query(row, snapshot) for row in queries.to_dict("records")]
        texts = [query.text.strip() if isinstance(query, MathPost) else query for query in asked]
        blank = [qid for qid, text in zip(queries["qid"], texts, strict=True) if not text]
        warn_of_queries(blank, "blank queries", "Give each a text in `query`, or in `title` and `body`.")
        rankings = []
        for query in progress(asked, "BM25", "queries", verbose=self.verbose):
            scores = self.tokens_of(query, snapshot).scores()
            matching = np.flatnonzero(scores > 0)
            rankings.append(best_first(matching, scores[matching], self.num_results, snapshot.docnos))
        return ranking_frame(queries, rankings, docno=snapshot.docnos)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each word and each formula's symbols to the score of a document.

        Args:
            query: a row of a ranking, or a query's row.
            docno: the document; by default that of the row.
        """
        return self.scorer().explain(query, docno)

    def scorer(self) -> BM25Scorer:
        """Return the scorer with the same options."""
        options: dict[str, Any] = {"query_weights": self.query_weights, "delta": self.delta}
        return self.bm25_index.scorer(k1=self.k1, b=self.b, weighting=self.weighting, **options)


class RM3(Leaf, Transformer):
    """Expands queries with terms of the best documents of a ranking (RM3), for a second search by BM25.

    ``query_toks`` has the expanded query: token to weight. BM25, like PyTerrier's retrievers, reads it instead of the
    text. The text stays for encoders and is in ``query_0``, too: ``pt.rewrite.reset()`` may follow, as after Terrier's
    RM3. All postings are read once for a frame of queries.

    Args:
        bm25_index: the index that counts terms.
        fb_terms: terms that are taken from the documents.
        fb_docs: documents of the ranking that are read, the best ones.
        fb_lambda: the weight of the original query; the terms of the documents have the rest.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        bm25 = bm25_index.retriever()
        bm25 >> bm25_index.rm3(fb_terms=10, fb_docs=3) >> bm25
    """

    label, help_url = "RM3", "https://trec.nist.gov/pubs/trec13/papers/umass.novelty.hard.pdf"
    checks: ClassVar[Mapping[str, Rule]] = {"fb_terms": COUNT, "fb_docs": COUNT, "fb_lambda": FRACTION}

    def __init__(self, bm25_index: BM25Index, *, fb_terms: int = 10, fb_docs: int = 3, fb_lambda: float = 0.6) -> None:
        super().__init__()
        self.bm25_index, self.fb_terms, self.fb_docs, self.fb_lambda = bm25_index, fb_terms, fb_docs, fb_lambda

    def compile(self, verbose: bool = False) -> pt.Transformer:
        """Return this stage after a cutoff at the documents that it reads."""
        return pt.RankCutoff(self.fb_docs) >> self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand the query of each ranking.

        Args:
            inp: a ranking with ``score``, and a query in each form that BM25 reads.

        Returns:
            A row for each query, with its columns, ``query_0`` and ``query_toks``.

        Raises:
            UnknownIdError: the index does not contain some of the documents.
        """
        with pt.validate.any(inp, context=self) as validation:
            for columns in _INPUTS:
                validation.result_frame(extra_columns=["score", *columns])
        queries = with_query(distinct_queries(inp, ["docno", "score", "rank"]))
        pushed = pt.model.push_queries(queries, keep_original=True) if "query" in queries else queries
        if queries.empty:
            return empty_output(pushed, ["query_toks"])
        snapshot = self.bm25_index.snapshot()
        ranked = ordered_by_score(inp[["qid", "docno"]], inp["score"])
        best = ranked[ranked["rank"] < self.fb_docs]
        numbers, scores = snapshot.rows_of(list(map(str, best["docno"]))), best["score"].to_numpy(dtype=np.float64)
        hits, rows = snapshot.postings.of_documents(numbers), best.groupby("qid", sort=False).indices
        weigh, expanded = self.bm25_index.scorer().tokens_of, []
        for query in queries.to_dict("records"):
            of_query = rows[query["qid"]]
            read, read_scores = numbers[of_query], scores[of_query]
            tokens = weigh(read_query(query, snapshot), snapshot)
            total = sum(tokens.given.values()) or 1.0  # weights that cancel each other stay as they are
            weights = {token: self.fb_lambda * weight / total for token, weight in tokens.weights.items()}
            for token, share in _relevance(snapshot.postings, hits, read, read_scores, self.fb_terms).items():
                weights[token] = weights.get(token, 0.0) + (1 - self.fb_lambda) * share
            expanded.append(weights)
        return with_objects(pushed, query_toks=expanded)


def _relevance(
    postings: Postings, hits: tuple[Rows, Rows, Rows], documents: Rows, scores: npt.NDArray[np.float64], count: int
) -> dict[str, float]:
    """Estimate p(w|R) of the best terms from documents whose postings were found, ties by term."""
    shares = np.exp(scores - scores.max()) / np.maximum(postings.lengths[documents], 1)
    places = [slice(*np.searchsorted(hits[0], (number, number + 1))) for number in documents.tolist()]
    terms, of_posting = np.unique(np.concatenate([hits[1][rows] for rows in places]), return_inverse=True)
    masses = np.concatenate([share * hits[2][rows] for share, rows in zip(shares, places, strict=True)])
    relevance = np.bincount(of_posting, masses, len(terms))
    contained = postings.offsets[terms + 1] - postings.offsets[terms]
    usual = np.flatnonzero((contained >= _LEAST) & (contained < int(_SHARE * len(postings.lengths))))
    best = usual[np.argsort(-relevance[usual], kind="stable")[:count]]
    names = postings.names.take(terms[best])
    return dict(zip(names, (relevance[best] / relevance[best].sum()).tolist(), strict=True))


class BM25Index(SparseIndex):
    """A BM25 index of posts with formulas, built and searched without Java; called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.
        preset: what an index is built as. ``"standard"`` is BM25 as in other search engines: words and symbols of
            formulas, Terrier's stop words, Porter 2 stemming, ``k1=0.9`` and ``b=0.4``. ``"math"`` was tuned on known
            items of ARQMath: also pairs of neighbors, a short list of stop words, ``k1=2``, ``b=1`` and logarithmic
            query weights. ``"structures"`` also has the structure of each sub-expression, in which letters have no
            names, at twice the weight: it finds formulas in other letters, and needs some 10 ms a post to build.
            ``None`` builds a standard index and opens any.

    Raises:
        ConfigError: there is no such preset; or, when the index is opened, it was built with another one.

    Example::

        index = BM25Index("answers.bm25", preset="math")
        index.index(dataset.get_corpus_iter())
        rerank = index.retriever() >> encode >> mathamr_index.scorer()
    """

    KIND = BM25
    HOLDS = "document"
    _USAGE = "pipeline = found.retriever()"

    schematic: ClassVar[dict[str, str]] = {"label": "BM25 Index", "help_url": _SURVEY}

    def __init__(self, path: str | Path, *, preset: PresetName | None = None) -> None:
        one_of(*PRESETS).or_none().check("preset", preset)
        super().__init__(path)
        self.preset = preset

    def __repr__(self) -> str:
        return f"BM25Index({str(self.path)!r}{'' if self.preset is None else f', preset={self.preset!r}'})"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, BM25Index) and self.preset == other.preset

    __hash__ = SparseIndex.__hash__

    @staticmethod
    def example() -> BM25Index:
        """Return an index that is not built."""
        return BM25Index("index.bm25")

    indexer = method(BM25Indexer)
    retriever = bm25 = method(BM25Retriever)
    scorer = method(BM25Scorer)
    rm3 = method(RM3)

    def snapshot(self) -> BM25Snapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("BM25Snapshot", super().snapshot())

    def open_snapshot(self) -> BM25Snapshot:
        snapshot = BM25Snapshot(self.path)
        if self.preset not in (None, snapshot.preset):
            again = f"{self!r}.indexer(mode='overwrite').index(documents)"
            raise ConfigError(
                "preset",
                self.preset,
                f"{snapshot.preset!r}, as {self.path} was built with, or none; or build it again: {again}",
            )
        return snapshot

    def preset_of(self, mode: Mode) -> PresetName:
        """Return the preset of the index after a build: an addition keeps the stored one."""
        return self.snapshot().preset if mode == "append" and self.built() else self.preset or "standard"

    def get_corpus_iter(self) -> Iterator[dict[str, DocNo]]:
        """Yield the ``docno`` of each document in order; the texts are not stored."""
        for docno in self.snapshot():
            yield {"docno": docno}

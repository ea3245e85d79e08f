"""`MaRF` as PyTerrier transformers: posts in, views or scores out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.feedback import told_once
from pyterrier_mathamr._common.frames import (
    distinct_queries,
    empty_output,
    join_values,
    ordered_by_score,
    with_objects,
    without_query_rows,
)
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr._common.transformers import ColumnAdder, Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, Part, QueryRow
from pyterrier_mathamr.explain import Reading as ShownReading
from pyterrier_mathamr.model.encoder.maxsim import exact_maxsim
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.sparse.index import document_post, query_post
from pyterrier_mathamr.systems.language_models import (
    Precision,
    check_documents,
    check_queries,
    check_texts,
    of_document,
    of_documents,
    read_texts,
)

from .network import View

if TYPE_CHECKING:
    from .model import MaRF


class Query(NamedTuple):
    """An encoded query.

    Attributes:
        rows: of all its views, float32 ``[q, d]``.
        weights: 1 over the number of views, float64 ``[q]``: the sum over weighted rows is the mean over views.
    """

    rows: View
    weights: npt.NDArray[np.float64]


class _PostTransformer(Leaf, Transformer):
    """What the three share: a model and the options of encoding."""

    checks: ClassVar[Mapping[str, Rule]] = {
        "batch_size": COUNT,
        "precision": one_of("auto", "float32", "bfloat16"),
    }
    help_url = "https://github.com/MLPgroup/MaRF"

    def __init__(
        self,
        model: MaRF,
        *,
        device: str | None = None,
        batch_size: int = 64,
        precision: Precision = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.device, self.batch_size = model, device, batch_size
        self.precision, self.verbose = precision, verbose

    def _encode(self, posts: Sequence[MathPost], names: Sequence[str], query: bool) -> list[list[View]]:
        options: dict[str, Any] = {"device": self.device, "precision": self.precision, "verbose": self.verbose}
        return self.model.encode(self.model.readings(posts), names, query=query, **options)

    def _queries(self, frame: pd.DataFrame) -> dict[Any, Query]:
        """Encode each distinct query; one without text has no rows."""
        posts = {row["qid"]: query_post(row) for row in distinct_queries(frame).to_dict("records")}
        asked = [qid for qid, post in posts.items() if post.text.strip()]
        encoded = self._encode([posts[qid] for qid in asked], list(map(str, asked)), query=True)
        none = Query(np.empty((0, self.model.dimensions), np.float32), np.empty(0))
        found = {qid: _query(views) for qid, views in zip(asked, encoded, strict=True)}
        return {qid: found.get(qid, none) for qid in posts}

    def _documents(self, frame: pd.DataFrame) -> tuple[list[Hashable], dict[Hashable, tuple[list[View], list[str]]]]:
        """Encode each distinct document."""
        keyed = "docno" in frame.columns
        keys: list[Hashable] = frame["docno"].tolist() if keyed else list(range(len(frame)))
        rows = dict(zip(reversed(keys), reversed(frame.to_dict("records")), strict=True))
        distinct = list(dict.fromkeys(keys))
        posts = [document_post(rows[key]) for key in distinct]
        names = [str(key) if keyed else "" for key in distinct]
        formulas = [
            [" ".join(one) for one in self.model.chosen(of, name, False)] or [""]
            for of, name in zip(self.model.readings(posts), names, strict=True)
        ]
        return keys, dict(
            zip(distinct, zip(self._encode(posts, names, query=False), formulas, strict=True), strict=True)
        )


class MaRFDocEncoder(ColumnAdder, _PostTransformer):
    """Encode each document to its views.

    Adds ``doc_views``, a list of float32 ``[n, d]`` with rows of unit length, one for each formula that is fused in
    (without formulas one of the context alone); ``doc_formulas``, the math tokens of each; and ``doc_model``, the
    identity of the model. A document that is in several rows is encoded once. ``marf.doc_encoder()`` constructs one.

    Example::

        (marf.doc_encoder() >> marf_index.indexer()).index(dataset.get_corpus_iter())
    """

    label = "MaRF documents"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_views``, ``doc_formulas`` and ``doc_model`` to documents."""
        check_documents(inp, self)
        if inp.empty:
            return empty_output(inp, ["doc_views", "doc_formulas", "doc_model"])
        with told_once():
            keys, found = self._documents(inp)
        frame = with_objects(
            inp, doc_views=[found[key][0] for key in keys], doc_formulas=[found[key][1] for key in keys]
        )
        encoded: pd.DataFrame = frame.assign(doc_model=self.model.name)
        return encoded


class MaRFQueryEncoder(ColumnAdder, _PostTransformer):
    """Encode each query, once for all rows of a ranking.

    Adds ``query_embs``, float32 ``[q, d]`` with rows of unit length (none for a blank query), and ``query_model``, the
    identity of the model. With ``query_formulas="all"`` these are the rows of all views, and ``query_weights`` makes
    their sum the mean over views. ``marf.query_encoder()`` constructs one.

    Example::

        bm25 >> marf.query_encoder() >> marf_index.scorer()
    """

    label = "MaRF queries"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``query_embs`` and ``query_model`` to rows with ``query``, or ``title`` and ``body``."""
        check_queries(inp, self)
        inp, weighted = without_query_rows(inp), self.model.config.query_formulas == "all"
        if inp.empty:
            return empty_output(inp, ["query_embs", "query_model", *(["query_weights"] if weighted else [])])
        with told_once():
            found = self._queries(inp)
        frame = join_values(inp, "query_embs", {qid: query.rows for qid, query in found.items()})
        frame = frame.assign(query_model=self.model.name)
        if not weighted:
            return frame
        return join_values(frame, "query_weights", {qid: query.weights for qid, query in found.items()})


class MaRFTextScorer(_PostTransformer):
    """Score the text of each document of a ranking by the mean of MaxSim over its views, without an index.

    The scores are those of ``index.scorer()`` for the same rows. Each query and each document is encoded once. Rows are
    ordered by query, descending score and docno. ``marf.text_scorer()`` constructs one.

    Example::

        bm25 >> dataset.text_loader(["text"]) >> marf.text_scorer()
    """

    label = "MaRF scorer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank`` of a ranking with the texts of documents."""
        check_texts(inp, self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        with told_once():
            queries = self._queries(inp)
            keys, documents = self._documents(of_documents(inp))
        scores = [
            float(mean_score(view_scores(queries[qid], documents[key][0])))
            for qid, key in zip(inp["qid"], keys, strict=True)
        ]
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each view of a document contributes to its score."""
        asked = read_texts(query, docno, self.label)
        row = {**asked.row, "qid": "explained"}
        found = self._queries(pd.DataFrame([row]))["explained"]
        document = of_document(row)
        _, documents = self._documents(pd.DataFrame([document]))
        views, formulas = documents[asked.docno]
        parts = view_parts(self.label, view_scores(found, views), formulas)
        shown = ShownReading(query_post(asked.query_row())), ShownReading(document_post(document))
        return Explanation.of(asked.docno, parts, *shown)


def view_scores(query: Query, views: Sequence[View]) -> npt.NDArray[np.float64]:
    """Score each view of a document against a query: float64 ``[views]``, rounded to float32 precision."""
    offsets = np.cumsum([0, *map(len, views)], dtype=np.int64)
    return exact_maxsim(query.rows, np.concatenate(views), offsets, query.weights)


def mean_score(scores: npt.NDArray[np.float64]) -> np.float64:
    """Return the mean over views, rounded to float32 precision."""
    return np.float64(np.float32(scores.mean()))


def view_parts(system: str, scores: Sequence[float] | npt.NDArray[np.float64], formulas: Sequence[str]) -> list[Part]:
    """Make a part of each view, its formula and its share of the score."""
    share = 1 / len(formulas)
    return [
        Part(system, "view", "", "formula" if formula else "document", formula, contribution=float(score) * share)
        for score, formula in zip(scores, formulas, strict=True)
    ]


def _query(views: Sequence[View]) -> Query:
    rows = np.concatenate(views)
    return Query(rows, np.full(len(rows), 1 / len(views)))

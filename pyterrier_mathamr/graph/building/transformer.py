"""`GraphBuilder`: the transformer that turns the text of posts and queries into graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import (
    FrameKind,
    MissingValueError,
    empty_output,
    first_values,
    frame_kind,
    join_values,
    with_objects,
)
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr.amr import AmrParser, get_parser
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.posts import MathPost

from .columns import (
    TOPIC_TEXTS,
    Queries,
    Side,
    document_post,
    formula_post,
    query_post,
    wanted_sides,
    warn_of_empty_formulas,
    warn_of_second_texts,
)
from .from_posts import build_graphs, warn

_EMPTY_POST = MathPost(text="", formulas=())
_Reader = Callable[[Mapping[str, Any]], MathPost]


class GraphBuilder(Transformer):
    """Builds a :class:`MathAMRGraph` of each post or query (MathAMR+, section 3.1).

    Documents (no ``qid``) get ``graph`` from ``html``, ``body`` or ``text``, and ``title``; queries get ``query_graph``
    from ``title`` and ``body`` where there is a body, else from ``query``; in a ranking each distinct query is built
    once from ``query`` and joined back. A query frame with ``formula_id`` gets ``query_formula_id`` from it. A post
    that cannot be parsed gives a warning that names it, and a graph of its formulas alone. A ``qid`` that has several
    texts, of which the first is built, and a query that is an empty formula are named in a warning, too.

    Example::

        graphs = mathamr.GraphBuilder()
        (graphs >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
        pipeline = bm25 >> graphs >> model.query_encoder() >> index.scorer()

    Args:
        parser: the name of an AMR parser, or a parser.
        formulas: the trees put into the graphs (section 4.3.1).
        store: official formula trees by id; formulas that it does not have get their trees from LaTeX.
        side: whose graphs are built; ``auto``: of queries where the frame has a ``qid``, else of documents; ``both``
            needs a ranking with ``query`` and one of ``html``, ``body`` and ``text``.
        queries: ``post``: a query is a text with formulas; ``formula``: it is one formula in LaTeX, in ``latex`` or
            ``query``, which gets no other context than itself, and ``query_formula_id`` (its ``formula_id``, or the
            empty id of its own).
        batch_size: posts that are parsed together.
        verbose: show progress.

    Raises:
        ConfigError: ``formulas``, ``side`` or ``queries`` has no such value.
    """

    label = "GraphBuilder"

    def __init__(
        self,
        parser: str | AmrParser = "dependency",
        formulas: FormulaMode = "both",
        store: FormulaStore | None = None,
        *,
        side: Side = "auto",
        queries: Queries = "post",
        batch_size: int = 64,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        for option, value, allowed in (
            ("formulas", formulas, FORMULA_MODES),
            ("side", side, get_args(Side)),
            ("queries", queries, get_args(Queries)),
        ):
            if value not in allowed:
                raise ConfigError(option, value, "one of " + ", ".join(map(repr, allowed)))
        if batch_size < 1:
            raise ConfigError("batch_size", batch_size, "a positive number")
        self.parser = parser
        self.formulas: FormulaMode = formulas
        self.store = store
        self.side: Side = side
        self.queries: Queries = queries
        self.batch_size = batch_size
        self.verbose = verbose

    @staticmethod
    def example() -> GraphBuilder:
        """Give a builder that needs no download."""
        return GraphBuilder()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the graphs.

        Args:
            inp: documents, queries or a ranking.

        Returns:
            The frame with ``graph``, ``query_graph`` or both.

        Raises:
            pt.validate.InputValidationError: there is no column to read.
            MissingValueError: a query of a ranking has no text in any of its rows.
        """
        queries, documents = wanted_sides(list(inp.columns), self.side, self, self.queries)
        is_topics = queries and frame_kind(inp.columns) is FrameKind.QUERIES
        if is_topics and "formula_id" in inp.columns and "query_formula_id" not in inp.columns:
            inp = inp.assign(query_formula_id=inp["formula_id"])
        elif queries and self.queries == "formula" and "query_formula_id" not in inp.columns:
            inp = inp.assign(query_formula_id="")
        if inp.empty:
            return empty_output(inp, [*["query_graph"] * queries, *["graph"] * documents])
        if queries:
            inp = self._with_topics(inp) if is_topics else self._with_queries(inp)
        return self._with_documents(inp) if documents else inp

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Cut the ranking before its graphs are built rather than after."""
        return pt.RankCutoff(k) >> self

    def build(self, posts: Mapping[str, MathPost]) -> list[MathAMRGraph]:
        """Build the graphs of posts that are read already.

        Args:
            posts: docno or qid to post.

        Returns:
            One graph for each post, in order.
        """
        return self._build(list(posts), list(posts.values()))

    def _with_topics(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Build each distinct query from its first row."""
        warn_of_second_texts(inp, TOPIC_TEXTS)
        rows = inp.drop_duplicates(subset="qid")
        return join_values(inp, "query_graph", self._query_graphs(list(rows["qid"]), rows.to_dict("records")))

    def _with_queries(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Build each distinct query of a ranking from the first text that is there; title and body are documents'.

        After ``bm25 + mathamr`` a query that BM25 has no result for has no text, but the graph that was built of it.
        """
        warn_of_second_texts(inp, ["query"])
        texts = first_values(inp, "query")
        graphs = first_values(inp, "query_graph") if "query_graph" in inp.columns else {}
        missing = [qid for qid in dict.fromkeys(inp["qid"]) if qid not in texts and qid not in graphs]
        if missing:
            raise MissingValueError("query", "qid", missing)
        graphs.update(self._query_graphs(list(texts), [{"query": text} for text in texts.values()]))
        return join_values(inp, "query_graph", graphs)

    def _query_graphs(self, qids: Sequence[str], rows: Sequence[Mapping[Hashable, Any]]) -> dict[str, MathAMRGraph]:
        """Build the graph of each query, by qid."""
        posts = self._read(qids, rows, formula_post if self.queries == "formula" else query_post)
        if self.queries == "formula":
            warn_of_empty_formulas(dict(zip(qids, posts, strict=True)), self.store)
        return dict(zip(qids, self._build(qids, posts), strict=True))

    def _with_documents(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Build each distinct document once, or each row where the frame has no ``docno``."""
        if "docno" not in inp.columns:
            posts = self._read([""] * len(inp), inp.to_dict("records"), document_post)
            return with_objects(inp, graph=self._build([""] * len(inp), posts))
        rows = inp.drop_duplicates(subset="docno")
        docnos = list(rows["docno"])
        posts = self._read(docnos, rows.to_dict("records"), document_post)
        graphs = self._build(docnos, posts)
        return join_values(inp, "graph", dict(zip(docnos, graphs, strict=True)), key="docno")

    def _read(self, ids: Sequence[str], rows: Sequence[Mapping[Hashable, Any]], reader: _Reader) -> list[MathPost]:
        """Read the posts; one that cannot be read becomes an empty one, with a warning."""
        posts = []
        for name, row in zip(ids, rows, strict=True):
            try:
                posts.append(reader(row))  # type: ignore[arg-type]
            except Exception as error:
                warn(name, "it cannot be read and counts as empty", error)
                posts.append(_EMPTY_POST)
        return posts

    def _build(self, ids: Sequence[str], posts: Sequence[MathPost]) -> list[MathAMRGraph]:
        """Build the graphs batch by batch; an id that is no text becomes one."""
        ids = [*map(str, ids)]
        parser = get_parser(self.parser)
        graphs: list[MathAMRGraph] = []
        starts = range(0, len(posts), self.batch_size)
        for start in progress(starts, "graphs", "batch", verbose=self.verbose, total=len(starts)):
            batch = slice(start, start + self.batch_size)
            graphs += build_graphs(ids[batch], posts[batch], parser, self.formulas, self.store)
        return graphs

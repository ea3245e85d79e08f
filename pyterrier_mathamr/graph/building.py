"""`GraphBuilder`: rows to posts to graphs. Parse a batch, find the trees of its formulas, attach them.

::

    row of a frame ── document_post, query_post ──▶ MathPost ── _parsed, _graph ──▶ MathAMRGraph

Where the parser fails on a batch, the batch is halved until the failing post is by itself (MathAMR+, section 3.1). That
post gets the graph ``(a / amr-empty)`` with its formulas attached, and a warning that names it.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning, listed
from pyterrier_mathamr._common.feedback import progress, reported_once
from pyterrier_mathamr._common.frames import empty_output, first_values, join_values, with_objects
from pyterrier_mathamr._common.parameters import COUNT, FLAG, Rule, one_of
from pyterrier_mathamr._common.recent import Recent
from pyterrier_mathamr._common.running.resources import cycles_kept
from pyterrier_mathamr._common.transformers import ColumnAdder, Transformer
from pyterrier_mathamr._common.types import FormulaId, FormulaMode, GraphPart
from pyterrier_mathamr.amr import AmrGraph, AmrParser, ParserUnavailableError, SentenceParser, get_parser
from pyterrier_mathamr.formula import (
    FormulaPair,
    FormulaStore,
    definitions,
    one_text,
    report_unknown_commands,
    trees_from_latex,
    trees_of_posts,
)
from pyterrier_mathamr.posts import (
    DOCUMENT_COLUMNS,
    PLACEHOLDER,
    TITLE_FORMULA,
    MathPost,
    PostFormula,
    document_post,
    is_formula,
    parent_title,
    placeholder,
    query_post,
    strip_delimiters,
)
from pyterrier_mathamr.posts.reading import TOPIC_COLUMNS, Row, check_topic, is_blank, text_of
from pyterrier_mathamr.posts.topics import TOPIC_FORMS, columns_of_topics, texts_of_topics

from .mathamr import EMPTY_AMR, NO_TREES, MathAMRGraph, attach_formulas, sentence_texts
from .store import Side
from .structure import FORMULAS

Queries = Literal["post", "formula"]
"""The form of a query: a text with formulas, or one formula in LaTeX."""

Context = Literal["title", "none"]
"""The text read before a document: the title of its question, or nothing."""

PARTS: tuple[GraphPart, ...] = get_args(GraphPart)
"""All parts of a graph."""

EMPTY_POST = MathPost(text="", formulas=())


class GraphBuilder(ColumnAdder, Transformer):
    """Builds a :class:`MathAMRGraph` of each post or query (MathAMR+, section 3.1).

    Documents (no ``qid``) get ``graph`` from ``html``, ``body``, ``text`` or ``markdown``, and ``title``; queries get
    ``query_graph`` from ``title`` and ``body`` where there is a body, else from ``query``; in a ranking each distinct
    query is built once and joined back, without a ``title`` and ``body`` of documents. A formula of a document that has
    no id gets ``docno#0``, ``docno#1``, …; a query frame with ``formula_id`` gets ``query_formula_id`` from it.

    A document with a ``parent_title``, the title of the question that it answers, begins with that title. The title's
    formulas come after the document's own and have the id ``^title``, so that indexes of formulas leave them to the
    question. Where the column is missing or blank, the graph is the same as without it.

    Graphs of recent queries are kept by text, so that a transformer that asks again, such as an adaptive re-ranker,
    does not build them again.

    A warning names each post that cannot be parsed (its graph has its formulas only), each ``qid`` with several texts
    (the first is built), and each query without text, or without a formula (it gets an empty graph).

    Example::

        graphs = mathamr.GraphBuilder()
        (graphs >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
        pipeline = bm25 >> graphs >> model.query_encoder() >> index.scorer()

    Args:
        parser: the name of an AMR parser, or a parser.
        formulas: the trees put into the graphs (section 4.3.1).
        store: official formula trees by id; other formulas get their trees from LaTeX.
        side: whose graphs are built; ``auto``: of queries where the frame has a ``qid``, else of documents; ``both``
            needs a ranking with ``query`` and the text of documents.
        queries: ``post``: a query is a text with formulas; ``formula``: it is one formula in LaTeX, in ``latex`` or
            ``query``, and also gets ``query_formula_id`` (its ``formula_id``, else the empty id).
        context: ``title``: read ``parent_title`` before a document; ``none``: never.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``, in documents and queries.
        reads: the parts of a graph to build; ``model.reads`` are those on which a model's vectors depend. Without
            ``amr`` nothing is parsed, and each sentence is one node; without ``trees`` formulas have no trees.
        batch_size: posts that are parsed together.
        verbose: show progress.

    Raises:
        ConfigError: an option has no such value.
    """

    label = "GraphBuilder"
    checks = {  # noqa: RUF012
        "formulas": FORMULAS,
        "side": one_of(*get_args(Side)),
        "queries": one_of(*get_args(Queries)),
        "context": one_of(*get_args(Context)),
        "bare_formulas": FLAG,
        "reads": Rule("some of " + ", ".join(map(repr, PARTS)), lambda value: {*value} <= {*PARTS}),
        "batch_size": COUNT,
    }

    def __init__(
        self,
        parser: str | AmrParser = "dependency",
        formulas: FormulaMode = "both",
        store: FormulaStore | None = None,
        *,
        side: Side = "auto",
        queries: Queries = "post",
        context: Context = "title",
        bare_formulas: bool = False,
        reads: Collection[GraphPart] = PARTS,
        batch_size: int = 64,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.parser = parser
        self.formulas: FormulaMode = formulas
        self.store = store
        self.side: Side = side
        self.queries: Queries = queries
        self.context: Context = context
        self.bare_formulas = bare_formulas
        self.reads: tuple[GraphPart, ...] = tuple(part for part in PARTS if part in reads)
        self.batch_size = batch_size
        self.verbose = verbose
        self._recent = Recent()

    @staticmethod
    def example() -> GraphBuilder:
        """Return a builder that needs no download."""
        return GraphBuilder()

    @property
    def used_parser(self) -> AmrParser:
        """The parser of posts, or one that only cuts sentences where no AMR is read."""
        return get_parser(self.parser) if "amr" in self.reads else SentenceParser()

    @reported_once()
    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the graphs.

        Args:
            inp: documents, queries or a ranking.

        Returns:
            The frame with ``graph``, ``query_graph`` or both.

        Raises:
            pt.validate.InputValidationError: there is no column to read.
        """
        queries, documents = self._sides(inp.columns)
        if queries and "query_formula_id" not in inp.columns:
            if "docno" not in inp.columns and "formula_id" in inp.columns:
                inp = inp.assign(query_formula_id=inp["formula_id"])
            elif self.queries == "formula":
                inp = inp.assign(query_formula_id="")
        if inp.empty:
            return empty_output(inp, [*["query_graph"] * queries, *["graph"] * documents])
        topic_columns = texts_of_topics(inp) if documents else []
        if queries:
            known = first_values(inp, "query_graph") if "query_graph" in inp.columns else {}
            names = ["qid", *_query_columns(inp)]
            try:
                distinct = inp[names].drop_duplicates() if len(inp) > 1 else inp
            except TypeError:  # a cell is a list or the like, and refused below
                distinct = inp
            rows = _rows(distinct, names)
            inp = join_values(inp, "query_graph", self._query_graphs(rows, known))
        if documents:  # each distinct one once, or each row where the frame has no docno
            columns = [name for name in ("docno", "title", "parent_title", *DOCUMENT_COLUMNS) if name in inp.columns]
            names = [name for name in columns if name not in topic_columns]
            if not {*names} & {*DOCUMENT_COLUMNS}:  # all documents of each query have the same text
                names = columns
            if "docno" in inp.columns:
                distinct = inp[names].drop_duplicates(subset="docno")
                graphs = zip(distinct["docno"], self._document_graphs(_rows(distinct, names)), strict=True)
                inp = join_values(inp, "graph", dict(graphs), key="docno")
            else:
                inp = with_objects(inp, graph=self._document_graphs(_rows(inp, names)))
        return inp

    @reported_once()
    def build(self, posts: Mapping[str, MathPost]) -> list[MathAMRGraph]:
        """Build the graphs of posts that were read before.

        Args:
            posts: docno or qid to post.

        Returns:
            One graph for each post, in order, with a node for each of its formulas.
        """
        return self._graphs([*map(str, posts)], list(posts.values()))

    @reported_once()
    def build_rows(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Build the graphs of an indexing pipeline, without a DataFrame.

        Args:
            rows: documents, or queries.

        Returns:
            Each row with its ``graph`` or ``query_graph``, as :meth:`transform` adds them.
        """
        columns = list(dict.fromkeys(chain.from_iterable(rows)))
        if self._sides(columns)[1]:
            graphs = self._document_graphs(rows)
            return [{**row, "graph": graph} for row, graph in zip(rows, graphs, strict=True)]
        names = ("qid", *_query_columns(pd.DataFrame(list(rows))))
        by_qid = self._query_graphs([{name: row.get(name) for name in names} for row in rows], {})
        return [{**row, "query_graph": by_qid[row["qid"]]} for row in rows]

    def _sides(self, columns: Collection[str]) -> tuple[bool, bool]:
        """Check the columns of a frame, and return whether graphs of queries, and of documents, are to be built."""
        with pt.validate.any(list(columns), context=self) as check:
            if self.side in ("auto", "query"):
                forms = (("latex",), ("query",)) if self.queries == "formula" else TOPIC_FORMS
                for names in forms:
                    check.query_frame(list(names))
                check.result_frame(["query"])
            for name in DOCUMENT_COLUMNS:
                if self.side in ("auto", "document"):
                    check.columns(includes=[name], excludes=["qid"])
                if self.side == "document":
                    check.columns(includes=["docno", name])
                if self.side == "both":
                    check.result_frame(["query", name])
        if self.side == "auto":
            return "qid" in columns, "qid" not in columns
        return self.side in ("query", "both"), self.side in ("document", "both")

    def _document_graphs(self, rows: Sequence[Row]) -> list[MathAMRGraph]:
        ids = [str(row.get("docno", "")) for row in rows]
        reader = partial(document_post, bare_formulas=self.bare_formulas)
        posts = [_read(name, row, reader) for name, row in zip(ids, rows, strict=True)]
        if self.context == "none":
            return self._graphs(ids, posts)
        reader = partial(parent_title, bare_formulas=self.bare_formulas)
        titles = [_read(name, row, reader) for name, row in zip(ids, rows, strict=True)]
        graphs = self._graphs(ids, list(map(_with_title, posts, titles)))
        for i, (graph, post) in enumerate(zip(graphs, posts, strict=True)):
            if in_title := graph.n_formulas - len(post.formulas):
                formula_ids = (*graph.formula_ids[:-in_title], *[TITLE_FORMULA] * in_title)
                graphs[i] = replace(graph, formula_ids=formula_ids)
        return graphs

    def _query_graphs(self, rows: Sequence[Row], known: Mapping[Any, MathAMRGraph]) -> dict[Any, MathAMRGraph]:
        """Build the graph of each query from its first row with text, unless it is known; empty if there is none."""
        for row in rows:
            check_topic(row)
        self._warn_of_second_texts(rows)
        reader = _formula_post if self.queries == "formula" else partial(query_post, bare_formulas=self.bare_formulas)
        posts: dict[Any, MathPost] = {}
        for row in rows:
            if not posts.get(row["qid"], EMPTY_POST).text:
                posts[row["qid"]] = _read(row["qid"], row, reader)
        full = {qid: post for qid, post in posts.items() if self._is_readable(post)}
        empty = {qid: MathAMRGraph(EMPTY_AMR, id=str(qid)) for qid in posts if qid not in full}
        if blank := [qid for qid in empty if qid not in known]:
            which, advice = "blank queries", "text in `query`, or in `title` and `body`"
            if self.queries == "formula":
                which, advice = "queries without a readable formula", "LaTeX in `latex` or `query`"
            text = f"{which} find nothing: {listed(blank)}. Give each query {advice}."
            warnings.warn(text, MathAMRWarning, stacklevel=2)
        key = (self.parser, self.formulas, self.reads, tuple(full.values()))
        lasting = self.store is None and isinstance(self.parser, Hashable)  # a store may get other trees
        graphs = self._recent.get(key) if lasting else None
        if graphs is None:
            graphs = self._graphs([*map(str, full)], list(full.values()))
            if lasting and all(graph.amr.labels[0] != EMPTY_AMR.labels[0] for graph in graphs):  # else try it again
                self._recent.keep(key, graphs)
        built = {qid: replace(graph, id=str(qid)) for qid, graph in zip(full, graphs, strict=True)}
        return {**empty, **known, **built}

    def _is_readable(self, post: MathPost) -> bool:
        """Return whether a query has text, and where it is to be a formula, whether it is one."""
        if self.queries == "post" or not post.text:
            return bool(post.text)
        formula = post.formulas[0]
        if is_formula(formula.latex) and trees_from_latex(formula.latex).opt is not None:
            return True
        return self.store is not None and formula.id in self.store.get_many([formula.id])

    @staticmethod
    def _warn_of_second_texts(rows: Sequence[Row]) -> None:
        """Warn of queries that share a ``qid`` but not their text, since only the first of them is built."""
        columns = [name for name in TOPIC_COLUMNS if rows and name in rows[0]]
        texts: defaultdict[str, set[tuple[object, ...]]] = defaultdict(set)
        for row in rows:
            text = tuple(row[name] for name in columns)
            if not any(map(is_blank, text)):
                texts[row["qid"]].add(text)
        if several := [qid for qid, distinct in texts.items() if len(distinct) > 1]:
            warnings.warn(
                f"only the first of several texts with the same qid is used: {listed(several)}. Give each query "
                "its own qid; after a stage that rewrites `query` in one branch of a pipeline, use pt.rewrite.reset().",
                MathAMRWarning,
                stacklevel=2,
            )

    def _graphs(self, ids: Sequence[str], posts: Sequence[MathPost]) -> list[MathAMRGraph]:
        """Parse posts batch by batch, and attach the trees of their formulas."""
        parser = self.used_parser
        formulas: FormulaMode = self.formulas if "trees" in self.reads else "none"
        graphs: list[MathAMRGraph] = []
        starts = range(0, len(posts), self.batch_size)
        for start in progress(starts, "building graphs", "batches", verbose=self.verbose):
            batch = slice(start, start + self.batch_size)
            with cycles_kept():
                amrs = _parsed(ids[batch], posts[batch], parser)
                official: Mapping[FormulaId, FormulaPair] = {}
                if self.store is not None and formulas != "none":
                    wanted = {formula.id for post in posts[batch] for formula in post.formulas if formula.id}
                    official = self.store.get_many(sorted(wanted))
                built = zip(ids[batch], posts[batch], amrs, strict=True)
                graphs += [_graph(name, post, amr, formulas, official) for name, post, amr in built]
        return graphs


def _query_columns(frame: pd.DataFrame) -> list[str]:
    """List the columns that a query is read from; the formula of a ranking's row is the document's."""
    formula_id = ["formula_id"] if "formula_id" in frame.columns and "docno" not in frame.columns else []
    return columns_of_topics(frame) + formula_id


def _rows(frame: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in zip(*(frame[name] for name in names), strict=True)]


def _read(name: str, row: Row, reader: Callable[[Row], MathPost]) -> MathPost:
    """Read a post; one that cannot be read becomes an empty one, with a warning."""
    try:
        return reader(row)
    except Exception as error:
        _warn(name, "it cannot be read and counts as empty", error)
        return EMPTY_POST


def _with_title(post: MathPost, title: MathPost) -> MathPost:
    """Put a title before a post. The formulas of the post keep their numbers; the title's formulas follow them."""
    if not title.text:
        return post
    first = len(post.formulas)
    text = PLACEHOLDER.sub(lambda match: placeholder(first + int(match[1])), title.text)
    return MathPost("\n".join(filter(None, (text, post.text))), (*post.formulas, *title.formulas))


def _formula_post(row: Row) -> MathPost:
    """Read a query that is one formula: ``latex``, else ``query``, with or without dollars."""
    latex = strip_delimiters(text_of(row, "query" if is_blank(row.get("latex")) else "latex"))
    formula = PostFormula(latex, text_of(row, "formula_id"))
    return MathPost(placeholder(0), (formula,)) if latex or formula.id else EMPTY_POST


def _parsed(ids: Sequence[str], posts: Sequence[MathPost], parser: AmrParser) -> list[AmrGraph]:
    """Parse a batch; where the parser fails, parse its halves until failing posts are by themselves."""
    parsed: dict[int, AmrGraph] = {}
    ranges = [(0, len(posts))]
    while ranges:
        start, end = ranges.pop()
        if start == end:
            continue
        try:
            graphs = parser.parse_posts(posts[start:end])
            if len(graphs) != end - start:
                raise ValueError(f"{len(graphs)} graphs for {end - start} posts")
            parsed.update(enumerate(graphs, start))
        except (ParserUnavailableError, ImportError):
            raise  # smaller batches would fail as well
        except Exception as error:  # a foreign parser may raise anything; the other posts are built
            if end - start == 1:
                _warn(ids[start], f"parser {parser.name} failed, its graph has its formulas only", error)
                parsed[start] = EMPTY_AMR
            else:
                middle = (start + end) // 2
                ranges += [(middle, end), (start, middle)]
    return [parsed[i] for i in range(len(posts))]


def _graph(
    name: str, post: MathPost, amr: AmrGraph, formulas: FormulaMode, official: Mapping[FormulaId, FormulaPair]
) -> MathAMRGraph:
    """Attach the formulas of one post."""
    macros = definitions(formula.latex for formula in post.formulas)
    with one_text():
        trees = [
            NO_TREES if formulas == "none" else _trees(name, formula, official, macros) for formula in post.formulas
        ]
    try:
        attached = attach_formulas(amr, trees, formulas)
    except Exception as error:
        _warn(name, "its parse cannot carry formulas and was left out", error)
        amr = EMPTY_AMR
        attached = attach_formulas(amr, trees, formulas)
    return MathAMRGraph(
        amr=attached,
        formula_ids=tuple(formula.id for formula in post.formulas),
        id=name,
        text=post.text,
        sentence_texts=sentence_texts(attached, amr.texts, post.text),
        latex=tuple(formula.latex for formula in post.formulas),
    )


def _trees(name: str, formula: PostFormula, official: Mapping[FormulaId, FormulaPair], macros: str) -> FormulaPair:
    """Return the official trees of a formula; make missing ones from its LaTeX."""
    trees = official.get(formula.id, NO_TREES)
    if trees.slt is not None and trees.opt is not None:
        return trees
    try:
        from_latex = trees_of_posts(formula.latex, macros)
    except Exception as error:
        _warn(name, f"the formula {formula.latex[:80]!r} has no trees", error)
        return trees
    report_unknown_commands(name, formula.latex, from_latex)
    return FormulaPair(slt=trees.slt or from_latex.slt, opt=trees.opt or from_latex.opt)


def _warn(name: str, outcome: str, error: Exception) -> None:
    reason = str(error).strip().partition("\n")[0][:300]
    warnings.warn(f"post {name!r}: {outcome} ({type(error).__name__}: {reason}).", MathAMRWarning, stacklevel=2)

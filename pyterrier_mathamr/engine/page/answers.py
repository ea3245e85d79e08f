"""What the page shows, as plain values for JSON: results, explanations, previews and graphs.

All HTML in these answers is made of escaped text and converted formulas, by :mod:`~pyterrier_mathamr.formula.display`.
The shapes of the answers are in ``static/openapi.json``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyterrier as pt

from pyterrier_mathamr._common.drawing.palette import Theme
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.engine.search_engine import SearchEngine
from pyterrier_mathamr.engine.snippets import Matcher, best_snippet, color_of, marked_html, marked_post
from pyterrier_mathamr.explain import draw_graph
from pyterrier_mathamr.formula.display.rendering import formula_span, inline_html
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, latex_of_unicode, plain_text, post_from_any
from pyterrier_mathamr.store import signature

from .explaining import explained

SYSTEMS: Mapping[str, str] = {"blend": "BM25 + MathAMR+", "bm25": "BM25", "mathamr": "MathAMR+"}
"""The systems that can be shown: name on the command line to name on the page."""

_EXAMPLES = 4
_LARGE_GRAPH, _DRAWN = 400, 12  # nodes; sentences of a larger graph
_EXAMINED = 500  # posts in which examples are looked for
_COMPARED = 1000  # ranks of the first system that the others are compared with


class Answers:
    """Answers the requests of the page.

    An engine that another process replaces or changes is followed: the next request sees the new posts.

    Args:
        engine: what is searched.
        systems: names from :data:`SYSTEMS`; several are shown side by side.
        results: posts of each.
    """

    def __init__(self, engine: SearchEngine, systems: Sequence[str] = ("blend",), results: int = 10) -> None:
        self._engine, self._version = engine, signature(engine.path)
        self._examples: list[dict[str, str]] | None = None
        self.systems, self.results = list(dict.fromkeys(systems)), results

    @property
    def engine(self) -> SearchEngine:
        """The engine, opened again where another one was built in its place."""
        if (version := signature(self._engine.path)) != self._version:
            self._engine, self._version = SearchEngine(self._engine.path), version
        return self._engine

    def warm_up(self) -> None:
        """Open everything that the first request would wait for."""
        self.settings()
        self.search("$x$")
        self.search("$x$", "formulas")

    def settings(self) -> dict[str, Any]:
        """The size of the collection, the systems, and questions to try."""
        if self._examples is None:
            self._examples = list(islice(_examples(self.engine), _EXAMPLES))
        systems = [{"key": key, "name": SYSTEMS[key]} for key in self.systems]
        return {"size": len(self.engine), "systems": systems, "examples": self._examples}

    def preview(self, q: str, mode: str = "posts") -> dict[str, Any]:
        """The query as it is read."""
        if mode == "formulas":
            return {"html": _formula_query_html(q)}
        return {"html": _query_html(self.engine.read_query(q), self.engine.matcher(q))}

    def search(self, q: str, mode: str = "posts") -> dict[str, Any]:
        """The results of each system, with what moved against the first."""
        start = time.perf_counter()
        engine = self.engine
        if mode == "formulas":
            systems, html = [self._formulas(engine, _latex_of_query(q))] if q.strip() else [], _formula_query_html(q)
        else:
            matcher, query = engine.matcher(q), engine.read_query(q)
            html = _query_html(query, matcher)
            systems = self._posts(engine, q, matcher) if query.text.strip() else []
        return {"query_html": html, "systems": systems, "milliseconds": _milliseconds(start)}

    def explain(self, q: str, docno: str, system: str = "blend") -> dict[str, Any]:
        """The parts of a score, and both texts with what is alike in one color."""
        return explained(self.engine, q, docno, system)

    def post(self, docno: str, q: str = "") -> dict[str, Any]:
        """A whole post, with what a question has, too, in its colors."""
        engine = self.engine
        title, _ = engine.title_and_body(docno)
        return {
            "docno": docno,
            "html": marked_post(engine.post(docno), engine.matcher(q), titled=bool(title.text)),
        }

    def graph(self, docno: str, theme: Theme = "light", sentence: int = 0) -> str:
        """The drawing of a post's graph, as SVG; of a large post the first sentences, without trees.

        Raises:
            ConfigError: there is no such sentence.
        """
        graph = self.engine.graph(docno)
        large = len(graph.amr.labels) > _LARGE_GRAPH
        chosen = [sentence] if sentence else range(1, min(graph.n_sentences, _DRAWN) + 1)
        formulas: FormulaMode = "none" if large and not sentence else "both"
        return draw_graph(graph, theme=theme, sentences=chosen if large or sentence else None, formulas=formulas).svg

    def _posts(self, engine: SearchEngine, q: str, matcher: Matcher) -> list[dict[str, Any]]:
        frame, found = engine.frame(q), []
        for key in self.systems:
            start = time.perf_counter()
            table = _system(engine, key, _COMPARED if len(self.systems) > 1 else self.results)(frame)
            shown = table.head(self.results)
            documents = engine.titles_and_bodies(shown["docno"].tolist())
            rows = [
                _result(row.docno, row.score, title, body, matcher)
                for row, (title, body) in zip(shown.itertuples(index=False), documents, strict=True)
            ]
            answer = {"key": key, "name": SYSTEMS[key], "milliseconds": _milliseconds(start), "results": rows}
            found.append((answer, table["docno"].tolist()))
        _add_moves([answer for answer, _ in found], found[0][1])
        return [answer for answer, _ in found]

    def _formulas(self, engine: SearchEngine, latex: str) -> dict[str, Any]:
        start = time.perf_counter()
        found = engine.search_formula(latex, k=self.results)
        rows = [_formula(engine, row) for row in found.itertuples(index=False)]
        return {"key": "formulas", "name": "Formulas", "milliseconds": _milliseconds(start), "results": rows}


def _system(engine: SearchEngine, key: str, num_results: int) -> pt.Transformer:
    systems: Mapping[str, Callable[..., pt.Transformer]] = {
        "blend": engine.retriever, "bm25": engine.bm25, "mathamr": engine.mathamr,
    }  # fmt: skip
    return systems[key](num_results=num_results)


def _result(docno: str, score: float, title: MathPost, body: MathPost, matcher: Matcher) -> dict[str, Any]:
    snippet = best_snippet(body, matcher)
    return {
        "docno": docno,
        "post_id": docno,
        "score": float(score),
        "title_html": marked_html(_line(title), title, matcher),
        "snippet_html": marked_html(snippet.text, body, matcher) + (" …" if snippet.cut else ""),
    }


def _formula(engine: SearchEngine, row: Any) -> dict[str, Any]:
    """A formula that was found, inside its sentence."""
    title, _ = engine.title_and_body(row.post_id)
    post = engine.post(row.post_id)
    numbers = [i for i, formula in enumerate(post.formulas) if formula.id == row.docno]
    holding = (text for text in post.sentences if any(int(m[1]) in numbers for m in PLACEHOLDER.finditer(text)))
    sentence = next(holding, "")
    html = inline_html(sentence, post, mark=lambda i: "part-0" if i in numbers else "")
    return {
        "docno": row.docno,
        "post_id": row.post_id,
        "score": float(row.score),
        "title_html": inline_html(_line(title), title),
        "snippet_html": html or formula_span(row.latex, "part-0"),
    }


def _line(post: MathPost) -> str:
    return " ".join(post.text.split("\n"))


def _query_html(query: MathPost, matcher: Matcher) -> str:
    return marked_post(query, matcher, color_of)


def _latex_of_query(q: str) -> str:
    """The first formula between delimiters, or all of a query that has none."""
    formulas = post_from_any(q).formulas
    return formulas[0].latex if formulas else latex_of_unicode(q.strip())


def _formula_query_html(q: str) -> str:
    return formula_span(_latex_of_query(q), "part-0", display=True) if q.strip() else ""


def _examples(engine: SearchEngine) -> Iterator[dict[str, str]]:
    """Titles, or else first sentences, that have a formula and fit in a line."""
    documents = engine.titles_and_bodies(engine.docnos()[:_EXAMINED])
    lines = [(title, _line(title)) for title, _ in documents]
    for post, line in [*lines, *((body, next(iter(body.sentences), "")) for _, body in documents)]:
        if PLACEHOLDER.search(line) and 20 < len(line) < 110:
            html = inline_html(line, post).replace(' class="formula"', "")
            yield {"q": plain_text(MathPost(line, post.formulas)), "html": html}


def _add_moves(systems: Sequence[dict[str, Any]], first: Sequence[str]) -> None:
    """Say of each result at which rank the first system has it, from 1; ``None`` where it is not among its 1,000."""
    ranks = {docno: rank for rank, docno in enumerate(first, start=1)}
    for system in systems[1:]:
        for result in system["results"]:
            result["rank_in_first"] = ranks.get(result["docno"])


def _milliseconds(start: float) -> int:
    return round(1000 * (time.perf_counter() - start))

"""What the page shows, as plain values for JSON: results, explanations, previews and graphs.

All HTML in these answers is made of escaped text and converted formulas, by :mod:`pyterrier_mathamr.explain.rendering`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.drawing.palette import Theme
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.engine.search_engine import SearchEngine
from pyterrier_mathamr.engine.snippets import Matcher, best_snippet, marked_html
from pyterrier_mathamr.explain import draw_graph
from pyterrier_mathamr.explain.rendering import COLORS, formula_html, formula_span, inline_html, post_html
from pyterrier_mathamr.posts import MathPost

SYSTEMS: Mapping[str, str] = {"blend": "BM25 + MathAMR+", "bm25": "BM25", "mathamr": "MathAMR+"}
"""The systems that can be shown: name on the command line to name on the page."""

_EXAMPLES = 4
_LARGE_GRAPH, _DRAWN = 400, 12  # nodes; sentences of a larger graph


class Answers:
    """Answers the requests of the page.

    Args:
        engine: what is searched.
        systems: names from :data:`SYSTEMS`; several are shown side by side.
        results: posts of each.
    """

    def __init__(self, engine: SearchEngine, systems: Sequence[str] = ("blend",), results: int = 10) -> None:
        self.engine, self.systems, self.results = engine, list(dict.fromkeys(systems)), results

    def warm_up(self) -> None:
        """Open everything that the first query would wait for."""
        for name in self.systems:
            self._system(name)(self.engine.frame("$x$"))

    def settings(self) -> dict[str, Any]:
        """The size of the collection, the systems, and questions to try."""
        examples = [{"q": text, "html": html} for text, html in self._examples]
        return {"size": len(self.engine), "systems": [SYSTEMS[name] for name in self.systems], "examples": examples}

    def preview(self, q: str) -> dict[str, Any]:
        """The query as it is read."""
        return {"html": self._query_html(self.engine.read_query(q))}

    def search(self, q: str, mode: str = "posts") -> dict[str, Any]:
        """The results of each system, with what moved against the first."""
        start = time.perf_counter()
        query = self.engine.read_query(q)
        if not query.text.strip():
            systems = [{"name": SYSTEMS[name], "milliseconds": 0, "results": []} for name in self.systems]
        elif mode == "formulas":
            systems = [self._formulas(query.formulas[0].latex if query.formulas else q)]
        else:
            frame, matcher = self.engine.frame(q), self.engine.matcher(q)
            systems = [self._posts(name, frame, matcher) for name in self.systems]
            _add_moves(systems)
        elapsed = round(1000 * (time.perf_counter() - start))
        return {"query_html": self._query_html(query), "systems": systems, "milliseconds": elapsed}

    def explain(self, q: str, docno: str) -> dict[str, Any]:
        """The parts of a score, and both texts with matching formulas in one color."""
        found = self.engine.explain(q, docno)
        parts = found.parts.head(60)
        query, document = self.engine.read_query(q), self.engine.post(docno)
        rows = parts[parts["part"].isin(["formula", "symbols"]) & (parts["document_row"] >= 0)]
        color_of_query = {row: f"part-{row % COLORS}" for row in rows["query_row"]}
        color_of_document: dict[int, str] = {}
        for query_row, document_row in zip(rows["query_row"], rows["document_row"], strict=True):
            color_of_document.setdefault(document_row, color_of_query[query_row])
        return {
            "docno": docno,
            "score": found.score,
            "query_html": post_html(query, mark=lambda i: color_of_query.get(i, "")),
            "document_html": post_html(document, mark=lambda i: color_of_document.get(i, "")),
            "parts": [_part(part, color_of_query) for part in parts.itertuples(index=False)],
        }

    def post(self, docno: str) -> dict[str, Any]:
        """A whole post."""
        return {"docno": docno, "html": post_html(self.engine.post(docno))}

    def graph(self, docno: str, theme: str = "light", sentence: str = "") -> str:
        """The drawing of a post's graph, as SVG; of a large post the first sentences, without trees."""
        graph = self.engine.graph(docno)
        large = len(graph.amr.labels) > _LARGE_GRAPH
        chosen = [int(sentence)] if sentence.isdecimal() else range(1, min(graph.n_sentences, _DRAWN) + 1)
        formulas: FormulaMode = "none" if large and not sentence else "both"
        colors: Theme = "dark" if theme == "dark" else "light"
        return draw_graph(graph, theme=colors, sentences=chosen if large or sentence else None, formulas=formulas).svg

    def _posts(self, name: str, query: pd.DataFrame, matcher: Matcher) -> dict[str, Any]:
        start = time.perf_counter()
        found = self._system(name)(query)
        rows = [self._result(row.docno, row.score, matcher) for row in found.head(self.results).itertuples(index=False)]
        elapsed = round(1000 * (time.perf_counter() - start))
        return {"name": SYSTEMS[name], "milliseconds": elapsed, "results": rows, "explains": name == "blend"}

    def _system(self, name: str) -> pt.Transformer:
        systems: Mapping[str, Callable[..., pt.Transformer]] = {
            "blend": self.engine.retriever, "bm25": self.engine.bm25, "mathamr": self.engine.mathamr,
        }  # fmt: skip
        return systems[name](num_results=self.results)

    def _result(self, docno: str, score: float, matcher: Matcher) -> dict[str, Any]:
        title, body = self.engine.title_and_body(docno)
        snippet = best_snippet(body, matcher)
        return {
            "docno": docno,
            "score": float(score),
            "title_html": inline_html(" ".join(title.text.split("\n")), title),
            "snippet_html": marked_html(snippet, body, matcher),
        }

    def _formulas(self, latex: str) -> dict[str, Any]:
        start = time.perf_counter()
        found = self.engine.search_formula(latex, k=self.results)
        rows = [self._formula(row) for row in found.itertuples(index=False)]
        elapsed = round(1000 * (time.perf_counter() - start))
        return {"name": "formulas", "milliseconds": elapsed, "results": rows, "explains": False}

    def _formula(self, row: Any) -> dict[str, Any]:
        title, _ = self.engine.title_and_body(row.post_id)
        return {
            "docno": row.docno,
            "post_id": row.post_id,
            "score": 100 * float(row.score),
            "title_html": inline_html(" ".join(title.text.split("\n")), title),
            "snippet_html": formula_span(row.latex, display=True),
        }

    def _query_html(self, query: MathPost) -> str:
        return post_html(query, mark=lambda i: f"part-{i % COLORS}")

    @cached_property
    def _examples(self) -> list[tuple[str, str]]:
        """Titles of posts that have a formula and are questions of a line."""
        found = []
        for docno in self.engine.docnos()[:2000]:
            title, _ = self.engine.title_and_body(docno)
            if title.formulas and 20 < len(title.text) < 110:
                found.append(
                    (self.engine.text_of(title), inline_html(title.text, title).replace('class="formula"', ""))
                )
                if len(found) == _EXAMPLES:
                    break
        return found


def _part(part: Any, colors: Mapping[int, str]) -> dict[str, Any]:
    """A part of a score as a row of the page's table."""
    cells = {}
    for side in ("query", "document"):
        text = getattr(part, side)
        if part.part in ("formula", "symbols"):
            color = colors.get(part.query_row, "")
            cells[f"{side}_html"] = f'<span class="{color}">{formula_html(text)}</span>' if text else "…"
        else:
            cells[f"{side}_html"] = escape(text if len(text) <= 160 else text[:157] + "…")
    if part.part == "document":
        cells = {"query_html": "the whole question", "document_html": "the whole post"}
    kinds = {"system": part.system, "part": part.part}
    return {**kinds, **cells, "contribution": float(part.contribution)}


def _add_moves(systems: Sequence[dict[str, Any]]) -> None:
    """Say of each result how many ranks it is above its place in the first system; ``None`` where it is not there."""
    first = {result["docno"]: rank for rank, result in enumerate(systems[0]["results"])}
    for system in systems[1:]:
        for rank, result in enumerate(system["results"]):
            place = first.get(result["docno"])
            result["moved"] = None if place is None else place - rank

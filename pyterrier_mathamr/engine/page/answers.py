"""The contents of the page, as plain values for JSON: results, explanations, previews and graphs.

All HTML in these answers is made of escaped text and converted formulas, by :mod:`~pyterrier_mathamr.formula.display`.
An explanation is both texts, matching parts in one color, and a row for each part of the score; the rows and the sum of
those left out add up to the score. The shapes of the answers are in :mod:`~.interface`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from pyterrier_mathamr._common.drawing import Theme
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.engine.origins import EVERYTHING, Filter, LinkTemplate, folders_of, kinds_of, place_of
from pyterrier_mathamr.engine.ranking import GOOD
from pyterrier_mathamr.engine.reader import EngineSnapshot, FoundFormula
from pyterrier_mathamr.engine.search_engine import SearchEngine
from pyterrier_mathamr.engine.snippets import (
    Matcher,
    SnippetPiece,
    best_piece,
    best_snippet,
    color_of,
    marked_html,
    marked_post,
    piece_of,
)
from pyterrier_mathamr.explain import Asked, Reading, draw_graph, explain_score
from pyterrier_mathamr.formula.display.typesetting import formula_span, inline_html
from pyterrier_mathamr.formula.located import find_part
from pyterrier_mathamr.posts import PLACEHOLDER, Document, MathPost, latex_of_unicode, plain_text, post_from_html
from pyterrier_mathamr.posts.math_spans import HIDDEN, shown, with_hidden

from .interface import SYSTEMS
from .queries import examples, pattern_html, problems, read_box, step_between, step_of

_ROWS = 60
_LONGEST = 300  # characters of a sentence
_ALIGNED = 500_000  # characters; symbols of a longer post are not compared with the query's formula by formula
_NAMES = {"bm25": "BM25", "mathamr": "MathAMR+"}
_LONGEST_LINE = 1_000  # characters of a title, or of the sentence of a formula
_LARGE_GRAPH, _DRAWN = 400, 12  # nodes; sentences of a larger graph
_LARGEST_GRAPH = 100_000  # nodes
_SIMILAR = 400  # characters of a post that are the query for similar posts
_LISTED = 200  # folders, and types, that a page offers
_LISTED_POSTS = 100_000  # of a larger engine, whose posts would have to be read for it, none
_OTHERS = 9  # formulas of a post below its best one
_COMPARED = 1000  # ranks of the first system that the others are compared with


class Answers:
    """Answers the requests of the page.

    Args:
        engine: the engine that is searched.
        systems: shown side by side: ``blend``, ``bm25`` and ``mathamr``; the others are compared with the first.
        link: a template of the address of a post, with ``{path}``, ``{file}``, ``{line}``, ``{name}`` or ``{docno}``;
            by default none.
        title: the name of the collection; by default the name of the engine's folder.
        about: a sentence about the collection.
    """

    def __init__(
        self,
        engine: SearchEngine,
        systems: Sequence[str] = ("blend",),
        link: str | None = None,
        title: str = "",
        about: str = "",
    ) -> None:
        self._engine = engine
        self._link = LinkTemplate(link) if link else None
        self._title, self._about = title, about
        self._settings: tuple[object, dict[str, Any]] = None, {}  # of a state, and its signature
        self.systems = list(dict.fromkeys(systems))

    def __call__(self, request: str, *args: object) -> Any:
        return getattr(self, request)(*args)

    @property
    def engine(self) -> EngineSnapshot:
        """The current state of the engine; a request is answered from one state."""
        return self._engine.snapshot()

    def settings(self) -> dict[str, Any]:
        """The collection's name and size, the systems, and questions to try."""
        engine = self.engine
        signature, known = self._settings
        if signature == engine.signature:
            return known
        formulas = len(engine.indexes.formulas) if engine.indexes.formulas.built() else 0
        settings = {
            "title": self._title or engine.path.absolute().name.removesuffix(".engine"),
            "about": self._about,
            "size": len(engine),
            "formulas": formulas,
            "updated": engine.changed.date().isoformat(),
            "systems": [{"key": key, "name": SYSTEMS[key]} for key in self.systems],
            "examples": examples(engine),
            "folders": [],
            "kinds": [],
            "filters": ["in", "kind", "since", "until"],
        }
        if len(engine) <= _LISTED_POSTS:
            settings |= {"folders": folders_of(engine.origins)[:_LISTED], "kinds": kinds_of(engine.origins)[:_LISTED]}
            dates = ["since", "until"] if any(origin.date for origin in engine.origins.values()) else []
            settings["filters"] = ["in", *(["kind"] if settings["kinds"] else []), *dates]
        self._settings = engine.signature, settings
        return settings

    def preview(self, q: str, mode: str = "posts") -> dict[str, Any]:
        """The query ``q`` as it is read in a ``mode``, ``posts`` or ``formulas``, and the faults of its LaTeX."""
        engine = self.engine
        read = read_box(engine, q)
        of_formula = mode == "formulas" or read.kind == "formula"
        if of_formula:
            html = _formula_query_html(read.latex)
        else:
            html = marked_post(read.post, engine.matcher(read.post), color_of)
        wrong = problems(q, q.strip() if read.kind == "formula" else "", engine.macros.formula)
        return {"html": html, "kind": read.kind, "latex": plain_text(read.post), "problems": wrong}

    def search(
        self, q: str, mode: str = "posts", weak: bool = False, chosen: Filter = EVERYTHING, k: int = 10, offset: int = 0
    ) -> dict[str, Any]:
        """The good matches of each system, or also the weak ones, with what moved against the first.

        They are among the ``k`` results after the first ``offset`` ones.

        Args:
            q: the query.
            mode: ``posts``, or ``formulas`` for posts with formulas like the first one of the query.
            weak: whether posts that are no good match are listed, too.
            chosen: the filter of posts.
            k: the most results of each system.
            offset: how many of the best results to leave out, for further pages.
        """
        start = time.perf_counter()
        engine = self.engine
        suggested: dict[str, Any] = {}
        if mode == "formulas":
            latex = read_box(engine, q).latex or latex_of_unicode(q.strip())
            systems = [self._formulas(engine, latex, chosen, k, offset)] if latex else []
            html = _formula_query_html(latex)
        else:
            suggestions = engine.suggestions(q)
            query = suggestions.searched
            if suggestions.words:
                words = [{"word": word, "similar": list(similar)} for word, similar in suggestions.words.items()]
                corrected, replaced = plain_text(suggestions.corrected), suggestions.replaced
                suggested = {"suggestions": {"words": words, "corrected": corrected, "replaced": replaced}}
            matcher = engine.matcher(query)
            html = marked_post(query, matcher, color_of)
            systems = self._posts(engine, query, matcher, weak, chosen, k, offset) if query.text.strip() else []
        return {"query_html": html, **suggested, "systems": systems, "milliseconds": _milliseconds(start)}

    def explain(self, q: str, docno: str, system: str = "blend") -> dict[str, Any]:
        """The parts of a score, and both texts with matches in one color.

        Args:
            q: the query.
            docno: the post.
            system: whose score it is: ``blend``, ``bm25`` or ``mathamr``.

        Raises:
            UnknownIdError: there is no such post.
        """
        engine = self.engine
        query = engine.suggestions(q).searched
        matcher = engine.matcher(query)
        [document] = engine.indexes.posts.get_many([docno])
        post, graph = _with_source(document), engine.indexes.graphs[docno]
        known = {"graph": graph} if len(post.text) <= _ALIGNED else {}
        if system == "blend":
            explanation = engine.blend().explain_read(engine.question(query), Asked(known, docno))
        else:
            asked = with_objects(engine.frame(query), docno=[docno], **{name: [graph] for name in known})
            retriever = engine.bm25(num_results=1) if system == "bm25" else engine.mathamr(num_results=1)
            explanation = explain_score(retriever, asked).scaled(1.0, _NAMES[system])
        parts = explanation.parts
        is_formula = parts["part"].isin(["formula", "symbols"]) & (parts["document_row"] >= 0)
        pairs = parts[is_formula & (parts["contribution"] > 0)]
        matched: dict[int, int] = {}  # each formula of the post to the formula of the query that gets most from it
        for query_row, document_row in zip(pairs["query_row"], pairs["document_row"], strict=True):
            matched.setdefault(int(document_row), int(query_row))
        of_query = Reading(query, query.sentences)
        of_post = Reading.of_graph(graph) or Reading(post, post.sentences)  # perhaps after a question's title
        colors = _kinds(query, of_post.post, matcher, matched)
        counted = parts[parts["contribution"] != 0]
        shown_parts: Iterable[Any] = counted.head(_ROWS).itertuples(index=False)
        rest = counted["contribution"].iloc[_ROWS:]
        titled = bool(post_from_html(document.title).text)
        return {
            "docno": docno,
            "system": system,
            "score": float(parts["contribution"].sum()),
            "query_html": marked_post(query, matcher, color_of),
            "document": _shown_piece(post, best_piece(post, matcher), matcher, titled, colors),
            "parts": [
                {
                    "system": part.system,
                    "part": part.part,
                    "query_html": _cell(part.query_row, part.query, of_query, matcher, color_of),
                    "document_html": _cell(part.document_row, part.document, of_post, matcher, colors),
                    "contribution": float(part.contribution),
                }
                for part in shown_parts
            ],
            "rest": {"parts": len(rest), "contribution": float(rest.sum())},
        }

    def post(self, docno: str, q: str = "", start: int | None = None) -> dict[str, Any]:
        """A post, with matches of a question in its colors; of a long one a piece.

        Args:
            docno: the post.
            q: the query whose matches are marked.
            start: the character at which the piece of a long post begins; by default the piece that matches the query
                best.
        """
        engine = self.engine
        query = engine.suggestions(q).searched
        matcher = engine.matcher(query)
        [document] = engine.indexes.posts.get_many([docno])
        post, titled = _with_source(document), bool(post_from_html(document.title).text)
        [heading] = engine.headings([document])
        piece = best_piece(post, matcher, start)
        similar = " ".join(piece_of(post, 0, _SIMILAR).text.split("\n"))
        return {
            "docno": docno,
            "title_html": inline_html(_title(heading), heading),
            **self._place(engine, document),
            **_shown_piece(post, piece, matcher, titled, _kinds(query, post, matcher)),
            "latex": HIDDEN.sub(lambda source: shown(source[0]), plain_text(MathPost(piece.text, post.formulas))),
            "similar": plain_text(MathPost(HIDDEN.sub("", similar), post.formulas)),
        }

    def graph(self, docno: str, theme: Theme = "light", sentence: int = 0) -> str:
        """The drawing of a post's graph, as SVG; of a large post the first sentences, without trees.

        Args:
            docno: the post.
            theme: ``light`` or ``dark``.
            sentence: the number of the only sentence to draw, from 1; 0 for all.
        """
        graph = self.engine.graph(docno)
        if len(graph.amr.labels) > _LARGEST_GRAPH:
            raise ConfigError("graph", f"{len(graph.amr.labels):,} nodes", f"at most {_LARGEST_GRAPH:,} to be drawn")
        large = len(graph.amr.labels) > _LARGE_GRAPH
        chosen = [sentence] if sentence else range(1, min(graph.n_sentences, _DRAWN) + 1)
        formulas: FormulaMode = "none" if large and not sentence else "both"
        return draw_graph(graph, theme=theme, sentences=chosen if large or sentence else None, formulas=formulas).svg

    def _posts(
        self, engine: EngineSnapshot, query: MathPost, matcher: Matcher, weak: bool, chosen: Filter, k: int, offset: int
    ) -> list[dict[str, Any]]:
        question = engine.question(query)
        answers = list[dict[str, Any]]()
        ranks: dict[str, int] = {}  # of the first system, from 1
        last = offset + k
        depth = max(last + 1, _COMPARED if len(self.systems) > 1 else 0)
        for key in self.systems:
            start = time.perf_counter()
            found = engine.found(question, depth, key, chosen, slice(offset, last + 1))
            more = len(found.docnos) > k and (weak or key != "blend" or bool(found.matches[k] >= GOOD))
            shown = found.kept(weak, k)
            documents = engine.indexes.posts.get_many(shown.docnos)
            values = (shown.scores.tolist(), shown.matches.tolist(), shown.named.tolist())
            rows = [
                {
                    "match": match,
                    "named": named,
                    **_result(post, heading, score, matcher, query),
                    **self._place(engine, post),
                }
                for post, heading, score, match, named in zip(
                    documents, engine.headings(documents), *values, strict=True
                )
            ]
            if answers:
                for row in rows:
                    row["rank_in_first"] = ranks.get(row["docno"])
            else:
                ranks = {docno: rank for rank, docno in enumerate(found.ranking, start=1)}
            answer = {"key": key, "name": SYSTEMS[key], "milliseconds": _milliseconds(start), "results": rows}
            answers.append({**answer, "more": more, "weak": len(found.docnos[:k]) - len(rows)})
        return answers

    def _formulas(self, engine: EngineSnapshot, latex: str, chosen: Filter, k: int, offset: int) -> dict[str, Any]:
        start = time.perf_counter()
        posts = engine.formulas_by_post(latex, offset + k + 1, chosen)[offset:]
        headings = engine.headings([best.document for best, *_ in posts[:k]])
        rows = [
            {**_formulas_of(formulas[: 1 + _OTHERS], heading), **self._place(engine, formulas[0].document)}
            for formulas, heading in zip(posts, headings, strict=False)
        ]
        answer = {"key": "formulas", "name": "Formulas", "milliseconds": _milliseconds(start), "results": rows}
        return {**answer, "more": len(posts) > k}

    def _place(self, engine: EngineSnapshot, document: Document) -> dict[str, Any]:
        """Where a post was read, the question that it answers, and the link to it."""
        return {
            "parent": document.parent if document.parent in engine else "",
            **place_of(document),
            "date": document.origin.date,
            "link": self._link.link(document) if self._link else "",
        }


def _with_source(document: Document) -> MathPost:
    """Read a post with what is kept as source, which is shown and is neither words nor formulas."""
    return post_from_html(with_hidden(document.html), document.title)


def _kinds(
    query: MathPost, post: MathPost, matcher: Matcher, matched: Mapping[int, int] | None = None
) -> Callable[[int], str]:
    """Return the function from the number of a formula of a post to its classes.

    They are the color of the query's formula that it is like (``matched``, by default by its symbols), and how well it
    matches that one.
    """

    def kind(formula: int) -> str:
        latex, like = post.formulas[formula].latex, (matched or {}).get(formula)
        like = matcher.like(latex) if like is None else like
        return "" if like is None else f"{color_of(like)} {step_between(query.formulas[like].latex, latex)}"

    return kind


def _shown_piece(
    post: MathPost, piece: SnippetPiece, matcher: Matcher, titled: bool, color: Callable[[int], str]
) -> dict[str, Any]:
    html = marked_post(MathPost(piece.text, post.formulas), matcher, color, titled=titled and not piece.start)
    html = HIDDEN.sub(lambda source: f'<code class="tex">{escape(shown(source[0]))}</code>', html)
    return {"html": html, "start": piece.start, "end": piece.end, "characters": piece.characters}


def _cell(row: int, text: str, read: Reading, matcher: Matcher, color: Callable[[int], str]) -> str:
    """Write one side of a part of a score: a formula, a sentence, the whole text, or other words."""
    formulas = read.post.formulas
    if row < 0:
        return marked_html(text, MathPost(text, ()), matcher, lambda _: "")
    if row < len(formulas):
        return formula_span(formulas[row].latex, color(row))
    if row >= len(formulas) + len(read.sentences):
        return "<i>the whole text</i>"
    sentence = read.sentences[row - len(formulas)]
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[:_LONGEST].rsplit(' ', 1)[0]} …"  # between words, which placeholders are
    return marked_html(sentence, read.post, matcher, color)


def _result(document: Document, title: MathPost, score: float, matcher: Matcher, query: MathPost) -> dict[str, Any]:
    body = post_from_html(document.html)
    snippet = best_snippet(body, matcher)
    same = [each.latex for each in title.formulas] == [each.latex for each in body.formulas[: len(title.formulas)]]
    text = _without_headings(snippet.text, [*document.origin.section.split(" › "), title.text if same else ""])
    return {
        "docno": document.docno,
        "post_id": document.docno,
        "score": float(score),
        "title_html": marked_html(_title(title), title, matcher, _kinds(query, title, matcher)),
        "snippet_html": marked_html(text, body, matcher, _kinds(query, body, matcher)) + (" …" if snippet.cut else ""),
    }


def _without_headings(text: str, headings: Sequence[str]) -> str:
    """Leave out the headings that a snippet begins with, since the page shows them above it."""
    for heading in (heading.removesuffix(" …") for heading in headings):
        if heading and f"{text} ".startswith(f"{heading} "):
            text = text.removeprefix(heading).lstrip(" .:")
    return text


def _formulas_of(formulas: Sequence[FoundFormula], heading: MathPost) -> dict[str, Any]:
    """A post and the formulas found in it, marked in its title and in the sentence of the best; then the others."""
    best, post, title = formulas[0], formulas[0].post, _title(heading)
    shown_as: dict[str, tuple[str, Sequence[tuple[int, int]]]] = {}
    for row in formulas:  # the classes of each formula, and the part that matches, around which nothing is colored
        parts = find_part(row.latex, row.part) if row.part else []
        shown_as[row.latex] = f"part-0 {step_of(row.tier)}{' has-matched' if parts else ''}", parts

    def written(text: str, source: MathPost) -> str:
        kinds = [shown_as.get(each.latex, ("", ())) for each in source.formulas]
        return inline_html(text, source, mark=lambda i: kinds[i][0], parts=lambda i: kinds[i][1])

    def span(row: FoundFormula) -> str:
        kind, parts = shown_as[row.latex]
        return formula_span(row.latex, kind, parts=parts)

    number = next((i for i, formula in enumerate(post.formulas) if formula.id == best.id), -1)
    headings = [*best.document.origin.section.split(" › "), " ".join(heading.text.split("\n"))]
    sentence = _without_headings(post.sentence_with(number), headings)
    place = next((mark.start() for mark in PLACEHOLDER.finditer(sentence) if int(mark[1]) == number), -1)
    if place > _LONGEST_LINE // 2:
        sentence = sentence[place:]
    snippet = written(_short(sentence, post), post) if place >= 0 else ""
    titled = {heading.formulas[int(mark[1])].latex for mark in PLACEHOLDER.finditer(title)}
    if place < 0 and best.latex not in titled:  # it is in the heading of a section
        snippet = span(best)
    values = ((name, value) for name, value in best.substitution.items() if name != value)
    return {
        "docno": best.id,
        "post_id": best.document.docno,
        "score": best.score,
        "title_html": written(title, heading),
        "snippet_html": snippet,
        "latex": best.latex,
        "tier": best.tier,
        "substitution": [
            {
                "name_html": f"<code>{escape(name)}</code>" if name.startswith("?") else formula_span(name),
                "value_html": formula_span(value),
            }
            for name, value in values
        ],
        "others": [
            {"docno": row.id, "score": row.score, "html": span(row), "latex": row.latex, "tier": row.tier}
            for row in formulas[1:]
        ],
    }


def _title(heading: MathPost) -> str:
    """Write a heading in one line, cut where it is too long for a result."""
    return _short(" ".join(heading.text.split("\n")), heading)


def _short(text: str, post: MathPost) -> str:
    """Cut a text with placeholders that is too long for a result."""
    piece = piece_of(MathPost(text, post.formulas), 0, _LONGEST_LINE)
    return piece.text if piece.end == piece.characters else f"{piece.text}…"


def _formula_query_html(latex: str) -> str:
    if not latex:
        return ""
    return f'<span class="formula part-0" data-latex="{escape(latex)}">{pattern_html(latex, display=True)}</span>'


def _milliseconds(start: float) -> int:
    return round(1000 * (time.perf_counter() - start))

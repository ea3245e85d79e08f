"""The contents of the page, as plain values for JSON: results, explanations, previews and graphs.

All HTML in these answers is made of escaped text and converted formulas, by :mod:`~pyterrier_mathamr.formula.display`.
An explanation is both texts, matching parts in one color, and a row for each part of the score; the rows and the sum of
those left out add up to the score. The shapes of the answers are in :mod:`~.interface`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.drawing import Theme
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.engine.matches import GOOD
from pyterrier_mathamr.engine.origins import EVERYTHING, Filter, LinkTemplate, folders_of, kinds_of, place_of
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
from pyterrier_mathamr.explain import Asked, Explanation, Reading, draw_graph, explain_score
from pyterrier_mathamr.formula.display.typesetting import formula_span, inline_html
from pyterrier_mathamr.formula.located import find_part
from pyterrier_mathamr.posts import (
    PLACEHOLDER,
    Document,
    MathPost,
    latex_of_unicode,
    plain_text,
    post_from_html,
)
from pyterrier_mathamr.posts.kept_source import HIDDEN, shown, with_hidden

from .queries import examples, pattern_html, problems, read_box, step_between, step_of
from .workers import SYSTEMS

_ROWS = 60
_LONGEST = 300  # characters of a sentence
_ALIGNED = 500_000  # characters; symbols of a longer post are not compared with the query's formula by formula
_NAMES = {"bm25": "BM25", "mathamr": "MathAMR+"}


def explained(engine: EngineSnapshot, q: str, docno: str, system: str) -> dict[str, Any]:
    """Explain the score of a post.

    Args:
        engine: the engine to search.
        q: the query.
        docno: the post.
        system: ``blend``, or one of its two parts, ``bm25`` or ``mathamr``.

    Raises:
        UnknownIdError: there is no such post.
    """
    query = engine.suggestions(q).searched
    matcher = engine.matcher(query)
    [document] = engine.indexes.posts.get_many([docno])
    post, title, graph = (
        _with_source(document),
        post_from_html(document.title),
        engine.indexes.graphs[docno],
    )
    read = Reading.of_graph(graph) or Reading(post, post.sentences)  # perhaps after a question's title
    parts = _explanation(engine, query, docno, system, {"graph": graph} if len(post.text) <= _ALIGNED else {}).parts
    matched = _matched_formulas(parts)

    def of_document(formula: int) -> str:
        return _kind(query, read.post.formulas[formula].latex, matched.get(formula), matcher)

    counted = parts[parts["contribution"] != 0]
    rest = counted["contribution"].iloc[_ROWS:]
    of_query = _Cells(Reading(query, query.sentences), matcher, color_of)
    of_post = _Cells(read, matcher, of_document)
    return {
        "docno": docno,
        "system": system,
        "score": float(parts["contribution"].sum()),
        "query_html": marked_post(query, matcher, color_of),
        "document": shown_piece(post, best_piece(post, matcher), matcher, bool(title.text), of_document),
        "parts": [_row(part, of_query, of_post) for part in counted.head(_ROWS).itertuples(index=False)],
        "rest": {"parts": len(rest), "contribution": float(rest.sum())},
    }


def _kind(query: MathPost, latex: str, like: int | None, matcher: Matcher) -> str:
    """The classes of a formula: the color of the query's formula that it is like, and how well it matches that one."""
    like = matcher.like(latex) if like is None else like
    return "" if like is None else f"{color_of(like)} {step_between(query.formulas[like].latex, latex)}"


def _kinds(query: MathPost, post: MathPost, matcher: Matcher) -> Callable[[int], str]:
    """Return the function from the number of a formula of a post to its classes."""
    return lambda formula: _kind(query, post.formulas[formula].latex, None, matcher)


def _with_source(document: Document) -> MathPost:
    """Read a post with what is kept as source, which is shown and is neither words nor formulas."""
    return post_from_html(with_hidden(document.html), document.title)


def shown_piece(
    post: MathPost,
    piece: SnippetPiece,
    matcher: Matcher,
    titled: bool,
    formula_color: Callable[[int], str] | None = None,
) -> dict[str, Any]:
    """A piece of a post, and where it is in the post."""
    text = MathPost(piece.text, post.formulas)
    html = marked_post(text, matcher, formula_color, titled=titled and not piece.start)
    html = HIDDEN.sub(lambda source: f'<code class="tex">{escape(shown(source[0]))}</code>', html)
    return {"html": html, "start": piece.start, "end": piece.end, "characters": piece.characters}


def _explanation(
    engine: EngineSnapshot, query: MathPost, docno: str, system: str, known: dict[str, Any]
) -> Explanation:
    """Explain the score of the blend, or of one of its systems; ``known`` is its graph, for the post's texts."""
    if system == "blend":
        return engine.blend().explain_read(engine.question(query), Asked(known, docno))
    columns = {name: [value] for name, value in known.items()}
    asked = with_objects(engine.frame(query), docno=[docno], **columns)
    retriever = engine.bm25(num_results=1) if system == "bm25" else engine.mathamr(num_results=1)
    return explain_score(retriever, asked).scaled(1.0, _NAMES[system])


def _row(part: Any, query: _Cells, post: _Cells) -> dict[str, Any]:
    """Write a row of :attr:`Explanation.parts`."""
    return {
        "system": part.system,
        "part": part.part,
        "query_html": query.cell(part.query_row, part.query),
        "document_html": post.cell(part.document_row, part.document),
        "contribution": float(part.contribution),
    }


def _matched_formulas(parts: pd.DataFrame) -> Mapping[int, int]:
    """Formulas of the post to the formula of the query that gets most from them."""
    rows = parts[
        parts["part"].isin(["formula", "symbols"]) & (parts["document_row"] >= 0) & (parts["contribution"] > 0)
    ]
    matched: dict[int, int] = {}
    for query_row, document_row in zip(rows["query_row"], rows["document_row"], strict=True):
        matched.setdefault(int(document_row), int(query_row))
    return matched


class _Cells:
    """Writes the parts of one of the two texts."""

    def __init__(self, read: Reading, matcher: Matcher, formula_color: Callable[[int], str]) -> None:
        self._post, self._sentences = read
        self._matcher, self._color = matcher, formula_color

    def cell(self, row: int, text: str) -> str:
        """Write a part."""
        formulas = len(self._post.formulas)
        if row < 0:
            return marked_html(text, MathPost(text, ()), self._matcher, lambda _: "")
        if row < formulas:
            return formula_span(self._post.formulas[row].latex, self._color(row))
        if row < formulas + len(self._sentences):
            return marked_html(_cut(self._sentences[row - formulas]), self._post, self._matcher, self._color)
        return "<i>the whole text</i>"


def _cut(text: str) -> str:
    """Shorten a text between words, which placeholders are."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"


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
        """Answer a request, named as a method."""
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
        found = {
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
            found |= {"folders": folders_of(engine.origins)[:_LISTED], "kinds": kinds_of(engine.origins)[:_LISTED]}
            dates = ["since", "until"] if any(origin.date for origin in engine.origins.values()) else []
            found["filters"] = ["in", *(["kind"] if found["kinds"] else []), *dates]
        self._settings = engine.signature, found
        return found

    def preview(self, q: str, mode: str = "posts") -> dict[str, Any]:
        """The query ``q`` as it is read in a ``mode``, ``posts`` or ``formulas``, and the faults of its LaTeX."""
        engine = self.engine
        read = read_box(engine, q)
        of_formula = mode == "formulas" or read.kind == "formula"
        html = (
            _formula_query_html(read.latex)
            if of_formula
            else marked_post(read.post, engine.matcher(read.post), color_of)
        )
        wrong = problems(q, q.strip() if read.kind == "formula" else "", engine.macros.formula)
        return {"html": html, "kind": read.kind, "latex": plain_text(read.post), "problems": wrong}

    def search(
        self,
        q: str,
        mode: str = "posts",
        weak: bool = False,
        chosen: Filter = EVERYTHING,
        k: int = 10,
        offset: int = 0,
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
        """
        return explained(self.engine, q, docno, system)

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
        title, post = post_from_html(document.title), _with_source(document)
        [heading] = engine.headings([document])
        piece = best_piece(post, matcher, start)
        similar = " ".join(piece_of(post, 0, _SIMILAR).text.split("\n"))
        return {
            "docno": docno,
            "title_html": inline_html(_short(_line(heading), heading), heading),
            **self._place(engine, document),
            **shown_piece(post, piece, matcher, bool(title.text), _kinds(query, post, matcher)),
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
        answers, rankings = list[dict[str, Any]](), list[list[str]]()
        for key in self.systems:
            start = time.perf_counter()
            last = offset + k
            depth = max(last + 1, _COMPARED if len(self.systems) > 1 else 0)
            found = engine.found(question, depth, key, chosen, slice(offset, last + 1))
            more = len(found.docnos) > k and (weak or key != "blend" or bool(found.matches[k] >= GOOD))
            shown = found.shown(weak, k)
            documents = engine.indexes.posts.get_many(shown.docnos)
            rows = [
                {
                    "match": match,
                    "named": named,
                    **_result(post, heading, score, matcher, query),
                    **self._place(engine, post),
                }
                for post, heading, score, match, named in zip(
                    documents,
                    engine.headings(documents),
                    shown.scores.tolist(),
                    shown.matches.tolist(),
                    shown.named.tolist(),
                    strict=True,
                )
            ]
            answer = {"key": key, "name": SYSTEMS[key], "milliseconds": _milliseconds(start), "results": rows}
            answers.append({**answer, "more": more, "weak": len(found.docnos[:k]) - len(rows)})
            rankings.append(found.ranking)
        _add_moves(answers, rankings[0])
        return answers

    def _formulas(self, engine: EngineSnapshot, latex: str, chosen: Filter, k: int, offset: int) -> dict[str, Any]:
        start = time.perf_counter()
        posts = engine.formulas_by_post(latex, offset + k + 1, chosen)[offset:]
        headings = engine.headings([best.document for best, *_ in posts[:k]])
        rows = [
            {
                **_formulas_of(found[: 1 + _OTHERS], heading),
                **self._place(engine, found[0].document),
            }
            for found, heading in zip(posts, headings, strict=False)
        ]
        return {
            "key": "formulas",
            "name": "Formulas",
            "milliseconds": _milliseconds(start),
            "results": rows,
            "more": len(posts) > k,
        }

    def _place(self, engine: EngineSnapshot, document: Document) -> dict[str, Any]:
        """Where a post was read, the question that it answers, and the link to it."""
        return {
            "parent": document.parent if document.parent in engine else "",
            **place_of(document),
            "date": document.origin.date,
            "link": self._link.link(document) if self._link else "",
        }


def _result(document: Document, title: MathPost, score: float, matcher: Matcher, query: MathPost) -> dict[str, Any]:
    body = post_from_html(document.html)
    snippet = best_snippet(body, matcher)
    same = [each.latex for each in title.formulas] == [each.latex for each in body.formulas[: len(title.formulas)]]
    text = _without_headings(snippet.text, [*document.origin.section.split(" › "), title.text if same else ""])
    return {
        "docno": document.docno,
        "post_id": document.docno,
        "score": float(score),
        "title_html": marked_html(_short(_line(title), title), title, matcher, _kinds(query, title, matcher)),
        "snippet_html": marked_html(text, body, matcher, _kinds(query, body, matcher)) + (" …" if snippet.cut else ""),
    }


def _without_headings(text: str, headings: Sequence[str]) -> str:
    """Leave out the headings that a snippet begins with, since the page shows them above it."""
    for heading in (heading.removesuffix(" …") for heading in headings):
        if heading and f"{text} ".startswith(f"{heading} "):
            text = text.removeprefix(heading).lstrip(" .:")
    return text


def _formulas_of(found: Sequence[FoundFormula], title: MathPost) -> dict[str, Any]:
    """A post and the formulas found in it, marked in its title and in the sentence of the best; then the others."""
    best, post, line = found[0], found[0].post, _short(_line(title), title)
    shown = {row.latex: _shown(row) for row in found}
    number = next((i for i, formula in enumerate(post.formulas) if formula.id == best.id), -1)
    sentence = _without_headings(post.sentence_with(number), [*best.document.origin.section.split(" › "), _line(title)])
    place = next((m.start() for m in PLACEHOLDER.finditer(sentence) if int(m[1]) == number), -1)
    if place > _LONGEST_LINE // 2:
        sentence = sentence[place:]

    def written(text: str, of: MathPost) -> str:
        kinds = [shown.get(each.latex, ("", ())) for each in of.formulas]
        return inline_html(text, of, mark=lambda i: kinds[i][0], parts=lambda i: kinds[i][1])

    def alone(row: FoundFormula) -> str:
        kind, parts = shown[row.latex]
        return formula_span(row.latex, kind, parts=parts)

    titled = {title.formulas[int(m[1])].latex for m in PLACEHOLDER.finditer(line)}
    snippet = written(_short(sentence, post), post) if place >= 0 else ""
    if place < 0 and best.latex not in titled:  # it is in the heading of a section
        snippet = alone(best)
    return {
        "docno": best.id,
        "post_id": best.document.docno,
        "score": best.score,
        "title_html": written(line, title),
        "snippet_html": snippet,
        "latex": best.latex,
        "tier": best.tier,
        "substitution": [
            {"name_html": _name_html(name), "value_html": formula_span(value)}
            for name, value in best.substitution.items()
            if name != value
        ],
        "others": [
            {"docno": row.id, "score": row.score, "html": alone(row), "latex": row.latex, "tier": row.tier}
            for row in found[1:]
        ],
    }


def _shown(row: FoundFormula) -> tuple[str, Sequence[tuple[int, int]]]:
    """The classes of a formula that was found, and the part that matches, around which nothing is colored."""
    parts = find_part(row.latex, row.part) if row.part else []
    return f"part-0 {step_of(row.tier)}{' has-matched' if parts else ''}", parts


def _name_html(name: str) -> str:
    """A letter or a wildcard of a query."""
    return f"<code>{escape(name)}</code>" if name.startswith("?") else formula_span(name)


def _line(post: MathPost) -> str:
    return " ".join(post.text.split("\n"))


def _short(text: str, post: MathPost) -> str:
    """Cut a text with placeholders that is too long for a result."""
    piece = piece_of(MathPost(text, post.formulas), 0, _LONGEST_LINE)
    return piece.text if piece.end == piece.characters else f"{piece.text}…"


def _formula_query_html(latex: str) -> str:
    if not latex:
        return ""
    return f'<span class="formula part-0" data-latex="{escape(latex)}">{pattern_html(latex, display=True)}</span>'


def _add_moves(systems: Sequence[dict[str, Any]], first: Sequence[str]) -> None:
    """Add to each result its rank in the first system, from 1; ``None`` if it is not among its 1,000."""
    ranks = {docno: rank for rank, docno in enumerate(first, start=1)}
    for system in systems[1:]:
        for result in system["results"]:
            result["rank_in_first"] = ranks.get(result["docno"])


def _milliseconds(start: float) -> int:
    return round(1000 * (time.perf_counter() - start))

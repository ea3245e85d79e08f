"""Reading an engine: one state of its indexes, from which every answer is made.

::

    SearchEngine ──snapshot()──▶ EngineSnapshot       the current state of the folder, opened once
         └── search, explain, post, … of EngineReader ──▶ each answers from one snapshot

    search   query ──suggestions──▶ words that no post has ──question──▶ ReadQuery ──found──▶ FoundPosts
                                                                               ──shown──▶ titles, snippets, places

    stabiliser ──nearest_terms──▶ stabil, …       stems in the index of words, in the order of their edits
                                    └─▶ stability, stabilizer of posts with this stem ──▶ stabilizer, of one edit

If no post has any word of a question, nothing is found by words; and without formulas no match is good (`ranking`),
whatever has similar vectors. So the question is searched with the nearest words in their place, and whatever shows the
results says so.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache, partial
from html import unescape
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import QUESTION, Counted, counted, reported_once, size_of
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr._common.parameters import COUNT, FLAG, FRACTION
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import Asked, Explanation
from pyterrier_mathamr.formula import definitions, report_unknown_commands, trees_of_posts
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.formula.matching import with_wildcards
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import (
    PLACEHOLDER,
    Document,
    FolderMacros,
    MathPost,
    Origin,
    placeholder,
    post_from_any,
    post_from_html,
)
from pyterrier_mathamr.posts.post import typed_text
from pyterrier_mathamr.posts.reading import report_unclosed
from pyterrier_mathamr.posts.tex_macros import NAME
from pyterrier_mathamr.posts.topics import TOPIC_FORMS
from pyterrier_mathamr.sparse.expressions import query_formula
from pyterrier_mathamr.sparse.patterns import described, read_pattern
from pyterrier_mathamr.sparse.texts import Texts, nearest_terms
from pyterrier_mathamr.sparse.tokens import pieces_of, word_tokens, words_and_runs
from pyterrier_mathamr.store import StoreError, signature, unreadable

from .duplicates import FITTED, LEAST, candidates, compared, only_in_one, similarities
from .generations import EngineOptions, EngineRecord, Generations, Indexes, none_here
from .origins import EVERYTHING, Filter, place_of
from .posts import Records
from .ranking import GOOD, BlendedRetriever, ReadQuery, SimilarFormulaRetriever, fitted_weights, share_known
from .snippets import Matcher, best_snippet, heading, marked_text
from .sources import ReadingReport, report_of

_SCORED = 5_000  # posts that pass a filter; if no more, each is scored
_SHORTEST, _LONG, _LONGEST = 4, 7, 40  # letters of a word of one edit, of two edits, and at most
_SUGGESTED = 3
_WORDS = 8  # of a question, that are looked up
_LONGEST_ENDING = 5  # characters that a stemmer removes, as in ``ation``
_STEMS, _POSTS, _EXAMINED = 24, 32, 20_000  # nearest stems; posts of the first, and fewer of others; characters of each
_TAG = re.compile(r"<[^<>]*>")


class FoundPosts(NamedTuple):
    """Posts that a search has found, the best first."""

    docnos: list[str]
    scores: npt.NDArray[np.float64]  # float64, by the system that has found them
    matches: npt.NDArray[np.float64]  # float64, how good a match each is; see :meth:`EngineReader.search`
    named: npt.NDArray[np.bool_]  # bool, whether the query is the name of each
    ranking: list[str]  # the docnos of all found posts, including these

    def kept(self, weak: bool, count: int | None = None) -> FoundPosts:
        """Return the good matches among the first ``count``, or also the weak ones."""
        kept = np.flatnonzero((self.matches[:count] >= GOOD) | weak)
        docnos = [self.docnos[place] for place in kept.tolist()]
        return FoundPosts(docnos, self.scores[kept], self.matches[kept], self.named[kept], self.ranking)


class FoundFormula(NamedTuple):
    """A formula that a search has found."""

    id: str
    score: float  # as `search_formula` returns it
    latex: str
    tier: str  # how it matches
    matched: str  # which part, in LaTeX
    part: tuple[int, int] | None  # shape and key of the part; `None` for the whole formula, or one that is only similar
    substitution: dict[str, str]  # the values of the letters and wildcards of the query
    document: Document  # the post that it is in
    post: MathPost  # the same, read


class Suggestions(NamedTuple):
    """Words of a question that no post has, and what may be meant by them."""

    words: dict[str, Sequence[str]]  # the words, with similar words of the posts, the nearest first; none without such
    corrected: MathPost  # the question with the nearest words in their place
    searched: MathPost  # the question that is searched: the corrected one if no post has any of its words

    @property
    def replaced(self) -> bool:
        """Whether the corrected question is searched."""
        return bool(self.words) and self.searched == self.corrected

    def __str__(self) -> str:
        """Say it in a sentence for each word; empty without suggestions."""
        then = "Searched for “{}” instead." if self.replaced else "Similar words: {}."
        shown = {word: similar[:1] if self.replaced else similar for word, similar in self.words.items()}
        return " ".join(f"No post has “{word}”. {then.format(', '.join(some))}" for word, some in shown.items())


class EngineReader(Counted):
    """The reading methods of an engine; each call answers from one state of all its indexes."""

    @abstractmethod
    def snapshot(self) -> EngineSnapshot:
        """Return the state that is read."""

    def counts(self) -> list[str]:
        """List the number of posts and formulas, and the bytes of all indexes; ``print`` shows them."""
        indexes = self.snapshot().indexes
        built = [index for index in indexes if index.built()]
        formulas = len(indexes.formulas) if indexes.formulas in built else 0
        size = sum(part.meta.size for index in built for part in index.snapshot().parts)
        return [counted(len(indexes.posts), "post"), counted(formulas, "formula"), size_of(size)]

    def __len__(self) -> int:
        return len(self.snapshot().indexes.posts)

    def __contains__(self, docno: object) -> bool:
        return docno in self.snapshot().indexes.posts

    def docnos(self) -> list[str]:
        """Return the docnos of all posts, in the order in which they came."""
        return list(self.snapshot().indexes.posts.snapshot())

    def sources(self) -> list[str]:
        """Return the folders and files that the posts were read from; empty for dictionaries and frames."""
        return list(self.snapshot().record.sources)

    def post(self, docno: str) -> MathPost:
        """Return a post, its title first."""
        [document] = self.snapshot().indexes.posts.get_many([docno])
        return post_from_html(document.html, document.title)

    def headings(self, documents: Sequence[Document]) -> list[MathPost]:
        """Return what posts are called: of an answer without a title, that of its question after ``Answer to:``."""
        return list(map(heading, self.snapshot().indexes.posts.titled(documents)))

    def graph(self, docno: str) -> MathAMRGraph:
        """Return the whole graph of a post, and build it if the model reads, and so the engine stores, less."""
        at = self.snapshot()
        if model_of(at.options).reads >= {"amr", "trees"}:
            return at.indexes.graphs[docno]
        [built] = GraphBuilder(at.options.parser).build_rows([*Records(at.indexes.posts, [docno])])
        graph: MathAMRGraph = built["graph"]
        return graph

    def read_query(self, query: str) -> MathPost:
        """Read a query as the engine's posts are read, with their macros."""
        at = self.snapshot()
        post = post_from_any(query, bare_formulas=at.options.reading.bare_formulas)
        return post.with_macros(at.macros.formula).in_latex()

    def frame(self, query: str | MathPost) -> pd.DataFrame:
        """Write a query as a frame: its formulas between delimiters, the notes' macros written out."""
        post = query if isinstance(query, MathPost) else self.read_query(query)
        return pd.DataFrame([["1", text_of(post)]], columns=["qid", "query"])

    def question(self, query: str | MathPost) -> ReadQuery:
        """Read a query, a text or the one that :meth:`suggestions` searches, and encode it, once for all its uses."""
        at = self.snapshot()
        with reported_once():
            post = report_unclosed(QUESTION, at.suggestions(query).searched if isinstance(query, str) else query)
            macros = definitions(formula.latex for formula in post.formulas)
            for formula in post.formulas:  # a model that reads no trees would not tell
                report_unknown_commands(QUESTION, formula.latex, trees_of_posts(formula.latex, macros))
            [read] = at.blend().read({QUESTION: replace(post, text=post.text.replace("\n", " "))})
        return read

    def suggestions(self, query: str | MathPost) -> Suggestions:
        """Suggest similar words of the posts for words of a question that no post has.

        Args:
            query: the question.

        Returns:
            The words, none if the question is the name of a post, and the question that :meth:`search` searches.
        """
        at = self.snapshot()
        question = at.read_query(query) if isinstance(query, str) else query
        bm25 = at.indexes.bm25.snapshot()
        words, runs = words_and_runs(PLACEHOLDER.sub(" ", question.text))
        tokens_of = {word: word_tokens(word, bm25.tokens.single) for word in dict.fromkeys([*words, *runs])}
        known = {word: any(map(bm25.postings.terms.__contains__, some)) for word, some in tokens_of.items() if some}
        if all(known.values()) or at.indexes.posts.called(text_of(question)):
            return Suggestions({}, question, question)
        unknown = [word for word in dict.fromkeys(words) if not known.get(word, True)]
        nearest = {word: similar for word in unknown[:_WORDS] if (similar := at._similar_words(word))}
        if not nearest:
            return Suggestions({}, question, question)

        def corrected(text: str) -> str:
            return "".join(nearest[piece][0] if piece in nearest else piece for piece, _ in pieces_of(text))

        pieces = enumerate(PLACEHOLDER.split(question.text))  # every second one is the number of a formula
        text = "".join(placeholder(int(piece)) if place % 2 else corrected(piece) for place, piece in pieces)
        other = replace(question, text=text)
        return Suggestions(nearest, other, question if any(known.values()) else other)

    def matcher(self, query: MathPost) -> Matcher:
        """Return the matcher of a query, which finds the words and formulas that a text shares with it."""
        bm25 = self.snapshot().indexes.bm25.snapshot()
        postings, total = bm25.postings, max(len(bm25), 1)

        def rarity(token: str) -> float:
            number = postings.terms.get(token)
            if number is None:
                return 0.0  # no post has it
            return 1.0 - int(postings.offsets[number + 1] - postings.offsets[number]) / (total + 1)

        return Matcher(query, bm25.tokens, rarity)

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        weak: bool = False,
        within: str = "",
        kind: str = "",
        since: str = "",
        until: str = "",
    ) -> pd.DataFrame:
        r"""Find the posts that answer a question, possibly none.

        Args:
            query: words, and formulas in LaTeX or Unicode: ``Why does $\sum 1/n$ diverge?``
            k: the number of posts at most.
            weak: also return weak matches, which may be no better than random posts.
            within: a folder or file that the posts are in, such as ``analysis/``; for records the prefix of their ids.
            kind: the type of unit, such as ``theorem``.
            since: the day, month or year in which the posts were last changed, or later: ``2026-03-01``, ``2026``.
            until: the day, month or year, or earlier.

        Returns:
            ``docno``, ``score``, ``match``, ``named``, ``title``, ``snippet``, and ``file``, ``line``, ``section`` and
            ``kind`` of the place where the post was read; the best first. ``match``, 0 to .999, is the share of
            unrelated posts that score lower for a random question; a good match has at least .9. It means the same for
            every query. Posts whose name, title, label or number is the query are ``named`` and come first. The score,
            which :meth:`explain` splits, orders the posts of one query.

            If no post has any word of the query, it is searched with the nearest words of the posts. A warning says so,
            and lists similar words for any other word that no post has; :meth:`suggestions` returns them.

        Raises:
            ConfigError: no post is in the folder or of the type, or a date is invalid.
        """
        COUNT.check("k", k)
        FLAG.check("weak", weak)
        at = self.snapshot()
        suggestions = at.suggestions(query)
        if words := str(suggestions):
            warnings.warn(MathAMRWarning(words), stacklevel=2)
        question = at.question(suggestions.searched)
        hits = at.found(question, k, chosen=Filter(within, kind, since, until))
        return at.shown(question, hits.kept(weak))

    def found(
        self, query: ReadQuery, k: int, system: str = "blend", chosen: Filter = EVERYTHING, part: slice = slice(None)
    ) -> FoundPosts:
        """Find the best ``k`` posts that pass a filter, and return a part of their ranks.

        Args:
            query: the query, read by :meth:`read_query` and :meth:`question`.
            k: the most posts found, before a part of them is taken.
            system: ``blend``, ``bm25`` or ``mathamr``.
            chosen: the filter; by default all posts pass.
            part: which of the ranks to score and match, by default all.
        """
        at = self.snapshot()
        retriever, among = at.blend(), None
        if chosen != EVERYTHING:
            among = np.sort(retriever.documents(chosen.chosen(at.origins)))
            if len(among) <= _SCORED:
                retriever.candidates = max(len(among), 1)
        documents, scores = retriever.best(query, k, system, among)
        ranking, documents, scores = retriever.docnos(documents), documents[part], scores[part]
        blended = scores if system == "blend" else retriever.score(query, documents)
        named = np.isin(documents, query.named)
        return FoundPosts(ranking[part], scores, at.matches(query, blended), named, ranking)

    def matches(self, query: ReadQuery, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Convert the blend's ``scores`` for ``query`` to match values; see :meth:`search`."""
        at = self.snapshot()
        known = share_known(query, len(at.indexes.posts))
        return at.record.unrelated.match(query.post, known * scores) if known else np.zeros(len(scores))

    def shown(self, query: ReadQuery, found: FoundPosts) -> pd.DataFrame:
        """Make the table of the posts ``found`` for ``query``, with titles, snippets and places; see :meth:`search`."""
        at = self.snapshot()
        matcher = at.matcher(query.post)
        documents = at.indexes.posts.get_many(found.docnos)
        bodies = [post_from_html(document.html) for document in documents]
        return pd.DataFrame(
            {
                "docno": pd.Series(found.docnos, dtype="str"),
                "score": found.scores,
                "match": found.matches,
                "named": found.named,
                "title": [text_of(title) for title in at.headings(documents)],
                "snippet": [marked_text(best_snippet(body, matcher), body, matcher) for body in bodies],
                **_columns(documents, "file", "line", "section", "kind"),
            }
        )

    def search_formula(
        self, latex: str, k: int = 10, *, within: str = "", kind: str = "", since: str = "", until: str = ""
    ) -> pd.DataFrame:
        r"""Find formulas like a given one; ``?a`` is a wildcard, and letters may have other names.

        Args:
            latex: a formula, with or without dollars.
            k: the number of formulas at most.
            within: the folder or file of their posts; formulas beyond the best 1,000 ``k`` are not found.
            kind: the type of unit of their posts, such as ``theorem``.
            since: the day, month or year in which the posts were last changed, or later: ``2026-03-01``, ``2026``.
            until: the day, month or year, or earlier.

        Returns:
            ``docno`` (the formula's id), ``post_id``, ``score``, ``latex``; ``tier``, how it matches, such as
            ``renamed``; ``matched``, the matching part, in LaTeX; ``substitution``, the values of the letters and
            wildcards of the query; ``title`` of the post; and ``file``, ``line`` and ``section`` of the place where it
            was read. A formula that occurs several times in a post is listed once.

        Raises:
            ConfigError: no post is in the folder or of the type, or a date is invalid.
        """
        COUNT.check("k", k)
        at = self.snapshot()
        formulas = list(islice(at._ranked_formulas(latex, k, Filter(within, kind, since, until)), k))
        columns = ["docno", "post_id", "score", "latex", "tier", "matched", "substitution"]
        rows = [
            (each.id, each.document.docno, each.score, each.latex, each.tier, each.matched, each.substitution)
            for each in formulas
        ]
        documents = [formula.document for formula in formulas]
        titles = list(map(text_of, at.headings(documents)))
        places = _columns(documents, "file", "line", "section")
        return pd.DataFrame(rows, columns=columns).assign(title=titles, **places)

    def formulas_by_post(self, latex: str, k: int, chosen: Filter = EVERYTHING) -> list[list[FoundFormula]]:
        """Group the formulas that :meth:`search_formula` ranks by post.

        Args:
            latex: the formula.
            k: the most posts.
            chosen: the filter of posts.

        Returns:
            A list for each of the first ``k`` posts: its best formula, and others that rank above the post after these.
        """
        posts: dict[str, list[FoundFormula]] = {}
        for formula in self._ranked_formulas(latex, k, chosen):
            if formula.document.docno not in posts and len(posts) == k:
                break
            posts.setdefault(formula.document.docno, []).append(formula)
        return list(posts.values())

    def _ranked_formulas(self, latex: str, k: int, chosen: Filter) -> Iterator[FoundFormula]:
        """Yield formulas of posts that pass a filter, the best first, reading ``k`` at a time; each once in a post."""
        at = self.snapshot()
        indexes = at.indexes
        among = None if chosen == EVERYTHING else set(chosen.chosen(at.origins))
        if not indexes.tangent.built():
            return
        asked = at.macros.formula(query_formula({"latex": latex}).latex)
        similar = at._similar_formulas().best(with_wildcards(asked))
        matches = islice(indexes.patterns.retriever(num_results=10 * k).find(read_pattern(asked), similar), 1000 * k)
        passing = (match for match in matches if among is None or match.post_id in among)
        terms = indexes.patterns.snapshot().terms
        posts: dict[str, tuple[Document, MathPost]] = {}
        seen: set[tuple[str, str]] = set()
        while some := list(islice(passing, k)):
            new = [docno for docno in dict.fromkeys(match.post_id for match in some) if docno not in posts]
            for document in indexes.posts.get_many(new):
                posts[document.docno] = document, post_from_html(document.html, document.title)
            for match in some:
                document, post = posts[match.post_id]
                own_latex = next((formula.latex for formula in post.formulas if formula.id == match.docno), "")
                if (match.post_id, own_latex) not in seen:
                    seen.add((match.post_id, own_latex))
                    part = terms.identity(match.match.term) if match.match and match.cover < 1 else None
                    matched, substitution = described(terms, match.match)
                    how = match.tier.words, matched, part, substitution
                    yield FoundFormula(match.docno, match.score, own_latex, *how, document, post)

    def duplicates(self, k: int = 100, *, similarity: float = LEAST, within: str = "", kind: str = "") -> pd.DataFrame:
        """Find pairs of duplicate posts, such as a statement that was noted twice.

        Args:
            k: the number of pairs at most.
            similarity: the least, from 0 to 1; see below.
            within: a folder or file that both posts are in; see :meth:`search`.
            kind: the type of both.

        Returns:
            ``docno_a``, ``docno_b``, ``similarity``, ``title_a``, ``title_b``, ``only_a`` and ``only_b``, the most
            similar pairs first. ``similarity`` orders pairs and is no probability: read the words and formulas that
            only one of both has, in ``only_a`` and ``only_b``; formulas that differ only in letters are the same.

        Raises:
            ConfigError: no post is in the folder or of the type.
        """
        COUNT.check("k", k)
        FRACTION.check("similarity", similarity)
        at = self.snapshot()
        pairs = candidates(at.indexes, at.threads, Filter(within, kind).chosen(at.origins))
        weights = FITTED.get(at.options.model, FITTED["mathamr-plus-mini"])
        likeness = similarities(compared(at.indexes, pairs), weights) if pairs else np.empty(0)
        rows = []
        for number in np.argsort(-likeness, kind="stable")[:k]:
            if likeness[number] >= similarity:
                posts = at.indexes.posts.get_many(pairs[number])
                titles = map(text_of, at.headings(posts))
                rows.append((*pairs[number], float(likeness[number]), *titles, *only_in_one(*posts)))
        names = ["docno_a", "docno_b", "similarity", "title_a", "title_b", "only_a", "only_b"]
        return pd.DataFrame(rows, columns=names)

    def report(self, *, verbose: bool = False) -> ReadingReport:
        """Read the sources once more, as they are now, and report how: ``print`` shows counts, faults and places.

        Args:
            verbose: show progress.
        """
        at = self.snapshot()
        return report_of(at.record, at.indexes.posts, verbose=verbose)

    def explain(self, query: str, docno: str) -> Explanation:
        """Explain the contribution of each part of the text ``query`` to the score of the post ``docno``."""
        at = self.snapshot()
        docno = str(docno)  # as posts are stored, whose ids may be given as numbers
        at.indexes.posts.snapshot().find([docno])  # raises an error that names an unknown docno
        return at.blend().explain_read(at.question(query), Asked({"graph": at.indexes.graphs[docno]}, docno))

    def retriever(self, *, num_results: int = 1000, candidates: int = 1000) -> pt.Transformer:
        """Return the transformer of :meth:`search`: ``query`` to ``docno``, ``score``, ``rank``.

        Where the notes have macros, a stage before it writes them out in the queries; so it is with :meth:`bm25`,
        :meth:`mathamr` and :meth:`formulas`.

        Args:
            num_results: the most posts for a query.
            candidates: posts that BM25 and MathAMR+ each propose, which are then scored by both: more miss less and
                take longer.
        """
        at = self.snapshot()
        return at._after_macros(blended(at.indexes, at.options, num_results=num_results, candidates=candidates))

    def bm25(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of words and symbols, of at most ``num_results`` posts for a query."""
        at = self.snapshot()
        return at._after_macros(at.indexes.bm25.retriever(num_results=num_results))

    def mathamr(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of only MathAMR+, of at most ``num_results`` posts for a query."""
        at = self.snapshot()
        return at._after_macros(at.encode() >> at.indexes.vectors.colbert(num_results=num_results))

    def formulas(self, *, num_results: int = 1000, candidates: int = 1000) -> pt.Transformer:
        """Return the retriever of formulas: ``latex`` and ``query`` to ``docno``, ``post_id``, ``score``, ``rank``.

        Args:
            num_results: the most formulas for a query.
            candidates: formulas that symbol pairs and vectors each propose, besides the matches of the pattern.
        """
        at = self.snapshot()
        similar = at._similar_formulas(candidates=candidates)
        return at._after_macros(at.indexes.patterns.retriever(num_results=num_results, similar=similar))

    def _similar_formulas(self, *, candidates: int = 1000) -> SimilarFormulaRetriever:
        """Return the retriever of formulas that share symbols: ``latex`` to ``docno``, ``post_id``, ``score``."""
        at = self.snapshot()
        model = model_of(at.options)
        graphs = GraphBuilder(at.options.parser, queries="formula", reads=model.reads)
        indexes = at.indexes.tangent, at.indexes.formulas
        return SimilarFormulaRetriever(*indexes, graphs, model, candidates=candidates)


def _columns(documents: Sequence[Document], *names: str) -> dict[str, list[Any]]:
    places = [place_of(document) for document in documents]
    return {name: [place[name] for place in places] for name in names}


class EngineSnapshot(EngineReader):
    """An engine as it was when it was opened, unaffected by later changes; :meth:`SearchEngine.snapshot` makes it.

    Attributes:
        path: the folder of the engine.
        record: its manifest.
        indexes: its indexes, open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        while True:
            self.signature = signature(path)
            if not Generations(path).built():
                raise none_here(path)
            self.record = EngineRecord.read(path)
            try:
                self.indexes: Indexes = self.record.open(path)
            except StoreError:
                if signature(path) == self.signature:
                    raise
            except OSError as error:
                raise unreadable(error, path) from error
            else:
                return

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def options(self) -> EngineOptions:
        """The options of its build."""
        return self.record.options

    def snapshot(self) -> EngineSnapshot:
        """Return this state."""
        return self

    @property
    def identity(self) -> str:
        """The identity of this state: the checksum of its manifest."""
        return self.record.identity

    @property
    def changed(self) -> datetime:
        """When this state was published, in local time."""
        return datetime.fromtimestamp(self.signature[1] / 1e9)

    @cached_property
    def _similar_words(self) -> Callable[[str], Sequence[str]]:
        return lru_cache(1024)(partial(_words_like, self.indexes))

    @cached_property
    def macros(self) -> FolderMacros:
        """The macros of all sources, as far as their definitions agree."""
        known = FolderMacros()
        for root, macros in self.record.macros.items():
            known.add(root, macros)
        return known

    @property
    def origins(self) -> dict[str, Origin]:
        """Where each post was read, by docno."""
        return self._headers[0]

    @property
    def threads(self) -> dict[str, str]:
        """The thread of each post: the post that it answers, or itself."""
        return self._headers[1]

    @cached_property
    def _headers(self) -> tuple[dict[str, Origin], dict[str, str]]:
        origins, threads = dict[str, Origin](), dict[str, str]()
        for post in self.indexes.posts:
            origins[post.docno], threads[post.docno] = post.origin, post.parent or post.docno
        return origins, threads

    def blend(self) -> BlendedRetriever:
        """Return the retriever of queries in which macros are written out."""
        return blended(self.indexes, self.options)

    def _after_macros(self, transformer: pt.Transformer) -> pt.Transformer:
        macros = self.macros
        return MacroWriter(macros, self.options.reading.bare_formulas) >> transformer if macros.macros else transformer

    def encode(self) -> pt.Transformer:
        """Return the transformer of queries to ``query_embs``."""
        model = model_of(self.options)
        return GraphBuilder(self.options.parser, reads=model.reads) >> model.query_encoder()


class MacroWriter(Leaf, Transformer):
    """Writes out the notes' macros in the formulas of queries; texts without any pass unchanged."""

    label = "notes' macros"

    def __init__(self, macros: FolderMacros, bare_formulas: bool) -> None:
        super().__init__()
        self.macros, self.bare_formulas = macros, bare_formulas

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        names = self.macros.macros.keys()

        def written(column: str, text: Any) -> Any:
            if not isinstance(text, str) or names.isdisjoint(NAME.findall(text)):
                return text
            if column == "latex":
                return self.macros.formula(text)
            post = post_from_any(text, bare_formulas=self.bare_formulas)
            return typed_text(post.with_macros(self.macros.formula))

        columns = {"latex", *chain.from_iterable(TOPIC_FORMS)}.intersection(inp.columns)
        return with_objects(inp, **{name: [written(name, text) for text in inp[name]] for name in columns})


def blended(indexes: Indexes, options: EngineOptions, *, named: bool = True, **how: int) -> BlendedRetriever:
    """Return the retriever of some indexes; ``named``: posts whose name is the query come first."""
    model, weights = model_of(options), fitted_weights(options.model)
    graphs = GraphBuilder(options.parser, reads=model.reads)
    return BlendedRetriever(
        indexes.bm25, indexes.vectors, graphs, model, weights, indexes.posts if named else None, **how
    )


@lru_cache(maxsize=4)
def model_of(options: EngineOptions) -> MathAMR:
    """Open the model of an engine, once for all of its states and changes."""
    return MathAMR.from_pretrained(options.model)


def _words_like(indexes: Indexes, word: str) -> list[str]:
    """Find words of the posts that are spelled nearly as a word, by edits, then by how many posts have them."""
    sought = unicodedata.normalize("NFKC", word).lower()
    if not _SHORTEST <= len(sought) <= _LONGEST or any(map(str.isdecimal, sought)):
        return []
    most = 2 if len(sought) >= _LONG else 1
    bm25 = indexes.bm25.snapshot()
    postings, options = bm25.postings, bm25.tokens.single
    single, places = postings.single_terms
    nearest_stems = places[nearest_terms(single, sought, most, _LONGEST_ENDING)[:_STEMS]].tolist()
    documents_of = {postings.names[place]: postings.documents_of(place) for place in nearest_stems}
    if not documents_of:
        return []
    read = [  # of each stem some posts, evenly spaced
        documents[np.linspace(0, len(documents) - 1, min(_POSTS // rank + 1, len(documents))).astype(int)]
        for rank, documents in enumerate(documents_of.values(), start=1)
    ]
    begins = {stem[:2] for stem in documents_of}
    written: Counter[str] = Counter()
    for post in indexes.posts.get_many(bm25.docnos(np.unique(np.concatenate(read)))):
        words, _ = words_and_runs(unescape(_TAG.sub(" ", f"{post.title} {post.html}"[:_EXAMINED])))
        written.update(word for word in words if word[:2].lower() in begins)
    posts_with = {
        word: len(documents_of[stem]) for word in written for stem in word_tokens(word, options) if stem in documents_of
    }
    forms = sorted(posts_with, key=lambda form: (-posts_with[form], -written[form], form))
    nearest: dict[str, str] = {}
    for place in nearest_terms(Texts.of(map(str.lower, forms)), sought, most).tolist():
        form = forms[place].lower()
        if not (form.endswith(sought) or sought.endswith(form)):  # as irrational with rational: opposites
            nearest.setdefault(form, forms[place])
    return list(nearest.values())[:_SUGGESTED]

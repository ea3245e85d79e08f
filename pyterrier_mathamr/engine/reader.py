"""Reading an engine: one state of its indexes, from which every answer is made.

::

    SearchEngine ──snapshot()──▶ EngineSnapshot       the state that the folder has now, opened once
         └── search, explain, post, … of EngineReader ──▶ each answers from one snapshot
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import Counted, counted, size_of
from pyterrier_mathamr._common.parameters import COUNT, FLAG, FRACTION
from pyterrier_mathamr.explain import Explanation
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import Document, MathPost, Origin, post_from_any, post_from_html
from pyterrier_mathamr.store import StoreError, signature

from .duplicates import ERROR, candidates, compared, errors, fitted_to
from .filters import EVERYTHING, Filter, file_of
from .generations import EngineOptions, EngineRecord, Generations, none_here
from .matches import GOOD, share_known
from .ranking import BlendedRetriever, fitted_weights
from .snippets import Matcher, best_snippet, marked_text

if TYPE_CHECKING:
    from .generations import Indexes


CANDIDATES = 1000
"""Posts that each system proposes for the blend."""

_SCORED = 5_000  # posts that pass a filter; if no more, each is scored


class EngineReader(Counted):
    """What can be read of an engine; each call answers from one state of all its indexes."""

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

    def title_and_body(self, docno: str) -> tuple[MathPost, MathPost]:
        """Return the title and the body of a post."""
        return self.titles_and_bodies([docno])[0]

    def titles_and_bodies(self, docnos: Sequence[str]) -> list[tuple[MathPost, MathPost]]:
        """Return the title and the body of each of some posts."""
        return [self.posts_of(document) for document in self.snapshot().indexes.posts.get_many(docnos)]

    def graph(self, docno: str) -> MathAMRGraph:
        """Return the graph of a post."""
        return self.snapshot().indexes.graphs[docno]

    text_of = staticmethod(text_of)

    @staticmethod
    def posts_of(document: Document) -> tuple[MathPost, MathPost]:
        """Read the title and the body of a post."""
        return post_from_html(document.title), post_from_html(document.html)

    def read_query(self, query: str) -> MathPost:
        """Read a query as the engine's posts are read."""
        return post_from_any(query, bare_formulas=self.snapshot().options.reading.bare_formulas).in_latex()

    def frame(self, query: str) -> pd.DataFrame:
        """Write a query as a frame, with delimiters around each of its formulas."""
        return pd.DataFrame([["1", text_of(self.read_query(query))]], columns=["qid", "query"])

    def matcher(self, query: str) -> Matcher:
        """Return the matcher of a query, which tells the words and formulas that a text shares with it."""
        at = self.snapshot()
        bm25 = at.indexes.bm25.snapshot()
        postings, total = bm25.postings, max(len(bm25), 1)

        def rarity(token: str) -> float:
            number = postings.terms.get(token)
            if number is None:
                return 0.0  # no post has it
            return 1.0 - int(postings.offsets[number + 1] - postings.offsets[number]) / (total + 1)

        return Matcher(at.read_query(query), bm25.tokens, rarity)

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
        r"""Find the posts that answer a question, of which there may be none.

        Args:
            query: words, and formulas in LaTeX or Unicode: ``Why does $\sum 1/n$ diverge?``
            k: the number of posts at most.
            weak: also return posts that are no better than a random post may be.
            within: a folder or file that the posts are in, such as ``analysis/``; of records how their ids begin.
            kind: the type of unit, such as ``theorem``.
            since: the day, month or year in which the posts were last changed, or later: ``2026-03-01``, ``2026``.
            until: the same, or earlier.

        Returns:
            ``docno``, ``score``, ``match``, ``title``, ``snippet``, and ``file``, ``line``, ``section`` and ``kind`` of
            the place where the post was read; the best first. ``match``, 0 to .999, is the share of unrelated posts
            that score lower for a random question; a good match has at least .9. It means the same for every query.
            The score, which :meth:`explain` takes apart, orders the posts of one query.

        Raises:
            ConfigError: no post is in the folder or of the type, or a date is none.
        """
        COUNT.check("k", k)
        FLAG.check("weak", weak)
        at = self.snapshot()
        found = at.ranked(query, k, chosen=Filter(within, kind, since, until))
        table = at.shown(query, found, blended=True)
        return table if weak else table[is_good(table)]

    def ranked(self, query: str, k: int, system: str = "blend", chosen: Filter = EVERYTHING) -> pd.DataFrame:
        """Rank the posts that pass a filter by the system ``blend``, ``bm25`` or ``mathamr``: the best ``k``."""
        at = self.snapshot()
        asked = at.frame(query)
        search: Callable[[pd.DataFrame], pd.DataFrame] = at.system(system, num_results=k)
        if chosen == EVERYTHING:
            return search(asked)
        among = chosen.chosen(at.origins)
        if not among:
            return search(asked.head(0))
        if len(among) > _SCORED:
            return at._best_among(set(among), asked, k, system)
        candidates = asked.merge(pd.DataFrame({"docno": among}, dtype=object), how="cross")
        if system != "bm25":
            candidates = candidates.merge(at.encode()(asked).drop(columns="query"), on="qid")
        scorers: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
            "blend": at.retriever().score, "bm25": at.indexes.bm25.scorer(), "mathamr": at.indexes.vectors.scorer(),
        }  # fmt: skip
        scored = scorers[system](candidates)
        return scored[scored["score"] > 0].head(k) if system == "bm25" else scored.head(k)

    def _best_among(self, among: set[str], asked: pd.DataFrame, k: int, system: str) -> pd.DataFrame:
        """Rank many posts: as deep as the unfiltered search is, or until all posts are ranked."""
        depth, posts = CANDIDATES, len(self)
        while True:
            found = self.system(system, num_results=2 * depth, candidates=depth)(asked)
            found = found[found["docno"].isin(among)]
            if len(found) >= max(k, CANDIDATES) or depth >= posts:
                best: pd.DataFrame = found.head(k)
                return best
            depth *= 4

    def system(self, name: str, *, num_results: int = 1000, candidates: int = 1000) -> pt.Transformer:
        """Return the retriever of a system: ``blend``, ``bm25`` or ``mathamr``."""
        if name == "blend":
            return self.retriever(num_results=num_results, candidates=candidates)
        return (self.bm25 if name == "bm25" else self.mathamr)(num_results=num_results)

    def matches(self, query: str, found: pd.DataFrame, *, blended: bool = False) -> list[float]:
        """Return how good a match each post is that was found; see :meth:`search`.

        Args:
            query: the question.
            found: ``docno``, and ``score`` where the blend has found them.
            blended: whether it has.
        """
        at = self.snapshot()
        retriever, asked = at.retriever(), at.frame(query)
        known = share_known(retriever, asked["query"].iloc[0])
        if found.empty or not known:
            return [0.0] * len(found)
        if not blended:
            found = found[["docno"]].merge(retriever.encode(asked), how="cross")
            found = retriever.score(found).set_index("docno").loc[found["docno"]]
        match: list[float] = at.record.unrelated.match(known * found["score"].to_numpy(np.float64)).tolist()
        return match

    def shown(self, query: str, found: pd.DataFrame, *, blended: bool = False) -> pd.DataFrame:
        """Add match, title, snippet and place to posts that a retriever found; see :meth:`search`."""
        at = self.snapshot()
        matcher = at.matcher(query)
        titles, snippets = [], []
        documents = at.indexes.posts.get_many(found["docno"].tolist())
        for title, body in map(self.posts_of, documents):
            titles.append(text_of(title))
            snippets.append(marked_text(best_snippet(body, matcher), body, matcher))
        match = at.matches(query, found, blended=blended)
        table: pd.DataFrame = found[["docno", "score"]].assign(match=match, title=titles, snippet=snippets)
        return table.assign(**_columns(documents, "file", "line", "section", "kind"))

    def search_formula(self, latex: str, k: int = 10) -> pd.DataFrame:
        r"""Find formulas like one that is given; ``?a`` is a wildcard, and letters may have other names.

        Args:
            latex: a formula, with or without dollars.
            k: the number of formulas at most.

        Returns:
            ``docno`` (the formula's id), ``post_id``, ``score``, ``latex``; ``tier``, how it matches, such as
            ``renamed``; ``matched``, which part, in LaTeX; ``substitution``, what the letters and wildcards of the
            query stand for; and ``file``, ``line`` and ``section`` of the place where the post was read. A formula that
            occurs several times in a post is there once.
        """
        COUNT.check("k", k)
        columns = ["docno", "post_id", "score", "latex", "tier", "matched", "substitution"]
        at = self.snapshot()
        if not at.indexes.tangent.built():
            return pd.DataFrame(columns=[*columns, "file", "line", "section"])
        found = at.formulas(num_results=10 * k)(pd.DataFrame([["1", latex, latex]], columns=["qid", "query", "latex"]))
        rows: list[tuple[str, str, float, str, str, str, dict[str, str]]] = []
        documents: list[Document] = []
        seen: set[tuple[str, str]] = set()
        written: dict[str, tuple[Document, dict[str, str]]] = {}  # posts that were read, with their LaTeX by id
        for row in found.itertuples(index=False):
            if row.post_id not in written:
                [post] = at.indexes.posts.get_many([row.post_id])
                formulas = post_from_html(post.html, post.title).formulas
                written[row.post_id] = post, {formula.id: formula.latex for formula in formulas}
            document, latex_of = written[row.post_id]
            formula = latex_of.get(row.docno, "")
            if (row.post_id, formula) not in seen:
                seen.add((row.post_id, formula))
                matched = row.tier, row.matched, row.substitution
                rows.append((row.docno, row.post_id, row.score, formula, *matched))
                documents.append(document)
            if len(rows) == k:
                break
        return pd.DataFrame(rows, columns=columns).assign(**_columns(documents, "file", "line", "section"))

    def duplicates(self, k: int = 100, *, error: float = ERROR, within: str = "", kind: str = "") -> pd.DataFrame:
        """Find pairs of posts that say the same, such as a statement that was noted twice.

        Args:
            k: the number of pairs at most.
            error: the greatest probability that a pair does not say the same.
            within: a folder or file that both posts are in; see :meth:`search`.
            kind: the type of both.

        Returns:
            ``docno_a``, ``docno_b``, ``error``, ``title_a`` and ``title_b``, the surest pairs first; ``error`` is the
            probability that they do not say the same.

        Raises:
            ConfigError: no post is in the folder or of the type.
        """
        COUNT.check("k", k)
        FRACTION.check("error", error)
        at = self.snapshot()
        pairs = candidates(at, Filter(within, kind).chosen(at.origins))
        found = errors(compared(at, pairs), fitted_to(at.options.model)) if pairs else np.empty(0)
        best = np.argsort(found, kind="stable")[:k]
        rows = [(*pairs[place], float(found[place])) for place in best.tolist() if found[place] <= error]
        titles = [[at.text_of(title) for title, _ in at.titles_and_bodies(pair)] for *pair, _ in rows]
        table = [(*row, *of) for row, of in zip(rows, titles, strict=True)]
        return pd.DataFrame(table, columns=["docno_a", "docno_b", "error", "title_a", "title_b"])

    def explain(self, query: str, docno: str) -> Explanation:
        """Say what each part of a query contributes to the score of a post."""
        at = self.snapshot()
        docno = str(docno)  # as posts are stored, whose ids may be given as numbers
        at.indexes.posts.snapshot().find([docno])  # names what is missing
        row = {str(name): value for name, value in at.frame(query).iloc[0].items()}
        return at.retriever().explain({**row, "docno": docno, "graph": at.graph(docno)})

    def retriever(self, *, num_results: int = 1000, candidates: int = 1000) -> BlendedRetriever:
        """Return the transformer of :meth:`search`: ``query`` to ``docno``, ``score``, ``rank``."""
        at = self.snapshot()
        return blended(at.indexes, at.options, candidates=candidates, num_results=num_results)

    def bm25(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of words and symbols."""
        return self.snapshot().indexes.bm25.retriever(num_results=num_results)

    def mathamr(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of MathAMR+ alone."""
        at = self.snapshot()
        return at.encode() >> at.indexes.vectors.colbert(num_results=num_results)

    def formulas(self, *, num_results: int = 1000, candidates: int = 1000) -> pt.Transformer:
        """Return the retriever of formulas: ``latex`` and ``query`` to ``docno``, ``post_id``, ``score``, ``rank``."""
        at = self.snapshot()
        similar: pt.Transformer = at.indexes.tangent.retriever(num_results=candidates)
        if at.indexes.formulas.built():
            vectors = at.indexes.formulas.retriever(num_results=candidates)
            similar = ZScoreFusion(similar, _encoder(at.options, "formula") >> vectors)
        return at.indexes.patterns.retriever(num_results=num_results, similar=similar)


def place_of(document: Document) -> dict[str, Any]:
    """Return the file, line, section and type of a post; blank for a record. The line is 0 for a whole file."""
    origin = document.origin if document.origin.kind else Origin()
    file = file_of(document.docno) if origin.kind else ""
    return {"file": file, "line": origin.line, "section": origin.section, "kind": origin.kind}


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
            else:
                return

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def options(self) -> EngineOptions:
        """What it was built with."""
        return self.record.options

    def snapshot(self) -> EngineSnapshot:
        """Return this state."""
        return self

    @property
    def identity(self) -> str:
        """What identifies this state: the checksum of its manifest."""
        return self.record.identity

    @cached_property
    def origins(self) -> dict[str, Origin]:
        """Where each post was read, by docno."""
        return {docno: origin for docno, (origin, _) in self._headers.items()}

    @cached_property
    def threads(self) -> dict[str, str]:
        """The thread of each post: the post that it answers, or itself."""
        return {docno: thread for docno, (_, thread) in self._headers.items()}

    @cached_property
    def _headers(self) -> dict[str, tuple[Origin, str]]:
        posts = self.indexes.posts
        return {post.docno: (post.origin, post.parent or post.docno) for post in posts}

    def encode(self) -> pt.Transformer:
        """Return the transformer of queries to ``query_embs``."""
        return _encoder(self.options, "post")


def blended(indexes: Indexes, options: EngineOptions, **how: int) -> BlendedRetriever:
    """Return the retriever of some indexes."""
    weights = fitted_weights(options.model)
    return BlendedRetriever(indexes.bm25, indexes.vectors, _encoder(options, "post"), weights, **how)


def is_good(table: pd.DataFrame) -> pd.Series[bool]:
    """Tell which of the posts that were found are good matches."""
    return table["match"] >= GOOD


@lru_cache(maxsize=4)
def _encoder(options: EngineOptions, queries: Literal["post", "formula"]) -> pt.Transformer:
    """Open the model of an engine, once for all of its states."""
    return GraphBuilder(options.parser, queries=queries) >> MathAMR.from_pretrained(options.model).query_encoder()

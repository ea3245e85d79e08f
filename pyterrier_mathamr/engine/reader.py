"""What an engine holds: its posts and their graphs, how many there are, and how a query is read like them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback.counts import Counted, counted, size_of
from pyterrier_mathamr._common.parameters import ByPath
from pyterrier_mathamr.formula.display.rendering import text_of
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import Document, MathPost, in_latex, post_from_any, post_from_html
from pyterrier_mathamr.store import PACKAGE, StoredArtifact

from .generations import FORMAT, TYPE, Generation, Generations, Indexes
from .snippets import Matcher


class EngineReader(Counted, ByPath, pt.Artifact):  # type: ignore[misc]
    """The posts of an engine, and queries read as they are.

    Args:
        path: the folder.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = TYPE, FORMAT, PACKAGE
    schematic: ClassVar[dict[str, str]] = {
        "label": "SearchEngine",
        "help_url": "https://pypi.org/project/pyterrier-mathamr/",
    }

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._generations = Generations(self.path)

    def built(self) -> bool:
        """Tell whether there is a finished engine at the path."""
        return self._generations.built()

    def counts(self) -> list[str]:
        """List the number of posts and formulas, and the bytes of all indexes; ``print`` shows them."""
        formulas = self._indexes.formulas
        parts = [part for artifact in self.artifacts() for part in artifact.snapshot().parts]
        return [
            counted(len(self), "post"),
            counted(len(formulas) if formulas.built() else 0, "formula"),
            size_of(sum(part.meta.size for part in parts)),
        ]

    def __len__(self) -> int:
        return len(self._indexes.posts)

    def __contains__(self, docno: object) -> bool:
        return docno in self._indexes.posts

    def artifacts(self) -> list[StoredArtifact]:
        """Return the artifacts that the engine consists of, the posts first."""
        return [artifact for artifact in self._indexes if artifact.built()]

    def docnos(self) -> list[str]:
        """Return the docnos of all posts, in the order in which they came."""
        return list(self._indexes.posts.snapshot())

    def post(self, docno: str) -> MathPost:
        """Return a post, its title first.

        Raises:
            UnknownIdError: there is no such post.
        """
        document = self._indexes.posts.get_many([docno])[0]
        return post_from_html(document.html, document.title)

    def title_and_body(self, docno: str) -> tuple[MathPost, MathPost]:
        """Return the title and the body of a post."""
        return self.titles_and_bodies([docno])[0]

    def titles_and_bodies(self, docnos: Sequence[str]) -> list[tuple[MathPost, MathPost]]:
        """Return the title and the body of each of some posts.

        Raises:
            UnknownIdError: some are not there; it names them.
        """
        return [self.posts_of(document) for document in self._indexes.posts.get_many(docnos)]

    def graph(self, docno: str) -> MathAMRGraph:
        """Return the graph of a post."""
        return self._indexes.graphs[docno]

    text_of = staticmethod(text_of)

    @staticmethod
    def posts_of(document: Document) -> tuple[MathPost, MathPost]:
        """Read the title and the body of a post."""
        return post_from_html(document.title), post_from_html(document.html)

    def frame(self, query: str) -> pd.DataFrame:
        """Write a query as a frame, with delimiters around each of its formulas."""
        return pd.DataFrame([["1", text_of(self.read_query(query))]], columns=["qid", "query"])

    def matcher(self, query: str) -> Matcher:
        """Return the matcher of a query, which tells the words and formulas that a text shares with it."""
        snapshot = self._indexes.bm25.snapshot()
        postings = snapshot.postings
        total = max(len(snapshot), 1)

        def rarity(token: str) -> float:
            number = postings.terms.get(token)
            if number is None:
                return 0.0  # no post has it
            return 1.0 - int(postings.offsets[number + 1] - postings.offsets[number]) / (total + 1)

        return Matcher(self.read_query(query), snapshot.tokens, rarity)

    def read_query(self, query: str) -> MathPost:
        """Read a query as the engine's posts are read."""
        return in_latex(post_from_any(query, bare_formulas=self._generation.options["bare_formulas"]))

    def verify(self) -> None:
        """Read everything and compare every checksum.

        Raises:
            StoreError: the first fault.
        """
        for artifact in self.artifacts():
            artifact.verify()

    @property
    def _generation(self) -> Generation:
        return self._generations.current()

    @property
    def _indexes(self) -> Indexes:
        return self._generation.indexes

"""`Explanation`: a score as the sum of its parts, with the two texts that the parts come from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from pyterrier_mathamr.posts import MathPost, PostFormula

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph


class Part(NamedTuple):
    """A part of a score, which is a row of :attr:`Explanation.parts`.

    Attributes:
        system: the system whose score it is a part of, such as ``BM25``.
        part: what of the query it is: ``word``; ``symbols`` of a formula; ``formula``, ``sentence`` or ``document`` (a
            virtual node); a term of the system's own, such as ``layout tree``; or ``score``, all that a system says.
        query: its text; of a formula the LaTeX, of a sentence or document formulas as ``$latex$``. Empty where unknown.
        document_part: what of the document it met, in the same words.
        document: its text.
        similarity: -1 to 1, where the part is a similarity; otherwise NaN.
        weight: the factor of the similarity.
        contribution: the part of the score; ``weight * similarity`` where there are both.
        query_row: the number of the formula or virtual node (formulas, sentences, document); -1 for what has none.
        document_row: the same of the document.
        query_formula_id: empty where it is no formula, or has no id.
        document_formula_id: the same of the document.
    """

    system: str
    part: str
    query: str = ""
    document_part: str = ""
    document: str = ""
    similarity: float = math.nan
    weight: float = math.nan
    contribution: float = 0.0
    query_row: int = -1
    document_row: int = -1
    query_formula_id: str = ""
    document_formula_id: str = ""

    def scaled(self, factor: float) -> Part:
        """Return the part of a score that is multiplied by a factor."""
        return self._replace(weight=factor * self.weight, contribution=factor * self.contribution)


class Reading(NamedTuple):
    """A text as a model read it.

    Attributes:
        post: its text and formulas; formula ``i`` is row ``i``.
        sentences: with placeholders; the rows after the formulas.
    """

    post: MathPost
    sentences: tuple[str, ...] = ()

    @classmethod
    def of_graph(cls, graph: MathAMRGraph) -> Reading | None:
        """Return the text of a graph, or ``None`` if it was not built from text."""
        if not graph.text or len(graph.latex) < graph.n_formulas:
            return None
        formulas = map(PostFormula, graph.latex, graph.formula_ids)
        return cls(MathPost(graph.text, tuple(formulas)), graph.sentence_texts)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a document has its score for a query. A terminal shows it as a table, a notebook as texts and bars.

    Attributes:
        docno: the document.
        rows: the parts, the greatest contribution first.
        query: the text of the query, where known.
        document: the text of the document, where known.
    """

    docno: str
    rows: tuple[Part, ...]
    query: Reading | None = None
    document: Reading | None = None

    @classmethod
    def of(
        cls, docno: str, parts: Iterable[Part], query: Reading | None = None, document: Reading | None = None
    ) -> Explanation:
        """Order the parts of a score.

        Args:
            docno: the document.
            parts: in any order.
            query: the text of the query.
            document: the text of the document.
        """
        ordered = sorted(parts, key=lambda part: -part.contribution)
        return cls(docno, tuple(ordered), query, document)

    @cached_property
    def score(self) -> float:
        """The score, as in the ranking of the system that is explained: the sum of all contributions."""
        return math.fsum(part.contribution for part in self.rows)

    @cached_property
    def parts(self) -> pd.DataFrame:
        """The parts as a table, the greatest contribution first; ``contribution`` sums to the score.

        Its columns are ``system``; ``part`` and ``query``, what of the query it is and its text; ``document_part`` and
        ``document``, the same of what it met; ``similarity`` and ``weight``, where the contribution is their product;
        ``contribution``; and rows and formula ids of both sides.
        """
        table = pd.DataFrame(self.rows, columns=Part._fields)
        floats = dict.fromkeys(("similarity", "weight", "contribution"), "float64")
        return table.astype({**floats, "query_row": "int64", "document_row": "int64"})

    def scaled(self, factor: float, system: str | None = None) -> Explanation:
        """Explain the score times a factor.

        Args:
            factor: any number.
            system: the name of the system in all parts, in place of their own.
        """
        parts = (part.scaled(factor) for part in self.rows)
        named = (part if system is None else part._replace(system=system) for part in parts)
        return Explanation.of(self.docno, named, self.query, self.document)

    def __add__(self, other: Explanation) -> Explanation:
        """Explain the sum of two scores of one document for one query."""
        texts = _better(self.query, other.query), _better(self.document, other.document)
        return Explanation.of(self.docno, [*self.rows, *other.rows], *texts)

    def plus(self, *parts: Part) -> Explanation:
        """Explain the score with further parts."""
        return Explanation.of(self.docno, [*self.rows, *parts], self.query, self.document)

    def __repr__(self) -> str:
        from .terminal import table_of

        return table_of(self)

    def _repr_html_(self) -> str:
        from .notebook import html_of

        return html_of(self)


def _better(one: Reading | None, other: Reading | None) -> Reading | None:
    """Return the reading that tells sentences apart, if one does."""
    return other if one is None or (not one.sentences and other is not None and other.sentences) else one

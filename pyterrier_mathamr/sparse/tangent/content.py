"""What a Tangent index keeps of an expression: the symbol pairs of both of its trees.

slt_…, opt_…  Postings      the symbol pairs of each expression's layout tree and operator tree
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.sparse.expressions import expression_fields, merging
from pyterrier_mathamr.sparse.index import UNBOUNDED
from pyterrier_mathamr.sparse.postings import Postings, PostingsBuilder, combine, postings_fields
from pyterrier_mathamr.store import Array, Kind, Part, Rows

from .pairs import PairOptions, pair_terms


@dataclass(frozen=True, slots=True, eq=False)
class SymbolPairs:
    """The symbol pairs of expressions.

    Attributes:
        slt: of the layout trees.
        opt: of the operator trees.
    """

    slt: Postings
    opt: Postings

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Open what a part has (raises as :meth:`Postings.of_part`)."""
        return cls(Postings.of_part(part, "slt_"), Postings.of_part(part, "opt_"))

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several; see :func:`~pyterrier_mathamr.sparse.postings.combine`."""
        return cls(
            combine([piece.slt for piece in pieces], numbers, size, folder),
            combine([piece.opt for piece in pieces], numbers, size, folder),
        )

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""
        return self.slt.arrays("slt_") | self.opt.arrays("opt_")


class PairTerms(NamedTuple):
    """The symbol pairs of both trees of an expression: terms in one text, which other processes are handed faster."""

    slt: str
    opt: str


@dataclass(frozen=True)
class TakePairs:
    """Takes the symbol pairs of an expression.

    Attributes:
        options: which.
    """

    options: PairOptions

    def __call__(self, pair: FormulaPair) -> PairTerms:
        """Return the symbol pairs, with repetitions."""
        return PairTerms(*("\n".join(pair_terms(tree, self.options)) for tree in (pair.slt, pair.opt)))


class SymbolPairsBuilder:
    """Counts the symbol pairs of expressions, one after another."""

    def __init__(self, options: PairOptions) -> None:
        self._options = options
        self._slt, self._opt = PostingsBuilder(), PostingsBuilder()

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""
        return self._slt.nbytes + self._opt.nbytes

    def add(self, pair: FormulaPair) -> None:
        """Count the symbol pairs of an expression."""
        self._slt.add(pair_terms(pair.slt, self._options))
        self._opt.add(pair_terms(pair.opt, self._options))

    def add_taken(self, terms: PairTerms) -> None:
        """Count symbol pairs that were taken."""
        self._slt.add(terms.slt.split("\n") if terms.slt else ())
        self._opt.add(terms.opt.split("\n") if terms.opt else ())

    def payload(self) -> SymbolPairs:
        """Return what was counted."""
        return SymbolPairs(self._slt.postings(), self._opt.postings())


TANGENT = Kind(
    type="sparse_index",
    format="mathamr_tangent",
    version=2,
    fields=expression_fields(*postings_fields("slt_", "x"), *postings_fields("opt_", "x")),
    merge=merging(SymbolPairs),
    rebuild="TangentIndex('{path}').indexer(mode='overwrite').index(posts)",
    part_bytes=UNBOUNDED,
)


def dice(postings: Postings, terms: Counter[str]) -> npt.NDArray[np.float64]:
    """Score all expressions by the symbol pairs that they share with the query."""
    shared = np.zeros(len(postings.lengths), dtype=np.int64)
    for term, times in terms.items():
        number = postings.terms.get(term)
        if number is not None:
            here = slice(postings.offsets[number], postings.offsets[number + 1])
            shared[postings.documents[here]] += np.minimum(postings.counts[here], times)
    sizes = postings.lengths + max(1, terms.total())
    score: npt.NDArray[np.float64] = 2 * shared / sizes
    return score

"""What a Tangent index holds: the pairs of distinct expressions, and which formulas are which expression.

    slt/, opt/       Postings: the pairs of each expression's layout tree and operator tree
    owned    int64  [x + 1]   expression ``i`` owns the formulas ``owned[i]:owned[i + 1]``
    docnos   str    [f]       formula ids, ascending for each expression
    post_ids, visual_ids  str [f]

Half of the formulas of a collection repeat another one, so that pairs are stored and scored once for all that have the
same trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.systems.postings import Postings

from .pairs import PairOptions, pair_terms

ARRAYS = ("owned", "docnos", "post_ids", "visual_ids")


class IndexedFormula(NamedTuple):
    """One formula of a post, as it goes into the index."""

    id: FormulaId
    post_id: DocNo
    visual_id: str
    trees: FormulaPair


@dataclass(frozen=True, slots=True, eq=False)
class TangentContent:
    """``f`` formulas that are ``x`` distinct expressions; the module says what each array is."""

    slt: Postings
    opt: Postings
    owned: npt.NDArray[np.int64]
    docnos: npt.NDArray[np.str_]
    post_ids: npt.NDArray[np.str_]
    visual_ids: npt.NDArray[np.str_]

    @classmethod
    def of(cls, formulas: Iterable[IndexedFormula], options: PairOptions) -> TangentContent:
        """Take in a stream of formulas with different ids.

        Args:
            formulas: each with at least one tree.
            options: which pairs are taken.
        """
        numbers: dict[tuple[str, str], int] = {}
        terms: list[tuple[list[str], list[str]]] = []
        rows: list[tuple[int, FormulaId, DocNo, str]] = []
        for formula in formulas:
            slt, opt = formula.trees
            key = (slt.digest() if slt else "", opt.digest() if opt else "")
            number = numbers.setdefault(key, len(numbers))
            if number == len(terms):
                terms.append((pair_terms(slt, options), pair_terms(opt, options)))
            rows.append((number, formula.id, formula.post_id, formula.visual_id))
        rows.sort()
        counts = np.bincount([row[0] for row in rows], minlength=len(terms)) if rows else np.zeros(0, np.int64)
        return cls(
            slt=Postings.count((str(number), of[0]) for number, of in enumerate(terms)),
            opt=Postings.count((str(number), of[1]) for number, of in enumerate(terms)),
            owned=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            docnos=np.array([row[1] for row in rows], dtype=np.str_),
            post_ids=np.array([row[2] for row in rows], dtype=np.str_),
            visual_ids=np.array([row[3] for row in rows], dtype=np.str_),
        )

    def save(self, folder: Path) -> None:
        """Write the arrays and both postings.

        Args:
            folder: an existing folder.
        """
        for name in ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        for name in ("slt", "opt"):
            (folder / name).mkdir()
            getattr(self, name).save(folder / name)

    @classmethod
    def load(cls, folder: Path) -> TangentContent:
        """Map the arrays into memory and read the vocabularies.

        Raises:
            OSError: a file is missing or cannot be read.
            ValueError: a file is damaged.
        """
        arrays: dict[str, Any] = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS
        }
        return cls(slt=Postings.load(folder / "slt"), opt=Postings.load(folder / "opt"), **arrays)

    def best(self, scores: npt.NDArray[np.float64], count: int) -> tuple[npt.NDArray[np.int64], Any]:
        """Find the formulas with the highest scores: score falling, then formula id rising.

        Args:
            scores: float64 ``[x]``, of the expressions; those that are 0 are left out.
            count: at most so many formulas.

        Returns:
            Their numbers, int64 ``[≤ count]``, and scores, float64 of the same length.
        """
        found = np.flatnonzero(scores > 0)
        found = found[np.argsort(-scores[found], kind="stable")]
        sizes = self.owned[found + 1] - self.owned[found]
        enough = int(np.searchsorted(np.cumsum(sizes), count))  # the expression that brings the last formula wanted
        if enough < len(found):  # keep all that tie with it, so that the id decides, not chance
            found = found[scores[found] >= scores[found[enough]]]
            sizes = self.owned[found + 1] - self.owned[found]
        starts = np.repeat(self.owned[found] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) if len(found) else 0
        numbers = (np.arange(int(sizes.sum())) + starts).astype(np.int64)
        values = np.repeat(scores[found], sizes)
        order = np.lexsort((self.docnos[numbers], -values))[:count]
        return numbers[order], values[order]


def dice(postings: Postings, terms: Counter[str]) -> npt.NDArray[np.float64]:
    """Score all expressions by how many of their pairs and the query's are the same.

    With s the pairs in common (each as often as both have it), recall s/q and precision s/d of a query of q pairs and
    an expression of d pairs, the score is their harmonic mean, 2s / (q + d): 1 for the same pairs, 0 for none.

    Args:
        postings: the expressions' pairs.
        terms: the query's, with how often each occurs.

    Returns:
        float64 ``[x]``, 0 to 1.
    """
    shared = np.zeros(len(postings.lengths), dtype=np.int64)
    for term, times in terms.items():
        number = postings.terms.get(term)
        if number is not None:
            here = slice(postings.offsets[number], postings.offsets[number + 1])
            shared[postings.documents[here]] += np.minimum(postings.counts[here], times)
    sizes = postings.lengths + max(1, terms.total())
    score: npt.NDArray[np.float64] = 2 * shared / sizes
    return score

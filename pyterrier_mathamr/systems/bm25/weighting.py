"""How BM25, BM25+ and TF-IDF weigh the occurrences of a term in a document.

With ``f`` the count, ``l`` the document's length, ``L`` the mean length, ``n`` of ``m`` documents with the term, and
``s = f / (f + k1 · (1 - b + b · l / L))``::

    BM25     ln(1 + (m - n + 0.5) / (n + 0.5)) · s                        Lucene's form
    BM25+    ln((m + 1) / n)                   · ((k1 + 1) · s + delta)
    TF-IDF   log2(m / n + 1)                   · k1 · s                   Terrier's form
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.systems.sparse.postings import Postings, term_blocks

Scheme = Literal["bm25", "tf-idf"]
QueryWeights = Literal["log", "linear"]


class _Defaults(NamedTuple):
    k1: float
    b: float
    query_weights: QueryWeights


_DEFAULTS: dict[Scheme, _Defaults] = {"bm25": _Defaults(2.0, 1.0, "log"), "tf-idf": _Defaults(1.2, 0.75, "linear")}


class Weighting(NamedTuple):
    """The weights of a search: equal ones give equal scores."""

    scheme: Scheme
    k1: float
    b: float
    query_weights: QueryWeights
    delta: float | None

    @classmethod
    def of(
        cls, scheme: Scheme, k1: float | None, b: float | None, query_weights: QueryWeights | None, delta: float | None
    ) -> Weighting:
        """Give each value that is ``None`` the default of its scheme.

        Raises:
            ConfigError: TF-IDF has a delta.
        """
        default = _DEFAULTS[scheme]
        if scheme == "tf-idf" and delta is not None:
            raise ConfigError("delta", delta, "None for weighting='tf-idf', since it belongs to BM25+")
        return cls(
            scheme,
            default.k1 if k1 is None else float(k1),
            default.b if b is None else float(b),
            query_weights or default.query_weights,
            delta,
        )

    @property
    def most(self) -> float:
        """What a term that is repeated without end adds to a score, for a rarity of 1."""
        if self.scheme == "tf-idf":
            return self.k1
        return 1.0 if self.delta is None else self.k1 + 1 + self.delta

    def of_postings(self, postings: Postings) -> npt.NDArray[np.float32]:
        """Weigh each posting: float32 ``[p]``, positive."""
        lengths = postings.lengths
        mean = lengths.mean() if lengths.any() else 1.0
        length = self.k1 * (1 - self.b + self.b * lengths / mean)  # [m]
        rarity, weights = self.rarity(postings), np.empty(len(postings.counts), dtype=np.float32)
        for first, last in term_blocks(postings.offsets):
            here = slice(postings.offsets[first], postings.offsets[last])
            saturation = postings.counts[here] / (postings.counts[here] + length[postings.documents[here]])
            if self.scheme == "tf-idf":
                saturation = self.k1 * saturation
            elif self.delta is not None:
                saturation = (self.k1 + 1) * saturation + self.delta
            times = np.diff(postings.offsets[first : last + 1])
            weights[here] = np.repeat(rarity[first:last], times) * saturation
        return weights

    def rarity(self, postings: Postings) -> npt.NDArray[np.float64]:
        """Compute the logarithm of each term: float64 ``[t]``."""
        documents, found_in = len(postings.lengths), np.diff(postings.offsets)
        if self.scheme == "tf-idf":
            rarity: npt.NDArray[np.float64] = np.log2(documents / found_in + 1)
        elif self.delta is not None:
            rarity = np.log((documents + 1) / found_in)
        else:
            rarity = np.log1p((documents - found_in + 0.5) / (found_in + 0.5))
        return rarity

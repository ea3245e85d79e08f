"""How BM25, BM25+ and TF-IDF weigh the occurrences of a term in a document.

With ``f`` the count, ``l`` the document's length, ``L`` the mean length, ``n`` of ``m`` documents with the term, and
``s = f / (f + k1 · (1 - b + b · l / L))``::

    BM25     ln(1 + (m - n + 0.5) / (n + 0.5)) · s                        Lucene's form
    BM25+    ln((m + 1) / n)                   · ((k1 + 1) · s + delta)
    TF-IDF   log2(m / n + 1)                   · k1 · s                   Terrier's form
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import FRACTION, Rule, between, one_of
from pyterrier_mathamr.sparse.postings import Postings
from pyterrier_mathamr.store import Rows

Scheme = Literal["bm25", "tf-idf"]
QueryWeights = Literal["log", "linear"]

OPTIONS: Mapping[str, Rule] = {
    "k1": between(0).or_none(),
    "b": FRACTION.or_none(),
    "delta": between(0).or_none(),
    "query_weights": one_of(*get_args(QueryWeights)).or_none(),
    "weighting": one_of(*get_args(Scheme)),
}
"""Of the retriever and of the scorer."""

_AT_ONCE = 1 << 16


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
        """Give each value that is ``None`` the default of its scheme."""
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

    def rarity(self, postings: Postings, terms: Rows) -> npt.NDArray[np.float64]:
        """Compute the logarithm of some terms: float64 ``[len(terms)]``."""
        documents, found_in = len(postings.lengths), postings.offsets[terms + 1] - postings.offsets[terms]
        if self.scheme == "tf-idf":
            rarity: npt.NDArray[np.float64] = np.log2(documents / found_in + 1)
        elif self.delta is not None:
            rarity = np.log((documents + 1) / found_in)
        else:
            rarity = np.log1p((documents - found_in + 0.5) / (found_in + 0.5))
        return rarity


class PostingWeights:
    """The weights of postings, computed for a term when it is sought first, and kept."""

    def __init__(self, weighting: Weighting, postings: Postings) -> None:
        self.weighting, self._postings = weighting, postings
        lengths = postings.lengths
        mean = lengths.mean() if lengths.any() else 1.0
        self._lengths = weighting.k1 * (1 - weighting.b + weighting.b * lengths / mean)  # [m]
        self._weights = _untouched(len(postings.counts))
        self._known: set[int] = set()

    def of(self, terms: Iterable[int]) -> npt.NDArray[np.float32]:
        """Return the weight of each posting, positive, where it is one of some terms: float32 ``[p]``."""
        sought, offsets = set(terms), self._postings.offsets
        new = np.array(sorted(sought - self._known), dtype=np.int64)
        for term, rarity in zip(new.tolist(), self.weighting.rarity(self._postings, new), strict=True):
            first, last = offsets[term : term + 2].tolist()
            for start in range(first, last, _AT_ONCE):
                self._weigh(slice(start, min(start + _AT_ONCE, last)), rarity)
        self._known |= sought  # last: another thread that seeks them meanwhile computes the same
        return self._weights

    def _weigh(self, here: slice, rarity: np.float64) -> None:
        """Weigh some postings of one term."""
        weighting, counts = self.weighting, self._postings.counts[here]
        saturation = counts / (counts + self._lengths[self._postings.documents[here]])
        if weighting.scheme == "tf-idf":
            saturation = weighting.k1 * saturation
        elif weighting.delta is not None:
            saturation = (weighting.k1 + 1) * saturation + weighting.delta
        self._weights[here] = rarity * saturation


def _untouched(count: int) -> npt.NDArray[np.float32]:
    """Return zeros that take memory where they are written, a small page at a time; numpy's own take large ones."""
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(count, dtype=np.float32)
    area = mmap.mmap(-1, max(1, 4 * count), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a system without large pages
        area.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(area, dtype=np.float32, count=count)

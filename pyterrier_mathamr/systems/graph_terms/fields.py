"""What the retriever and the scorer share: their options, and the terms of a query with their weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import FRACTION, Rule, between, list_of, one_of
from pyterrier_mathamr.sparse.bm25.weighting import Weighting
from pyterrier_mathamr.sparse.postings import Postings

from .terms import FIELDS, GraphField, GraphTerms

if TYPE_CHECKING:
    from .index import GraphTermsSnapshot

_SOME = list_of(one_of(*FIELDS))
OPTIONS: Mapping[str, Rule] = {
    "fields": Rule(
        f"a list of some of {', '.join(FIELDS)}, each once",
        lambda fields: _SOME.holds(fields) and 0 < len(fields) == len(set(fields)),
    ),
    "weights": list_of(between(0)).or_none(),
    "k1": between(0),
    "b": FRACTION,
}
"""The rules of the options of both."""


class FieldTerms(NamedTuple):
    """What a query looks for in one field of an index.

    Attributes:
        field: which one.
        postings: of all documents.
        weights: float32 ``[p]``, the BM25 weight of each posting of these terms.
        terms: of the query; the weight of each, that of the field included.
    """

    field: GraphField
    postings: Postings
    weights: npt.NDArray[np.float32]
    terms: Mapping[str, float]


def field_weights(fields: Sequence[GraphField], weights: Sequence[float] | None) -> dict[GraphField, float]:
    """Give each field its weight, 1 where none is given."""
    given = (1.0,) * len(fields) if weights is None else weights
    if len(given) != len(fields):
        raise ConfigError("weights", weights, f"a list of {len(fields)} numbers, one for each field")
    return dict(zip(fields, map(float, given), strict=True))


def sought_terms(
    snapshot: GraphTermsSnapshot, terms: GraphTerms, weights: Mapping[GraphField, float], k1: float, b: float
) -> Iterator[FieldTerms]:
    """Weigh the terms of a query that the index has, in the order of the terms."""
    weighting = Weighting.of("bm25", k1, b, "log", None)
    for field, weight in weights.items():
        postings = snapshot.postings(field)
        known = sorted((term, times) for term, times in Counter(terms.of(field)).items() if term in postings.terms)
        yield FieldTerms(
            field,
            postings,
            snapshot.weights(field, weighting, [postings.terms[term] for term, _ in known]),
            {term: weight * (1 + math.log(times)) for term, times in known},
        )

"""What a search in a BM25 index computes: the opened index, its weights, the tokens of a query, and explanations.

With ``f`` the count of a term in a document, ``l`` the document's length, ``L`` the mean length, ``n`` of ``m``
documents with the term, and ``s = f / (f + k1 · (1 - b + b · l / L))``, an occurrence weighs::

    BM25     ln(1 + (m - n + 0.5) / (n + 0.5)) · s                        Lucene's form
    BM25+    ln((m + 1) / n)                   · ((k1 + 1) · s + delta)
    TF-IDF   log2(m / n + 1)                   · k1 · s                   Terrier's form

A score is a sum over tokens, so an explanation groups them: the tokens of a formula are one part, and a token that
several formulas or words share is divided among them by how often each has it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.parameters import between
from pyterrier_mathamr.explain import Asked, Explanation, Part, Reading
from pyterrier_mathamr.posts import PLACEHOLDER, DocumentError, MathPost, query_post
from pyterrier_mathamr.store import (
    META,
    Appended,
    Content,
    DamagedError,
    Field,
    Kind,
    Parts,
    Rows,
    Snapshot,
    StoredPart,
    detail,
)

from .index import UNBOUNDED, Remembered, read_options
from .postings import BLOCK, Postings, postings_fields, postings_of
from .tokens import (
    STRUCTURE,
    TokenOptions,
    post_tokens,
    run_tokens,
    tokens_of_formulas,
    word_tokens,
    words_and_runs,
)

Scheme = Literal["bm25", "tf-idf"]
QueryWeights = Literal["log", "linear"]
PresetName = Literal["standard", "math", "structures"]


class Preset(NamedTuple):
    """The tokens of an index and the defaults of its searches."""

    tokens: TokenOptions
    k1: float
    b: float
    query_weights: QueryWeights
    structures: float = 1.0  # the weight of a structure in a query; of other tokens 1


PRESETS: Mapping[PresetName, Preset] = {
    "standard": Preset(TokenOptions(), 0.9, 0.4, "linear"),  # as PISA and Anserini
    "math": Preset(TokenOptions(stop_words=True, bigrams=True), 2.0, 1.0, "log"),  # fitted to known items of ARQMath
    # fitted to the same questions, half of them with other letters
    "structures": Preset(TokenOptions(stop_words=True, bigrams=True, structures=True), 2.0, 1.0, "log", 2.0),
}

_FINITE = between(-math.inf)
_AT_ONCE = 1 << 16
_TF_IDF: tuple[float, float, QueryWeights, float] = (1.2, 0.75, "linear", 1.0)  # of Terrier


class Weighting(NamedTuple):
    """The weights of a search: equal ones give equal scores."""

    scheme: Scheme
    k1: float
    b: float
    query_weights: QueryWeights
    structures: float
    delta: float | None

    @classmethod
    def of(
        cls,
        scheme: Scheme,
        k1: float | None,
        b: float | None,
        query_weights: QueryWeights | None,
        delta: float | None,
        preset: PresetName,
    ) -> Weighting:
        """Give each value that is ``None`` the default of its scheme, for BM25 that of the preset."""
        usual_k1, usual_b, usual_weights, structures = _TF_IDF if scheme == "tf-idf" else PRESETS[preset][1:]
        k1, b = (default if value is None else float(value) for value, default in ((k1, usual_k1), (b, usual_b)))
        return cls(scheme, k1, b, query_weights or usual_weights, structures, delta)

    @property
    def most(self) -> float:
        """The score of a term that is repeated without end, for a rarity of 1."""
        if self.scheme == "tf-idf":
            return self.k1
        return 1.0 if self.delta is None else self.k1 + 1 + self.delta

    def rarity(self, postings: Postings, terms: Rows) -> npt.NDArray[np.float64]:
        """Compute the logarithm of some terms: float64 ``[len(terms)]``."""
        return self.rarity_of(len(postings.lengths), postings.offsets[terms + 1] - postings.offsets[terms])

    def rarity_of(self, documents: int, found_in: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Compute the logarithm of terms that so many documents contain: float64 ``[len(found_in)]``."""
        if self.scheme == "tf-idf":
            rarity: npt.NDArray[np.float64] = np.log2(documents / found_in + 1)
        elif self.delta is not None:
            rarity = np.log((documents + 1) / found_in)
        else:
            rarity = np.log1p((documents - found_in + 0.5) / (found_in + 0.5))
        return rarity


class PostingWeights:
    """The weights of the postings of terms, computed when a term is first sought, and kept."""

    def __init__(self, weighting: Weighting, postings: Postings) -> None:
        self.weighting, self._postings = weighting, postings
        lengths = postings.lengths
        mean = lengths.mean() if lengths.any() else 1.0
        self._lengths = weighting.k1 * (1 - weighting.b + weighting.b * lengths / mean)  # [m]
        self._known: dict[int, npt.NDArray[np.float32]] = {}

    def of(self, term: int) -> npt.NDArray[np.float32]:
        """Return the weight of each posting of a term, positive: float32 ``[postings of the term]``."""
        if term in self._known:
            return self._known[term]
        weighting, (first, last) = self.weighting, self._postings.offsets[term : term + 2].tolist()
        rarity, weights = weighting.rarity(self._postings, np.array([term]))[0], np.empty(last - first, np.float32)
        for start in range(first, last, _AT_ONCE):
            here = slice(start, min(start + _AT_ONCE, last))
            counts = self._postings.counts[here]
            saturation = counts / (counts + self._lengths[self._postings.documents[here]])
            if weighting.scheme == "tf-idf":
                saturation = weighting.k1 * saturation
            elif weighting.delta is not None:
                saturation = (weighting.k1 + 1) * saturation + weighting.delta
            weights[start - first : here.stop - first] = rarity * saturation
        self._known[term] = weights
        return weights


def _merge(parts: Sequence[StoredPart]) -> Content:
    """Make one part of several, without the documents that were deleted."""
    sources = Appended(parts[0].path.parent, np.dtype(np.uint64))
    for part in parts:
        for start in range(0, len(part), BLOCK):
            sources.append(part["sources"][start : start + BLOCK][part.alive[start : start + BLOCK]])
    arrays = postings_of(parts, parts[0].path.parent).arrays()
    return Content(Parts(parts), {**arrays, "sources": sources.array()})


BM25 = Kind(
    type="sparse_index",
    format="mathamr_bm25",
    version=3,
    fields=(*postings_fields(), Field("sources", "uint64", "m")),
    merge=_merge,
    rebuild="BM25Index('{path}', preset='math').indexer(mode='overwrite').index(documents)",  # what format 2 had
    part_bytes=UNBOUNDED,
)


class BM25Snapshot(Snapshot):
    """A BM25 index as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, BM25)
        self.docnos = Remembered(self, lambda snapshot, numbers: snapshot.ids(snapshot.live[numbers]))
        self._weights: PostingWeights | None = None

    @cached_property
    def preset(self) -> PresetName:
        """What the index was built as."""
        preset = cast("PresetName", detail(self.manifest.details, "preset", str, self.path))
        if preset not in PRESETS:
            raise DamagedError(self.path / META, f"its preset is {preset!r:.40}, not one of {', '.join(PRESETS)}")
        return preset

    @cached_property
    def tokens(self) -> TokenOptions:
        """How the documents were cut into tokens."""
        return read_options(self, "tokens", TokenOptions.from_dict)

    def read_query(self, query: Mapping[Any, Any]) -> MathPost:
        """Read a query as the documents were read."""
        return query_post(query, bare_formulas=bool(self.manifest.details.get("bare_formulas")))

    def rows_of(self, docnos: Sequence[str]) -> Rows:
        """Look up documents, as :attr:`postings` numbers them (raises ``UnknownIdError``): int64 ``[docnos]``."""
        return np.searchsorted(self.live, self.find(docnos))

    @cached_property
    def postings(self) -> Postings:
        """The term counts of the documents that are not deleted, numbered in order."""
        return postings_of(self.parts)

    def weights(self, weighting: Weighting) -> PostingWeights:
        """Return the weights of postings; the last weights are cached."""
        weighting = weighting._replace(query_weights="linear")  # on which the weights of postings do not depend
        cached = self._weights
        if cached is None or cached.weighting != weighting:
            cached = self._weights = PostingWeights(weighting, self.postings)
        return cached


def _is_structure(token: str) -> bool:
    return token.startswith(STRUCTURE)


Query = MathPost | Mapping[str, float]
"""A query as a text, or as tokens with their weights."""


def read_query(row: Mapping[Any, Any], snapshot: BM25Snapshot) -> Query:
    """Read a query: its ``query_toks``, PyTerrier's column of weighted tokens, where it has them, else its text."""
    tokens = row.get("query_toks")
    if is_missing(tokens):
        return snapshot.read_query(row)
    if isinstance(tokens, Mapping) and all(isinstance(name, str) and _FINITE.holds(tokens[name]) for name in tokens):
        return {name: float(weight) for name, weight in tokens.items()}
    reason = f"`query_toks` is {tokens!s:.60}; give a dictionary of tokens of the index, each with a number"
    raise DocumentError(f"topic {row.get('qid', '')!r}", reason)


class QueryTokens:
    """The tokens of a query, weighed for one state of an index.

    Attributes:
        given: all tokens, ascending, and the weight of each in the query.
        weights: those that some document has.
    """

    def __init__(self, snapshot: BM25Snapshot, query: Query, weighting: Weighting) -> None:
        self._snapshot, self._weighting = snapshot, weighting
        given: Mapping[str, float]
        if isinstance(query, MathPost):
            log, structures = weighting.query_weights == "log", weighting.structures
            given = {
                token: (1 + math.log(times) if log else float(times)) * (structures if _is_structure(token) else 1.0)
                for token, times in Counter(post_tokens(query, snapshot.tokens)).items()
            }
        else:
            given = query
        self.given, terms = dict(sorted(given.items())), snapshot.postings.terms
        weighed = [(token, weight, terms.get(token)) for token, weight in self.given.items()]
        self.weights = {token: weight for token, weight, term in weighed if term is not None}
        self._terms = [term for *_, term in weighed if term is not None]
        self._missing = sum(weight for token, weight, term in weighed if term is None and not _is_structure(token))

    def scores(self) -> npt.NDArray[np.float32]:
        """Score all documents: float32 ``[m]``, 0 without a common token."""
        by_weight: dict[float, list[int]] = defaultdict(list)
        for term, weight in zip(self._terms, self.weights.values(), strict=True):
            by_weight[weight].append(term)
        postings, of_postings = self._snapshot.postings, self._snapshot.weights(self._weighting)
        scores = np.zeros(len(self._snapshot), dtype=np.float32)
        for weight, terms in sorted(by_weight.items()):
            unweighted = np.zeros(len(scores), dtype=np.float32)
            for term in terms:
                unweighted[postings.documents_of(term)] += of_postings.of(term)  # a document occurs once
            scores += np.float32(weight) * unweighted
        return scores

    def shares(self, documents: Rows) -> npt.NDArray[np.float64]:
        """Compute the contribution of each token to the score of some documents: float64 ``[documents, tokens]``."""
        postings, of_postings = self._snapshot.postings, self._snapshot.weights(self._weighting)
        shares = np.zeros((len(documents), len(self._terms)))
        for column, (term, weight) in enumerate(zip(self._terms, self.weights.values(), strict=True)):
            having = postings.documents_of(term)
            places = np.minimum(np.searchsorted(having, documents), len(having) - 1)
            hits = having[places] == documents
            shares[hits, column] = weight * of_postings.of(term)[places[hits]].astype(np.float64)
        return shares

    @property
    def of_words(self) -> npt.NDArray[np.bool_]:
        """Whether each token is a word or a symbol, and no structure: bool ``[tokens]``."""
        return np.array([not _is_structure(token) for token in self.weights], dtype=np.bool_)

    @property
    def rarity(self) -> npt.NDArray[np.float64]:
        """The logarithm of each token: float64 ``[tokens]``."""
        return self._weighting.rarity(self._snapshot.postings, np.array(self._terms, dtype=np.int64))

    def greatest(self, structures: bool | None = None) -> float:
        """Bound the score by the score of a document that repeats each token without end.

        Args:
            structures: only structures of formulas, or only other tokens; by default all tokens.
        """
        counted = np.ones(len(self.weights)) if structures is None else self.of_words != structures
        return self._weighting.most * float(np.dot(self.rarity, counted * np.array(list(self.weights.values()))))

    def scaled(self, words: float, structures: float) -> QueryTokens:
        """Return a copy whose weights are multiplied: of structures by one factor, of all other tokens by the other."""
        scaled = copy(self)
        scaled.weights = {
            token: weight * (structures if _is_structure(token) else words) for token, weight in self.weights.items()
        }
        return scaled

    def unknown(self) -> float:
        """Return what words and symbols in no document would add to :meth:`greatest` if a single document had them."""
        documents = len(self._snapshot)
        rarity = float(self._weighting.rarity_of(documents, np.ones(1))[0]) if documents else 0.0
        return self._weighting.most * rarity * self._missing


SYSTEM = "BM25"
_COMPARED = 2_000  # formulas of a document that may be matches of a query's formula, the first ones


def explain_tokens(asked: Asked, query: MathPost, tokens: QueryTokens, snapshot: BM25Snapshot) -> Explanation:
    """Group the contributions of tokens to a score by the words and formulas that they come from."""
    document, options = asked.document_reading(), snapshot.tokens
    contributions = zip(tokens.weights, tokens.shares(snapshot.rows_of([asked.docno]))[0].tolist(), strict=True)
    shares = {token: share for token, share in contributions if share}
    of_formulas = [Counter(tokens) for tokens in tokens_of_formulas(query, options)]
    of_words = Counter(word_tokens(PLACEHOLDER.sub(" ", query.text), options))
    sources = sum(of_formulas, start=of_words.copy())
    matched = [] if document is None else list(map(set, tokens_of_formulas(document.post, options, _COMPARED)))
    parts: list[Part] = []
    for row, counts in enumerate(of_formulas):
        given = {token: shares[token] * times / sources[token] for token, times in counts.items() if token in shares}
        if not given:
            continue
        formula, kind, latex, name, place = query.formulas[row], "", "", "", -1
        # in the order of the query's tokens, so that formulas with the same ones have the same sum
        common = [sum(share for token, share in given.items() if token in tokens) for tokens in matched]
        if document is not None and any(common):  # the formula of the document that has most of its tokens
            place = common.index(max(common))
            kind, latex, name = "formula", document.post.formulas[place].latex, document.post.formulas[place].id
        part = Part(SYSTEM, "symbols", formula.latex, kind, latex, contribution=sum(given.values()), query_row=row)
        parts.append(part._replace(document_row=place, query_formula_id=formula.id, document_formula_id=name))
    asked_words = _written(query.text, options)
    document_words = {} if document is None else _written(document.post.text, options)
    for token, whole in shares.items():
        if share := whole * of_words[token] / sources[token] if sources[token] else whole:
            typed, matching = (
                " ".join(words.get(word, word) for word in token.split("_")) for words in (asked_words, document_words)
            )
            parts.append(Part(SYSTEM, "word", typed, "word", matching, contribution=share))
    return Explanation.of(asked.docno, parts, Reading(query), document)


def _written(text: str, options: TokenOptions) -> dict[str, str]:
    """Map each token of a word to the word as the text first writes it."""
    words, runs = words_and_runs(PLACEHOLDER.sub(" ", text))
    typed: dict[str, str] = {}
    single = options.single
    for word in dict.fromkeys([*words, *chain.from_iterable(map(run_tokens, runs))]):
        for token in word_tokens(word, single):
            typed.setdefault(token, word)
    return typed

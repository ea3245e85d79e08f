"""Duplicate posts: pairs of them, by how similar they are, and what is in only one of both.

::

    stored vectors ──▶ the nearest posts of each, by the vector of the document      no post is encoded again
    v  meaning      the cosine of the two documents' vectors
    w  words        the cosine of their words, weighed by rarity
    f  formulas     shared / all formulas, by length, each with its variables numbered as they come:
                    a² + b² = c² and x² + y² = z² are the same

    similarity = 1 / (1 + exp(-z)),   z = a + b · v + c · w · f

It orders pairs and is no probability: two short statements that differ in one word, such as prime and maximal, may have
.99. So the words and formulas that only one post has are listed. All parts are symmetric. A post and its answer are not
a pair, nor are two answers to one post. The weights were fitted to linked duplicates of ARQMath and to copies with
renamed variables: ``python -m studies duplicates``. Comparing all vectors is quadratic in the number of posts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from pyterrier_mathamr.posts import PLACEHOLDER, Document, post_from_html
from pyterrier_mathamr.sparse.tokens import TEXT, lex_latex, word_tokens, words_and_runs

from .generations import Indexes
from .ranking import Floats

NEIGHBORS = 10
"""Posts that are compared with each one."""

LEAST = 0.9
"""The least similarity of a pair that is listed."""

_BLOCK = 512  # posts whose neighbors are computed at a time
_GREEK_LETTERS = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell"
)
_GREEK = frozenset(_GREEK_LETTERS.split())


class SamenessWeights(NamedTuple):
    """The logistic regression: a, b and c."""

    a: float
    meaning: float
    text: float


FITTED = {
    "mathamr-plus-mini": SamenessWeights(-10.96, 8.26, 9.99),
    "mathamr-plus-text": SamenessWeights(-11.15, 10.98, 9.30),
    "mathamr-plus-text-large": SamenessWeights(-11.15, 10.98, 9.30),  # as mathamr-plus-text, not fitted
}
"""Fitted weights of each bundled model; others use those of ``mathamr-plus-mini``."""


def similarities(features: Floats, weights: SamenessWeights) -> Floats:
    """Compute the similarity of each pair: float64 ``[pairs]``."""
    a, *b = weights
    similarity: Floats = 1 / (1 + np.exp(-(a + features @ np.array(b))))
    return similarity


def candidates(indexes: Indexes, threads_of: Mapping[str, str], docnos: Sequence[str]) -> list[tuple[str, str]]:
    """List pairs of posts, each once, if one is among the nearest of the other; none is of one thread."""
    if len(docnos) < 2:
        return []
    vectors = indexes.vectors.snapshot()
    rows, _ = vectors.rows(vectors.find(docnos), "doc")
    _, threads = np.unique([threads_of[docno] for docno in docnos], return_inverse=True)
    pairs: set[tuple[int, int]] = set()
    nearest = min(NEIGHBORS, len(docnos) - 1)
    for start in range(0, len(rows), _BLOCK):
        products = rows[start : start + _BLOCK] @ rows.T
        products[threads[start : start + _BLOCK, None] == threads] = -np.inf
        neighbors = np.argpartition(-products, nearest - 1, axis=1)[:, :nearest]
        places, columns = np.nonzero(np.isfinite(np.take_along_axis(products, neighbors, axis=1)))
        ones, others = start + places, neighbors[places, columns]
        pairs.update(zip(np.minimum(ones, others).tolist(), np.maximum(ones, others).tolist(), strict=True))
    return [(docnos[i], docnos[j]) for i, j in sorted(pairs)]


def compared(indexes: Indexes, pairs: Sequence[tuple[str, str]]) -> Floats:
    """Compute v and w · f of each pair: float64 ``[pairs, 2]``."""
    docnos = list(dict.fromkeys(docno for pair in pairs for docno in pair))
    numbers = {docno: number for number, docno in enumerate(docnos)}
    vectors = indexes.vectors.snapshot()
    rows, _ = vectors.rows(vectors.find(docnos), "doc")
    contents = [_contents(indexes, document) for document in indexes.posts.get_many(docnos)]
    features = np.empty((len(pairs), 2))
    for pair, (one, other) in enumerate((numbers[a], numbers[b]) for a, b in pairs):
        (words, formulas), (other_words, other_formulas) = contents[one], contents[other]
        f = w = sum(weight * other_words.get(word, 0.0) for word, weight in words.items())
        if formulas or other_formulas:
            both = sum(min(length, other_formulas[name]) for name, length in formulas.items() if name in other_formulas)
            f = both / (sum(formulas.values()) + sum(other_formulas.values()) - both)
        features[pair] = float(rows[one] @ rows[other]), f * (w if words or other_words else f)
    return features


def only_in_one(one: Document, other: Document) -> tuple[str, str]:
    """List the words and formulas of each post that the other lacks, formulas with other letters aside, in order."""
    parts: list[dict[str, str]] = []  # words and formulas as they are written, by what is compared
    for post in (post_from_html(each.html, each.title) for each in (one, other)):
        words = chain(*words_and_runs(PLACEHOLDER.sub(" ", post.text)))
        formulas = (formula.latex for formula in post.formulas)
        parts.append({word.casefold(): word for word in words})
        parts[-1] |= {" ".join(numbered(latex)): f"${latex}$" for latex in formulas}
    first, second = (" ".join(parts[side][key] for key in parts[side] if key not in parts[1 - side]) for side in (0, 1))
    return first, second


def _contents(indexes: Indexes, document: Document) -> tuple[dict[str, float], dict[str, float]]:
    """Return the words of a post, with weights of length 1, and its formulas, with their lengths."""
    snapshot = indexes.bm25.snapshot()
    postings, posts = snapshot.postings, len(snapshot)
    options = snapshot.tokens.single
    post = post_from_html(document.html, document.title)
    words: dict[str, float] = {}
    for token, times in Counter(word_tokens(PLACEHOLDER.sub(" ", post.text), options)).items():
        number = postings.terms.get(token)
        found_in = 1 if number is None else int(postings.offsets[number + 1] - postings.offsets[number])
        words[token] = (1 + float(np.log(times))) * float(np.log1p((posts - found_in + 0.5) / (found_in + 0.5)))
    length = sum(weight * weight for weight in words.values()) ** 0.5 or 1.0
    formulas: dict[str, float] = {}
    for formula in post.formulas:
        if symbols := numbered(formula.latex):
            name = " ".join(symbols)
            formulas[name] = formulas.get(name, 0.0) + len(symbols)
    return {word: weight / length for word, weight in words.items()}, formulas


def numbered(latex: str) -> list[str]:
    """Cut a formula into symbols, with its variables numbered in order of appearance."""
    numbers: dict[str, str] = {}
    symbols = []
    for symbol in lex_latex(TEXT.sub(" ", latex)):
        is_variable = (len(symbol) == 1 and symbol.isalpha()) or symbol.removeprefix("\\") in _GREEK
        symbols.append(numbers.setdefault(symbol, f"v{len(numbers)}") if is_variable else symbol)
    return symbols

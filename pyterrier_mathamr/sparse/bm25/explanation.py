"""Why a document has its BM25 score: what each word and the symbols of each formula of the query contribute.

BM25 is a sum over tokens. Those of a formula are one part; a token that several formulas or words share is divided
among them by how often each has it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pyterrier_mathamr.explain import Explanation, Part, Reading
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost

from .tokens import TokenOptions, formula_tokens, word_tokens

SYSTEM = "BM25"
_WORD = re.compile(r"[^\W_]+")
_COMPARED = 2_000  # formulas of a document that one of the query may be said to meet, the first ones


def explain_tokens(
    docno: str, shares: Mapping[str, float], query: MathPost, document: Reading | None, options: TokenOptions
) -> Explanation:
    """Group what each token contributes to a score by the words and formulas that it comes from."""
    asked = query.formulas if options.formulas else ()
    of_formulas = [Counter(formula_tokens(formula.latex, options)) for formula in asked]
    of_words = Counter(word_tokens(PLACEHOLDER.sub(" ", query.text), options))
    sources = sum(of_formulas, start=of_words.copy())
    parts: list[Part] = []
    formulas = () if document is None else document.post.formulas[:_COMPARED]
    found = [set(formula_tokens(formula.latex, options)) for formula in formulas]
    for row, tokens in enumerate(of_formulas):
        given = {token: shares[token] * times / sources[token] for token, times in tokens.items() if token in shares}
        if given:
            parts.append(_symbols(row, given, query, document, found))
    parts += _words(
        {
            token: share * of_words[token] / sources[token] if sources[token] else share
            for token, share in shares.items()
        },
        query,
        document,
        options,
    )
    return Explanation.of(docno, parts, Reading(query), document)


def _symbols(
    row: int, given: Mapping[str, float], query: MathPost, document: Reading | None, found: Sequence[Set[str]]
) -> Part:
    """Make the part of a formula, with the formula of the document that has most of what contributes."""
    formulas = () if document is None else document.post.formulas
    common = [sum(given.get(token, 0.0) for token in tokens) for tokens in found]
    met = common.index(max(common)) if any(common) else -1
    return Part(
        SYSTEM,
        "symbols",
        query.formulas[row].latex,
        "formula" if met >= 0 else "",
        formulas[met].latex if met >= 0 else "",
        contribution=sum(given.values()),
        query_row=row,
        document_row=met,
        query_formula_id=query.formulas[row].id,
        document_formula_id=formulas[met].id if met >= 0 else "",
    )


def _words(
    given: Mapping[str, float], query: MathPost, document: Reading | None, options: TokenOptions
) -> Iterator[Part]:
    """Make the part of each word and pair of words, as the query and the document write it."""
    asked = _written(query.text, options)
    found = {} if document is None else _written(document.post.text, options)
    for token, share in given.items():
        if share:
            yield Part(SYSTEM, "word", _phrase(token, asked), "word", _phrase(token, found), contribution=share)


def _written(text: str, options: TokenOptions) -> dict[str, str]:
    """Map each token of a word to the word as the text first writes it."""
    plain = TokenOptions(stop_words=options.stop_words, stem=options.stem, bigrams=False)
    words: Iterable[str] = dict.fromkeys(_WORD.findall(PLACEHOLDER.sub(" ", text)))
    found: dict[str, str] = {}
    for word in words:
        for token in word_tokens(word, plain):
            found.setdefault(token, word)
    return found


def _phrase(token: str, written: Mapping[str, str]) -> str:
    return " ".join(written.get(word, word) for word in token.split("_"))

r"""Formulas by patterns: a query may have wildcards, ``?a^2+?b^2=?c^2``, and its letters may have other names.

::

    query ──▶ terms ──candidates──▶ terms of the index that may match ──unify──▶ substitutions ──┐
      └─────▶ similar: another search for formulas ──────────────────────────────────────────────┴──▶ tiers ──▶ ranking

The score is the number of a tier (:class:`Tier`) and a fraction that orders the formulas within it::

    score = tier + 0.999 (0.1 cover + 0.56 kept + 0.04 brevity + 0.05 frequency + 0.25 similarity)    of a match
            0.999 similarity                                             of a formula that is only similar

============  ==========================================================================================
cover         the share of the formula's symbols that the matched part has
kept          the share of the query's symbols, wildcards aside, that have their own names in it
brevity       how many symbols the query has, divided by the number in the part
frequency     of an instance, log2(1 + the formulas that are the same expression) / 12, at most 1
similarity    the formula's score in the other search, divided by the best one for the query; 0 if not found
============  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import best_places, ranking_frame, with_objects
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow
from pyterrier_mathamr.formula import trees_of_posts
from pyterrier_mathamr.formula.located import write_term, write_value
from pyterrier_mathamr.formula.matching import MOST_STEPS as STEPS_OF_ONE
from pyterrier_mathamr.formula.matching import (
    Extent,
    Substitution,
    Terms,
    is_wildcard,
    occurrences,
    read_terms,
    unify,
    with_wildcards,
)
from pyterrier_mathamr.store import Rows, ranges

from .expressions import ExpressionIndex, ExpressionSnapshot, FormulaRetriever, Packing, asked_formula, query_formula
from .index import SparseIndex, warn_of_queries
from .terms import TERMS, StoredTerms, SubExpressions, TermsBuilder, take_terms

MOST_STEPS = 10_000
"""Steps of all unifications of a query; candidates that are left then are at best similar."""
_BELOW_ONE = 0.999
_WEIGHTS = {"cover": 0.1, "kept": 0.56, "brevity": 0.04, "frequency": 0.05, "similarity": 0.25}


class Tier(IntEnum):
    """How a formula matches, the integer part of its score."""

    SIMILAR = 0
    CONTAINS_INSTANCE = 1
    CONTAINS_RENAMED = 2
    CONTAINS = 3
    INSTANCE = 4
    RENAMED = 5
    EQUAL = 6

    @property
    def words(self) -> str:
        """The tier in words, such as ``contains, renamed``."""
        return self.name.lower().replace("_", ", ") if self else "similar"


class Matched(NamedTuple):
    """A term of the index that a pattern matches."""

    term: int  # its number
    tier: Tier  # of formulas that consist of it only
    kept: float  # the share of the pattern's own symbols that have their names in it
    brevity: float  # the number of symbols of the pattern, divided by the number in the term; at most 1
    substitution: Substitution  # the substitution that makes both equal


class SimilarFormulas(NamedTuple):
    """The results of another search for a query."""

    docnos: list[str]  # the ids of formulas, best first
    scores: npt.NDArray[np.float64]  # float64, of each
    places: Mapping[str, tuple[str, str]]  # each id to the post and the visual id

    @classmethod
    def of_ranking(cls, ranking: pd.DataFrame) -> SimilarFormulas:
        """Read the ranking of one query."""
        docnos, count = ranking["docno"].astype(str).tolist(), len(ranking)
        post_ids, visual_ids = (
            ranking[name].astype(str).tolist() if name in ranking else [""] * count for name in ("post_id", "visual_id")
        )
        places = dict(zip(docnos, zip(post_ids, visual_ids, strict=True), strict=True))
        return cls(docnos, ranking["score"].to_numpy(np.float64), places)


NONE_SIMILAR = SimilarFormulas([], np.empty(0), {})


class MatchedFormula(NamedTuple):
    """A formula that a query has found, its matching part unless it is only similar, and the share that this covers."""

    docno: str
    post_id: str
    visual_id: str
    score: float
    tier: Tier
    match: Matched | None
    cover: float


class PatternScores(NamedTuple):
    """All expressions of an index, scored for one query, and the formulas that another search has found."""

    scores: npt.NDArray[np.float64]  # float64 ``[x]``, with a similarity of 0; 0 for an expression that does not match
    which: Rows  # int64 ``[x]``, the number of its match; -1 for none
    tiers: Rows  # int64 ``[x]``
    cover: npt.NDArray[np.float64]  # float64 ``[x]``
    matches: list[Matched]  # the matches of the pattern
    similar: SimilarFormulas  # the results of the other search
    numbers: Rows  # int64, of each of these; -1 for a formula that the index does not have
    similarity: npt.NDArray[np.float64]  # float64, of each of these

    def of(self, expressions: Rows, similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the scores of formulas, float64; their expression is -1 if the index lacks it."""
        matched = (expressions >= 0) & (self.which[expressions] >= 0)
        alike = _BELOW_ONE * similarity
        return np.where(matched, self.scores[expressions] + _WEIGHTS["similarity"] * alike, alike)


class PatternSnapshot(ExpressionSnapshot[SubExpressions]):
    """An index of patterns as it was when it was opened."""

    @property
    def terms(self) -> StoredTerms:
        """The terms, as unification reads them."""
        terms: StoredTerms = self.caches.setdefault("terms", StoredTerms(self.expressions.payload))
        return terms

    @cached_property
    def frequency(self) -> npt.NDArray[np.float64]:
        """How often each expression occurs, on a scale from 0 to 1: float64 ``[x]``."""
        counts = np.zeros(len(self.expressions.payload.symbols))
        np.add.at(counts, self.expressions.numbers, np.diff(self.expressions.owned))
        frequency: npt.NDArray[np.float64] = np.minimum(1.0, np.log2(1 + counts) / 12)
        return frequency


def read_pattern(latex: str) -> Terms | None:
    """Read a query, in which ``?a`` is a wildcard; ``None`` if it has no operator tree, or is only a wildcard."""
    tree = trees_of_posts(with_wildcards(latex), "").opt if latex else None
    pattern = None if tree is None else read_terms(tree)
    return None if pattern is None or is_wildcard(pattern.labels[pattern.root]) else pattern


def find_matches(pattern: Terms, terms: StoredTerms, most: int = MOST_STEPS) -> list[Matched]:
    """Unify a pattern with all terms that may match, within a bound on work.

    Terms with the same letters come first, then whole formulas and statements, then small terms.
    """
    index, matches = terms.stored, list[Matched]()
    candidates = index.candidates(pattern)
    same = np.isin(candidates, index.candidates(pattern, renamed=False))
    order = np.lexsort((index.weights[candidates], -index.best_places[candidates].astype(np.int64), ~same))
    counts = occurrences(pattern, pattern.root)
    for place in order.tolist():
        if most <= 0:
            break
        term = int(candidates[place])
        substitution, steps = unify(pattern, terms, term, min(most, STEPS_OF_ONE))
        most -= steps
        if substitution is None:
            continue
        renamed = [ours for ours, theirs in substitution.letters.items() if terms.label(theirs) != ours]
        named = pattern.sizes[pattern.root] - sum(counts[label] for label in substitution.wildcards)
        kept = 1 - sum(counts[label] for label in renamed) / max(1, named)
        brevity = min(1.0, pattern.sizes[pattern.root] / int(index.weights[term]))
        tier = Tier.INSTANCE if substitution.wildcards else Tier.RENAMED if renamed else Tier.EQUAL
        matches.append(Matched(term, tier, kept, brevity, substitution))
    return matches


class PatternRetriever(FormulaRetriever):
    r"""Ranks formulas by how they match a formula with wildcards, whose letters may have other names.

    ``?a`` and ``\qvar{a}`` are wildcards: each matches any sub-expression, and equal wildcards match equal ones.
    Letters of the query match letters, one to one. A whole formula can match, each line of ``align`` and its like, each
    equation of a chain, each side of a relation, and any other sub-expression. Operands of sums, products and equal
    signs match in any order. π, ℝ and its like, and e with an exponent are not letters: each matches only itself.

    A query is ``latex``, or ``query`` that is one formula in LaTeX, with or without dollars. Other queries find
    nothing, with a warning; so does a single wildcard, which would match everything. Unification stops after
    :data:`MOST_STEPS` steps; the remaining formulas can then only be similar.

    It adds the columns ``docno`` (the formula's id), ``post_id``, ``visual_id``, ``score`` and ``rank``; ``tier``, such
    as ``renamed``; ``matched``, the part that matches, in LaTeX; and ``substitution``, a dictionary from letters and
    wildcards of the query to LaTeX. The last two are empty for a formula that is only similar.

    Args:
        pattern_index: the index.
        num_results: the number of formulas for each query.
        similar: a search for formulas, from ``latex`` to ``docno``, ``post_id`` and ``score``, such as
            ``tangent.retriever()``; it finds formulas that do not match, and orders formulas within a tier.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        patterns = PatternIndex("formulas.patterns")
        tangent = TangentIndex("formulas.tangent").retriever(num_results=100)
        pipeline = patterns.retriever(num_results=100, similar=tangent)
    """

    label = "Patterns"
    outputs = (*FormulaRetriever.outputs, "tier", "matched", "substitution")
    store = None  # the trees of queries are read from LaTeX, as the index's are

    def __init__(
        self,
        pattern_index: PatternIndex,
        num_results: int = 1000,
        *,
        similar: pt.Transformer | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.pattern_index, self.num_results = pattern_index, num_results
        self.similar, self.verbose = similar, verbose

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """The other search."""
        return {} if self.similar is None else {"similar": self.similar}

    def snapshot(self) -> PatternSnapshot:
        return self.pattern_index.snapshot()

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.snapshot()
        patterns = [read_pattern(query_formula(row).latex) for row in queries.to_dict("records")]
        unread = [qid for qid, pattern in zip(queries["qid"], patterns, strict=True) if pattern is None]
        warn_of_queries(
            unread,
            "queries that are not formulas, or only a wildcard,",
            "Give each a formula in LaTeX, in `latex` or `query`.",
        )
        similar = self._search_similar(queries)
        asked = zip(queries["qid"], progress(patterns, self.label, "queries", verbose=self.verbose), strict=True)
        rankings = [
            list(islice(self.find(pattern, similar.get(str(qid), NONE_SIMILAR)), self.num_results))
            for qid, pattern in asked
        ]
        rows = [row for formulas in rankings for row in formulas]
        written = {id(row.match): described(snapshot.terms, row.match) for row in rows}
        places = [(range(len(formulas)), np.array([row.score for row in formulas])) for formulas in rankings]
        texts = {name: [getattr(row, name) for row in rows] for name in ("docno", "post_id", "visual_id")}
        columns = {name: lambda _, values=values: values for name, values in texts.items()}
        ranking = ranking_frame(queries, places, **columns)
        matched, substitutions = ([written[id(row.match)][part] for row in rows] for part in range(2))
        return with_objects(ranking, tier=[row.tier.words for row in rows], matched=matched, substitution=substitutions)

    def find(self, pattern: Terms | None, similar: SimilarFormulas) -> Iterator[MatchedFormula]:
        """Yield the formulas for one query, the best first, given what another search has found.

        ``num_results`` of them are ranked at first, and ten times as many whenever the ranked ones are used up.
        """
        snapshot, count, used = self.snapshot(), self.num_results, 0
        scored = _score(snapshot, pattern, similar)
        while len(formulas := _best(snapshot, scored, count)) == count:
            yield from formulas[used:]
            used, count = count, 10 * count
        yield from formulas[used:]

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain how a formula matches: its tier, its place within the tier, and the substitution.

        Args:
            query: a row with ``latex`` or ``query``, or a frame of one query.
            docno: the id of a formula; by default the ``docno`` of the row.

        Returns:
            The parts of the score. Each letter and wildcard of the query is a part, too, with its value as its
            ``document`` and no contribution.

        Raises:
            AskedError: the row has no query, no formula is named, or the formula has no score for this query.
            UnknownIdError: the index does not hold the formula.
        """
        asked, formula = asked_formula(query, docno, self.label)
        snapshot, pattern = self.snapshot(), read_pattern(formula.latex)
        expressions = snapshot.expressions_of([asked.docno])
        frame = asked.query_frame()
        similar = self._search_similar(frame).get(str(frame["qid"].iloc[0]), NONE_SIMILAR)
        scored = _score(snapshot, pattern, similar)
        places = [place for place, docno in enumerate(similar.docnos) if docno == asked.docno]
        similarity = scored.similarity[places] if places else np.zeros(1)
        if not scored.of(expressions, similarity)[0]:
            raise AskedError(self.label, f"it does not find {asked.docno!r}", "Explain a formula of its ranking.")
        parts = self._parts(snapshot, scored, int(expressions[0]), float(similarity[0]), formula.latex)
        return asked.explained(list(parts))

    def _parts(
        self, snapshot: PatternSnapshot, scored: PatternScores, expression: int, similarity: float, latex: str
    ) -> Iterator[Part]:
        number, tier = int(scored.which[expression]), Tier(int(scored.tiers[expression]))
        if number < 0:
            yield Part(self.label, "similar", latex, "formula", "", similarity, _BELOW_ONE, _BELOW_ONE * similarity)
            return
        match = scored.matches[number]
        written, values = described(snapshot.terms, match)
        yield Part(self.label, tier.words, latex, "formula", written, contribution=float(tier))
        shares = {
            "cover": float(scored.cover[expression]),
            "kept": match.kept,
            "brevity": match.brevity,
            "frequency": float(snapshot.frequency[expression]) if match.tier == Tier.INSTANCE else 0.0,
            "similarity": similarity,
        }
        for name, share in shares.items():
            weight = _BELOW_ONE * _WEIGHTS[name]
            yield Part(self.label, name, "", "", "", share, weight, weight * share)
        for name, value in values.items():
            yield Part(self.label, "wildcard" if name[0] == "?" else "letter", name, "sub-expression", value)

    def _search_similar(self, queries: pd.DataFrame) -> dict[str, SimilarFormulas]:
        """Search with the other system; wildcards are distinct symbols in it."""
        if self.similar is None:
            return {}
        latex = [with_wildcards(query_formula(row).latex) for row in queries.to_dict("records")]
        readable = [place for place, text in enumerate(latex) if text]
        asked = queries.assign(latex=latex, query=latex).iloc[readable].reset_index(drop=True)
        ranking = self.similar(asked)
        return {str(qid): SimilarFormulas.of_ranking(group) for qid, group in ranking.groupby("qid", sort=False)}


def _score(snapshot: PatternSnapshot, pattern: Terms | None, similar: SimilarFormulas) -> PatternScores:
    """Score all expressions for one query, each by its best match."""
    index, size = snapshot.expressions.payload, len(snapshot.expressions.payload.symbols)
    which, tiers = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
    cover, scores = np.zeros(size), np.zeros(size)
    matches = [] if pattern is None else find_matches(pattern, snapshot.terms)
    if matches:
        terms = np.array([match.term for match in matches], dtype=np.int64)
        counts = index.owners[terms + 1] - index.owners[terms]
        postings, number = ranges(index.owners[terms], counts), np.repeat(np.arange(len(matches)), counts)
        expressions = index.within[postings]
        kinds = np.array([int(match.tier) for match in matches])[number]
        statement = index.places[postings] >= Extent.STATEMENT
        reached = np.where(statement, kinds, kinds - (Tier.EQUAL - Tier.CONTAINS))
        covered = np.minimum(1.0, index.weights[terms][number] / np.maximum(1, index.symbols[expressions]))
        fractions = [_WEIGHTS["kept"] * match.kept + _WEIGHTS["brevity"] * match.brevity for match in matches]
        frequency = np.where(kinds == Tier.INSTANCE, snapshot.frequency[expressions], 0.0)
        fraction = np.array(fractions)[number]
        fraction += _WEIGHTS["cover"] * covered + _WEIGHTS["frequency"] * frequency
        order = np.lexsort((-number, fraction, reached))  # the last of an expression is its best; of equals the first
        best = expressions[order]
        which[best], tiers[best], cover[best] = number[order], reached[order], covered[order]
        scores[best] = reached[order] + _BELOW_ONE * fraction[order]
    rows = snapshot.look_up(similar.docnos)
    numbers = np.where(rows < 0, -1, np.searchsorted(snapshot.live, rows))
    if similar.scores.min(initial=np.inf) > 0:
        similarity = np.asarray(similar.scores / similar.scores.max(initial=0.0))
    else:  # where some are not positive, 1 / (rank + 1)
        ranks = np.argsort(np.argsort(-similar.scores, kind="stable"), kind="stable")
        similarity = np.asarray(1.0 / (1.0 + ranks), dtype=np.float64)
    return PatternScores(scores, which, tiers, cover, matches, similar, numbers, similarity)


def _best(snapshot: PatternSnapshot, scored: PatternScores, count: int) -> list[MatchedFormula]:
    """List the results of one query."""
    expressions, similar, places = snapshot.expressions, scored.similar, scored.numbers
    # results that are also similar may have moved others beyond the end
    matching, _ = expressions.best(scored.scores, count + len(places), snapshot.formula_ids)
    indexed, others = places >= 0, np.flatnonzero(places < 0)  # the index does not have the others
    known = np.union1d(matching, places[indexed])
    similarity = np.zeros(len(known) + len(others))
    similarity[np.searchsorted(known, places[indexed])] = scored.similarity[indexed]
    similarity[len(known) :] = scored.similarity[others]
    numbers = expressions.numbers[np.searchsorted(expressions.owned, known, side="right") - 1]
    numbers = np.append(numbers, np.full(len(others), -1))
    scores = scored.of(numbers, similarity)

    def names(some: Rows) -> list[str]:
        outside = some >= len(known)
        docnos = np.empty(len(some), dtype=object)
        docnos[~outside] = snapshot.formula_ids(known[some[~outside]])
        docnos[outside] = [similar.docnos[others[place - len(known)]] for place in some[outside].tolist()]
        return list(docnos)

    positive = np.flatnonzero(scores > 0)
    best = positive[best_places(scores[positive], count, lambda some: names(positive[some]))]
    ids, inside = names(best), best < len(known)
    posts = np.empty((len(best), 2), dtype=object)
    for column, texts in enumerate((snapshot.post_ids, snapshot.visual_ids)):
        posts[inside, column] = texts(known[best[inside]])
    for place in np.flatnonzero(~inside).tolist():
        posts[place] = similar.places[ids[place]]
    numbers = numbers[best]
    which = np.where(numbers >= 0, scored.which[numbers], -1).tolist()
    matches = [scored.matches[number] if number >= 0 else None for number in which]
    tiers = [Tier(tier if match else 0) for tier, match in zip(scored.tiers[numbers].tolist(), matches, strict=True)]
    covers = scored.cover[numbers].tolist()
    return list(map(MatchedFormula, ids, posts[:, 0], posts[:, 1], scores[best].tolist(), tiers, matches, covers))


def described(terms: StoredTerms, match: Matched | None) -> tuple[str, dict[str, str]]:
    """Write the matching part, and the values of letters and wildcards, as LaTeX."""
    if match is None:
        return "", {}
    substitution = match.substitution
    values = {_name(label): write_value(terms, value) for label, value in substitution.wildcards.items()}
    values |= {_name(label): write_term(terms, theirs) for label, theirs in substitution.letters.items()}
    return write_term(terms, match.term), values


def _name(label: str) -> str:
    """Write a letter or a wildcard of a query."""
    if is_wildcard(label):
        return label
    single = Terms()
    return write_term(single, single.add(label))


class PatternIndex(ExpressionIndex[PatternSnapshot], SparseIndex):
    r"""An index of the sub-expressions of formulas, searched by patterns with wildcards and renamed letters.

    Formulas are read from their LaTeX, with all lines of derivations. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = PatternIndex("formulas.patterns")
        formulas.index(dataset.get_corpus_iter())
        formulas.search("?a^2+?b^2=?c^2")
    """

    KIND, PAYLOAD, SNAPSHOT = TERMS, SubExpressions, PatternSnapshot

    schematic: ClassVar[dict[str, str]] = {"label": "Pattern Index"}

    @staticmethod
    def example() -> PatternIndex:
        """Return an index that is not built."""
        return PatternIndex("index.patterns")

    retriever = method(PatternRetriever)

    def packing(self) -> Packing:
        """Describe the stored data of an expression: its sub-expressions."""
        return Packing(TermsBuilder, take_terms, official=False)

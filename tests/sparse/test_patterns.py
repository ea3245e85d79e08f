"""Searching by patterns: tiers by hand, candidates by brute force over all terms."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyterrier.measures import RR

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import opt_from_latex
from pyterrier_mathamr.formula.located import line_trees
from pyterrier_mathamr.formula.matching import Extent, parts, read_terms, unify
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.sparse import PatternIndex, TangentIndex
from pyterrier_mathamr.sparse.patterns import NONE_SIMILAR, SimilarFormulas, Tier, find_matches, read_pattern
from pyterrier_mathamr.sparse.terms import SubExpressions
from pyterrier_mathamr.store import DamagedError, UnknownIdError

LATEX = {
    "eigen": r"Av=\lambda v",
    "same": r"\mu x=Bx",
    "pythagoras": "a^2+b^2=c^2",
    "shifted": "(x-1)^2+y^2=r^2",
    "binomial": r"\begin{align}(a-b)^2&=(a-b)(a-b)\\&=a^2-2ab+b^2\\c&=d+e\end{align}",
    "inside": r"\sin(Bx)+1",
    "sum": r"p+q+r+s^3",
    "other": r"\int_0^1 f(t)\,dt",
}
RENAMED = "contains, renamed"
POSTS = [
    {"docno": f"post-{name}", "html": f'<span class="math-container" id="{name}">{latex}</span>'}
    for name, latex in LATEX.items()
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> PatternIndex:
    return PatternIndex(tmp_path_factory.mktemp("patterns") / "index").index(POSTS)


@pytest.fixture(scope="module")
def tangent(tmp_path_factory: pytest.TempPathFactory) -> TangentIndex:
    return TangentIndex(tmp_path_factory.mktemp("tangent") / "index").index(POSTS)


def tiers(index: PatternIndex, query: str) -> dict[str, str]:
    found = index.search(query)
    return dict(zip(found["docno"], found["tier"], strict=True))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (r"Bx=\mu x", {"same": "equal", "eigen": "renamed"}),  # in any order
        ("?a^2+?b^2=?c^2", {"pythagoras": "instance", "shifted": "instance"}),
        ("?a^2+y^2=?c^2", {"pythagoras": "instance", "shifted": "instance"}),
        ("(x-y)^2=x^2-2xy+y^2", {"binomial": "renamed"}),  # the first line and the last one
        ("c=d+e", {"binomial": "equal"}),
        ("Bx", {"same": "contains", "inside": "contains", **dict.fromkeys(("eigen", "other", "binomial"), RENAMED)}),
        (r"\sin ?a", {"inside": "contains, instance"}),
        ("q+r", {"sum": "contains", "binomial": RENAMED}),  # neighbors among the operands
        ("r+q", {"sum": "contains", "binomial": RENAMED}),
        ("p+r", {"binomial": RENAMED, "sum": RENAMED}),  # p+r itself is not written
        (r"\int_?a^?b ?f\,d?x", {"other": "instance"}),
        (r"\qvar{f}=\qvar{g}+e", {"binomial": "instance"}),
        ("x=x", {}),
    ],
)
def test_formulas_match_in_tiers(index: PatternIndex, query: str, expected: dict[str, str]) -> None:
    assert tiers(index, query) == expected
    assert list(tiers(index, query).values()) == list(expected.values())


def test_the_part_that_matches_and_the_substitution_are_columns(index: PatternIndex) -> None:
    found = index.search("?a^2+y^2=?c^2").iloc[0]
    assert (found["docno"], found["matched"]) == ("shifted", r"\left(x-1\right)^{2}+y^{2}=r^{2}")
    assert found["substitution"] == {"?a": "x-1", "?c": "r", "y": "y"}
    assert index.search("Bx")["matched"].tolist()[:2] == ["Bx", "Bx"]


def test_the_score_is_the_tier_and_a_fraction_that_the_explanation_adds_up(index, tangent):
    found = index.search("?a^2+?b^2=?c^2").set_index("docno")["score"]
    # all of the formula, all symbols kept (the wildcards are none), 11 symbols of the query and of the formula, once
    assert found["pythagoras"] == pytest.approx(4 + 0.999 * (0.5 + 0.16 + 0.04 + 0.05 / 12))
    for retriever in (index.retriever(), index.retriever(similar=tangent.retriever())):
        for query in ("?a^2+?b^2=?c^2", "Bx", r"Bx=\mu x"):
            ranking = retriever.search(query)
            assert ranking["score"].is_monotonic_decreasing
            for row in ranking.to_dict("records"):
                explained = retriever.explain(row)
                assert explained.score == pytest.approx(row["score"])
                bound = [part for part in explained.rows if part.part in ("wildcard", "letter")]
                assert {part.query: part.document for part in bound} == row["substitution"]
                assert all((part.part == "wildcard") == part.query.startswith("?") for part in bound)


def test_another_search_finds_what_is_similar_and_orders_a_tier(index: PatternIndex, tangent: TangentIndex) -> None:
    found = index.retriever(similar=tangent.retriever()).search("?a^2+?b^2=?c^2")
    assert found["tier"].tolist()[:3] == ["instance", "instance", "similar"]
    similar = found[found["tier"] == "similar"]
    assert similar["score"].between(0, 1, inclusive="left").all()
    assert (similar["matched"] == "").all()
    assert set(similar["docno"]) <= set(LATEX)
    assert found["docno"].is_unique
    # several fused searches are one
    fused = ZScoreFusion(tangent.retriever(), tangent.retriever(slt_weight=0.9))
    found = index.retriever(similar=fused).search("?a^2+?b^2=?c^2")
    assert found["tier"].tolist()[:3] == ["instance", "instance", "similar"]
    assert found["score"].is_monotonic_decreasing
    assert found["post_id"].tolist() == [f"post-{docno}" for docno in found["docno"]]


def test_patterns_compose_with_cuts_fusions_and_experiments(index: PatternIndex, tangent: TangentIndex) -> None:
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["?a^2+?b^2=?c^2", r"Cw=\mu w"]})
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["pythagoras", "same"], "label": 1})  # it has a μ, too
    found = index.retriever(similar=tangent.retriever())
    systems = [found, found % 1, ZScoreFusion(found, tangent.retriever())]
    table = pt.Experiment(systems, topics, qrels, [RR], names=list("abc"), validate="error")
    assert table["RR"].tolist() == [1.0, 1.0, 1.0]
    assert {"tier", "substitution"} <= set(pt.inspect.transformer_outputs(found % 1, ["qid", "query"]))


def test_formulas_that_only_the_other_search_has_are_kept(index: PatternIndex) -> None:
    other = pt.Transformer.from_df(
        pd.DataFrame({"qid": ["1"], "query": ["Bx"], "docno": ["new"], "post_id": ["p"], "score": [-3.0], "rank": [0]})
    )
    found = index.retriever(similar=other).search("Bx")
    assert found.iloc[-1][["docno", "post_id", "tier"]].tolist() == ["new", "p", "similar"]
    assert found["rank"].tolist() == list(range(len(found)))


def test_prose_and_a_single_wildcard_find_nothing(index: PatternIndex, tangent: TangentIndex) -> None:
    queries = pd.DataFrame({"qid": ["1", "2", "3", "4"], "query": ["?a", "", r"\frac{a", "Bx"]})
    for retriever in (index.retriever(), index.retriever(similar=tangent.retriever())):
        with pytest.warns(MathAMRWarning, match=r"'1'.*'2'.*'3'"):
            found = retriever(queries)
        assert set(found[found["tier"] != "similar"]["qid"]) == {"4"}


@pytest.mark.filterwarnings("ignore")
def test_question_marks_anywhere_are_searched_or_refused_by_a_warning(index: PatternIndex) -> None:
    for query in ("?", "x?", "??", "?_a", r"\qvar", r"\qvar{", "?a?", "^?a", "?1", "a?b?c", r"?\frac"):
        assert len(index.search(query)) >= 0


def test_an_explanation_names_what_is_wrong(index: PatternIndex) -> None:
    with pytest.raises(UnknownIdError, match="'nowhere'"):
        index.explain({"qid": "1", "latex": "Bx"}, "nowhere")
    with pytest.raises(AskedError, match="does not find 'pythagoras'"):
        index.explain({"qid": "1", "latex": "Bx"}, "pythagoras")
    assert index.explain({"qid": "1", "latex": "Bx"}, "same").docno == "same"


ATOMS = st.sampled_from(["a", "b", "x", "1", "2", "?p", "?q", "a^2", "?p^2", r"\lambda v", "x-1"])
QUERIES = st.builds(
    lambda one, sign, other: f"{one}{sign}{other}", ATOMS, st.sampled_from(["+", "=", "-", "", "^"]), ATOMS
)


@settings(max_examples=40)
@given(QUERIES)
def test_candidates_are_all_terms_that_unify(index: PatternIndex, query: str) -> None:
    pattern, terms = read_pattern(query), index.snapshot().terms
    if pattern is None:
        return
    every = [term for term in range(len(terms.stored.shapes)) if unify(pattern, terms, term).substitution is not None]
    candidates = terms.stored.candidates(pattern)
    assert set(every) <= set(candidates.tolist())
    assert bool(np.all(np.diff(candidates) > 0)) or len(candidates) < 2
    assert sorted(match.term for match in find_matches(pattern, terms)) == every


@settings(max_examples=40)
@given(QUERIES)
def test_the_matching_part_is_one_that_no_other_part_of_the_formula_is_better_than(index, query):
    pattern, terms = read_pattern(query), index.snapshot().terms
    found = {of.docno: of for of in index.retriever().find(pattern, NONE_SIMILAR)}
    for name, latex in LATEX.items() if pattern is not None else ():
        tree = opt_from_latex(latex, lines="all")
        own, best = read_terms(tree, line_trees(tree)), Tier.SIMILAR
        unified = {
            own.identity(term): (of, extent)
            for term, extent in parts(own).items()
            if (of := unify(pattern, own, term).substitution) is not None
        }
        for substitution, extent in unified.values():
            renamed = any(own.label(theirs) != ours for ours, theirs in substitution.letters.items())
            tier = Tier.INSTANCE if substitution.wildcards else Tier.RENAMED if renamed else Tier.EQUAL
            best = max(best, tier if extent >= Extent.STATEMENT else Tier(tier - 3))
        assert (name in found) == bool(unified)
        if unified:
            match = found[name].match
            assert match is not None
            assert found[name].tier == best
            assert terms.identity(match.term) in unified
            assert found[name].cover == min(1.0, int(terms.stored.weights[match.term]) / own.sizes[own.root])


@pytest.mark.parametrize("query", ["?a+?b", "x", "?a^2+?b^2=?c^2", r"\int"])
def test_formulas_that_are_ranked_a_few_at_a_time_are_in_the_order_of_all(index: PatternIndex, query: str) -> None:
    similar = SimilarFormulas(["sum", "new", "eigen"], np.array([3.0, 2.0, 1.0]), {"new": ("p", "")})
    every = [*index.retriever(num_results=1000).find(read_pattern(query), similar)]
    assert len(every) >= 3
    for count in (1, 2, 3):
        assert [*index.retriever(num_results=count).find(read_pattern(query), similar)] == every


def test_work_is_bounded(index: PatternIndex) -> None:
    pattern = read_pattern("?a^2+?b^2=?c^2")
    assert pattern is not None
    assert find_matches(pattern, index.snapshot().terms, most=1) == []
    assert find_matches(pattern, index.snapshot().terms, most=1000) != []


def test_tiers_in_words_and_their_order() -> None:
    assert [tier.words for tier in sorted(Tier, reverse=True)] == [
        "equal", "renamed", "instance", "contains", "contains, renamed", "contains, instance", "similar"
    ]  # fmt: skip


def test_terms_that_hold_themselves_are_damage(index: PatternIndex, tmp_path: Path) -> None:
    [part] = index.snapshot().parts

    class Cyclic:
        path = tmp_path

        def __getitem__(self, name: str) -> object:
            array = part[name]
            return np.ones_like(array) if name == "weights" else array

    with pytest.raises(DamagedError, match="weights"):
        SubExpressions.of_part(Cyclic())  # type: ignore[arg-type]
    assert len(SubExpressions.of_part(part).shapes) == len(part["shapes"])

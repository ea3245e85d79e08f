"""Formula search of an engine: ids that repeat, formulas of posts that are gone."""

import pandas as pd

from pyterrier_mathamr.engine.posts import distinct_formulas
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import Document
from pyterrier_mathamr.sparse import patterns
from tests.engine.conftest import built


def html(*formulas: tuple[str, str]) -> str:
    return "".join(f'<p>So <span class="math-container" id="{name}">{latex}</span></p>' for name, latex in formulas)


REPEATED = [
    {"id": "a", "html": html(("1", "x^2+y"))},
    {"id": "b", "html": html(("1", "z_3"), ("1", r"\sin w"))},
]


def test_formulas_with_one_id_are_all_found(tmp_path) -> None:
    engine = built(tmp_path / "e", REPEATED)
    engine.add([{"id": "c", "html": html(("1", "u_3+u"), ("c1", r"\log v"))}])
    for latex, docno, post in (
        ("x^2+y", "1", "a"),
        ("z_3", "b#0", "b"),
        (r"\sin w", "b#1", "b"),
        ("u_3+u", "c#0", "c"),
        (r"\log v", "c1", "c"),
    ):
        found = engine.search_formula(latex, k=1).iloc[0]
        assert found[["docno", "post_id", "latex"]].tolist() == [docno, post, latex]
    engine.delete("a")
    assert engine.search_formula("z_3", k=1)["docno"].tolist() == ["b#0"]


def test_ids_that_are_free_stay_and_a_new_one_is_free_too() -> None:
    posts = [
        Document("a", "", html(("a#1", "x"), ("a#1", "y"), ("n&amp;m", "z"))),
        Document("b", "", html(("n&amp;m", "z"))),
    ]
    named = list(distinct_formulas(posts, lambda ids: [name == "known" for name in ids]))
    assert [post.html for post in named] == [
        html(("a#1", "x"), ("a#1.1", "y"), ("n&amp;m", "z")),
        html(("b#0", "z")),
    ]
    known = distinct_formulas(
        [Document("c", html(("known", "x")), html(("new", "y")))], lambda ids: [name == "known" for name in ids]
    )
    assert next(known) == Document("c", html(("c#0", "x")), html(("new", "y")))


def test_formulas_of_posts_whose_ids_begin_alike_and_have_spaces_are_all_found(tmp_path) -> None:
    posts = [{"id": "a file", "text": "so $x^2+y$"}, {"id": "a note", "text": "so $z_3$"}, {"id": 7, "text": "no $w$"}]
    engine = built(tmp_path / "e", posts)
    found = engine.search_formula("z_3", k=1).iloc[0]
    assert found[["docno", "post_id", "latex"]].tolist() == ["a note#0", "a note", "z_3"]
    assert engine.explain("so $w$", 7).docno == "7"
    engine.delete([7])
    assert len(engine) == 2


def test_the_best_of_few_formulas_are_the_first_of_many(tmp_path, monkeypatch) -> None:
    latex = [rf"\frac{{{a}^{n}}}{{{b}+{n}}}" for n in range(2, 6) for a in "xyz" for b in ("n", r"\sin x", "k")]
    latex += [rf"\sum_{{k={n}}}^{a} {b}^k" for n in range(3) for a in ("n", r"\infty", "m") for b in "xyz"]
    latex += [rf"\sqrt{{{a}+{n}}}" for a in "abcde" for n in range(4)] + [f"{a}+{b}" for a in "abcde" for b in "uvwxyz"]
    engine = built(tmp_path / "e", [{"id": f"p{i}", "text": f"so ${each}$"} for i, each in enumerate(latex)])
    matched, find_matches = [], patterns.find_matches
    monkeypatch.setattr(patterns, "find_matches", lambda *of: matched.append(of) or find_matches(*of))
    for query, k in ((r"\frac{\sqrt{x}}{n+2}", 1), (r"\sqrt{a+b}+\frac{x}{y}", 3), (r"\frac{?a^2}{k+1}", 7)):
        many = engine.search_formula(query, k=100)["docno"].tolist()
        assert engine.search_formula(query, k=k)["docno"].tolist() == many[:k]
        some = [docno for docno in many if docno.startswith("p9")]
        matched.clear()
        assert engine.search_formula(query, k=1, within="p9")["docno"].tolist() == some[:1]  # beyond the best ten, too
        assert len(matched) == 1


def test_a_search_ranks_formulas_as_a_fusion_of_retrievers_does(engine) -> None:
    indexes = engine.snapshot().indexes
    encode = GraphBuilder(queries="formula") >> MathAMR.from_pretrained("mathamr-plus-mini").query_encoder()
    fusion = ZScoreFusion(indexes.tangent.retriever(), encode >> indexes.formulas.retriever())
    retriever = indexes.patterns.retriever(similar=fusion)
    for latex in (r"\sum 1/n", "?a^2", "x^2+y^2", r"\pi"):
        asked = pd.DataFrame([["1", latex, latex]], columns=["qid", "query", "latex"])
        ranking = retriever(asked)
        pd.testing.assert_frame_equal(engine.formulas()(asked), ranking)
        found = engine.search_formula(latex, k=50)
        expected = ranking[ranking["docno"].isin(found["docno"])]  # a formula that a post repeats is there once
        for column in ("docno", "post_id", "score", "tier", "matched", "substitution"):
            assert found[column].tolist() == expected[column].tolist()

"""Symbol pairs are counted by hand, or by a plain loop over all formulas."""

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.feedback import PostWarning
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, opt_from_latex, slt_from_latex
from pyterrier_mathamr.sparse import PairOptions, TangentIndex
from pyterrier_mathamr.sparse.tangent import pair_terms


def span(number: int, latex: str) -> str:
    return f'<span class="math-container" id="{number}">{latex}</span>'


LATEX = {1: "x^2+1", 2: "x^2", 3: "x^2+1", 4: r"\frac{a}{b}", 5: "y", 6: r"\int_0^\infty e^{-x^2}\,dx", 7: "x^2+y^2+1"}
POSTS = [
    {"docno": "p1", "html": f"<p>Let {span(3, LATEX[3])} and {span(2, LATEX[2])}, so {span(4, LATEX[4])}.</p>"},
    {"docno": "p2", "html": f"<p>{span(1, LATEX[1])} or {span(5, LATEX[5])}; $z$ has no id.</p>"},
    {"docno": "p3", "title": span(6, LATEX[6]), "html": f"{span(7, LATEX[7])} {span(2, LATEX[4])}"},
]
VISUAL = {"1": "v1", "3": "v1", "2": "v2"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> TangentIndex:
    return TangentIndex(tmp_path_factory.mktemp("tangent") / "f").indexer(visual_ids=VISUAL).index(POSTS)


def queries(*latex: str, column: str = "latex") -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(latex) + 1)], column: list(latex)})


def test_a_term_is_two_symbols_and_the_path_between_them_wherever_they_stand() -> None:
    tree = FormulaTree(("V!x", "N!2", "+", "N!1"), ((0, 1, "a"), (0, 2, "n"), (2, 3, "n")), kind="slt")
    pairs_only = ["V!x\ta\tN!2", "V!x\tn\t+", "+\tn\tN!1"]
    assert sorted(pair_terms(tree, PairOptions(1, ends=False))) == sorted(pairs_only)
    ends = ["N!2\tn\t0!", "N!1\tn\t0!"]
    assert sorted(pair_terms(tree, PairOptions(1))) == sorted(pairs_only + ends)
    assert sorted(pair_terms(tree, PairOptions(2))) == sorted([*pairs_only, *ends, "V!x\tnn\tN!1"])
    assert pair_terms(None, PairOptions()) == []


@st.composite
def trees(draw: st.DrawFn) -> FormulaTree:
    """A tree in depth-first order; some of its labels are as long as a symbol pair may be."""
    kind = draw(st.sampled_from(["slt", "opt"]))
    path, edges = [0], list[tuple[int, int, str]]()
    for node in range(1, draw(st.integers(1, 10))):
        path = path[: draw(st.integers(1, len(path)))]
        edges.append((path[-1], node, draw(st.sampled_from("nab" if kind == "slt" else "012"))))
        path.append(node)
    labels = st.sampled_from(["V!x", "N!1", "+", "V!x\ny", "T!" + "x" * 80, "T!" + "y" * 94])
    return FormulaTree(tuple(draw(labels) for _ in range(len(edges) + 1)), tuple(edges), kind=kind)


@settings(max_examples=60)
@given(trees(), st.integers(0, 7), st.sampled_from([True, False, "small"]))
def test_terms_match_the_pairs_of_all_subtrees(tree: FormulaTree, window: int, ends: bool | str) -> None:
    small = all(parent == 0 for parent, _, _ in tree.edges)
    pairs = tree.tuples(window, small if ends == "small" else bool(ends))
    expected = Counter(f"{above}\t{path}\t{below}".replace("\n", " ") for above, below, path, _ in pairs)
    assert Counter(pair_terms(tree, PairOptions(window, ends))) == expected


def test_the_score_is_the_harmonic_mean_of_recall_and_precision(tmp_path: Path) -> None:
    index = TangentIndex(tmp_path / "f").indexer(pairs=PairOptions(1)).index(POSTS)
    found = index.retriever(slt_weight=1.0)(queries("x^2")).set_index("docno").score
    # the query's 3 pairs: x-a-2 and the ends of x and 2; x^2+1 has two of them among its 5: x goes on there
    recall, precision = 2 / 3, 2 / 5
    assert found["2"] == 1.0
    assert found["1"] == found["3"] == pytest.approx(2 * recall * precision / (recall + precision))


def test_scores_equal_a_plain_loop_over_all_formulas(index: TangentIndex) -> None:
    wanted = {}
    for query in ("x^2+2", r"\int_0^1 e^{-x}\,dx", "y"):
        for number, latex in LATEX.items():
            parts = []
            for read in (slt_from_latex, opt_from_latex):
                ours = Counter(pair[:3] for pair in read(query).tuples(2, True))
                theirs = Counter(pair[:3] for pair in read(latex).tuples(2, True))
                parts.append(2 * (ours & theirs).total() / (ours.total() + theirs.total()))
            if sum(parts):
                wanted[query, str(number)] = 0.3 * parts[0] + 0.7 * parts[1]
    found = index.retriever(slt_weight=0.3)(queries("x^2+2", r"\int_0^1 e^{-x}\,dx", "y"))
    assert dict(zip(zip(found.latex, found.docno, strict=True), found.score, strict=True)) == pytest.approx(wanted)


def test_every_formula_of_an_expression_is_found_in_order_of_ids_with_post_and_visual_id(index: TangentIndex) -> None:
    found = index(queries("x^2 + 1"))
    assert found.docno.tolist()[:2] == ["1", "3"]
    assert found.post_id.tolist()[:2] == ["p2", "p1"]
    assert found.visual_id.tolist()[:2] == ["v1", "v1"]
    assert found.score.tolist()[:2] == [1.0, 1.0]
    assert found["rank"].tolist() == list(range(len(found)))
    assert len(index) == 8
    assert len(index.snapshot().expressions.owned) - 1 == 7  # expressions
    # of an id that comes twice the first place counts, and formulas without an id get one
    formulas = {row["docno"]: row for row in index.get_corpus_iter()}
    assert set(formulas) == {*map(str, LATEX), "p2#2"}
    assert formulas["p2#2"] == {"docno": "p2#2", "post_id": "p2", "visual_id": ""}
    assert formulas["2"] == {"docno": "2", "post_id": "p1", "visual_id": "v2"}


def test_a_query_is_a_formula_with_or_without_dollars_in_latex_before_the_topic(index: TangentIndex) -> None:
    found = index.search(r"\int_0^\infty e^{-x^2}\,dx")
    assert (found.docno[0], found.score[0]) == ("6", 1.0)
    dollars = index.search(r"$$\int_0^\infty e^{-x^2}\,dx$$")
    assert dollars[["docno", "score"]].equals(found[["docno", "score"]])
    topics = queries("y").assign(query="Why is $x^2$ a parabola?", title="Parabola")
    assert index.retriever(1)(topics)[["docno", "title"]].to_numpy().tolist() == [["5", "Parabola"]]


def test_formulas_without_trees_are_counted_and_left_out_with_the_reason(tmp_path: Path) -> None:
    posts = [{"docno": "p", "html": span(1, " ") + span(2, "x")}]
    with pytest.warns(MathAMRWarning, match="f: 1 of 2 formulas have no trees and cannot be found.*: 1 “”[.]$"):
        index = TangentIndex(tmp_path / "f").index(posts)
    assert len(index) == 1
    posts = [{"docno": "p", "html": "".join(span(i, " ") for i in range(9)) + span("x", "x")}]
    with pytest.warns(MathAMRWarning, match="g: 9 of 10 formulas have no trees.*: 0 “”, 1 “”, 2 “”, 3 “”, 4 “”, ….$"):
        TangentIndex(tmp_path / "g").index(posts)
    with pytest.warns(MathAMRWarning, match="a: the index is empty: none of 2 posts has a formula between delim"):
        TangentIndex(tmp_path / "a").index([{"docno": "p", "text": "x^2=1"}, {"docno": "q", "text": "words"}])
    with pytest.warns(MathAMRWarning, match=r"is empty: 2 of 2 formulas have no trees.*: 1 “”, 2 “”"):
        TangentIndex(tmp_path / "b").index([{"docno": "p", "html": span(1, " ") + span(2, "")}])
    assert len(TangentIndex(tmp_path / "c").index([])) == 0  # no post, no warning


def test_formulas_without_delimiters_are_indexed_on_request(tmp_path: Path) -> None:
    post = {"docno": "p", "text": "Solve x^2 = 2 for $x$."}
    index = TangentIndex(tmp_path / "f").indexer(bare_formulas=True).index([post])
    assert [row["docno"] for row in index.get_corpus_iter()] == ["p#1", "p#0"]
    assert index.search("x^2=2").docno.tolist()[:1] == ["p#0"]
    with pytest.raises(ConfigError, match=r"bare_formulas=False is not accepted; give that of the index .*: True"):
        index.indexer("append").index([{"docno": "q", "text": "$y$"}])


def test_commands_are_known_where_their_post_defines_them(tmp_path: Path) -> None:
    posts = [
        {"docno": "p", "text": r"$\newcommand{\Rls}{\mathbb{R}}$ $x\in\Rls$"},
        {"docno": "q", "text": r"$x\in\Rls$"},
    ]
    with pytest.warns() as caught:
        index = TangentIndex(tmp_path / "f").index(posts)
    [problems] = [warning.message for warning in caught if isinstance(warning.message, PostWarning)]
    assert str(problems).startswith(r"1 problem in 1 post: the command \Rls is unknown, in 'q': ")
    assert index.search(r"x\in\mathbb{R}").score[0] == 1.0


def test_official_trees_go_before_latex(tmp_path: Path) -> None:
    class Store:
        path = tmp_path / "formulas"

        def get_many(self, ids: list[str]) -> dict[str, object]:
            return {"1": FormulaPair(slt_from_latex("q"), opt_from_latex("q"))} if "1" in ids else {}

        def visual_ids(self, ids: list[str]) -> dict[str, str]:
            return {"1": "v"}

    posts = [{"docno": "p", "html": span(1, "wrong")}]
    index = TangentIndex(tmp_path / "f").indexer(store=Store()).index(posts)  # type: ignore[arg-type]
    assert index.search("q")[["docno", "visual_id", "score"]].to_numpy().tolist() == [["1", "v", 1.0]]


def test_options_out_of_range_are_refused(index: TangentIndex) -> None:
    for value in (1.1, -0.1):
        with pytest.raises(ConfigError, match="slt_weight"):
            index.retriever(slt_weight=value)
        with pytest.raises(ConfigError, match="slt_weight"):
            index.retriever().slt_weight = value
    with pytest.raises(ConfigError, match="window"):
        PairOptions(window=-1)


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.feedback.PostWarning")
def test_the_best_match_sorting_all_formulas(shared_data: Path, tmp_path: Path) -> None:
    posts = islice(ARQMathCollection(shared_data / "arqmath-mini").posts(), 80)
    index = TangentIndex(tmp_path / "f").index({"docno": post.id, "html": post.body} for post in posts)
    content = index.snapshot().expressions
    scores = np.random.default_rng(1).integers(0, 9, len(content.owned) - 1) / 8  # many ties, some zeros
    of_formulas = np.repeat(scores, np.diff(content.owned))
    docnos = list(index.snapshot())
    whole = sorted((-score, docno) for score, docno in zip(of_formulas, docnos, strict=True) if score > 0)
    for count in (1, 10, 200, 10**6):
        numbers, values = content.best(scores, count, index.snapshot().formula_ids)
        assert [(-value, docnos[number]) for value, number in zip(values, numbers, strict=True)] == whole[:count]

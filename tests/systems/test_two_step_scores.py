"""The two-step search: linearized graphs, scores, features and baselines by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from threads_of_answers import POSTS, questions, thread_store

from mathamr_systems import (
    FormulaAnswers,
    InOut,
    InOutIndex,
    LinkedPosts,
    MathSEScore,
    RankingSVM,
    ThreadStore,
    TimesQQ,
    TwoStepFeatures,
)
from mathamr_systems.two_step.similarity import linearise
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.sparse import TangentIndex

WORKED = """(s / solve-01 :mode imperative :ARG1 (e / equation :mod (t / this) :ARG0 (p / FORMULA_0
    :opt (u / U!plus :op0 (a / O!SUP :op0 (x / V!x) :op1 (n / V!n)) :op0 (y / V!y)))))"""


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        (WORKED, {}, "solve-01 equation math plus y SUP x n this imperative"),
        (WORKED, {"order": "written"}, "solve-01 imperative equation this math plus SUP x n y"),
        (WORKED, {"math_word": False}, "solve-01 equation plus y SUP x n this imperative"),
        ("(a / and :op2 (b / big :mod x) :op1 (x / ex :mod (y / why)))", {}, "and ex why big"),
        ("(a / and :op2 (b / big :mod x) :op1 (x / ex :mod (y / why)))", {"order": "written"}, "and big ex why"),
        ("(a / and :op2 (b / two) :op10 (c / ten) :ARG1 (d / one) :arg0 (e / zero))", {}, "and zero one ten two"),
        # labels lose their type only in trees, and layout trees are left out
        (
            "(p / FORMULA_0 :mod (w / U!word) :opt (f / O!factorial :op0 (m / V!!)) :slt (v / V!q))",
            {},
            "math U!word factorial !",
        ),
        ('# ::formula_map {"FORMULA_0": "7"}\n(e / equal-01 :ARG1 (f / FORMULA_0))', {}, "equal-01 math"),
        ('# ::formula_map {"FORMULA_0": "7"}\n(e / equal-01 :ARG1 (f / FORMULA_0))', {"math_word": False}, "equal-01"),
    ],
)
def test_a_graph_is_written_depth_first_each_node_once(graph: str, options: dict[str, Any], words: str) -> None:
    assert linearise(MathAMRGraph.from_penman(graph), **options) == words


# Graphs and strings that accompany the dissertation, with formulas below `:math` and without the types of labels.
PUBLISHED = {
    "B.2": (
        """(t / thing :manner-of (s / solve-01 :arg1 (e / equation :mod (d / differential) :mod (f / form
        :arg1-of (f2 / follow-01) :mod (s2 / string-entity :math (U1 / eq :op0 (O1 / divide :op0 (U2 / times
        :op0 (V1 / d) :op0 (V2 / f)) :op1 (U3 / times :op0 (V3 / d) :op0 (V4 / x))) :op0 (U4 / times :op0 (V5 / f)
        :op0 (U5 / plus :op0 (V6 / x) :op0 (N1 / 1)))))))))""",
        "thing solve-01 equation form follow-01 string-entity eq times plus 1 x f divide times f d times x "
        "d differential",
    ),
    "B.6, second sentence": (
        r"""(n / notice-01 :arg0 (ii2 / i) :arg1 (s2 / string-entity :math (U2 / eq :op0 (U3 / times
        :op0 (O2 / SUP :op0 (N4 / 5) :op1 (V1 / n)) :op0 (T2 / \mod) :op0 (N5 / 8)) :op0 (N6 / 5)))
        :condition (a / and :op1 (e / even-02 :polarity - :arg1 (s3 / string-entity :math (V2 / n)))
        :op2 (h / have-polarity-91 :arg2 - :arg1 s3) :arg0-of (l / lead-03 :arg1 ii2 :arg2 (s4 / say-01 :arg0 ii2
        :arg1 (s5 / string-entity :math (U4 / eq :op0 (U5 / times :op0 (O3 / SUP :op0 (N7 / 5) :op1 (N8 / 133))
        :op0 (T3 / \mod) :op0 (N9 / 8)) :op0 (N10 / 5)))))))""",
        r"notice-01 i string-entity eq 5 times 8 \mod SUP 5 n and lead-03 say-01 string-entity eq 5 times 8 \mod "
        "SUP 5 133 even-02 string-entity n - have-polarity-91 -",
    ),
    "B.12": (
        """(m / multi-sentence :snt1 (a / ask-02 :arg0 (ii / it) :arg1 (a2 / and :op1 (f / find-01 :arg0 (ii2 / i)
        :arg1 (r / root :mod (a3 / all))) :op2 (s / sketch-01 :arg0 ii2 :arg1 (ii3 / it) :time (t / then))) :arg2 ii2)
        :snt2 (p / proceed-01 :arg0 (w / we) :manner (a4 / amr-unknown)))""",
        "multi-sentence ask-02 it and find-01 i root all sketch-01 it then proceed-01 we amr-unknown",
    ),
}


@pytest.mark.parametrize("topic", PUBLISHED)
def test_published_graphs_give_the_published_strings(topic: str) -> None:
    graph, words = PUBLISHED[topic]
    assert linearise(MathAMRGraph.from_penman(graph)) == words


def test_a_graph_of_depth_2000_needs_no_recursion() -> None:
    depth = 2_000
    edges = tuple((node, ":op0", node + 1) for node in range(depth - 1))
    graph = MathAMRGraph(AmrGraph(tuple(f"n{i}" for i in range(depth)), tuple(f"v{i}" for i in range(depth)), edges))
    assert linearise(graph) == " ".join(f"n{i}" for i in range(depth))


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> ThreadStore:
    return thread_store(tmp_path_factory.mktemp("two-step"))


def by_docno(ranking: pd.DataFrame) -> dict[str, float]:
    return dict(zip(ranking["docno"], ranking["score"].astype(float), strict=True))


QASIM = pt.apply.doc_score(lambda row: {"a1": 0.2, "a2": 0.8, "a3": 0.5, "b1": 0.9}[row["docno"]])


def test_the_scores_of_the_paper_are_those_worked_by_hand(threads: ThreadStore) -> None:
    found = (threads.answers() >> MathSEScore(threads))(questions(q1=0.03))
    assert by_docno(found) == pytest.approx({"a1": 0.03, "a2": 0.015, "a3": 0.0})
    assert found["docno"].tolist() == ["a1", "a2", "a3"]
    assert by_docno((threads.answers() >> MathSEScore(threads))(questions(q2=0.03))) == {"b1": 0.03}
    ranking = threads.answers()(questions(q1=0.03))  # the votes of answers that are not ranked count, too
    assert by_docno(MathSEScore(threads)(ranking[ranking["docno"] == "a2"])) == pytest.approx({"a2": 0.015})

    found = (threads.answers() >> QASIM >> TimesQQ())(questions(q1=0.03))
    assert by_docno(found)["a2"] == pytest.approx(0.024)
    assert found["docno"].tolist() == ["a2", "a3", "a1"]
    explained = TimesQQ().explain(pd.DataFrame({"qid": ["t"], "docno": ["a2"], "score": [0.8], "qq_score": [0.03]}))
    assert explained.score == pytest.approx(0.024)

    for system in (MathSEScore(threads), TimesQQ(), TwoStepFeatures(threads, QASIM)):
        found = (threads.answers() >> system)(questions(q3=0.9))
        assert found.empty
        assert {"score", "rank", "qq_score"} <= set(found.columns)


def test_equal_votes_and_unknown_votes_leave_the_similarity_of_the_question_with_one_warning(tmp_path: Path) -> None:
    posts = [{name: value for name, value in post.items() if name != "score"} for post in POSTS]
    silent = ThreadStore(tmp_path / "silent").index(posts)
    math_se = silent.answers() >> MathSEScore(silent)
    with pytest.warns(MathAMRWarning, match="votes"):
        found = math_se(questions(q1=0.03))
    assert set(found["score"]) == {0.03}
    assert math_se(questions(q1=0.03)).equals(found)  # silent now: a warning would fail the test
    with pytest.warns(MathAMRWarning, match="comments, accepted"):
        features = (silent.answers() >> TwoStepFeatures(silent, QASIM))(questions(q1=0.03))["features"]
    assert np.stack(features)[:, 2:5].tolist() == [[0, 0, 0]] * 3


def test_features_are_in_the_printed_order(threads: ThreadStore) -> None:
    features = TwoStepFeatures(threads, QASIM)
    with pytest.warns(MathAMRWarning):
        found = (threads.answers() >> features)(questions(q2=0.05, q1=0.03)).set_index("docno")["features"]
    assert found["b1"].tolist() == pytest.approx([0.05, 0.9, 0, 5, 0, 0.5])
    assert found["a2"].tolist() == pytest.approx([0.03, 0.8, 0, 3, 0, 1.0])
    assert features.names == ("QQSim", "QASim", "comments", "votes", "accepted", "tag overlap")


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_the_pipelines_of_the_paper_run_together(threads: ThreadStore) -> None:
    titles, heads = pt.Transformer.from_df(questions(q1=0.9, q2=0.4)), pt.Transformer.from_df(questions(q2=0.8))
    topics = pd.DataFrame({"qid": ["t"], "query": ["sum of x"], "tags": ["sums limits"]})
    qrels = pd.DataFrame({"qid": "t", "docno": ["a1", "a2", "b1"], "label": [0, 3, 2]})
    qqsim = ModifiedRRF([titles, heads])
    cands = qqsim >> threads.answers()
    mathse = cands >> MathSEScore(threads)
    qasim = cands >> QASIM >> TimesQQ()
    both = ModifiedRRF([mathse, qasim])
    features = TwoStepFeatures(threads, QASIM)
    svm = cands >> features >> pt.ltr.apply_learned_model(RankingSVM(C=0.01), form="ltr")
    svm.fit(topics, qrels, topics, qrels)
    best = ModifiedRRF([svm, qasim], normalise="min-max")
    assert qqsim(topics)["score"].max() <= 2 / 61
    for system in (mathse, qasim, both, svm, best):
        assert sorted(system(topics)["docno"]) == ["a1", "a2", "a3", "b1"]
    learned = RankingSVM(C=0.01, names=features.names).fit_judged((cands >> features)(topics), qrels)
    assert len(learned.weights or ()) == 6


def test_linked_posts_ranks_the_answers_of_duplicates_by_votes(threads: ThreadStore) -> None:
    links = pd.DataFrame({"qid": ["t", "t", "u", "t"], "question_id": ["q1", "q2", "unknown", "q1"], "kind": "x"})
    linked = LinkedPosts(links, threads)
    found = linked(pd.DataFrame({"qid": ["t", "u", "v"], "query": list("abc")}))
    assert found[["qid", "docno", "score", "rank"]].to_numpy().tolist() == [
        ["t", "a1", 7, 0],
        ["t", "b1", 5, 1],
        ["t", "a2", 3, 2],
        ["t", "a3", -1, 3],
    ]
    assert linked.explain({"qid": "t"}, "b1").score == 5
    assert LinkedPosts(links, threads, num_results=1)(found[["qid", "query"]])["docno"].tolist() == ["a1"]
    assert LinkedPosts({"t": ["q1", "q2", "q1"], "u": ["unknown"]}, threads) == linked != LinkedPosts({}, threads)


FORMULAS = [
    {"docno": "q1", "text": r"asks $x^2+1$"},
    {"docno": "a1", "text": r"has $x^2+1$ and $y$"},
    {"docno": "a2", "text": r"has $x^2$ and $x^2+2$"},
    {"docno": "b1", "text": "has none"},
    {"docno": "unknown", "text": r"$x^2+1$"},
]


@pytest.fixture(scope="module")
def tangent(threads: ThreadStore, tmp_path_factory: pytest.TempPathFactory) -> FormulaAnswers:
    return FormulaAnswers(TangentIndex(tmp_path_factory.mktemp("tangent") / "t").index(FORMULAS), threads)


def test_tangent_ranks_answers_by_their_best_formula_without_questions(tangent: FormulaAnswers) -> None:
    topics = pd.DataFrame({"qid": ["t"], "title": [r"Of $x^2+1$ and $x$"], "body": [r"also $\frac{x^2+1}{x^3+4}$"]})
    found = tangent(topics)
    assert found["docno"].tolist() == ["a1", "a2"]
    assert found["score"].iloc[0] == 1.0
    assert tangent.explain(topics, "a2").score == pytest.approx(found["score"].iloc[1])
    with pytest.raises(AskedError):
        tangent.explain(topics, "b1")


def test_any_formula_index_finds_answers_by_their_best_formula(threads: ThreadStore, tmp_path: Path) -> None:
    index = InOutIndex(tmp_path / "f", InOut.from_pretrained("in-out-mini")).index(FORMULAS)
    topics = pd.DataFrame({"qid": ["t"], "title": [r"Of $x^2+1$ and $x$"], "body": [""]})
    system = FormulaAnswers(index, threads)
    found = system(topics)
    each = index.retriever(100)(pd.DataFrame({"qid": ["t"], "latex": ["x^2+1"]}))
    best = each.groupby("post_id")["score"].max()[["a1", "a2"]].sort_values(ascending=False)
    assert found["docno"].tolist() == best.index.tolist()
    assert found["score"].tolist() == best.tolist()
    assert system.explain(topics, "a2").score == pytest.approx(best["a2"])


def test_the_formula_of_a_topic_is_the_largest_of_its_title_else_of_its_body(tangent: FormulaAnswers) -> None:
    def chosen(qid: str = "t", title: str = "", body: str = "", **others: str) -> str | None:
        formula = tangent.formula({"qid": qid, "title": title, "body": body, **others})
        return None if formula is None else formula.latex

    assert chosen(title="$x$ or $y+z$", body="$a+b+c$") == "y+z"
    assert chosen(title="no formula", body="$a$ and $a+b+c$") == "a+b+c"
    assert chosen(query="both $u$ and $u+1$") == "u+1"
    assert chosen(title="none", body="none") is None
    ties = {chosen(str(qid), "$a+b$ and $c+d$") for qid in range(20)}
    assert ties == {"a+b", "c+d"}
    assert chosen("7", "$a+b$ and $c+d$") == chosen("7", "$a+b$ and $c+d$")

    with pytest.warns(MathAMRWarning, match="without a formula"):
        found = tangent(pd.DataFrame({"qid": ["none"], "title": ["words"], "body": ["only"]}))
    assert found.empty
    assert {"docno", "score", "rank"} <= set(found.columns)

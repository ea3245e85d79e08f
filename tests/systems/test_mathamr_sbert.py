"""Formulas in context: their texts by hand, re-ranking by cosine in every composition, training, files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, nDCG
from tiny_models import tiny_bert

from mathamr_systems import FitOptions, FormulaContexts, MathAMRSentenceBERT, judged_triples, linearise
from mathamr_systems.mathamr_sbert import TripleLosses, without_stops
from mathamr_systems.two_step.similarity import Example, split_folds
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.posts import MathPost, PostFormula, post_from_text
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import UnknownIdError

POST = {"docno": "p", "text": "Find $x^n.$ Let $n=2,$ and $m!$ be. What is $x$?"}
POSTS = [
    {"docno": "p0", "text": "Prove the sum of $x^2+y$. The limit is $y$."},
    {"docno": "p1", "text": "The fraction $x^2+1$ is less. It is two."},
    {"docno": "p2", "text": "Prove the limit of $x^2+y$."},
]
TOPICS = pd.DataFrame(
    {
        "qid": ["1", "2"],
        "title": ["Prove the sum of $x^2+y$", ""],
        "body": ["The limit is less.", ""],
        "latex": ["x^2+y", "x^2+1"],
        "formula_id": ["", ""],
    }
)
TRIPLES = [
    (f"prove the {query}", f"{candidate} {number}", score)
    for query in ("sum", "limit", "fraction", "two")
    for number in ("x", "y")
    for candidate, score in ((f"the {query} of", 1.0), (f"less {query}", 0.5), ("less , .", 0.0))
]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def texts_of(post: dict[str, str], representation: str, window: int = 1) -> list[str]:
    found = FormulaContexts(representation, window)(pd.DataFrame([post]))  # type: ignore[arg-type]
    assert found["docno"].tolist() == [f"{post['docno']}#{i}" for i in range(len(found))]
    assert set(found["post_id"]) == {post["docno"]}
    return found["formula_text"].tolist()


def test_the_graph_of_the_dissertation_gives_its_string() -> None:
    graph = MathAMRGraph.from_penman(
        """(f / find-01 :mode imperative :ARG0 (y / you) :ARG1 (t / thing :ARG1-of (g / general-02)
        :ARG2-of (s / solve-01 :ARG1 (e / equal-01 :math (q / FORMULA_0 :opt (u / U!plus
        :op0 (a / O!SUP :op0 (x1 / V!x) :op1 (n1 / V!n)) :op0 (b / O!SUP :op0 (x2 / V!y) :op1 (n2 / V!n))
        :op0 (c / O!SUP :op0 (x3 / V!z) :op1 (n3 / V!n))))))))"""
    )
    start = "find-01 you thing general-02 solve-01 equal-01 math"
    assert linearise(graph) == f"{start} plus SUP z n SUP y n SUP x n imperative"
    in_latex = MathAMRGraph(graph.amr, graph.formula_ids, latex=("x^n + y^n + z^n",))
    assert linearise(in_latex, latex=True) == f"{start} x^n + y^n + z^n imperative"


def test_each_representation_of_a_sentence() -> None:
    assert texts_of(POST, "opt") == ["SUP x n", "eq 2 n", "factorial m", "x"]
    assert texts_of(POST, "text+latex") == ["Find $x^n$.", *["Let $n=2$, and $m!$ be."] * 2, "What is $x$?"]
    assert texts_of(POST, "text+opt") == ["Find SUP x n.", *["Let eq 2 n, and factorial m be."] * 2, "What is x?"]
    sentences = ["Find $x^n$.", *["Let $n=2$, and $m!$ be."] * 2, "What is $x$?"]
    graphs = GraphBuilder(formulas="opt").build({str(i): post_from_text(text) for i, text in enumerate(sentences)})
    plain = str.maketrans("𝑥𝑛𝑚", "xnm")
    assert texts_of(POST, "amr+opt") == [linearise(graph).translate(plain) for graph in graphs]
    assert texts_of(POST, "amr+latex") == [linearise(graph, latex=True).translate(plain) for graph in graphs]
    assert "n=2" in texts_of(POST, "amr+latex")[1]


def test_a_window_has_as_many_sentences_before_as_after() -> None:
    text = "One. Two. Three $x$. Four. Five $y$."
    assert texts_of({"docno": "p", "text": text}, "text+latex", 3) == ["Two. Three $x$. Four.", "Four. Five $y$."]
    assert texts_of({"docno": "p", "text": text}, "text+latex", 5)[0] == text
    assert texts_of({"docno": "p", "text": text}, "opt", 3) == ["x", "y"]

    assert FormulaContexts()(pd.DataFrame([{"docno": "p", "text": "No formula."}])).empty


@pytest.mark.parametrize(
    ("latex", "left", "stop"),
    [
        ("a+b=c.", "a+b=c", "."),
        ("a, ", "a", ","),
        ("a ?", "a", "?"),
        ("n!", "n!", ""),
        ("1,2,...", "1,2,...", ""),
        ("a\\,", "a\\,", ""),
        (".", "", "."),
    ],
)
def test_stops_at_the_end_of_a_formula_are_moved_behind_it(latex: str, left: str, stop: str) -> None:
    found = without_stops(MathPost("So FORMULA_0 is", (PostFormula(latex, "7"),)))
    assert found.text == f"So FORMULA_0{stop} is"
    assert found.formulas == (PostFormula(left, "7"),)


def test_a_query_is_found_by_id_then_by_latex_and_else_has_no_context() -> None:
    body = "<p>Is <span class='math-container' id='q_2'>$x$</span> big. No, <span id='q_3'>$x$</span>.</p>"
    body = body.replace("<span id=", "<span class='math-container' id=")
    rows = [("a", "q_3", "x"), ("b", "", "x"), ("c", "", "y^2"), ("d", "", " ")]
    topics = pd.DataFrame(rows, columns=["qid", "formula_id", "latex"]).assign(title="Sum", body=body)
    found = FormulaContexts("text+latex")(topics)
    assert found["query_formula_text"].tolist() == ["No, $x$.", "Is $x$ big.", "$y^2$", ""]
    ranking = FormulaContexts("text+latex")(topics.assign(docno="f", score=1.0, rank=0))
    assert ranking["query_formula_text"].tolist() == found["query_formula_text"].tolist()


@pytest.fixture(scope="module")
def reranking(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, MathAMRSentenceBERT]:
    folder = tmp_path_factory.mktemp("formulas")
    sbert = MathAMRSentenceBERT.new(bert, "text+latex", max_length=24)
    index = MathAMRIndex(folder / "formulas.sbert")
    (sbert.contexts() >> sbert.doc_encoder() >> index.indexer()).index(pd.DataFrame(POSTS))
    first = TangentIndex(folder / "formulas.tangent").index(POSTS).retriever(10)
    return first, sbert.contexts() >> sbert.query_encoder() >> index.scorer(), sbert


def test_candidates_are_ranked_by_the_cosine_of_their_sentences(reranking: Any) -> None:
    first, rerank, sbert = reranking
    found = (first >> rerank)(TOPICS)
    assert {"docno", "post_id", "visual_id", "score", "rank"} <= set(found.columns)
    queries = {"1": "Prove the sum of $x^2+y$", "2": "$x^2+1$"}
    candidates = {
        "p0#0": "Prove the sum of $x^2+y$.",
        "p0#1": "The limit is $y$.",
        "p1#0": "The fraction $x^2+1$ is less.",
        "p2#0": "Prove the limit of $x^2+y$.",
    }
    for row in found.itertuples():
        left, right = sbert.encode([queries[row.qid], candidates[row.docno]])
        assert row.score == pytest.approx(float(left @ right), abs=1e-2)
    assert found.groupby("qid")["score"].apply(lambda of: of.is_monotonic_decreasing).all()
    with pytest.raises(UnknownIdError, match="elsewhere"):
        rerank(first(TOPICS).assign(docno="elsewhere"))


def test_it_composes_with_cuts_fusions_experiments_and_inspection(reranking: Any) -> None:
    first, rerank, _ = reranking
    pipeline = first >> rerank
    both = ModifiedRRF([first, pipeline])
    fused = both(TOPICS)
    assert (pipeline % 1)(TOPICS)["rank"].tolist() == [0, 0]
    parts = [of(TOPICS).set_index(["qid", "docno"]) for of in (first, pipeline)]
    for row in fused.itertuples():
        terms = [part.loc[(row.qid, row.docno)] for part in parts]
        assert row.score == pytest.approx(sum(term["score"] / (61 + term["rank"]) for term in terms))
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["p0#0", "p1#0"], "label": [3, 2]})
    table = pt.Experiment([first, pipeline, both], TOPICS, qrels, [nDCG @ 5, RR], names=["a", "b", "c"])
    assert table["RR"].between(0, 1).all()
    wanted = {"qid", "docno", "score", "rank", "query_embs", "query_formula_text"}
    assert wanted <= set(pt.inspect.transformer_outputs(pipeline, list(TOPICS.columns)))


def test_triples_have_the_scores_of_the_dissertation() -> None:
    queries = pd.DataFrame({"qid": ["1", "2"], "query_formula_text": ["q", ""]})
    formulas = pd.DataFrame({"docno": ["a", "b", "c", "d"], "formula_text": ["A", "B", "C", "D"]})
    rows = [("1", "a", 3), ("1", "b", 2), ("1", "c", 1), ("1", "d", 0), ("1", "gone", 3), ("2", "a", 3)]
    found = judged_triples(queries, formulas, pd.DataFrame(rows, columns=["qid", "docno", "label"]))
    assert found == [("q", "A", 1.0), ("q", "B", 1.0), ("q", "C", 0.5), ("q", "D", 0.0)]


def test_the_loss_of_a_batch_is_the_sum_of_both_by_hand(bert: Path) -> None:
    model = MathAMRSentenceBERT.new(bert, max_length=24)
    losses = TripleLosses(model.network.eval())
    batch = [Example("sum", "the sum", 1.0), Example("limit", "limit of", 1.0), Example("sum", "two", 1.0)]
    batch += [Example("sum", "less", 0.5), Example("limit", "x", 0.0)]
    left, right = (model.encode([triple[side] for triple in batch]).astype(np.float64) for side in (0, 1))
    distances, scores = 1 - (left * right).sum(axis=1), np.array([triple.target for triple in batch])
    contrastive = np.mean((scores * distances**2 + (1 - scores) * np.maximum(0, 0.5 - distances) ** 2) / 2)
    logits = 20 * left[:2] @ right[:2].T  # the second positive of a query is left out
    ranking = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    assert float(losses.of_batch(batch, 0).detach()) == pytest.approx(contrastive + ranking, rel=0.05)


def test_training_raises_the_correlation_and_keeps_the_best_epoch(bert: Path) -> None:
    model = MathAMRSentenceBERT.new(bert, max_length=24)
    before = model.correlation(TRIPLES)
    model.fit(TRIPLES, FitOptions(epochs=6, batch_size=8, learning_rate=1e-2), folds=None)
    assert model.correlation(TRIPLES) > max(before, 0.5)
    assert model.correlation([("sum", "two", 1.0), ("sum", "x", 1.0)]) == 0

    model = MathAMRSentenceBERT.new(bert, max_length=24)
    history = model.fit(TRIPLES, FitOptions(epochs=4, batch_size=8, learning_rate=2e-2), folds=2)
    held_out = split_folds([Example(*triple) for triple in TRIPLES], 2)[1]
    best = min(epoch.validation for epoch in history if epoch.validation is not None)
    assert -model.correlation(held_out) == pytest.approx(best)


def test_lengths_follow_the_representation_and_unusable_triples_are_refused(bert: Path) -> None:
    lengths = [MathAMRSentenceBERT.new(bert, of).network.max_seq_length for of in ("amr+opt", "text+opt")]  # type: ignore[arg-type]
    assert lengths == [128, 256]
    model = MathAMRSentenceBERT.new(bert, max_length=24)
    with pytest.raises(ConfigError, match="triples"):
        model.fit([("a", "b", 3)])
    with pytest.raises(TrainingError):
        model.fit([])

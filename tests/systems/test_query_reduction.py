"""Query reduction keeps the words and formulas with the highest weighted sums of their features."""

from math import log
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR

from mathamr_systems import ApproachZeroIndex, QueryReduction, StructuralSearch
from pyterrier_mathamr import MathAMRWarning
from pyterrier_mathamr.explain import explain_score
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.posts import query_post
from pyterrier_mathamr.sparse import BM25Index, TokenOptions

POSTS = [
    {"docno": "a", "text": r"The harmonic series diverges: $\sum_n \frac{1}{n}$ is not bounded."},
    {"docno": "b", "text": r"A series converges if its sums are bounded, as $x^2+1$."},
    {"docno": "c", "text": r"Please show a series."},
]
TOPIC = {
    "qid": "1",
    "title": r'Divergence of the harmonic series <span class="math-container" id="7">n</span>',
    "body": r"<p>Please show that $\sum_n \frac{1}{n}$ diverges, where $x^2+1$ and $\sum_n \frac{1}{n}$ are given. "
    "Harmonic series puzzle me.</p>",
}
TOPICS = pd.DataFrame([TOPIC])
WEIGHTS = {"word": {"idf": 3.0, "title": 1.0, "length": 2.0}, "formula": {"symbols": 1.0}}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    tokens = TokenOptions(stop_words=True, stem="porter", bigrams=False, formulas=False)
    built: BM25Index = BM25Index(tmp_path_factory.mktemp("words") / "words.bm25").indexer(tokens=tokens).index(POSTS)
    return built


def test_terms_have_the_features_and_the_sums_worked_by_hand(index: BM25Index) -> None:
    weights = {
        "word": {"idf": 2.0, "title": 1.0, "length": 0.5, "count": 4.0},
        "formula": {"symbols": 4, "position": -1},
    }
    terms = QueryReduction(index, 2, 1, weights=weights).terms(TOPIC)
    found = terms.set_index("text")
    series = found.loc["series"]
    assert series["idf"] == pytest.approx(log(4 / 3) / log(4))
    assert (series["title"], series["length"], series["count"]) == (1.0, 0.5, pytest.approx(log(2)))
    assert series["score"] == pytest.approx(2 * log(4 / 3) / log(4) + 1 + 0.25 + 4 * log(2))
    assert found.loc["harmonic", "idf"] == 1.0  # ln(4 / 1) / ln 4
    assert found.loc["puzzle", "idf"] == 0.0  # in no document
    pieces = len(query_post(TOPIC).text.replace(".", " ").replace(",", " ").split())
    sum_of = found.loc[r"\sum_n \frac{1}{n}"]  # \sum _ n \frac 1 n
    assert sum_of["symbols"] == pytest.approx(log(7) / 4)
    assert sum_of["position"] == pytest.approx(9 / pieces)
    assert sum_of["score"] == pytest.approx(log(7) - 9 / pieces)
    assert terms.loc[terms["kept"], "text"].tolist() == ["Divergence", "harmonic", r"\sum_n \frac{1}{n}"]
    assert "n" not in found.index  # one symbol


def test_words_are_in_the_order_of_the_question_and_later_stages_read_them(index: BM25Index) -> None:
    found = QueryReduction(index, 3, 2, weights=WEIGHTS)(TOPICS).iloc[0]
    assert found["words"] == "Divergence harmonic Please diverges Harmonic"  # one stem
    assert found["formulas"] == [r"\sum_n \frac{1}{n}", "x^2+1"]
    assert found["query"] == rf"{found['words']} $\sum_n \frac{{1}}{{n}}$ $x^2+1$"
    read = query_post(found)
    assert [formula.latex for formula in read.formulas] == found["formulas"]
    whole = QueryReduction(index, None, None)(TOPICS).iloc[0]
    assert whole["words"].split()[:4] == ["Divergence", "harmonic", "series", "Please"]  # stop words are not terms

    topics = pd.concat([TOPICS, pd.DataFrame([{"qid": "2", "title": "Sums", "body": "bounded"}])], ignore_index=True)
    found = QueryReduction(index, 3, 1)(topics)
    assert not {"title", "body"} & set(found.columns)
    ranked = (QueryReduction(index, 3, 1) >> index.retriever() >> pt.rewrite.reset())(topics)
    assert ranked.loc[ranked["qid"] == "1", "query"].iloc[0].startswith("Divergence of the harmonic series $n$\nPlease")
    written = QueryReduction(index, 1, 0)(pd.DataFrame({"qid": ["1"], "query": ["the harmonic series $x^2$"]}))
    assert written[["query", "query_0"]].values.tolist() == [["harmonic", "the harmonic series $x^2$"]]

    with pytest.raises(pt.validate.InputValidationError):
        QueryReduction(index)(TOPICS.assign(docno="a"))
    assert QueryReduction(index)(TOPICS[:0]).columns.tolist() == ["qid", "query_0", "query", "words", "formulas"]


@pytest.mark.parametrize(
    ("query", "reduced"),
    [
        ("", ""),
        (r"$x$", ""),
        ("of the", ""),
        ("zyzzyva", "zyzzyva"),
        (r"FORMULA_0 $x^2$ $x^2$", r"FORMULA 0 $x^2$"),
        ("costs $5 <b>and", "costs 5 b"),
        (r"$\frac{1$ $x<y$ series", r"series $\frac{1$ $x<y$"),
    ],
)
def test_strange_queries_are_reduced_to_what_they_have(index: BM25Index, query: str, reduced: str) -> None:
    found = QueryReduction(index)(pd.DataFrame({"qid": ["1"], "query": [query]}))
    assert found["query"].tolist() == [reduced]


def test_any_system_follows(index: BM25Index, tmp_path: Path) -> None:
    reduce, bm25 = QueryReduction(index, 3, 1, weights=WEIGHTS), index.retriever()
    structural = StructuralSearch(ApproachZeroIndex(tmp_path / "f.a0").index(POSTS), index)
    systems = [reduce >> bm25, reduce >> structural % 1, ZScoreFusion(reduce >> bm25, structural)]
    qrels = pd.DataFrame({"qid": ["1"], "docno": ["a"], "label": [1]})
    table = pt.Experiment(systems, TOPICS, qrels, [RR], names=["BM25", "structural", "fused"], validate="error")
    assert table["RR"].tolist() == [1.0, 1.0, 1.0]
    ranking = (reduce >> structural)(TOPICS)
    explained = explain_score(reduce >> structural, TOPIC, "a")
    assert explained.parts["contribution"].sum() == pytest.approx(ranking.loc[ranking["docno"] == "a", "score"].iloc[0])
    assert set(explained.parts["query"]) == {"Divergence", "harmonic", r"\sum_n \frac{1}{n}"}
    with pytest.warns(MathAMRWarning, match="blank"):
        (reduce >> bm25)(pd.DataFrame({"qid": ["1"], "query": ["of the"]}))

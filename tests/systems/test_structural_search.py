"""Structural search adds up what its two indexes give."""

from types import SimpleNamespace

import pandas as pd
import pytest

from mathamr_systems import ApproachZeroIndex, StructuralSearch
from pyterrier_mathamr.sparse import BM25Index, TokenOptions

POSTS = {
    "q1": r"How do I integrate $\int_0^1 x^2\,dx$ and $y$?",
    "a1": r"By parts: $\frac{x^3}{3}$ from zero to one.",
    "a2": r"Nothing but words about a parabola.",
    "q2": r"Is $a^2+b^2=c^2$ a theorem?",
    "a3": r"Pythagoras says $c^2=a^2+b^2$, and $x^2+1$ is another matter.",
}
QUESTIONS = {"a1": "q1", "a2": "q1", "a3": "q2"}
TOPICS = pd.DataFrame(
    {"qid": ["1", "2"], "query": [r"Integrate a parabola $x^2+1$ and $\int x^2\,dx$, with $z$", "Pythagoras"]}
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("structural")
    posts = [{"docno": docno, "text": text} for docno, text in POSTS.items()]
    answers = [{"docno": docno, "text": f"{POSTS[of]} {POSTS[docno]}"} for docno, of in QUESTIONS.items()]
    tokens = TokenOptions(stop_words=True, stem="porter", bigrams=False, formulas=False)
    return SimpleNamespace(
        formulas=ApproachZeroIndex(folder / "f.a0").index(posts),
        words=BM25Index(folder / "w.bm25").indexer(tokens=tokens).index(answers),
    )


def test_scores_sum_words_and_the_best_formulas(parts: SimpleNamespace) -> None:
    options = {"k1": 2.0, "b": 0.75, "delta": 1.0, "query_weights": "linear"}
    wanted = dict.fromkeys(QUESTIONS, 0.0)
    words = parts.words.retriever(**options)(TOPICS[:1])
    wanted |= dict(zip(words["docno"], words["score"], strict=True))
    for latex in ("x^2+1", r"\int x^2\,dx"):  # z has one node
        found = parts.formulas.search(latex)
        for answer, question in QUESTIONS.items():
            best = found.loc[found["post_id"].isin([answer, question]), "score"].max()
            wanted[answer] += 2.5 * (0.0 if pd.isna(best) else best)
    ranking = StructuralSearch(parts.formulas, parts.words, questions=QUESTIONS)(TOPICS)
    first = ranking[ranking["qid"] == "1"]
    assert dict(zip(first["docno"], first["score"], strict=True)) == pytest.approx(wanted)
    assert first["score"].is_monotonic_decreasing
    assert ranking.loc[ranking["qid"] == "2", "docno"].tolist() == ["a3"]


def test_the_formula_with_the_greatest_bound_is_rewarded(parts: SimpleNamespace) -> None:
    plain, rewarded, words = (
        StructuralSearch(parts.formulas, parts.words, questions=QUESTIONS, beta=beta, reward=reward)
        for beta, reward in ((1.0, None), (1.0, 0.9), (0.0, None))
    )
    contributions = [
        system.explain(TOPICS[:1], "a3").parts.set_index("query")["contribution"] for system in (plain, rewarded)
    ]
    assert contributions[1][r"\int x^2\,dx"] == pytest.approx(0.9 * contributions[0][r"\int x^2\,dx"])
    assert contributions[1]["x^2+1"] == pytest.approx(0.1 * contributions[0]["x^2+1"])
    assert words.explain(TOPICS[:1], "a3").score == pytest.approx(
        parts.words.scorer(k1=2.0, b=0.75, delta=1.0).explain(TOPICS[:1], "a3").score
    )


def test_without_questions_a_document_has_its_own_formulas(parts: SimpleNamespace) -> None:
    ranking = StructuralSearch(parts.formulas, parts.words)(
        pd.DataFrame({"qid": ["1"], "query": [r"$\int_0^1 x^2\,dx$"]})
    )
    assert "a2" not in set(ranking["docno"])  # the integral is its question's
    assert set(StructuralSearch(parts.formulas, parts.words, hits=1)(TOPICS)["qid"]) == {"1", "2"}

"""Task 3: which runs of sentences are candidates, which are refused, and whose is the answer."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mathamr_systems import CosineScorer, ExtractAnswer, ThreadStore
from mathamr_systems.extract import longest_prefix, snippets_of, windows
from pyterrier_mathamr.arqmath import read_answers, task3_scores, write_answers
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.model import TextEncoder
from pyterrier_mathamr.posts import post_from_html, post_from_text


class ByWords(pt.Transformer):  # type: ignore[misc]
    """Scores a text by how many words of the query it has, each once."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        assert "html" not in inp.columns  # the text of the whole post
        rows = zip(inp["query"], inp["text"], strict=True)
        return inp.assign(score=[float(sum(word in text.split() for word in query.split())) for query, text in rows])


def sentences(*words: str, each: int = 6) -> str:
    """Write a post of one sentence for each word, with a formula in it."""
    return (
        "<p>" + " ".join(f"We see {word} {'and so on ' * each}in $x_{i}<1$." for i, word in enumerate(words)) + "</p>"
    )


def ranking(*rows: tuple[str, str], query: str = "alpha beta", qid: str = "A.1") -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["docno", "html"]).assign(qid=qid, query=query)
    return frame.assign(score=[float(len(rows) - i) for i in range(len(rows))], rank=range(len(rows)))


def test_the_runs_of_seven_and_of_four_sentences() -> None:
    assert list(windows(7, "middle", (5, 10))) == [(0, 5), (0, 6), (0, 7), (1, 5), (1, 6), (2, 5)]
    assert list(windows(7, "beginning", (5, 10))) == [(0, 5), (0, 6), (0, 7)]
    for start in ("middle", "beginning"):
        assert list(windows(4, start, (5, 10))) == [(0, 4)]
        assert list(windows(0, start, (5, 10))) == []
    assert (0, 10) in windows(12, "middle", (5, 10))  # the bounds are inclusive
    assert (0, 11) not in windows(12, "middle", (5, 10))
    assert list(windows(12, "beginning", (5, 10)))[-1] == (0, 12)


def test_short_long_and_odd_snippets_are_refused() -> None:
    def cut(text: str, **options: int) -> list[str]:
        return [snippet.text for snippet in snippets_of(post_from_text(text), "beginning", (1, 10), **options)]

    assert cut("$a$ costs \\$", shortest=1) == []
    assert cut("$a$ costs much", shortest=1) == ["$a$ costs much"]
    words = " ".join(["word"] * 19)
    assert cut(words) == []
    assert cut(f"{words} more") == [f"{words} more"]
    long = f"{words} {'x' * 1105}"
    assert [len(text) for text in cut(long)] == [1200]
    assert cut(f"{long}y") == []


def test_a_formula_is_printed_whole_and_counts_as_printed() -> None:
    latex = r"\sum_{i=1}^{n} i^2. Then? \text{if } x<y"
    post = post_from_html(f'<p>So <span class="math-container" id="7">{latex.replace("<", "&lt;")}</span> holds.</p>')
    assert [snippet.text for snippet in snippets_of(post, "middle", (5, 10), shortest=1)] == [f"So ${latex}$ holds."]
    assert snippets_of(post, "middle", (5, 10), shortest=1, limit=40) == []


def test_where_all_is_refused_the_longest_beginning_is_taken() -> None:
    post = post_from_text("First one. Second $x$. Third " + "long " * 300)
    assert longest_prefix(post, 30) == (0, 2, "First one. Second $x$.")
    assert longest_prefix(post, 12) == (0, 1, "First one.")
    assert longest_prefix(post_from_text("It costs \\$ 5 or so. Two \\$ more. End"), 60) == (
        0, 3, "It costs $ 5 or so. Two $ more. End",
    )  # fmt: skip
    assert longest_prefix(post_from_text("A fine one. It costs \\$ 5 or so."), 60) == (0, 1, "A fine one.")
    assert longest_prefix(post_from_text("far $x$ too long a sentence"), 10) == (0, 0, "far $x$")
    assert longest_prefix(post_from_text("$" + "x" * 50 + "$. Then $y$."), 10) == (1, 1, "Then $y$.")
    assert longest_prefix(post_from_text("$" + "x" * 50 + "$"), 10) is None
    assert longest_prefix(post_from_text(""), 10) is None


@given(
    st.lists(st.sampled_from(["a", "$x+y$", "is", "One.", "\\$", "$\\frac{1}{2}$", "So, then;", "\n\n"]), max_size=60)
)
def test_an_answer_is_within_the_limit_and_has_whole_formulas(pieces: list[str]) -> None:
    post = post_from_text(" ".join(pieces))
    formulas = {f"${formula.latex}$" for formula in post.formulas}
    for limit in (5, 20, 80):
        found = [*snippets_of(post, "middle", (2, 3), shortest=1, limit=limit), longest_prefix(post, limit)]
        for snippet in found:
            if snippet is not None:
                assert 0 < len(snippet.text) <= limit
                rest = snippet.text
                for formula in formulas:
                    rest = rest.replace(formula, " ")
                assert "\\frac" not in rest
                assert "+" not in rest


FIRST = sentences("one", "two", "three", "four", "five", "six", "alpha")
SECOND = sentences("one", "beta", "alpha", "two", "three", "four", "five", "six")


def test_the_first_post_is_cut_or_the_best_of_several() -> None:
    given = ranking(("d1", FIRST), ("d2", SECOND))
    original = ExtractAnswer(ByWords(), start="middle")(given)
    assert list(original.columns) == ["qid", "docno", "qanswer", "score", "sources"]
    assert original[["qid", "docno", "score", "sources"]].to_numpy().tolist() == [["A.1", "d1", 1.0, "d1"]]
    assert re.findall(r"see (\w+)", original["qanswer"][0])[-1] == "alpha"
    rerank = ExtractAnswer(ByWords(), posts="rerank", start="middle")(given)
    assert rerank["docno"].tolist() == ["d2"]
    assert re.findall(r"see (\w+)", rerank["qanswer"][0]) == ["one", "beta", "alpha", "two", "three"]
    assert "$x_1<1$" in rerank["qanswer"][0]
    assert ExtractAnswer(ByWords(), posts="rerank", depth=1)(given)["docno"].tolist() == ["d1"]


def test_equal_scores_are_decided_by_post_start_and_length() -> None:
    given = ranking(("d2", FIRST), ("d1", FIRST), query="nothing of it")
    found = ExtractAnswer(ByWords(), posts="rerank", start="middle")(given)
    assert found["docno"].tolist() == ["d2"]
    assert re.findall(r"see (\w+)", found["qanswer"][0]) == ["one", "two", "three", "four", "five"]
    tied = ranking(("d2", FIRST), ("d1", FIRST)).assign(score=1.0)  # a ranking's ties are by docno
    assert ExtractAnswer(ByWords())(tied)["docno"].tolist() == ["d1"]


def test_each_topic_has_one_answer_and_one_without_posts_none(tmp_path: Path) -> None:
    given = pd.concat(
        [
            ranking(("d3", "<p>Too short $x$.</p>"), qid="A.3"),
            ranking(("d4", ""), ("d1", FIRST), qid="A.1"),
            ranking(("d5", None), qid="A.2"),
        ],
        ignore_index=True,
    )
    answers = ExtractAnswer(ByWords())(given)
    assert answers[["qid", "docno"]].to_numpy().tolist() == [["A.3", "d3"], ["A.1", "d1"]]
    assert answers["qanswer"][0] == "Too short $x$."
    write_answers(answers, tmp_path / "task3.tsv", name="extract")
    written = read_answers(tmp_path / "task3.tsv")
    assert written[["qid", "qanswer", "sources"]].equals(answers[["qid", "qanswer", "sources"]])
    empty = ExtractAnswer(ByWords())(given.iloc[:0])
    assert dict(empty.dtypes)["docno"] == answers.dtypes["docno"]
    assert list(empty.columns) == list(answers.columns)
    qrels = pd.DataFrame({"qid": ["A.1", "A.2", "A.3"], "docno": ["d_1", "d_2", "d_3"], "label": [3, 2, 0]})
    run = pd.DataFrame({"qid": ["A.1", "A.2", "A.3"], "docno": ["d_1", "d_2", "d_3"], "score": 1.0})
    scores = task3_scores(run, qrels)
    assert (scores.average_relevance, scores.precision_at_1) == (pytest.approx(5 / 3), pytest.approx(2 / 3))


def test_a_re_mapped_answer_is_the_best_of_the_thread(tmp_path: Path) -> None:
    def post(id: str, kind: str, body: str = "", **fields: Any) -> dict[str, Any]:
        return {"id": id, "kind": kind, "body": body, **fields}

    threads = ThreadStore(tmp_path / "threads").index(
        [
            post("10", "question", accepted_answer_id="12"),
            post("11", "answer", FIRST, parent_id="10", score=9),
            post("12", "answer", SECOND, parent_id="10", score=1),
            post("20", "question"),
        ]
    )
    extract = ExtractAnswer(ByWords(), posts="remap", start="middle", threads=threads)
    assert extract(ranking(("11", FIRST)))[["docno", "score"]].to_numpy().tolist() == [["12", 2.0]]
    of_questions = ranking(("20", ""), ("10", "")).drop(columns="html")
    assert extract(of_questions)["docno"].tolist() == ["12"]


class TwoWords:
    """Encodes a text by whether it has ``alpha`` and ``beta``."""

    def encode(self, texts: list[str], /, **options: Any) -> Any:
        rows = np.array([["alpha" in text, "beta" in text, "$x$" in text] for text in texts], dtype=np.float32) + 0.01
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_cosine_of_texts_ranks_and_is_explained() -> None:
    scorer = CosineScorer(TextEncoder(TwoWords()))
    formula = '<span class="math-container">x</span>'
    given = ranking(("d1", "<p>alpha</p>"), ("d2", formula), ("d3", "<p>alpha beta</p>"))
    assert scorer(given)["docno"].tolist() == ["d3", "d1", "d2"]
    assert scorer(given)["score"].tolist() == pytest.approx([1, 2**-0.5, 0.02], abs=0.01)
    topic = given.assign(title="beta", body="<p>is asked for</p>")  # a body is the topic's, never the document's
    assert scorer(topic)["docno"].tolist() == ["d3", "d1", "d2"]
    assert scorer(topic)["score"].tolist() == pytest.approx([2**-0.5, 0.02, 0.02], abs=0.01)
    assert list(scorer(given.iloc[:0]).columns) == list(given.columns)
    with pytest.raises(AskedError, match="no html"):
        scorer.explain({"qid": "A.1", "query": "alpha"}, "d1")

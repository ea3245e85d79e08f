"""Topics: the text that a retriever adds, and the columns of a ranking that are its topics'."""

from typing import Any

import pandas as pd
import pytest

from pyterrier_mathamr.posts import DocumentError, query_post
from pyterrier_mathamr.posts.reading import check_topic
from pyterrier_mathamr.posts.topics import (
    columns_of_documents,
    columns_of_topics,
    distinct_queries,
    texts_of_topics,
    with_query,
)

TITLE = 'Is <span class="math-container" id="q_1">$x^2&lt;1$</span> true?'
BODY = "<p>For which $x$?</p><p>Thanks</p>"
TEXT = "Is $x^2<1$ true?\n\nFor which $x$?\n\nThanks"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"title": TITLE, "body": BODY}, TEXT),
        ({"body": BODY}, "For which $x$?\n\nThanks"),
        ({"title": "A sum", "body": None}, "A sum"),
        ({"title": "A sum", "body": "two\nlines\n\nand more", "latex": "x"}, "A sum\n\ntwo lines\n\nand more"),
        ({"latex": "$x^2$"}, "$x^2$"),
        ({"title": "", "body": " ", "latex": "x^2"}, "$x^2$"),
        ({"title": None, "body": None}, ""),
    ],
)
def test_a_query_is_the_text_of_title_and_body_else_the_formula(columns: dict[str, Any], text: str) -> None:
    topics = pd.DataFrame({"qid": ["1"], **{name: [value] for name, value in columns.items()}}, dtype=object)
    assert with_query(topics)["query"].tolist() == [text]
    assert list(with_query(topics)) == [*topics, "query"]
    assert list(with_query(topics.iloc[:0])) == [*topics, "query"]
    assert with_query(topics.assign(query="x"))["query"].tolist() == ["x"]
    assert list(with_query(pd.DataFrame({"qid": ["1"], "query_embs": [0]}))) == ["qid", "query_embs"]  # without a text


def test_the_query_is_read_as_the_title_and_body_are() -> None:
    row = {"title": TITLE, "body": r"<p>It costs 5$, or $6.</p><p>One <b>more</b> sentence</p>"}
    post, again = (query_post(topic) for topic in (row, {"query": with_query(pd.DataFrame([row]))["query"][0]}))
    assert again.text == post.text
    assert [formula.latex for formula in again.formulas] == [formula.latex for formula in post.formulas]
    assert [formula.id for formula in query_post({"title": TITLE, "query": "Is $x^2<1$ true?"}).formulas] == ["q_1"]
    assert query_post({"title": TITLE, "query": "Another"}).text == "Another"


@pytest.mark.parametrize("column", ["query", "title", "body", "latex"])
@pytest.mark.parametrize("value", [["a", "b"], 7, {"text": "a"}, ("a",)], ids=repr)
def test_a_topic_whose_text_is_no_text_is_refused_by_its_qid(column: str, value: Any) -> None:
    row = {"qid": "A.1", "query": "x", column: value}
    for read in (check_topic, query_post):
        with pytest.raises(DocumentError, match="topic") as caught:
            read(row)
        assert "A.1" in caught.value.place
        assert column in caught.value.reason
        assert type(value).__name__ in caught.value.reason
    for missing in (None, float("nan"), pd.NA):
        check_topic({"qid": "A.1", column: missing})


def test_the_title_and_body_of_one_document_are_told_from_the_topic_s_by_the_query() -> None:
    topic = pd.DataFrame({"qid": ["1"], "title": [TITLE], "body": [BODY]})
    kept = with_query(topic).assign(docno="d")
    assert columns_of_documents(kept) == []
    assert texts_of_topics(kept) == ["title", "body"]
    loaded = kept.assign(title="Other", body="<p>of the document</p>")
    assert columns_of_documents(loaded) == ["title", "body"]
    assert columns_of_topics(kept) == ["title", "body", "query"]
    assert columns_of_topics(loaded) == ["query"]
    assert texts_of_topics(loaded) == []
    assert distinct_queries(loaded).columns.tolist() == ["qid", "query", "docno"]


def test_gaps_of_a_union_are_not_a_difference() -> None:
    topic = with_query(pd.DataFrame({"qid": ["1"], "title": [TITLE], "body": [BODY]}))
    ranking = pd.concat([topic.assign(docno="d", query=None), topic.assign(docno="d", title=None, body=None)])
    assert columns_of_documents(ranking) == []
    assert distinct_queries(ranking)["query"].tolist() == [TEXT]


def test_each_query_has_one_row_of_its_first_values() -> None:
    frame = pd.DataFrame(
        {"qid": ["2", "1", "2"], "query": [None, "x", "y"], "lang": ["de", "en", "fr"], "score": [1.0, 2.0, 3.0]}
    )
    found = distinct_queries(frame, ["docno", "score", "rank"])
    assert found.to_dict("list") == {"qid": ["2", "1"], "query": ["y", "x"], "lang": ["de", "en"]}
    assert found["query"].dtype == object  # filled
    rest = distinct_queries(frame.iloc[1:])
    assert rest.to_dict("list") == frame.iloc[1:].to_dict("list")
    assert list(rest.index) == [0, 1]


def test_the_documents_of_a_ranking_are_not_part_of_its_queries() -> None:
    texts = {"text": "", "graph": None, "doc_embs": None, "title": "of topic", "body": "or document"}
    topics = pd.DataFrame({"qid": ["1"], **texts})
    assert list(distinct_queries(topics)) == list(topics)
    ranking = topics.assign(docno="d")
    assert list(distinct_queries(ranking)) == ["qid", "title", "body", "docno"]
    asked = pd.concat([ranking, ranking.assign(docno="e")]).assign(query="sum")
    assert list(distinct_queries(asked)) == ["qid", "title", "body", "docno", "query"]
    assert list(distinct_queries(asked.assign(title=["a", "b"]))) == ["qid", "docno", "query"]
    assert list(distinct_queries(asked.assign(body=["a", None]))) == ["qid", "title", "body", "docno", "query"]

"""One query and one document, out of a row or a frame."""

import pandas as pd
import pytest

from pyterrier_mathamr.explain import AskedError, read_asked

RANKING = pd.DataFrame(
    {
        "qid": ["1", "1", "1"],
        "query": [None, "x", "x"],  # as after `+`
        "docno": ["a", "b", "c"],
        "score": [3.0, 2.0, 1.0],
        "text": ["of a", None, "of c"],
    }
)


def test_a_frame_has_only_the_columns_of_its_query_and_of_the_document() -> None:
    assert read_asked(RANKING, "a", "it").row == {"qid": "1", "query": "x", "docno": "a", "score": 3.0, "text": "of a"}
    assert read_asked(RANKING, None, "it").row["text"] == "of a"
    assert read_asked(RANKING, "b", "it").texts() == {}  # not that of another document
    assert read_asked(RANKING, "c", "it").texts() == {"text": "of c"}
    assert read_asked(RANKING, "d", "it").row == {"qid": "1", "query": "x", "docno": "d"}


def test_the_row_of_another_document_describes_the_query_only() -> None:
    row = RANKING.iloc[2]
    assert read_asked(row, None, "it").texts() == {"text": "of c"}
    assert read_asked(row, "a", "it").texts() == {}
    assert read_asked(row.to_dict(), "a", "it").docno == "a"
    assert list(read_asked(RANKING, "c", "it").query_frame().columns) == ["qid", "query"]


@pytest.mark.parametrize(
    ("query", "docno", "needs", "message"),
    [
        ({"qid": "1"}, "a", ["query_embs"], "it cannot explain a score: the row has no query_embs. Give a row"),
        ({"qid": "1", "query_embs": None}, "a", ["query_embs"], "no query_embs"),
        ({"qid": "1"}, None, [], "no document is named"),
        ("x", "a", [], "str is not a row"),
        (RANKING.assign(qid=["1", "1", "2"]), "a", [], "not of one query"),
        (RANKING.drop(columns="qid"), "a", [], "no column qid"),
    ],
)
def test_anything_but_one_query_and_one_document_is_refused(query, docno, needs, message) -> None:
    with pytest.raises(AskedError, match=message):
        read_asked(query, docno, "it", needs)

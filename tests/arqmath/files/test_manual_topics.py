"""Words and formulas that people chose: both published formats, and what breaks them."""

import gzip
import json
from pathlib import Path

import pytest

from pyterrier_mathamr.arqmath import ARQMathError, BadRowWarning, read_manual_topics

TABLE = (
    'qid\tkeywords\tformulas\nA.301\troots, complex number \t$z^2+1=0$\t\\sqrt{-1}\nA.302\t\tx "y"\n\nA.303\tprime\n'
)
LIST = [
    {"qid": "A.1", "tags": "functions", "kw": [{"type": "tex", "str": "f(x)"}, {"type": "term", "str": "domain"}]},
    {"qid": "A.2", "tags": "", "kw": []},
]


def test_a_table_gives_words_formulas_and_a_query_of_both(tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text(TABLE)
    found = read_manual_topics(tmp_path / "topics.tsv")
    assert list(found.columns) == ["qid", "query", "words", "formulas"]
    assert found["qid"].tolist() == ["A.301", "A.302", "A.303"]
    assert found["words"].tolist() == ["roots complex number", "", "prime"]
    assert found["formulas"].tolist() == [["z^2+1=0", r"\sqrt{-1}"], ['x "y"'], []]
    assert found["query"].tolist() == [r"roots complex number $z^2+1=0$ $\sqrt{-1}$", '$x "y"$', "prime"]


def test_a_list_of_2020_gives_the_same_columns(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "topics.json.gz", "wt") as file:
        json.dump(LIST, file)
    found = read_manual_topics(tmp_path / "topics.json.gz")
    assert found.to_dict("records") == [
        {"qid": "A.1", "query": "domain $f(x)$", "words": "domain", "formulas": ["f(x)"]},
        {"qid": "A.2", "query": "", "words": "", "formulas": []},
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("qid\n\tword\nA.1\tword\n", "T201"),
        ("qid\nA.1\tword\nA.1\tother\n", "T203"),
        ('[{"qid": "A.1", "kw": [{"type": "image", "str": "x"}, {"type": "term", "str": "word"}]}]', "T206"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_named_and_the_rest_is_read(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "topics").write_text(text)
    with pytest.warns(BadRowWarning, match=rule):
        found = read_manual_topics(tmp_path / "topics")
    assert found[["qid", "words"]].values.tolist() == [["A.1", "word"]]


@pytest.mark.parametrize("text", ["", "A.1\tword\n", "[1]", '[{"qid": "A.1"}]', "[{"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "topics").write_text(text)
    with pytest.raises(ARQMathError, match="topics"):
        read_manual_topics(tmp_path / "topics")

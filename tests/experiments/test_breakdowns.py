"""Measures of parts of Task 1, worked by hand."""

from pathlib import Path

import pandas as pd
import pytest

from mathamr_systems.experiments import formula_share, measure_by_category, recall_by_share
from pyterrier_mathamr.arqmath import ARQMathError, read_topic_categories
from pyterrier_mathamr.posts import post_from_html

TABLE = "topic\tdifficulty\tdependency\ttype\nA.1\tHard\tformula\tproof\nA.2\teasy\tboth\t\n\nA.3\thard\ttext\tproof\n"
QRELS = pd.DataFrame(
    [("A.1", "a", 3), ("A.1", "b", 2), ("A.1", "c", 0), ("A.2", "a", 2), ("A.3", "d", 1), ("A.3", "e", 2)],
    columns=["qid", "docno", "label"],
)


def ranking(**found: str) -> pd.DataFrame:
    rows = [
        (f"A.{qid[1:]}", docno, -float(rank), rank)
        for qid, docnos in found.items()
        for rank, docno in enumerate(docnos)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


RANKINGS = {"one": ranking(q1="abc", q2="a", q3="d"), "other": ranking(q1="xc", q2="xa", q3="ed")}


def test_each_category_is_measured_on_its_topics(tmp_path: Path) -> None:
    (tmp_path / "categories.tsv").write_text(TABLE)
    categories = read_topic_categories(tmp_path / "categories.tsv")
    assert categories.to_numpy().tolist() == [
        ["A.1", "hard", "formula", "proof"],
        ["A.2", "easy", "both", ""],
        ["A.3", "hard", "text", "proof"],
    ]
    table = measure_by_category(RANKINGS, QRELS, categories)
    assert list(table.columns) == ["kind", "category", "topics", "one", "other", "other reject"]
    found = {(row.kind, row.category): (row.topics, row.one, row.other) for row in table.itertuples()}
    assert found == {  # P'@10: relevant ones of the judged that were found, divided by 10
        ("difficulty", "hard"): (2, pytest.approx((0.2 + 0) / 2), pytest.approx((0 + 0.1) / 2)),
        ("difficulty", "easy"): (1, pytest.approx(0.1), pytest.approx(0.1)),
        ("dependency", "formula"): (1, pytest.approx(0.2), 0),
        ("dependency", "text"): (1, 0, pytest.approx(0.1)),
        ("dependency", "both"): (1, pytest.approx(0.1), pytest.approx(0.1)),
        ("type", "proof"): (2, pytest.approx(0.1), pytest.approx(0.05)),
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A.1\thard\ttext", "tsv:1: .* does not have the columns topic, difficulty, dependency, type"),
        ("A.1\thard\ttext\tfun", "tsv:1: the type 'fun' is none of computation, concept, proof"),
        ("A.1\t\t\t\nA.1\t\t\t", "tsv:2: topic A.1 comes twice"),
    ],
)
def test_a_bad_line_of_categories_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "categories.tsv").write_text(line + "\n")
    with pytest.raises(ARQMathError, match=message):
        read_topic_categories(tmp_path / "categories.tsv")


def test_recall_counts_relevant_answers_above_each_share() -> None:
    table = recall_by_share(RANKINGS, QRELS, {"a": 0.5, "b": 0.8, "e": 0.6, "d": 0.9}, (0, 0.5, 0.7, 0.9))
    assert table["share"].tolist() == ["> 0", "> 0.5", "> 0.7"]  # no relevant answer has more than .9
    assert table["topics"].tolist() == [3, 2, 1]
    assert table["answers"].tolist() == [4, 2, 1]
    assert table["one"].tolist() == pytest.approx([(1 + 1 + 0) / 3, (1 + 0) / 2, 1])
    assert table["other"].tolist() == pytest.approx([(0 + 1 + 1) / 3, (0 + 1) / 2, 0])


@pytest.mark.parametrize(
    ("html", "share"),
    [("<p>Only two</p>", 0), ("", 0), ('<p>x is <span class="math-container" id="1">$a+b$</span></p>', 3 / 5)],
)
def test_the_share_of_formulas_is_that_of_their_symbols(html: str, share: float) -> None:
    assert formula_share(post_from_html(html)) == pytest.approx(share)

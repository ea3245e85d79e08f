"""Measures, random orders in the tables of systems, the time of a query; Task 1 in parts."""

import math
import time
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from mathamr_systems.experiments import formula_share, measure, measure_by_category, recall_by_share
from mathamr_systems.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    TimedPipeline,
    compare,
    fitted_weight,
    measure_by_topic,
    near_random,
    random_floor,
    random_known_items,
    run_systems,
    time_queries,
)
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathError, markdown_table, read_topic_categories
from pyterrier_mathamr.posts import post_from_html

MAP, P10 = map(str, TASK1_MEASURES[1:3])
TOPICS = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["a", "b", "c"]})
QRELS = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["x", "y", "x"], "label": [3, 0, 2]})
GOOD = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["x", "y", "x"], "score": [2.0, 1.0, 1.0], "rank": [0, 1, 0]})
BAD = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["y", "x", "y"], "score": [2.0, 1.0, 1.0], "rank": [0, 1, 0]})
UNJUDGED = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["u", "x", "u"], "score": [2.0, 1.0, 1.0], "rank": [0, 1, 0]})


def test_unjudged_answers_are_left_out_and_each_system_searches_once() -> None:
    table = measure({"good": GOOD, "bad": BAD, "unjudged": UNJUDGED}, TOPICS, QRELS).set_index("name")
    assert table[MAP].tolist() == [1.0, 0.25, 0.5]
    assert table[P10].tolist() == pytest.approx([0.1, 0.05, 0.05])
    assert {f"{MAP} reject", "Bpref(rel=2) p-value corrected"} <= set(table.columns)

    calls = []

    def search(topics: pd.DataFrame) -> pd.DataFrame:
        calls.append(len(topics))
        return GOOD.assign(query_embs=None)

    rankings, costs = run_systems({"good": pt.apply.generic(search)}, TOPICS)
    assert calls == [3]
    assert rankings["good"].columns.tolist() == ["qid", "docno", "score", "rank"]
    assert costs.name.tolist() == ["good"]

    assert fitted_weight(BAD, GOOD, QRELS[QRELS.label > 0]) > 0.5
    with pytest.warns(MathAMRWarning, match=r"0\.5"):
        assert fitted_weight(BAD, GOOD, QRELS.assign(label=0)) == 0.5


def test_tables_come_in_one_order_whatever_the_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """pt.Experiment has measures, and the topics that a system does not find, in the order of a set."""
    rankings, real = {"good": GOOD, "bad": BAD}, pt.Experiment
    qrels = pd.concat([QRELS, QRELS.assign(qid=QRELS.qid + "0")])
    topics, names = qrels[["qid"]].drop_duplicates(), list(map(str, TASK1_MEASURES))
    table, by_topic = measure(rankings, topics, qrels), measure_by_topic(rankings, topics, qrels)
    blocks = [column for name in reversed(names) for column in table.columns if column.startswith(f"{name} ")]

    def reordered(*arguments: Any, **options: Any) -> pd.DataFrame:
        found = real(*arguments, **options)
        return found.iloc[::-1] if options.get("perquery") else found[["name", *reversed(names), *blocks]]

    monkeypatch.setattr(pt, "Experiment", reordered)
    pd.testing.assert_frame_equal(measure(rankings, topics, qrels), table)
    pd.testing.assert_frame_equal(measure_by_topic(rankings, topics, qrels), by_topic)
    assert table.columns.tolist()[:5] == ["name", *names]
    assert by_topic.measure.tolist() == names * 8
    assert by_topic.qid.tolist()[::4] == topics.qid.tolist() * 2
    assert markdown_table(table[["name", *reversed(names), *blocks]]) == markdown_table(table)


@pytest.mark.parametrize("measures", [TASK1_MEASURES, KNOWN_ITEM_MEASURES, [*KNOWN_ITEM_MEASURES, TASK1_MEASURES[0]]])
def test_rows_that_no_measure_reads_may_be_missing(measures: list[object]) -> None:
    chance = np.random.default_rng(7)
    rows = [(str(q), f"d{d}", chance.integers(0, 30) / 3 + 1e-9 * d) for q in range(20) for d in range(60)]  # with ties
    ranking = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    ranking = ranking.sort_values(["qid", "score"], ascending=[True, False])
    ranking["rank"] = ranking.groupby("qid").cumcount()
    judged = [(str(q), f"d{d}", int(chance.integers(0, 4))) for q in range(25) for d in range(0, 90, 4)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    topics = qrels[["qid"]].drop_duplicates()
    found = measure_by_topic({"a": ranking}, topics, qrels, measures).set_index(["qid", "measure"]).value
    whole = ir_measures.iter_calc(
        measures,
        qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}),
        ranking.rename(columns={"qid": "query_id", "docno": "doc_id"}),
    )
    expected = {(value.query_id, str(value.measure)): value.value for value in whole}
    assert found.fillna(0.0).to_dict() == pytest.approx(expected)


def test_a_system_that_finds_nothing_or_nothing_judged_scores_0() -> None:
    topics = pd.DataFrame({"qid": ["1", "2"]})
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "label": [3, 2]})
    other = pd.DataFrame({"qid": ["1"], "docno": ["c"], "score": [1.0], "rank": [0]})
    for ranking in (other, other.iloc[:0]):
        for measures in (TASK1_MEASURES, KNOWN_ITEM_MEASURES):
            values = measure_by_topic({"nothing": ranking}, topics, qrels, measures)
            assert values["qid"].value_counts().to_dict() == {"1": len(measures), "2": len(measures)}
            assert values["value"].tolist() == [0.0] * len(values)


NDCG = str(TASK1_MEASURES[0])
QIDS = [str(number) for number in range(12)]
MANY = pd.DataFrame(
    [(qid, f"d{d}", 3 if d < 2 else 0) for qid in QIDS for d in range(20)], columns=["qid", "docno", "label"]
)


def ranking(first: str, seed: int = 3) -> pd.DataFrame:
    """Rank the judged documents at random, or the relevant ones first."""
    scores = np.random.default_rng(seed).random(len(MANY)) + (MANY["label"] if first == "relevant" else 0)
    found = MANY.assign(score=scores).sort_values(["qid", "score"], ascending=[True, False])
    return found.assign(rank=found.groupby("qid").cumcount())[["qid", "docno", "score", "rank"]]


@pytest.mark.parametrize(("right", "documents"), [(1, 30), (3, 30), (2, 5)])
def test_known_items_of_a_random_order_are_the_exact_expectation(right: int, documents: int) -> None:
    qrels = pd.DataFrame({"qid": "1", "docno": [f"d{d}" for d in range(right)], "label": 1})
    exact = random_known_items(qrels, documents).set_index("measure")["value"]
    random, reciprocal, recall = np.random.default_rng(1), [], []
    for _ in range(4_000):
        places = 1 + np.flatnonzero(random.permutation(documents) < right)
        reciprocal.append(1 / places[0] if places[0] <= 10 else 0.0)
        recall.append((places <= 10).sum() / right)
    assert exact["RR@10"] == pytest.approx(np.mean(reciprocal), abs=0.03)
    assert exact["R@10"] == pytest.approx(np.mean(recall), abs=0.03)
    assert exact.index.tolist() == list(map(str, KNOWN_ITEM_MEASURES))


def test_the_table_ends_with_the_random_order_and_tests_against_the_better_baseline() -> None:
    floor = random_floor(MANY)
    found = compare({"good": ranking("relevant"), "chance": ranking("any")}, pd.DataFrame({"qid": QIDS}), MANY, floor)
    assert found.table["name"].tolist() == ["good", "chance", FLOOR]
    assert found.table[NDCG].iloc[2] == pytest.approx(floor[floor["measure"] == NDCG]["value"].mean())
    (remark,) = found.remark("Train on more pairs.")
    assert "chance 0." in remark
    assert "good" not in remark
    assert "12 topics" in remark
    assert remark.endswith("Train on more pairs.")

    rankings = {"weak": ranking("any"), "strong": ranking("relevant"), "other": ranking("any")}
    found = compare(rankings, pd.DataFrame({"qid": QIDS}), MANY, random_floor(MANY), baselines=("weak", "strong"))
    assert found.baseline == "strong"
    assert found.table["name"].tolist() == [*rankings, FLOOR]
    assert found.table[f"{NDCG} p-value"].isna().tolist() == [False, True, False, True]

    rankings = {"baseline": ranking("any"), "good": ranking("relevant")}
    (remark,) = compare(rankings, pd.DataFrame({"qid": QIDS}), MANY, random_floor(MANY)).remark("Train on more pairs.")
    assert "too few to distinguish systems" in remark
    assert "Train" not in remark


def test_a_system_near_the_random_order_is_named() -> None:
    floor = pd.DataFrame({"qid": list("abcd"), "value": [0.5, 0.5, 0.6, 0.4]})
    below = pd.DataFrame({"name": "below", "qid": list("abcd"), "value": [0.1, 0.2, math.nan, 0.1]})
    above = pd.DataFrame({"name": "above", "qid": list("abcd"), "value": [0.9, 0.8, 0.9, 0.8]})
    (remark,) = near_random(pd.concat([below, above]), floor, NDCG, "Train.")
    assert "(nDCG' 0.5000): below 0.1000 (p = 0.0" in remark  # significantly below
    assert "above 0." not in remark
    assert near_random(above, floor, NDCG, "Train.") == ()

    floor = pd.DataFrame({"qid": ["a", "b"], "value": [0.5, 0.5]})
    own = pd.DataFrame({"name": "x", "qid": ["a", "b"], "value": [0.6, 0.9]})
    assert "x 0.7500" in near_random(own, floor, NDCG, "Train.")[0]


class Counting(pt.Transformer):
    """Counts its calls, and sleeps for a moment."""

    def __init__(self, column: str, milliseconds: float = 0) -> None:
        self.column, self.milliseconds, self.calls = column, milliseconds, 0

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        self.calls += 1
        time.sleep(self.milliseconds / 1000)
        return topics.assign(**{self.column: 1})


def test_the_time_of_a_query_includes_encoding_which_systems_share() -> None:
    encode, search = Counting("query_embs", 20), Counting("score")
    table = time_queries({"plain": TimedPipeline(search), "dense": TimedPipeline(search, encode)}, TOPICS).set_index(
        "name"
    )
    assert table["queries"].tolist() == [3, 3]
    assert table.loc["plain", "encoding ms"] == 0
    assert table.loc["dense", "encoding ms"] >= 20
    sums = table["encoding ms"] + table["search ms"]
    assert table["ms per query"].tolist() == pytest.approx(sums.tolist())
    assert table.loc["dense", "p50 ms"] >= 20

    encode, searches = Counting("query_embs"), [Counting("score"), Counting("score")]
    ways = {str(number): TimedPipeline(search, encode) for number, search in enumerate(searches)}
    table = time_queries(ways, TOPICS, most=2)
    assert encode.calls == 3  # the first query once more, so that files are open
    assert [search.calls for search in searches] == [3, 3]
    assert table["encoding ms"].nunique() == 1


TABLE = "topic\tdifficulty\tdependency\ttype\nA.1\tHard\tformula\tproof\nA.2\teasy\tboth\t\n\nA.3\thard\ttext\tproof\n"
PART_QRELS = pd.DataFrame(
    [("A.1", "a", 3), ("A.1", "b", 2), ("A.1", "c", 0), ("A.2", "a", 2), ("A.3", "d", 1), ("A.3", "e", 2)],
    columns=["qid", "docno", "label"],
)


def ranking_of(**found: str) -> pd.DataFrame:
    rows = [
        (f"A.{qid[1:]}", docno, -float(rank), rank)
        for qid, docnos in found.items()
        for rank, docno in enumerate(docnos)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


PARTS = {"one": ranking_of(q1="abc", q2="a", q3="d"), "other": ranking_of(q1="xc", q2="xa", q3="ed")}


def test_each_category_is_measured_on_its_topics(tmp_path: Path) -> None:
    (tmp_path / "categories.tsv").write_text(TABLE)
    categories = read_topic_categories(tmp_path / "categories.tsv")
    assert categories.to_numpy().tolist() == [
        ["A.1", "hard", "formula", "proof"],
        ["A.2", "easy", "both", ""],
        ["A.3", "hard", "text", "proof"],
    ]
    table = measure_by_category(PARTS, PART_QRELS, categories)
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
    table = recall_by_share(PARTS, PART_QRELS, {"a": 0.5, "b": 0.8, "e": 0.6, "d": 0.9}, (0, 0.5, 0.7, 0.9))
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

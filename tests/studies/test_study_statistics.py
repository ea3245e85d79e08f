"""Significance, the floor and the tables, with values worked by hand."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from mathamr_systems.experiments.measuring import paired_test, random_floor
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from studies.models.reporting import _Tables as StudyTables
from studies.study import PRESETS, Row, Setting, Study, condition
from studies.tables import Results

NDCG, MAP = map(str, TASK1_MEASURES[:2])


def test_a_paired_test_is_two_tailed_and_bonferroni_multiplies_by_the_number_of_tests() -> None:
    outcome = paired_test(np.array([1.0, 2.0, 3.0]), np.zeros(3), 3)
    assert outcome.difference == pytest.approx(2.0)
    assert outcome.t == pytest.approx(2 * math.sqrt(3))  # mean 2, standard deviation 1, three topics
    by_hand = 1 - outcome.t / math.sqrt(outcome.t**2 + 2)  # the distribution of t with two degrees of freedom
    assert outcome.p == pytest.approx(by_hand)
    assert outcome.corrected == pytest.approx(3 * by_hand)
    assert not outcome.significant
    assert paired_test(np.array([1.0, 1.1, 0.9]), np.zeros(3), 3).significant
    assert not paired_test(np.array([1.0, 1.1, 0.9]), np.zeros(3), 30).significant

    outcome = paired_test(np.array([0.2, 0.4]), np.array([0.2, 0.4]), 1)
    assert (outcome.difference, outcome.p, outcome.significant) == (0.0, 1.0, False)


def test_the_floor_is_the_mean_over_all_orders() -> None:
    qrels = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["x", "y", "z"], "label": [3, 0, 2]})
    floor = random_floor(qrels, draws=400).set_index(["qid", "measure"]).value
    assert floor["1", MAP] == pytest.approx(0.75, abs=0.05)  # first or second of two
    assert floor["1", NDCG] == pytest.approx((1 + 1 / math.log2(3)) / 2, abs=0.04)
    assert floor["2", MAP] == 1.0
    assert floor.equals(random_floor(qrels, draws=400).set_index(["qid", "measure"]).value)


def of(study: Study, results: Results) -> StudyTables:
    shared: Artifacts = None  # type: ignore[assignment]
    return StudyTables(Setting(study, shared, ("2020", "2022"), (1, 2), PRESETS["full"]), results)


@pytest.fixture
def tables() -> StudyTables:
    """Two conditions, two seeds, three topics of two years; one condition is better by 1, 2 and 3 tenths."""
    study = Study(
        "s",
        "t",
        conditions=(condition("base"), condition("better", layers=0)),
        rows=(Row("base"), Row("better", against=("base", "ColBERT-style"))),
    )
    rows = []
    for name, gain in (("base", 0.0), ("better", 0.1)):
        for seed, shift in ((1, -0.05), (2, 0.05)):
            for number, (year, qid) in enumerate((("2020", "A.1"), ("2022", "A.1"), ("2022", "A.2")), 1):
                for measure in map(str, TASK1_MEASURES):
                    value = 0.3 + gain * number + (shift if name == "base" else 2 * shift)
                    rows.append((name, seed, "ColBERT-style", year, qid, measure, value))
    columns = ["condition", "seed", "system", "topics", "qid", "measure", "value"]
    return of(study, Results(pd.DataFrame(rows, columns=columns)))


def test_means_seeds_and_tests_of_pooled_topics(tables: StudyTables) -> None:
    table = tables._mean(("2020", "2022"), [NDCG]).set_index("condition")
    assert table.loc["base", NDCG] == pytest.approx(0.3)
    assert table.loc["better", NDCG] == pytest.approx(0.5)
    assert table.loc["base", f"{NDCG} std"] == pytest.approx(0.1 / math.sqrt(2))
    assert table.loc["better", f"{NDCG} std"] == pytest.approx(0.2 / math.sqrt(2))
    assert tables._mean(["2020"], [NDCG]).set_index("condition").loc["better", NDCG] == pytest.approx(0.4)

    assert tables.count == 4
    outcome = tables._tests(tables.rows, ["2020", "2022"]).set_index("measure").loc[NDCG]
    assert outcome.difference == pytest.approx(0.2)
    assert outcome.t == pytest.approx(2 * math.sqrt(3))
    assert outcome["p corrected"] == pytest.approx(4 * outcome.p)

    table = tables.best_seed().set_index("condition")
    assert table.seed.tolist() == [2, 2]
    assert table[NDCG].tolist() == pytest.approx([0.35, 0.6])

    values = tables.results.values
    fewer = Results(values[values.condition != "base"], tables.results.speed, tables.results.costs)
    assert of(tables.study, fewer).rows == ()
    assert of(tables.study, fewer).count == 4  # the correction is for planned tests


def test_a_study_of_formulas_tests_each_condition_on_both_tasks(tables: StudyTables) -> None:
    study = dataclasses.replace(tables.study, task2=True)
    values = tables.results.values
    of_formulas = values.assign(system="formula vectors", topics=values["topics"] + ", formulas")
    results = dataclasses.replace(tables.results, values=pd.concat([values, of_formulas]))
    both = of(study, results)
    assert both.count == 8
    assert both.rows == tables.rows
    base, better = both.formula_rows
    assert (base.key, base.against) == (("base", "formula vectors"), None)
    assert (better.key, better.against) == (("better", "formula vectors"), base.key)
    outcome = both._tests(both.formula_rows, ["2020, formulas", "2022, formulas"]).set_index("measure").loc[NDCG]
    assert outcome.difference == pytest.approx(0.2)
    assert outcome["p corrected"] == pytest.approx(8 * outcome.p)
    assert tables.formula_rows == ()


def test_every_system_is_tested_against_the_better_bm25_and_corrected_for_that_table(
    tables: StudyTables,
) -> None:
    values = tables.results.values
    bm25 = values[(values["condition"] == "base") & (values["seed"] == 1)]
    bm25 = bm25.assign(condition="–", seed=-1)
    weaker = bm25.assign(system="BM25", value=0.1)
    bm25 = bm25.assign(system="BM25, tuned for mathematics", value=bm25["qid"].map({"A.1": 0.2, "A.2": 0.3}))
    results = dataclasses.replace(tables.results, values=pd.concat([values, weaker, bm25]))
    both = of(tables.study, results)
    table = both.against_bm25(["2020", "2022"], NDCG).set_index("condition")
    assert table.index.tolist() == ["base", "better"]
    assert table.loc["base", "difference"] == pytest.approx(0.2 / 3)
    better = table.loc["better"]  # 0.2, 0.3 and 0.3 above BM25
    assert better.difference == pytest.approx(0.8 / 3)
    assert better.t == pytest.approx(8.0)
    assert better["p corrected"] == pytest.approx(12 * better.p)  # two conditions, six systems against it

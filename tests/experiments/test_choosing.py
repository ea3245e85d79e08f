"""Settings are tuned without the topics that are measured; on small rankings worked by hand."""

from collections.abc import Callable, Mapping

import pandas as pd
import pytest

from mathamr_systems.experiments.choosing import (
    MOST,
    Fitted,
    Nested,
    Questions,
    Training,
    choice,
    fused,
    pooled_folds,
    weight_grid,
)
from mathamr_systems.experiments.systems import System
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.fusion import ZScoreFusion
from studies.protocol.catalogue import JUDGED, crossed_years

QIDS = [f"{year} A.{number}" for year in (2020, 2022) for number in range(1, 6)]
QUESTIONS = Questions(JUDGED, pd.DataFrame({"qid": QIDS, "query": "x", "title": "", "body": ""}))
QRELS = pd.DataFrame([(qid, docno, label) for qid in QIDS for docno, label in (("good", 3), ("bad", 0))])
QRELS.columns = pd.Index(["qid", "docno", "label"])


def ranking(right: Callable[[str], bool]) -> pd.DataFrame:
    """Rank the right document first for some questions, the wrong one for others."""
    rows = []
    for qid in QIDS:
        order = ("good", "bad") if right(qid) else ("bad", "good")
        rows += [(qid, docno, 2.0 - rank, rank) for rank, docno in enumerate(order)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def fitted(right: Callable[[str], bool], **chosen: object) -> Fitted:
    rows = ranking(right)
    return Fitted(chosen, lambda questions: questions.kept(rows))


def of_year(year: str) -> Callable[[str], bool]:
    return lambda qid: qid.startswith(year)


OLD, NEW = fitted(of_year("2020"), best="2020"), fitted(of_year("2022"), best="2022")


def chosen_in(nested: Nested) -> Mapping[str, str]:
    _, chosen = nested.run(crossed_years(QIDS))
    return dict(zip(chosen["fold"], chosen["chosen"], strict=True))


def test_a_fold_leaves_a_year_out() -> None:
    folds = crossed_years(["2020 A.1", "2021 A.1", "2022 A.1"])
    assert [fold.name for fold in folds] == ["2021 and 2022 → 2020", "2020 and 2022 → 2021", "2020 and 2021 → 2022"]
    assert folds[1].training == {"2020 A.1", "2022 A.1"}
    assert folds[1].test == {"2021 A.1"}
    with pytest.raises(ConfigError, match="--years 2020,2022"):
        crossed_years(["2022 A.1", "2022 A.2"])


@pytest.mark.parametrize("topics", [2, 7, 10, 109])
def test_each_topic_is_measured_in_one_of_ten_folds_and_chooses_in_the_others(topics: int) -> None:
    qids = [f"2022 A.{number}" for number in range(topics)]
    folds = pooled_folds(qids)
    assert sorted(qid for fold in folds for qid in fold.test) == sorted(qids)
    assert all(fold.training | fold.test == set(qids) and not fold.training & fold.test for fold in folds)
    sizes = {len(fold.test) for fold in folds}
    assert len(folds) == min(10, topics)
    assert max(sizes) - min(sizes) <= 1
    assert pooled_folds(qids[::-1]) == folds


def test_the_best_setting_of_the_training_year_is_measured_on_the_other() -> None:
    nested = Nested([choice("choice", (OLD, NEW))], QUESTIONS, QRELS)
    assert chosen_in(nested) == {"2022 → 2020": "best 2022", "2020 → 2022": "best 2020"}
    rankings, _ = nested.run(crossed_years(QIDS))
    found = rankings["choice"].sort_values(["qid", "rank"])
    assert set(found.loc[found["rank"] == 0, "docno"]) == {"bad"}  # each year by what the other one chose
    assert set(found["qid"]) == set(QIDS)

    turned = QRELS.assign(label=QRELS["label"].where(QRELS["qid"].str.startswith("2020"), 3 - QRELS["label"]))
    systems = [choice("choice", (OLD, NEW))]
    before, after = (chosen_in(Nested(systems, QUESTIONS, qrels)) for qrels in (QRELS, turned))
    assert before["2020 → 2022"] == after["2020 → 2022"] == "best 2020"
    assert before["2022 → 2020"] != after["2022 → 2020"]

    same = tuple(fitted(of_year("2020"), number=number) for number in range(3))
    assert set(chosen_in(Nested([choice("choice", same)], QUESTIONS, QRELS)).values()) == {"number 0"}


def test_a_system_is_fitted_only_with_the_judgments_of_the_training_topics() -> None:
    seen = []

    def learn(training: Training) -> Fitted:
        seen.append((set(training.questions.topics["qid"]), set(training.qrels["qid"])))
        assert set(training.part("part").rank(training.questions)["qid"]) == set(training.questions.topics["qid"])
        return training.part("part")

    nested = Nested([choice("part", (OLD, NEW)), System("learned", learn, against=("part",))], QUESTIONS, QRELS)
    folds = [*crossed_years(QIDS), *pooled_folds(QIDS)]
    rankings, _ = nested.run(folds)
    assert seen == [(fold.training, fold.training) for fold in folds]
    pd.testing.assert_frame_equal(rankings["learned"], rankings["part"])


def test_the_weights_of_a_fusion_are_chosen_for_the_parts_of_the_same_fold() -> None:
    nested = Nested([choice("one", (OLD, NEW)), choice("other", (NEW, OLD)), fused(("one", "other"))], QUESTIONS, QRELS)
    chosen = nested.fit(frozenset(QIDS[:5]))
    assert chosen["one"] is chosen["other"] is OLD
    half = ZScoreFusion(OLD.rank(QUESTIONS), OLD.rank(QUESTIONS), weight=0.0)(QUESTIONS.topics[["qid"]])
    found = chosen["one + other"].rank(QUESTIONS)
    pd.testing.assert_frame_equal(found.drop(columns="score"), half.drop(columns="score"))

    nested = Nested([choice("old", (OLD,)), choice("new", (NEW,)), fused(("old", "new"))], QUESTIONS, QRELS)
    weights = nested.fit(frozenset(QIDS[:5]))["old + new"].chosen
    assert weights["weight of old"] >= weights["weight of new"]  # type: ignore[operator]
    assert nested.fit(frozenset(QIDS[5:]))["old + new"].chosen == {"weight of old": 0.0, "weight of new": 1.0}


@pytest.mark.parametrize(("systems", "weights"), [(2, 21), (3, 66), (4, 56), (5, 70)])
def test_all_weights_of_a_step_sum_to_one(systems: int, weights: int) -> None:
    grid = weight_grid(systems)
    assert len(grid) == len(set(grid)) == weights <= MOST
    assert all(sum(each) == pytest.approx(1) and min(each) >= 0 for each in grid)
    assert {max(each) for each in grid} >= {1.0}


def test_parts_come_first_and_a_system_with_a_missing_extra_is_left_out_with_its_fusions() -> None:
    with pytest.raises(ConfigError, match="old"):
        Nested([fused(("old", "new")), choice("old", (OLD,)), choice("new", (NEW,))], QUESTIONS, QRELS)

    def absent(questions: Questions) -> pd.DataFrame:
        raise MissingExtraError("nothing", "answers")

    systems = [choice("old", (OLD,)), choice("absent", (Fitted({}, absent),)), fused(("old", "absent"))]
    nested = Nested(systems, QUESTIONS, QRELS)
    rankings, _ = nested.run(crossed_years(QIDS))
    assert list(rankings) == ["old"]
    assert list(nested.missing) == ["absent", "old + absent"]

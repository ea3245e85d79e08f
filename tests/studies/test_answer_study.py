"""A study of answers ranks each row once for all studies, and qualifies its figures."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments import Report, System
from mathamr_systems.experiments.measuring import FEW_JUDGED, FLOOR, RANDOM_ANSWERS
from mathamr_systems.experiments.systems import TUNED, AnswerParts
from mathamr_systems.experiments.workdir import KNOWN_ITEM, Artifacts
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.arqmath import known_item_split
from studies import answers
from studies.answers import JUDGED_TOPICS, KNOWN_ITEMS, TESTS
from studies.answers.rows import COMMON_ROWS, TUNED_ROW
from studies.registry import run_study
from studies.study import Study, all_systems
from studies.tables import MAIN

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
MADE: list[tuple[str, str, int]] = []


def reversed_order(parts: AnswerParts) -> pt.Transformer:
    """BM25 upside down, so that it differs from BM25 wherever anything can."""
    MADE.append(("worst", parts.of, parts.seed))
    return parts.shared.tuned.retriever(1000) >> pt.apply.doc_score(lambda row: -row["score"])


def trained(parts: AnswerParts) -> pt.Transformer:
    """A model that is a number, by which scores are disturbed."""
    path = parts.stage("number", lambda path: path.write_text(str(parts.seed)), trained=True)
    MADE.append(("trained", parts.of, parts.seed))
    random = np.random.default_rng(int(path.read_text()))
    return parts.shared.tuned.retriever(1000) >> pt.apply.doc_score(lambda row: row["score"] + random.normal())


def missing(parts: AnswerParts) -> pt.Transformer:
    raise MissingExtraError("nothing", "answers")


WORST = System("worst", reversed_order)
TRAINED = System("trained", trained, against=("worst",), trained=True)
STUDY = Study(
    "answers/test",
    "A test",
    "answers",
    systems=(WORST, TRAINED, System("not installed", missing), System("topics only", reversed_order, known=False)),
    seeds=(1, 2),
    more=lambda outcome: {"Lengths": pd.DataFrame({"rows": [len(outcome.ranking("trained", "sample", 2))]})},
)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def few_rows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "COMMON_ROWS", (TUNED_ROW,))
        yield


@pytest.fixture(scope="module")
def report(workdir: Path, few_rows: None) -> Report:
    return run_study(STUDY, SAMPLE, workdir, years=["sample"], verbose=False)


def test_all_rows_are_in_tables_with_random_orders_and_notes(report: Report, workdir: Path) -> None:
    judged = report.tables[f"{JUDGED_TOPICS} of sample"].set_index("system")
    assert list(judged.index) == [
        *(FLOOR, TUNED, "worst", "trained", "not installed: needs the extra answers", "topics only")
    ]
    assert judged["seeds"].fillna("").tolist() == ["", "", "", "2", "", ""]
    assert judged.loc[TUNED, MAIN] == pytest.approx(0.7945, abs=0.01)
    assert judged.loc["worst", MAIN] < judged.loc["trained", MAIN] < judged.loc[TUNED, MAIN]
    assert judged[f"{MAIN} std"].notna().tolist() == [False, False, False, True, False, False]
    known = report.tables[KNOWN_ITEMS].set_index("system")
    assert list(known.index) == [RANDOM_ANSWERS, TUNED, "worst", "trained", "not installed: needs the extra answers"]
    assert known.loc[TUNED, "RR@10"] == pytest.approx(0.6806, abs=0.01)

    assert set(report.about) == set(report.tables)
    assert all(FEW_JUDGED in text for text in report.about.values())
    assert "Lengths" in report.tables
    assert "**Not measured**: not installed" in (workdir / "studies" / "answers-test" / "report.md").read_text()


def test_each_row_is_tested_against_bm25_and_its_baselines_and_corrected_for_all_tests(report: Report) -> None:
    tests = report.tables[TESTS]
    assert tests[["system", "against", "topics"]].to_numpy().tolist() == [
        ["worst", TUNED, "sample"],
        ["trained", TUNED, "sample"],
        ["trained", "worst", "sample"],
        ["topics only", TUNED, "sample"],
        ["worst", TUNED, KNOWN_ITEM],
        ["trained", TUNED, KNOWN_ITEM],
        ["trained", "worst", KNOWN_ITEM],
    ]
    assert tests["p corrected"].tolist() == pytest.approx((7 * tests["p"]).clip(upper=1).tolist())
    judged = report.tables[f"{JUDGED_TOPICS} of sample"].set_index("system")
    assert judged.loc["worst", f"{MAIN} reject"] == tests["significant"][0]


def test_nothing_is_ranked_or_trained_twice_not_even_for_another_study(report: Report, workdir: Path) -> None:
    assert sorted(MADE) == [
        *(("trained", of, seed) for of in (KNOWN_ITEM, "sample") for seed in (1, 2)),
        *(("worst", of, -1) for of in (KNOWN_ITEM, "sample", "sample")),
    ]
    before = list(MADE)
    again = run_study(STUDY, SAMPLE, workdir, years=["sample"], verbose=False)
    other = Study("answers/other", "Another", "answers", systems=(WORST, TRAINED), seeds=(1, 2))
    shared = run_study(other, SAMPLE, workdir, years=["sample"], verbose=False)
    assert before == MADE
    for caption in (f"{JUDGED_TOPICS} of sample", KNOWN_ITEMS):
        pd.testing.assert_frame_equal(again.tables[caption], report.tables[caption])
        mine, theirs = (one.tables[caption].set_index("system").loc["trained"] for one in (report, shared))
        pd.testing.assert_series_equal(mine, theirs)


def test_other_settings_are_ranked_in_addition_to_earlier_ones(report: Report, workdir: Path) -> None:
    del MADE[:]
    changed = Study("answers/test", "Changed", "answers", systems=(System("worst", reversed_order, settings={"k": 2}),))
    run_study(changed, SAMPLE, workdir, years=["sample"], verbose=False)
    assert MADE == [("worst", KNOWN_ITEM, -1), ("worst", "sample", -1)]


def test_a_kept_ranking_is_what_was_found_to_the_last_bit(report: Report, workdir: Path) -> None:
    parts = AnswerParts(Artifacts(SAMPLE, workdir), "sample", ("sample",))
    found = TUNED_ROW.make(parts)(parts.found.topics)[["qid", "docno", "score", "rank"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(parts.ranking(TUNED_ROW), found, check_dtype=False)
    assert parts.answer_texts()(found.head(3))["html"].str.contains("<").all()
    assert (parts.other_years, parts.at(of=KNOWN_ITEM).other_years) == ((), ("sample",))


def test_a_collection_without_test_questions_is_measured_by_its_topics(tmp_path: Path, few_rows: None) -> None:
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
    posts = folder / "Posts.V1.3.xml"
    lines = posts.read_text(encoding="utf-8").splitlines(keepends=True)
    questions = {line: match[1] for line in lines if (match := re.search(r'Id="(\d+)" PostTypeId="1"', line))}
    kept = [line for line in lines if line not in questions or known_item_split(questions[line]) != "test"]
    posts.write_text("".join(kept), encoding="utf-8")
    study = Study("answers/test", "No known items", "answers", systems=(WORST,))
    report = run_study(study, folder, tmp_path / "work", years=["sample"], verbose=False)
    assert report.tables[TESTS]["topics"].tolist() == ["sample"]
    assert report.tables[KNOWN_ITEMS]["RR@10"].isna().all()


def test_an_impossible_study_or_run_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="each condition, system"):
        all_systems(Study("answers/test", "", "answers", systems=(WORST, WORST)), COMMON_ROWS)
    with pytest.raises(ConfigError, match="'worst'"):
        all_systems(Study("answers/test", "", "answers", systems=(TRAINED,)), COMMON_ROWS)
    mine = System(TUNED, reversed_order)
    assert all_systems(Study("answers/test", "", "answers", systems=(mine,)), COMMON_ROWS)[1] is mine

    for given, named in (
        ({"study": "answers/all"}, "answers/marf"),
        ({"years": []}, "year"),
        ({"preset": "x"}, "mini"),
    ):
        with pytest.raises(ConfigError, match=named):
            run_study(**{"study": STUDY, "collection": SAMPLE, "workdir": tmp_path, "verbose": False, **given})
    assert not list(tmp_path.iterdir())

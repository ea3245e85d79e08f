"""Task 1 on the sample: how the model is chosen, a run, and a second one."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments import ExperimentError, Report, run_arqmath
from mathamr_systems.experiments.measuring import FLOOR
from mathamr_systems.experiments.preparing import choose_training, years_of
from mathamr_systems.experiments.systems import BASELINES, FUSION, SINGLE, TUNED
from mathamr_systems.experiments.task1 import PRECISION
from mathamr_systems.experiments.workdir import Artifacts, judged_topics
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.arqmath import ARQMathCollection, MissingFileError, known_item_split
from pyterrier_mathamr.model import MathAMRConfig
from studies.artifacts import prepare
from studies.protocol.protocol_run import run_protocol

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


def two_years(folder: Path) -> Path:
    """Copy the sample, with its topics and judgments as those of a second year, too."""
    copy = Path(shutil.copytree(SAMPLE, folder / "sample"))
    for file in copy.glob("*/*sample*"):
        shutil.copy(file, file.with_name(file.name.replace("sample", "2022")))
    return copy


@pytest.mark.parametrize(
    ("pairs", "changes", "name"),
    [(0, {}, "bundled"), (40_000, {}, "bundled"), (39_999, {"epochs": 1}, "mini"), (40_000, {"epochs": 1}, "full")],
)
def test_only_options_train_a_model_and_the_number_of_pairs_chooses_how(
    pairs: int, changes: dict[str, int], name: str
) -> None:
    found, line = choose_training("auto", pairs, changes)
    assert found.name == name
    assert f"{pairs:,} training pairs" in line
    assert f"preset {name}" in line


def test_a_preset_that_is_given_is_taken_and_years_are_read() -> None:
    assert choose_training("full", 77, {})[0].config == MathAMRConfig()
    assert choose_training("auto", 77, {"epochs": 1})[0].config is not None
    with pytest.raises(ConfigError, match="trains a model"):
        choose_training("bundled", 77, {"epochs": 1})
    with pytest.raises(ConfigError, match="labels"):
        choose_training("tiny", 77, {})

    assert years_of(2022) == ["2022"]
    assert years_of("2020, 2022") == years_of([2020, "2022"]) == ["2020", "2022"]
    with pytest.raises(ConfigError, match="year"):
        years_of([])


@pytest.mark.parametrize(
    "options",
    [{"model": "mathamr-plus-mini", "changes": {"layers": 1}}, {"model": MathAMRConfig(), "changes": {"layers": 1}}],
)
@pytest.mark.parametrize("task", [1, 2])
def test_a_model_comes_from_one_place(options: dict[str, Any], task: Literal[1, 2], tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        run_arqmath(SAMPLE, "sample", tmp_path, task=task, verbose=False, **options)
    assert not list(tmp_path.iterdir())


def test_few_pairs_use_the_bundled_model_and_several_years_are_pooled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = two_years(tmp_path)
    report = run_arqmath(folder, "sample,2022", tmp_path / "work", systems=[SINGLE])
    line = "77 training pairs: preset bundled"
    assert line in capsys.readouterr().err
    assert report.notes[0].startswith(line)
    assert report.settings["preset"] == "bundled"
    pooled = report.tables["Task 1, sample and 2022 pooled"].set_index("name")
    single = report.tables["Task 1, sample"].set_index("name")
    measured = [column for column in single.columns if " " not in column]
    assert (pooled[measured] - single[measured]).abs().max().max() < 1e-9  # both years are the same topics
    for caption in report.tables:
        assert report.about[caption]
    assert "1,273 judgments" in report.about["Task 1, sample"]
    assert "2,546 judgments" in report.about["Task 1, sample and 2022 pooled"]


TINY = MathAMRConfig(layers=1, hidden=8, projection=4, bases=2, epochs=1, batch_size=8)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "work"


@pytest.fixture(scope="module")
def report(workdir: Path) -> Report:
    return run_arqmath(SAMPLE, "sample", workdir, model=TINY, verbose=False)


def test_the_report_has_all_systems_and_is_kept_with_its_costs(report: Report, workdir: Path) -> None:
    table = report.tables["Task 1, sample"]
    assert table.name.tolist()[:2] == list(BASELINES)
    assert table.name.tolist()[-2:] == [FUSION, FLOOR]
    assert len(table) == 8
    bm25 = table.set_index("name").loc[TUNED]
    assert bm25["nDCG(judged_only=True)@1000"] == pytest.approx(0.7945, abs=0.01)
    known_item = report.tables["Known items, test questions"].set_index("name")
    assert len(known_item) == 8
    assert known_item.loc[TUNED, ["RR@10", "R@10"]].tolist() == pytest.approx([0.6806, 1.0], abs=0.01)
    kept = json.loads((workdir / "report.json").read_text())
    assert [stage["name"] for stage in kept["stages"]] == [
        *("formulas", "graphs", "train", "bm25", "index", "bm25-tuned"),
        *("fusion weight", "known items", "task 1, sample", "time of a query", "parts of task 1"),
    ]
    recall = report.tables["Recall by the share of formulas in an answer"]
    assert recall["share"][0] == "> 0"
    assert recall["answers"].is_monotonic_decreasing
    assert recall.loc[0, TUNED] > 0.9  # of 222 answers it ranks nearly all
    assert "tuned BM25 % 1000 >> scorer" in (workdir / "report.md").read_text()
    by_topic = pd.read_csv(workdir / "task-1-sample-by-topic.csv")
    assert by_topic.qid.nunique() == report.settings["topics"]


def test_a_second_run_repeats_no_stage_and_finds_the_same(report: Report, workdir: Path) -> None:
    topics = json.loads((workdir / "topics" / "sample" / "topics.json").read_text())["data"]
    categories = workdir / "categories.tsv"
    categories.write_text("".join(f"{qid}\thard\t\t\n" for qid, *_ in topics))
    again = run_arqmath(SAMPLE, "sample", workdir, model=TINY, categories=categories, verbose=False)
    hard = again.tables["P'@10 by category of topic"]
    assert hard[["category", "topics"]].to_numpy().tolist() == [["hard", len(topics)]]
    means = again.tables["Task 1, sample"].set_index("name")[str(PRECISION)]
    assert hard[TUNED].tolist() == pytest.approx([means[TUNED]])
    assert {stage.name for stage in again.stages if stage.resumed} == {
        *("formulas", "graphs", "train", "bm25", "index", "bm25-tuned")
    }
    for caption in ("Task 1, sample", "Known items, test questions"):
        pd.testing.assert_frame_equal(again.tables[caption], report.tables[caption])


def test_another_configuration_needs_another_folder(report: Report, workdir: Path) -> None:
    with pytest.raises(ExperimentError, match="layers': 1"):
        run_arqmath(SAMPLE, "sample", workdir, model=TINY.replace(layers=2), verbose=False)
    file = workdir / "stages" / "train.json"
    record = json.loads(text := file.read_text())
    record["settings"]["config"]["aggregation"] = "attention"  # a removed option
    file.write_text(json.dumps(record))
    with pytest.raises(ExperimentError, match="aggregation"):
        run_arqmath(SAMPLE, "sample", workdir, model=TINY, verbose=False)
    file.write_text(text)


def test_a_collection_without_questions_to_choose_by_or_to_report_is_measured_by_its_topics(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
    posts = folder / "Posts.V1.3.xml"
    lines = posts.read_text(encoding="utf-8").splitlines(keepends=True)
    questions = {line: match[1] for line in lines if (match := re.search(r'Id="(\d+)" PostTypeId="1"', line))}
    kept = [line for line in lines if line not in questions or known_item_split(questions[line]) == "train"]
    posts.write_text("".join(kept), encoding="utf-8")
    options: dict[str, Any] = {"model": "mathamr-plus-mini", "systems": [FUSION], "verbose": False}
    with pytest.warns(MathAMRWarning, match=r"the fusion weight is 0\.5"):
        found = run_arqmath(folder, "sample", tmp_path / "work", **options)
    assert found.tables["Known items, test questions"]["RR@10"].isna().all()
    bm25 = found.tables["Task 1, sample"].set_index("name").loc[TUNED, "nDCG(judged_only=True)@1000"]
    assert bm25 == pytest.approx(0.7945, abs=0.01)


@pytest.mark.parametrize("task", [1, 2])
def test_a_year_without_judgments_is_refused_before_anything_is_made(task: Literal[1, 2], tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="2022"):
        run_arqmath(SAMPLE, "2022", tmp_path / "work", task=task, model="mathamr-plus-mini", verbose=False)
    with pytest.raises(MissingFileError, match="2022"):
        run_protocol(SAMPLE, tmp_path / "work", years=["sample", "2022"], model="mathamr-plus-mini", verbose=False)
    with pytest.raises(MissingFileError, match="2022"):
        prepare(Artifacts(SAMPLE, tmp_path / "work"), ["sample", "2022"])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_topics_are_those_with_a_relevant_answer_in_the_index() -> None:
    collection = ARQMathCollection(SAMPLE)
    answers = {post.id for post in collection.answers()}
    topics, qrels = judged_topics(collection, "sample", answers)
    assert set(topics.qid) == set(qrels.qid) == set(qrels[qrels.label >= 2].qid)
    assert topics.body.str.contains("math-container").any()
    relevant = qrels[(qrels.qid == topics.qid[0]) & (qrels.label >= 2)].docno
    fewer, _ = judged_topics(collection, "sample", answers - set(relevant))
    assert set(fewer.qid) == set(topics.qid) - {topics.qid[0]}
    with pytest.raises(ExperimentError, match="sample"):
        judged_topics(collection, "sample", set())


def test_a_second_year_shares_the_folder_and_few_of_many_questions_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Artifacts(SAMPLE, tmp_path / "whole").questions("test")
    monkeypatch.setattr("mathamr_systems.experiments.workdir.MOST_QUESTIONS", 3)
    few, again = (Artifacts(SAMPLE, tmp_path / name).questions("test") for name in ("few", "again"))
    assert len(few.topics) == 3 < len(whole.topics)
    assert set(few.qrels["qid"]) == set(few.topics["qid"]) < set(whole.qrels["qid"])
    for found, other in zip(few[:2], again[:2], strict=True):
        pd.testing.assert_frame_equal(found, other)
    monkeypatch.setattr("mathamr_systems.experiments.workdir.MOST_QUESTIONS", len(whole.topics))
    pd.testing.assert_frame_equal(Artifacts(SAMPLE, tmp_path / "all").questions("test").topics, whole.topics)

    folder = two_years(tmp_path)
    shared = Artifacts(folder, tmp_path / "work")
    first, second = shared.topics("sample"), shared.topics(2022)
    pd.testing.assert_frame_equal(first.topics, second.topics)
    assert first.graphs.path != second.graphs.path
    assert len(second.graphs) == len(second.topics)

"""A study on the bundled sample: the chain, what is kept, what is not done twice."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments import ExperimentError, Report
from mathamr_systems.experiments import workdir as artifacts
from mathamr_systems.experiments.measuring import FLOOR
from mathamr_systems.experiments.systems import BASELINES, Depth
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import MathAMRConfig
from studies.models import jobs as job_run
from studies.models.jobs import Job
from studies.registry import run_study
from studies.study import Cell, Recipe, Row, RunsFailedError, Study, condition

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
TINY = {"layers": 1, "hidden": 8, "projection": 4, "bases": 2, "epochs": 1, "batch_size": 8}
STUDY = Study(
    "tests/formulas",
    "Two conditions",
    conditions=(condition("None", formulas="none"), condition("No VNs", virtual_nodes="none")),
    rows=(
        Row("None", published=Cell("4.7", "None")),
        Row("No VNs", "ColBERT-style, HNSW", ("None", "ColBERT-style"), Cell("4.7", "SLT-only")),
    ),
    published=(("yoon", ("4.7",)),),
    scales_depth=True,
)


def run(workdir: Path, seeds: list[int], workers: int = 0, study: Study = STUDY) -> Report:
    return run_study(
        study,
        SAMPLE,
        workdir,
        years=["sample"],
        seeds=seeds,
        preset="mini",
        changes=TINY,
        workers=workers,
        verbose=False,
    )


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study") / "work"


@pytest.fixture(scope="module")
def report(workdir: Path) -> Report:
    """Run with one seed, in a separate process for each condition."""
    return run(workdir, [1], workers=2)


def by_caption(report: Report, start: str) -> pd.DataFrame:
    return next(table for caption, table in report.tables.items() if caption.startswith(start))


def test_the_tables_have_the_rows_and_the_depth_of_the_run(report: Report, workdir: Path) -> None:
    table = by_caption(report, "Task 1, sample pooled, mean")
    assert table.condition.tolist() == ["–", "–", "–", "None", "No VNs"]
    assert table.system.tolist() == [FLOOR, *BASELINES, "ColBERT-style", "ColBERT-style, HNSW"]
    ndcg = table["nDCG(judged_only=True)@1000"]
    assert ndcg.tolist()[::2][:2] == pytest.approx([0.3921, 0.6254], abs=0.01)
    assert by_caption(report, "Known items").system.tolist()[:3] == ["random order of all answers", *BASELINES]

    table = by_caption(report, "Every system, known items")
    systems = table.groupby("condition").system.apply(set)
    assert "single vector" in systems["None"]
    assert "single vector" not in systems["No VNs"]

    named = set(by_caption(report, "Every system, Task 1 pooled").system)
    assert {"tuned BM25 % 10 >> scorer", "doc-VN + MaxSim (k = 10)"} <= named  # a hundredth of the paper's 1000
    assert not [name for name in named if "1000" in name]
    values = pd.read_csv(workdir / "studies" / "tests-formulas" / "by-topic.csv")
    assert "tuned BM25 % 10 >> scorer" in set(values.system)
    assert "rankings of 10, or" in report.about["Task 1, sample pooled, mean over seeds"]

    (remark,) = report.remarks["Every system, Task 1 pooled"]
    assert "None / single vector" in remark  # of a tiny model, trained for an epoch
    assert "mathamr-plus-mini" in remark


def test_costs_settings_and_published_figures_are_reported(report: Report, workdir: Path) -> None:
    costs = by_caption(report, "Training and index").set_index("condition")
    assert (costs["seconds per epoch"] > 0).all()
    assert (costs["peak MiB"] > 100).all()
    assert costs.loc["No VNs", "parameters"] > 100
    assert costs.loc["No VNs", "vectors"] > costs.loc["None", "vectors"]  # formulas have vectors
    speed = by_caption(report, "Single queries").set_index("system")
    assert (speed["p95 ms"] >= speed["p50 ms"]).all()
    assert (speed.drop(index=list(BASELINES))["encoding ms"] > 0).all()
    assert {*BASELINES, "ColBERT-style, HNSW", "tuned BM25 + ColBERT-style"} <= set(speed.index)

    folder = workdir / "studies" / "tests-formulas"
    kept = json.loads((folder / "report.json").read_text())
    assert len(kept["published"]) == 1
    assert "Jacob Yoon" in next(iter(kept["published"]))
    assert not set(kept["published"]) & set(kept["tables"])
    assert "0.392 ± 0.009" not in json.dumps(kept["tables"], ensure_ascii=False)
    page = (folder / "report.md").read_text()
    heading = page.index("## Published by others, not measured here")
    assert page.index("## Single queries") < heading < page.index("0.392 ± 0.009")
    assert not [file.name for file in folder.glob("*.csv") if "0.392 ± 0.009" in file.read_text()]

    assert report.settings["seeds"] == [1]
    assert report.settings["tests"] == 4
    assert report.settings["results for each query"] == 10  # scaled to the sample
    assert report.settings["hidden"] == 8
    assert "formulas='none'" in report.settings["conditions"]["None"]
    assert {"torch", "commit", "python"} <= set(report.environment)
    assert any("Set for this run" in note and "epochs = 1" in note and "seeds 1" in note for note in report.notes)


def test_more_seeds_train_only_what_is_missing_and_a_killed_run_goes_on(
    report: Report, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []
    train, index = job_run.train_on_pairs, artifacts.index_documents

    def counted(sources, graphs, config, checkpoint, **options):
        trained.append((config.formulas, config.training.seed))
        return train(sources, graphs, config, checkpoint, **options)

    def killed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(job_run, "train_on_pairs", counted)
    monkeypatch.setattr(artifacts, "index_documents", killed)
    with pytest.raises(KeyboardInterrupt):
        run(workdir, [1, 2])
    monkeypatch.setattr(artifacts, "index_documents", index)
    both = run(workdir, [1, 2])
    assert trained == [("none", 2), ("both", 2)]
    table = by_caption(both, "Task 1, sample pooled, mean")
    assert table["nDCG(judged_only=True)@1000 std"].notna().tolist() == [False, False, False, True, True]
    runs = by_caption(both, "Runs").set_index(["condition", "seed"])
    again = by_caption(report, "Runs").set_index(["condition", "seed"])
    assert runs.loc[("None", 1), "seconds per epoch"] == again.loc[("None", 1), "seconds per epoch"]
    run(workdir, [1, 2])
    assert len(trained) == 2


def test_studies_share_the_runs_they_have_in_common(
    report: Report, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr(job_run, "train_on_pairs", never)
    other = Study(
        "tests/one", "The same by another name", conditions=(condition("text", formulas="none"),), rows=(Row("text"),)
    )
    table = by_caption(run(workdir, [1], study=other), "Task 1, sample pooled, mean")
    assert table.condition.tolist() == ["–", "–", "–", "text"]


def test_formulas_are_measured_on_runs_that_were_made_before(
    report: Report, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_run, "train_on_pairs", None)  # nothing is trained again
    monkeypatch.setattr(job_run, "measure_job", None)
    rows = (Row("No VNs", "ColBERT-style, HNSW"),)
    both = replace(STUDY, name="tests/after", conditions=STUDY.conditions[1:], rows=rows, task2=True)
    after = run(workdir, [1], study=both)
    table = by_caption(after, "Task 2, sample pooled")
    assert table.condition.tolist() == ["–", "–", "No VNs"]
    assert table.system.tolist() == ["random order of the judged", "Tangent", "formula vectors"]
    ndcg = table["nDCG(judged_only=True)@1000"]
    assert ndcg.tolist() == pytest.approx([0.7935, 0.8829, 0.85], abs=0.05)
    assert "formula topic" in " ".join(after.notes)
    assert by_caption(after, "Task 1, sample pooled, mean").system.tolist()[-1] == "ColBERT-style, HNSW"


def test_another_collection_and_wrong_options_are_refused(report: Report, workdir: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(SAMPLE, tmp_path / "other"))
    with pytest.raises(ExperimentError, match="collection"):
        run_study(STUDY, other, workdir, years=["sample"], preset="full", verbose=False)

    with pytest.raises(ConfigError, match="preset"):
        run_study("paper/4.6", SAMPLE, tmp_path / "w", preset="tiny")
    with pytest.raises(ConfigError, match="layers"):
        run_study("paper/4.6", SAMPLE, tmp_path / "w", changes={"layers": -1}, verbose=False)
    with pytest.raises(ConfigError, match="years"):
        run_study("paper/4.6", SAMPLE, tmp_path / "w", years=[])
    with pytest.raises(ConfigError, match="pairs"):
        run_study("ablation/pairs", SAMPLE, tmp_path / "w", verbose=False)
    assert not (tmp_path / "w" / "graphs.mathamr").exists()


def test_failed_runs_are_named_and_the_others_reported(report: Report, workdir: Path) -> None:
    hopeless = Study(
        "tests/fails", "Far too fast", conditions=(condition("text", learning_rate=1e30),), rows=(Row("text"),)
    )
    with pytest.raises(RunsFailedError, match=r"'text' with seed 1: .*loss") as caught:
        run(workdir, [1], workers=1, study=hopeless)
    assert list(caught.value.reasons) == [("text", 1)]
    page = (workdir / "studies" / "tests-fails" / "report.md").read_text()
    assert "random order of the judged" in page
    assert "| text" not in page


def test_a_job_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    job = Job(
        tmp_path,
        tmp_path / "w",
        MathAMRConfig(layers=0),
        Recipe(),
        (tmp_path / "p.jsonl",),
        ("2020",),
        ("BM25",),
        Depth(50, 0.1),
    )
    assert Job.from_json(job.to_json()) == job
    assert job.settings == {"layers": 0, "pairs": ["p.jsonl"]}
    assert job.folder.name == "ccff87e4be7f"  # as in earlier releases, whose runs are found again

"""Stages of a work folder, and the report of a run."""

import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mathamr_systems.experiments import ExperimentError, Report
from mathamr_systems.experiments.stages import StageRecord, Stages
from pyterrier_mathamr.arqmath import markdown_table


def make(path: Path, log: list[str]) -> Any:
    def build() -> None:
        log.append(path.name)
        path.write_text("made")

    return build


def test_a_finished_stage_is_not_done_again_unless_its_artifact_is_gone(tmp_path: Path) -> None:
    log: list[str] = []
    settings = {"parser": "a", "sizes": (1, 2)}
    for resumed in (False, True):
        stages = Stages(tmp_path)
        stages.run("graphs", tmp_path / "g", settings, make(tmp_path / "g", log))
        assert [record.resumed for record in stages.records] == [resumed]
        assert stages.records[0].peak_mib > 1
    assert log == ["g"]
    (tmp_path / "g").unlink()
    Stages(tmp_path).run("graphs", tmp_path / "g", settings, make(tmp_path / "g", log))
    assert log == ["g", "g"]


def test_other_settings_are_an_error_that_lists_the_changes(tmp_path: Path) -> None:
    log: list[str] = []
    Stages(tmp_path).run("train", tmp_path / "m", {"layers": 4, "seed": 1}, make(tmp_path / "m", log))
    with pytest.raises(ExperimentError) as caught:
        Stages(tmp_path).run("train", tmp_path / "m", {"layers": 2, "seed": 1}, make(tmp_path / "m", log))
    assert "layers was 4 and is now 2" in str(caught.value)
    assert "seed" not in str(caught.value)
    assert "delete" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert log == ["m"]

    before, now = [f"old{i}" for i in range(50)], ["old0", *(f"new{i}" for i in range(101)), "old1"]

    def refused(before: list[str], now: list[str]) -> str:
        Stages(tmp_path).run("formulas", tmp_path, {"tables": before}, dict)
        with pytest.raises(ExperimentError) as caught:
            Stages(tmp_path).run("formulas", tmp_path, {"tables": now}, dict)
        (tmp_path / "stages" / "formulas.json").unlink()
        return str(caught.value)

    message = refused(before, now)
    assert "tables: removed 'old2', 'old3', 'old4' and 45 more, added 'new0', 'new1', 'new2' and 98 more." in message
    assert len(message) < 400 + len(str(tmp_path)) * 2
    assert "tables: the same in another order." in refused(before[:2], ["old1", "old0"])


def test_work_that_was_broken_off_is_taken_up_with_the_same_settings_only(tmp_path: Path) -> None:
    def broken() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stages(tmp_path).run("train", tmp_path / "m", {"layers": 4}, broken)
    with pytest.raises(ExperimentError):
        Stages(tmp_path).run("train", tmp_path / "m", {"layers": 2}, broken)
    log: list[str] = []
    Stages(tmp_path).run("train", tmp_path / "m", {"layers": 4}, make(tmp_path / "m", log))
    assert log == ["m"]
    assert json.loads((tmp_path / "stages" / "train.json").read_text())["settings"] == {"layers": 4}


TABLE = pd.DataFrame(
    {
        "name": ["BM25", "MathAMR|+"],
        "Bpref(rel=2)": [0.25, 0.5],
        "Bpref(rel=2) +": [math.nan, 3],
        "Bpref(rel=2) p-value": [math.nan, 0.01],
        "Bpref(rel=2) reject": [False, True],
        "Bpref(rel=2) p-value corrected": [math.nan, 0.02],
    }
)


def test_tables_have_stars_four_places_and_fewer_for_large_numbers() -> None:
    assert markdown_table(TABLE) == "\n".join(
        [
            "| name       | Bpref   |",
            "| ---------- | ------- |",
            "| BM25       | 0.2500  |",
            "| MathAMR\\|+ | 0.5000* |",
        ]
    )

    table = pd.DataFrame({"a": [1, 2], "b": [math.nan, 1 / 3]})
    assert markdown_table(table).splitlines()[2:] == ["| 1 |        |", "| 2 | 0.3333 |"]
    small = markdown_table(pd.DataFrame({"p": [0.0, 1e-9, 0.00006]}))
    assert small.splitlines()[2:] == ["| 0.0000   |", "| < 0.0001 |", "| 0.0001   |"]

    table = pd.DataFrame(
        {
            "vectors": [71875, 2022],
            "seconds": [64.7837, 1.98764],
            "seconds std": [4.4498, 0.01],
            "p50 ms": [2.635, 1234.56],
            "measure": ["nDCG(judged_only=True)@1000", "t"],
        }
    )
    assert markdown_table(table).splitlines()[2:] == [
        "| 71,875  | 64.8 ± 4.4      | 2.63    | nDCG'   |",
        "| 2022    | 1.9876 ± 0.0100 | 1,234.6 | t       |",
    ]


@pytest.fixture
def report() -> Report:
    stage = StageRecord("train", 12.5, 800.0, True, {"layers": 4})
    tables = {"Task 1, 2022": TABLE}
    return Report("A run", {"year": 2022}, (stage,), tables, ("A note.",), environment={"python": "3.11"})


def test_a_report_is_a_page_json_and_csv(report: Report, tmp_path: Path) -> None:
    page = report.to_markdown()
    for part in (
        "# A run",
        "## Task 1, 2022",
        "## Notes\n\n* A note.",
        "12.5",
        "before",
        "* year: 2022",
        "* python: 3.11",
    ):
        assert part in page

    caption = "Task 1, 2022"
    page = dataclasses.replace(report, about={caption: "62 topics."}, remarks={caption: ["Near chance."]}).to_markdown()
    places = [page.index(part) for part in (f"## {caption}", "62 topics.", "| BM25", "Near chance.", "## Notes")]
    assert places == sorted(places)

    report.write(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.json", "report.md", "task-1-2022.csv"]
    text = (tmp_path / "report.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["tables"]["Task 1, 2022"][1]["Bpref(rel=2)"] == 0.5
    assert json.loads(text)["stages"][0]["settings"] == {"layers": 4}
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "task-1-2022.csv"), TABLE)

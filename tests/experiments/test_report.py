import dataclasses
import json
import math
from pathlib import Path

import pandas as pd
import pytest

from mathamr_systems.experiments import Report
from mathamr_systems.experiments.stages import StageRecord
from pyterrier_mathamr.arqmath import markdown_table

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


def test_a_table_of_a_significance_test_is_one_column_a_measure_with_stars() -> None:
    assert markdown_table(TABLE) == "\n".join(
        [
            "| name       | Bpref   |",
            "| ---------- | ------- |",
            "| BM25       | 0.2500  |",
            "| MathAMR\\|+ | 0.5000* |",
        ]
    )


def test_numbers_have_four_places_and_other_values_are_empty() -> None:
    table = pd.DataFrame({"a": [1, 2], "b": [math.nan, 1 / 3]})
    assert markdown_table(table).splitlines()[2:] == ["| 1 |        |", "| 2 | 0.3333 |"]
    small = markdown_table(pd.DataFrame({"p": [0.0, 1e-9, 0.00006]}))
    assert small.splitlines()[2:] == ["| 0.0000   |", "| < 0.0001 |", "| 0.0001   |"]


def test_large_numbers_have_fewer_places_and_a_spread_as_many_as_its_mean() -> None:
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


def test_the_page_has_tables_notes_costs_and_settings(report: Report) -> None:
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


def test_a_table_has_its_description_above_and_remarks_below(report: Report) -> None:
    caption = "Task 1, 2022"
    page = dataclasses.replace(report, about={caption: "62 topics."}, remarks={caption: ["Near chance."]}).to_markdown()
    places = [page.index(part) for part in (f"## {caption}", "62 topics.", "| BM25", "Near chance.", "## Notes")]
    assert places == sorted(places)


def test_json_and_csv_hold_all_of_it_and_json_has_no_nan(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.json", "report.md", "task-1-2022.csv"]
    text = (tmp_path / "report.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["tables"]["Task 1, 2022"][1]["Bpref(rel=2)"] == 0.5
    assert json.loads(text)["stages"][0]["settings"] == {"layers": 4}
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "task-1-2022.csv"), TABLE)

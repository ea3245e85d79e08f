"""The preset of an experiment follows the number of training pairs and is named."""

import shutil
from pathlib import Path
from typing import Any, Literal

import pytest

import pyterrier_mathamr
from mathamr_systems.experiments import run_arqmath
from mathamr_systems.experiments.preparing import choose_training, years_of
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import MathAMRConfig

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


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


def test_a_preset_that_is_given_is_taken_and_options_ask_for_training() -> None:
    assert choose_training("full", 77, {})[0].config == MathAMRConfig()
    assert choose_training("auto", 77, {"epochs": 1})[0].config is not None
    with pytest.raises(ConfigError, match="trains a model"):
        choose_training("bundled", 77, {"epochs": 1})
    with pytest.raises(ConfigError, match="labels"):
        choose_training("tiny", 77, {})


def test_years_are_one_or_several_and_at_least_one() -> None:
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
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
    for file in folder.glob("*/*sample*"):
        shutil.copy(file, file.with_name(file.name.replace("sample", "2022")))
    report = run_arqmath(folder, "sample,2022", tmp_path / "work")
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

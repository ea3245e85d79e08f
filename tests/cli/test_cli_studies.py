"""The command line of experiments and studies: what is listed, what is refused, what is handed on."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pyterrier_mathamr
from mathamr_systems import experiments
from pyterrier_mathamr.cli import main
from studies import __main__ as command
from studies import registry

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command.main, [*map(str, arguments)])


def test_the_studies_are_listed_with_their_conditions() -> None:
    lines = run("--list").output.splitlines()
    assert len(lines) == len(registry.STUDIES)
    assert lines[0].startswith("paper/4.6 ")
    assert "Both (OPT+SLT)" in lines[0]
    assert any(line.startswith("formula/in-out ") and line.endswith("Inner; Outer; Inner+Outer") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("paper/4.6",), "FOLDER"),
        (("paper/9.9", SAMPLE), "paper/4.6"),
        (("answers/marf", SAMPLE, "--workers", "2"), "--workers"),
        (("formula/in-out", SAMPLE, "--set", "layers=-1"), "layers"),
        (("paper/4.6", SAMPLE, "--set", "layers"), "--set"),
        (("paper/4.6", SAMPLE, "--preset", "tiny"), "mini"),
        (("paper/4.6", SAMPLE, "--seeds", "one"), "--seeds"),
        (("table", SAMPLE), "table"),
    ],
)
def test_an_impossible_request_is_one_line(arguments: tuple[object, ...], named: str, tmp_path: Path) -> None:
    result = run(*arguments, "--workdir", tmp_path, "-q")
    assert result.exit_code in (1, 2)
    assert named in result.output
    assert "Traceback" not in result.output


def test_the_name_of_a_study_in_place_of_a_folder_names_the_command_of_studies() -> None:
    result = CliRunner().invoke(main, ["experiment", "paper/4.6"])
    assert result.exit_code == 2
    assert "python -m studies paper/4.6 FOLDER" in result.stderr


def test_a_study_gets_what_was_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def run_study(name: str, collection: Path, workdir: Path, **options: Any) -> experiments.Report:
        asked.update(options, name=name, collection=collection, workdir=workdir)
        return experiments.Report("title", {}, (), {})

    monkeypatch.setattr(registry, "run_study", run_study)
    pairs = tmp_path / "pairs.jsonl"
    pairs.touch()
    options = ("--years", "2020,2022", "--seeds", "1,2", "--preset", "mini", "--workers", 3, "--set", "epochs=1")
    result = run("paper/4.6", SAMPLE, "--workdir", tmp_path, "--pairs", pairs, *options, "-q")
    assert result.exit_code == 0, result.output
    assert asked == {
        "name": "paper/4.6",
        "collection": SAMPLE,
        "workdir": tmp_path,
        "pairs": (pairs,),
        "years": ["2020", "2022"],
        "seeds": [1, 2],
        "preset": "mini",
        "changes": {"epochs": 1},
        "workers": 3,
        "executor": None,
        "verbose": False,
    }


def test_task_1_gets_the_systems_that_were_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def run_arqmath(folder: Path, years: str, workdir: Path, **options: Any) -> experiments.Report:
        asked.update(options)
        return experiments.Report("title", {}, (), {})

    monkeypatch.setattr(experiments, "run_arqmath", run_arqmath)
    assert run("task-1", tmp_path, "--systems", "ColBERT, hybrid").exit_code == 0
    assert [system.name for system in asked["systems"]] == ["ColBERT", "Hybrid"]
    done = CliRunner().invoke(main, ["experiment", str(tmp_path), "--systems", "BM25, ColBERT-style"])
    assert done.exit_code == 0
    assert asked["systems"] == ["BM25", "ColBERT-style"]

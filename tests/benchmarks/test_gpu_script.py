"""``tools/gpu.sh``: what it runs, what a second call leaves out, and what its report names; no step computes here."""

import os
import subprocess
from pathlib import Path

import pytest

from studies.registry import STUDIES

ROOT = Path(__file__).parents[2]
BROKEN = "benchmarks/maxsim.py --device cuda"


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a stand-in for Python that records its arguments, and fails for one of them on request."""
    python = folder / "python"
    fail = f'case "$*" in "{BROKEN}"*) [ -e {folder}/repaired ] || exit 3;; esac'
    python.write_text(f'#!/bin/bash\necho "$*" >> {folder}/calls\necho "measured 1%|bar"; echo measured\n{fail}\n')
    python.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "PYTHON": str(python), **variables}
    command = ["bash", str(ROOT / "tools" / "gpu.sh"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_all_steps_exist_and_a_second_call_repeats_only_the_failed_ones(tmp_path: Path) -> None:
    (tmp_path / "arqmath").mkdir()
    (tmp_path / "more pairs.jsonl").touch()
    first = run(tmp_path, "arqmath", "work", "more pairs.jsonl")
    assert first.returncode == 1
    made = calls(tmp_path)
    for call in made:
        program = call.split("-m studies ")[-1].split()[0]
        if "-m studies " in call:
            assert program in STUDIES
        elif program != "-m":
            assert (ROOT / program).is_file()
    assert sum(f"--pairs {tmp_path}/more pairs.jsonl" in call for call in made) == 3
    report = (tmp_path / "work" / "report.md").read_text()
    assert report.count("FAILED with 3") == 1
    assert report.count("## ") == len(made)
    assert "%|" not in report

    (tmp_path / "repaired").touch()
    second = run(tmp_path, "arqmath", "work")
    assert second.returncode == 0
    assert [call.startswith(BROKEN) for call in calls(tmp_path)[len(made) :]] == [True]
    assert "FAILED" not in (tmp_path / "work" / "report.md").read_text()


def test_a_rehearsal_trains_nothing(tmp_path: Path) -> None:
    (tmp_path / "arqmath").mkdir()
    assert run(tmp_path, "arqmath", "work", DEVICE="cpu", PART="10").returncode == 0
    made = calls(tmp_path)
    assert any("--documents 137000" in call for call in made)
    assert not any("cuda" in call or "-m studies " in call or "-m gpu" in call for call in made)


@pytest.mark.parametrize("arguments", [[], ["arqmath"], ["nowhere", "work"]])
def test_without_a_folder_it_prints_its_usage(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "arqmath").mkdir()
    asked = run(tmp_path, *arguments)
    assert asked.returncode == 2
    assert "tools/gpu.sh ARQMATH_FOLDER WORK" in asked.stderr
    assert not (tmp_path / "work").exists()

"""What the Makefile installs, and that the whole test run begins as a reader of the README begins."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTING_UP = ("demo", "test")
OTHERS = ("lint", "test-slow", "test-baselines", "test-processors", "docs", "dist")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def commands(*arguments: str) -> str:
    done = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("target", OTHERS)
def test_a_target_that_does_not_set_up_installs_nothing_into_a_given_environment(tmp_path: Path, target: str) -> None:
    shown = commands(target, f"VENV={tmp_path / 'mine'}")
    assert f"{tmp_path / 'mine'}/bin/" in shown
    assert "pip" not in shown
    assert "-m venv" not in shown


@pytest.mark.parametrize("target", SETTING_UP)
def test_demo_and_test_set_up_the_environment(tmp_path: Path, target: str) -> None:
    shown = commands(target, f"VENV={tmp_path / 'mine'}")
    assert f"-m venv {tmp_path / 'mine'}" in shown
    assert shown.count("pip install") == 1


def test_the_demo_installs_only_what_it_needs(tmp_path: Path) -> None:
    assert re.findall(r"'\.\[(.*?)\]'", commands("demo", f"VENV={tmp_path / 'mine'}")) == ["bm25,serve"]


def test_cleaning_leaves_a_given_environment(tmp_path: Path) -> None:
    assert str(tmp_path) not in commands("clean", f"VENV={tmp_path / 'mine'}")


def test_the_whole_run_sets_up_with_the_two_commands_of_the_readme() -> None:
    readme = re.findall(r"^make (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    whole = re.findall(r"^make (\S+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(readme) == SETTING_UP
    assert tuple(whole[:3]) == ("clean", *SETTING_UP)

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


def test_only_demo_and_test_install_into_the_environment_and_the_demo_only_what_it_needs(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for target in OTHERS:
        shown = commands(target, f"VENV={mine}")
        assert f"{mine}/bin/" in shown
        assert not re.search(r"\bpip\b|-m venv", shown), target
    for target in SETTING_UP:
        shown = commands(target, f"VENV={mine}")
        assert f"-m venv {mine}" in shown
        assert shown.count("pip install") == 1
        assert target != "demo" or re.findall(r"'\.\[(.*?)\]'", shown) == ["serve"]
    assert str(mine) not in commands("clean", f"VENV={mine}")


def test_the_whole_run_sets_up_with_the_two_commands_of_the_readme() -> None:
    readme = re.findall(r"^make (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    whole = re.findall(r"^make (\S+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(readme) == SETTING_UP
    assert tuple(whole[:3]) == ("clean", *SETTING_UP)

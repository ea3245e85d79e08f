"""`mathamr graphs` killed half way: the same job goes on, any other is refused by what differs."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from folder_bytes import folder_bytes

from pyterrier_mathamr import GraphStore
from pyterrier_mathamr.cli import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def pairs(path: Path, count: int, word: str) -> Path:
    lines = (
        {"qid": f"q{i}", "question": f"Is ${i}$ {word}?", "aid": f"a{i}", "answer": f"Yes, ${i}$."}
        for i in range(count)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with A.jsonl and what `mathamr graphs A.jsonl` leaves when it is killed after its first part."""
    folder = tmp_path_factory.mktemp("killed")
    source = pairs(folder / "A.jsonl", 1500, "odd")
    command = [sys.executable, "-m", "pyterrier_mathamr", "graphs", source, "-o", folder / "out", "-q"]
    process = subprocess.Popen([*map(str, command), "--workers", "1"])
    note = folder / ".out.job" / "job.json"
    for _ in range(6000):
        if process.poll() is not None or (note.exists() and "part-000000" in note.read_text()):
            break
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -9
    assert GraphStore(folder / "out").unfinished() >= 1000
    return folder


@pytest.fixture
def folder(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "copy"))


def test_the_same_job_goes_on_to_the_bytes_of_an_undisturbed_one(folder: Path) -> None:
    for output, workers in (("out", 2), ("undisturbed", 1)):
        result = run("graphs", folder / "A.jsonl", "-o", folder / output, "--workers", workers, "-q")
        assert result.exit_code == 0, result.output
    assert folder_bytes(folder / "out") == folder_bytes(folder / "undisturbed")
    assert not (folder / ".out.job").exists()


def test_another_job_is_refused_by_what_differs_and_changes_nothing(folder: Path) -> None:
    other = pairs(folder / "B.jsonl", 3, "even")
    (folder / "elsewhere").mkdir()
    same_name = pairs(folder / "elsewhere" / "A.jsonl", 3, "even")
    before = folder_bytes(folder / ".out.job")
    for source, option, message in (
        (other, ("--formulas", "both"), "source 1, A.jsonl"),
        (same_name, ("--formulas", "both"), "source 1, A.jsonl: ["),
        (folder / "A.jsonl", ("--formulas", "opt"), "formulas: both, not opt"),
    ):
        result = run("graphs", source, "-o", folder / "out", *option, "-q")
        assert (result.exit_code, message in result.output, "--fresh" in result.output) == (1, True, True), (
            result.output
        )
    assert folder_bytes(folder / ".out.job") == before
    assert not (folder / "out").exists()


def test_fresh_starts_over(folder: Path) -> None:
    other = pairs(folder / "B.jsonl", 3, "even")
    result = run("graphs", other, "-o", folder / "out", "--fresh", "-q")
    assert result.exit_code == 0, result.output
    store = GraphStore(folder / "out")
    assert store.ids() == ["q0", "a0", "q1", "a1", "q2", "a2"]
    assert (store["q0"].text, store.unfinished()) == ("Is FORMULA_0 even?", 0)

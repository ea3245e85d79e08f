"""`mathamr graphs` killed half way: the same job goes on, any other is refused by what differs."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

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


def test_a_killed_job_is_refused_to_another_one_and_goes_on_to_the_bytes_of_an_undisturbed_one(tmp_path: Path) -> None:
    source, output, job = pairs(tmp_path / "A.jsonl", 1500, "odd"), tmp_path / "out", tmp_path / ".out.job"
    command = [sys.executable, "-m", "pyterrier_mathamr", "graphs", source, "-o", output, "-q", "--workers", "1"]
    process = subprocess.Popen([*map(str, command)])
    note = job / "job.json"
    while process.poll() is None and not (note.exists() and "part-000000" in note.read_text()):
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -9
    assert GraphStore(output).unfinished() >= 1000

    (tmp_path / "elsewhere").mkdir()
    other, same_name = pairs(tmp_path / "B.jsonl", 3, "even"), pairs(tmp_path / "elsewhere" / "A.jsonl", 3, "even")
    before = folder_bytes(job)
    for changed, option, message in (
        (other, "both", "source 1, A.jsonl"),
        (same_name, "both", "source 1, A.jsonl: ["),
        (source, "opt", "formulas: both, not opt"),
    ):
        result = run("graphs", changed, "-o", output, "--formulas", option, "-q")
        assert result.exit_code == 1
        assert all(text in result.output for text in (message, "--fresh")), result.output
    assert folder_bytes(job) == before
    assert not output.exists()

    shutil.copytree(job, tmp_path / ".new.job")
    result = run("graphs", other, "-o", tmp_path / "new", "--fresh", "-q")
    assert result.exit_code == 0, result.output
    store = GraphStore(tmp_path / "new")
    assert store.ids() == ["q0", "a0", "q1", "a1", "q2", "a2"]
    assert (store["q0"].text, store.unfinished()) == ("Is FORMULA_0 even?", 0)

    for path, workers in ((output, 2), (tmp_path / "undisturbed", 1)):
        result = run("graphs", source, "-o", path, "--workers", workers, "-q")
        assert result.exit_code == 0, result.output
    assert folder_bytes(output) == folder_bytes(tmp_path / "undisturbed")
    assert not job.exists()

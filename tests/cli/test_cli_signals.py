"""SIGINT and SIGTERM end a command alike: with one line, the usual code, and no process left."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import pyterrier_mathamr
from pyterrier_mathamr._common.running.settings import postponed
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.cli.group import Interrupted, Interruptible

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
SIGNALS = [signal.SIGINT, signal.SIGTERM]
SMALL = ["--set", "layers=1", "--set", "hidden=8", "--set", "projection=4", "--set", "bases=2"]
LONG = ["--set", "epochs=100000", "--set", "patience=100000"]
PATIENCE = 60  # seconds after which a test gives up, not what is promised
PATIENT = f"""
from pyterrier_mathamr.cli import group, main
group._PATIENCE = {PATIENCE}  # a slow disk must not end the process before it has noted its work
main(prog_name="mathamr")
"""


def start(*arguments, program=("-m", "pyterrier_mathamr")):
    """Start a command in a separate process group."""
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(process, happened):
    give_up = time.monotonic() + 2 * PATIENCE
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)


def others_of(group):
    """The processes of a group that run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, members = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(members) == group and state != "Z":
            found.append(int(folder.name))
    return found


def ended(process, number, *, whole_group=False):
    """Send the signal, and give the one line; what else a command must not do is checked here."""
    (os.killpg if whole_group else os.kill)(process.pid, number)
    _, output = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number, output
    give_up = time.monotonic() + PATIENCE
    while others_of(process.pid):
        assert time.monotonic() < give_up
        time.sleep(0.02)
    line, *more = output.splitlines()
    assert not more, output
    command = shlex.join([str(part) for part in process.args[3:]])
    assert line.startswith("Interrupted")
    program = "python -m studies" if process.args[2] == "studies" else "mathamr"
    assert line.endswith(f"To resume, run the same command again: {program} {command}")
    return line


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    """A file of more pairs than a test waits for."""
    file = tmp_path_factory.mktemp("posts") / "pairs.jsonl"
    with file.open("w") as lines:
        for i in range(20_000):
            text = f"Why is $x^{{{i}}} = \\frac{{a}}{{b_{i}}}$ a group? It is so for each $n$ that I tried."
            print(json.dumps({"qid": f"q{i}", "aid": f"a{i}", "question": text, "answer": text}), file=lines)
    return file


@pytest.mark.parametrize(("number", "whole_group"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_graphs_end_with_their_workers(posts, tmp_path, number, whole_group):
    process = start("graphs", posts, "-o", tmp_path / "out", "--workers", 2, "-q")
    wait_for(process, lambda: len(others_of(process.pid)) >= 3 and any(tmp_path.iterdir()))
    ended(process, number, whole_group=whole_group)


def test_training_reports_which_epoch_it_keeps_and_resumes_from_it(posts, tmp_path):
    few, graphs = tmp_path / "few.jsonl", tmp_path / "graphs"
    few.write_text("".join(posts.read_text().splitlines(keepends=True)[:30]))
    assert CliRunner().invoke(main, ["graphs", str(few), "-o", str(graphs), "-q", "--workers", "1"]).exit_code == 0
    command = ["train", graphs, few, "-o", tmp_path / "model", "-q", *SMALL, *LONG]
    process, history = start(*command, program=("-c", PATIENT)), tmp_path / "model.training" / "history.csv"

    def epochs() -> int:
        return len(history.read_text().splitlines()) - 1 if history.exists() else 0

    wait_for(process, lambda: epochs() >= 2)  # the signal may come between a state and the note of it: not of the first
    line = ended(process, signal.SIGTERM)
    kept = line.partition("epoch ")[2].split()[0]
    assert f"the training state after epoch {kept} is kept in {tmp_path}/model.training" in line
    before = epochs()
    assert int(kept) <= before <= int(kept) + 1
    again = start(*command)
    wait_for(again, lambda: epochs() > before)
    ended(again, signal.SIGINT)


@pytest.mark.slow
def test_a_study_ends_with_its_runs(tmp_path):
    study = ["ablation/layers", SAMPLE, "--preset", "mini", "--years", "sample", "--workers", 2]
    process = start(*study, "--workdir", tmp_path / "work", "-q", *LONG, program=("-m", "studies"))
    wait_for(process, lambda: any((tmp_path / "work").glob("runs/*/training/history.csv")))
    assert str(tmp_path / "work") in ended(process, signal.SIGTERM)


STUCK = """
import os, signal, sys, time
from pyterrier_mathamr.cli.group import Interruptible
with Interruptible("mathamr stuck", to_the_end=True):
    while True:
        try:
            os.kill(os.getpid(), signal.Signals[sys.argv[1]])
            time.sleep(60)
        except KeyboardInterrupt:
            pass  # as where a library swallows it
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_that_does_not_listen_ends_all_the_same(number):
    command = [sys.executable, "-c", STUCK, number.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 128 + number
    assert done.stderr == "Interrupted. To resume, run the same command again: mathamr stuck\n"


def test_notes_of_all_jobs_are_one_line(monkeypatch):
    def interrupted(*paths, **options):
        error = Interrupted(signal.SIGTERM)
        error.add_note("1,000 graphs are kept\n in .out.job")
        error.add_note("step 2 in work")
        raise error

    monkeypatch.setattr("pyterrier_mathamr.cli.demo.build_sample_engine", interrupted)
    result = CliRunner().invoke(main, ["demo", "-q"])
    assert result.exit_code == 143
    assert result.stderr == (
        "Interrupted: 1,000 graphs are kept in .out.job; step 2 in work. "
        "To resume, run the same command again: main demo -q\n"
    )


def test_a_step_is_finished_before_a_signal_is_handled():
    done = []

    def begin():
        with postponed():
            for number in SIGNALS:
                signal.raise_signal(number)
            done.append(True)

    before = [signal.getsignal(number) for number in SIGNALS]
    with Interruptible("mathamr", to_the_end=False), pytest.raises(Interrupted):
        begin()
    assert done == [True]
    assert [signal.getsignal(number) for number in SIGNALS] == before

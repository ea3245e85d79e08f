"""Commands on a cluster: the files of one process, a study to its report, options that exclude each other."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from folder_bytes import folder_bytes
from waiting import until

import pyterrier_mathamr
from mathamr_systems.experiments.systems import Depth
from pyterrier_mathamr import RayCluster, cli
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.store.job import job_folder
from studies import registry
from studies.__main__ import main
from studies.models.jobs import Job, run_jobs
from studies.study import Recipe, Row, Study, condition


def command(*arguments):
    result = CliRunner().invoke(cli.main, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_options_that_exclude_each_other_are_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("POSTS").write_text("{}")
    Path("FOLDER").mkdir()
    for options, output in (
        ("graphs POSTS -o OUT --ray-workers 2", "--ray-workers works only with --ray"),
        ("graphs POSTS -o OUT --ray auto --workers 2", "--workers has no effect with --ray"),
        ("index FOLDER mathamr-plus-mini -o OUT --ray head", "HOST:PORT"),
    ):
        result = CliRunner().invoke(cli.main, options.split())
        assert result.exit_code != 0
        assert output in result.output
        assert not Path("OUT").exists()


@pytest.fixture
def posts(tmp_path):
    rows = ({"docno": f"d{i}", "text": f"Why is $x^{i}$ even? It is {i}."} for i in range(300))
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "posts.jsonl"


@pytest.mark.slow
@pytest.mark.enable_socket
def test_graphs_and_index_of_a_cluster_equal_this_machine_s_also_after_an_interrupt(cluster, posts, tmp_path):
    ray = ["--ray", cluster.address, "-q"]
    script = [sys.executable, "-m", "pyterrier_mathamr", "graphs", posts, "-o", tmp_path / "ray.mathamr", *ray]
    stopped = subprocess.Popen([*map(str, script)], stderr=subprocess.PIPE, text=True)
    assert until((job_folder(tmp_path / "ray.mathamr") / "job.json").exists)
    stopped.send_signal(signal.SIGINT)
    output = stopped.communicate()[1]
    assert stopped.returncode == 130, output
    assert "To resume, run the same command again" in output
    for name, options in (("one", ["-q"]), ("ray", ray)):
        command("graphs", posts, "-o", tmp_path / f"{name}.mathamr", *options)
        command("index", tmp_path / f"{name}.mathamr", "mathamr-plus-mini", "-o", tmp_path / f"{name}.index", *options)
    for kind in ("mathamr", "index"):
        assert folder_bytes(tmp_path / f"one.{kind}") == folder_bytes(tmp_path / f"ray.{kind}")


@pytest.mark.slow
@pytest.mark.enable_socket
def test_a_run_that_fails_on_a_node_is_reported_with_its_reason(cluster, tmp_path):
    jobs = [
        Job(tmp_path / "none", tmp_path / "work", MathAMRConfig(layers=layers), Recipe(), (), ("2022",), (), Depth())
        for layers in (1, 2)
    ]
    output = []
    failed = run_jobs({("", n): job for n, job in enumerate(jobs)}, 1, RayCluster(cluster.address), output.append)
    assert set(failed) == {("", 0), ("", 1)}
    assert all("none" in reason for reason in failed.values())
    assert len(output) == 3


SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
TINY = {"layers": 1, "hidden": 8, "projection": 4, "bases": 2, "epochs": 1, "batch_size": 8}
STUDY = Study(
    "tests/cluster",
    "Two conditions",
    conditions=(condition("None", formulas="none"), condition("OPT", formulas="opt")),
    rows=(Row("None"), Row("OPT")),
    scales_depth=True,
)


@pytest.mark.slow
@pytest.mark.enable_socket
def test_a_study_runs_to_its_report(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "STUDIES", {STUDY.name: STUDY})
    options = [SAMPLE, "--workdir", tmp_path / "work", "--years", "sample", "--seeds", "1", "-q"]
    for name, value in TINY.items():
        options += ["--set", f"{name}={value}"]
    arguments = [STUDY.name, *options, "--preset", "mini", "--ray", cluster.address]
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    kept = json.loads((tmp_path / "work" / "studies" / "tests-cluster" / "report.json").read_text())
    table = next(rows for caption, rows in kept["tables"].items() if caption.startswith("Task 1, sample pooled, mean"))
    assert "None" in json.dumps(table)
    assert "OPT" in json.dumps(table)
    models = list((tmp_path / "work").rglob("model/config.json"))
    assert len(models) == 2

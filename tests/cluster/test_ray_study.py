"""A study whose models are trained on two nodes, from the command to its report."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import pyterrier_mathamr
from studies import registry
from studies.__main__ import main
from studies.study import Row, Study, condition

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
TINY = {"layers": 1, "hidden": 8, "projection": 4, "bases": 2, "epochs": 1, "batch_size": 8}
STUDY = Study(
    "tests/cluster",
    "Two conditions",
    conditions=(condition("None", formulas="none"), condition("OPT", formulas="opt")),
    rows=(Row("None"), Row("OPT")),
    scales_depth=True,
)


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

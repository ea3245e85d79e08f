"""Experiments on folders in BEIR's layout."""

import json
from pathlib import Path

import pytest
from beir_layout import sample_in_beir, write_beir
from click.testing import CliRunner

from mathamr_systems.experiments import run_beir
from mathamr_systems.experiments.beir import CHOSEN, EQUAL, MEASURED, MOST, read_collection
from mathamr_systems.experiments.choosing import CROSSED_BM25, CROSSED_FUSION
from mathamr_systems.experiments.systems import BASELINES, COLBERT, SINGLE, TUNED
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import BeirDataset
from pyterrier_mathamr.cli import main

DOCUMENTS = {
    "sum": "The sum of a geometric series $\\sum_k q^k$ is $\\frac{1}{1-q}$.",
    "prime": "There are infinitely many primes $p$.",
    "limit": "The limit of $\\frac{\\sin x}{x}$ at zero is one.",
}
QUERIES = {"a": "geometric series", "b": "how many primes", "c": "limit of $\\frac{\\sin x}{x}$", "sum": "geometric"}
RIGHT = [("a", "sum", 1), ("b", "prime", 1), ("c", "limit", 1)]


def test_the_command_finds_the_judged_documents_of_the_sample(tmp_path: Path) -> None:
    folder, work = sample_in_beir(tmp_path / "sample"), tmp_path / "work"
    done = CliRunner().invoke(main, ["experiment", str(folder), "--workdir", str(work), "--quiet"])
    assert done.exit_code == 0, done.output
    kept = json.loads((work / "report.json").read_text())
    table = {row["name"]: row for row in kept["tables"][MEASURED]}
    assert {*BASELINES, CROSSED_BM25, SINGLE, COLBERT, CROSSED_FUSION, EQUAL.name} <= set(table)
    assert 0.2 < table[TUNED]["nDCG@10"] <= 1
    assert 0 < table[TUNED]["nDCG@10 error"] < 0.2
    assert {row["system"] for row in kept["tables"][CHOSEN]} >= {CROSSED_BM25, CROSSED_FUSION}
    assert f"{len(BeirDataset(folder).get_topics())} queries" in kept["about"][MEASURED]
    again = run_beir(folder, work, systems=["BM25"], verbose=False)
    assert all(stage.resumed for stage in again.stages if stage.name != "search")
    assert set(again.tables[MEASURED]["name"]) == {*BASELINES, CROSSED_BM25}


def test_settings_are_chosen_on_another_split(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "texts", DOCUMENTS, QUERIES, {"test": RIGHT[:2], "dev": RIGHT[1:]})
    collection, folds = read_collection(BeirDataset(folder), None)
    assert [(fold.name, sorted(fold.training), sorted(fold.test)) for fold in folds] == [
        ("dev → test", ["c"], ["a", "b"])  # b is measured, so that nothing is chosen on it
    ]
    assert sorted(collection.topics["qid"]) == ["a", "b", "c"]
    assert sorted(collection.qrels["qid"]) == ["a", "b", "c"]
    report = run_beir(folder, tmp_path / "work", systems=["BM25"], verbose=False)
    assert report.tables[CHOSEN]["folds"].unique().tolist() == ["dev → test"]
    assert report.tables[MEASURED].set_index("name").loc[TUNED, "RR@10"] == 1


def test_a_large_split_is_chosen_on_in_part(tmp_path: Path) -> None:
    many = [(f"q{number}", "sum", 1) for number in range(MOST + 20)]
    queries = {**QUERIES, **{qid: "series" for qid, _, _ in many}}
    folder = write_beir(tmp_path / "texts", DOCUMENTS, queries, {"test": RIGHT, "train": many})
    _, folds = read_collection(BeirDataset(folder), "test")
    assert len(folds[0].training) == MOST


def test_a_query_finds_the_document_with_its_id_only_where_that_is_judged(tmp_path: Path) -> None:
    rows = [("sum", "prime", 1), ("b", "prime", 1)]
    folder = write_beir(tmp_path / "texts", DOCUMENTS, {"sum": "geometric primes", "b": "primes"}, {"test": rows})
    report = run_beir(folder, tmp_path / "work", systems=["BM25"], verbose=False)
    assert report.tables[MEASURED].set_index("name").loc[TUNED, "RR@10"] == 1

    rows = [("sum", "sum", 1), ("prime", "limit", 1)]
    queries = {"sum": "geometric series", "prime": "infinitely many primes at zero"}
    folder = write_beir(tmp_path / "itself", DOCUMENTS, queries, {"test": rows})
    report = run_beir(folder, tmp_path / "other", systems=["BM25"], verbose=False)
    assert report.tables[MEASURED].set_index("name").loc[TUNED, "RR@10"] == 1


def test_systems_that_need_arqmath_are_refused(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "texts", DOCUMENTS, QUERIES, {"test": RIGHT})
    with pytest.raises(ConfigError, match="MaRF"):
        run_beir(folder, tmp_path / "work", systems=["MaRF"], verbose=False)
    with pytest.raises(ConfigError, match="MaRF"):
        run_beir(folder, tmp_path / "work", systems=["BM25 + MaRF"], verbose=False)
    options = ["experiment", str(folder), "--years", "2022"]
    assert "BEIR" in CliRunner().invoke(main, options).output

"""Files of pairs as judges: each is left out of training when it is measured."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mathamr_systems.experiments.systems import TUNED
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import TrainingPairs
from pyterrier_mathamr.model import MathAMR
from studies.__main__ import main
from studies.protocol import domains
from studies.protocol.domains import FOUND, NAMES, TESTS, read_domain, run_domains

TOPICS = ("prime", "limit", "matrix", "group", "integral", "graph", "lattice", "tensor")


def write_pairs(file: Path, name: str, count: int = len(TOPICS)) -> Path:
    pairs = (
        {
            "qid": f"{name}-{n}",
            "question": f"What is a {topic} $x_{n}$ of {name}?",
            "aid": f"{name}-{n}-a",
            "answer": text,
        }
        for n, topic in list(enumerate(TOPICS))[:count]
        for text in [f"Every {topic} has $x_{n} + {n}$, by the lemma on {topic}s."]
    )
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    return file


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "pairs").mkdir()
    return [write_pairs(tmp_path / "pairs" / f"{name}.jsonl", name) for name in ("proofs", "threads")]


def test_the_command_measures_each_file_with_the_given_model(files: list[Path], tmp_path: Path) -> None:
    options = ["--model", "mathamr-plus-mini", "--workdir", str(tmp_path / "work"), "--quiet"]
    done = CliRunner().invoke(main, ["domains", str(files[0].parent), *options])
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "work" / "report.json").read_text())
    table = {row["name"]: row for row in kept["tables"][FOUND]}
    assert list(table) == list(NAMES)
    assert table[TUNED]["proofs"] == table[TUNED]["threads"] == 1
    assert all(0 < row["threads"] <= 1 for row in table.values())
    assert {row["file"] for row in kept["tables"][TESTS]} == {"proofs", "threads"}
    again = run_domains(files, tmp_path / "work", model="mathamr-plus-mini", verbose=False)
    assert all(stage.resumed for stage in again.stages)


def test_a_file_is_left_out_of_the_training_of_the_model_that_it_measures(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def train(read: Sequence[TrainingPairs], graphs: Any, config: Any, checkpoint: Path, **options: Any) -> MathAMR:
        pairs = [pair for one in read for pair in one.train]
        assert all(qid in graphs and aid in graphs for qid, aid in pairs)
        seen.append({qid.partition("-")[0] for qid, _ in pairs})
        return MathAMR.from_pretrained("mathamr-plus-mini")

    monkeypatch.setattr(domains, "train_on_pairs", train)
    third = write_pairs(tmp_path / "notes.jsonl", "notes", 3)
    report = run_domains([*files, third], tmp_path / "work", preset="mini", verbose=False)
    assert seen == [{"threads", "notes"}, {"proofs", "notes"}, {"proofs", "threads"}]
    assert set(report.tables[FOUND].columns) >= {"proofs", "threads", "notes", "notes error"}
    assert "trained on all other files" in report.about[FOUND]


def test_a_question_searches_for_its_own_answers_among_all_answers(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "QUESTIONS", 3)
    monkeypatch.setattr(domains, "ANSWERS", 5)
    found = read_domain(files[0])
    assert len(found.topics) == len(found.qrels) == 3
    docnos = {document["docno"] for document in found.documents()}
    assert len(docnos) == 5
    assert set(found.qrels["docno"]) <= docnos
    assert all(docno == f"{qid}-a" for qid, docno in zip(found.qrels["qid"], found.qrels["docno"], strict=True))


def test_contradictions_are_refused(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing is trained"):
        run_domains(files, tmp_path, model="mathamr-plus-mini", preset="mini", verbose=False)
    with pytest.raises(ConfigError, match="several files"):
        run_domains(files[:1], tmp_path, verbose=False)
    with pytest.raises(ConfigError, match="its own name"):
        run_domains([files[0], files[0]], tmp_path, model="mathamr-plus-mini", verbose=False)

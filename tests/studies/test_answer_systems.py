"""Task 1 with systems of answer studies and the systems of MathAMR+."""

from pathlib import Path

import pyterrier as pt
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments import System, run_arqmath
from mathamr_systems.experiments.measuring import FEW_JUDGED, FLOOR, RANDOM_ANSWERS
from mathamr_systems.experiments.systems import BASELINES, FUSION, TASK1, TUNED, AnswerParts
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from studies.answers import catalogue
from studies.answers.catalogue import ANSWER_SYSTEMS, task1_systems
from studies.tables import MAIN

WORDS = "TF-IDF"
SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


def missing(parts: AnswerParts) -> pt.Transformer:
    raise MissingExtraError("nothing", "answers")


def bm25_by_threads(parts: AnswerParts) -> pt.Transformer:
    return parts.shared.tuned.retriever(1000) >> parts.answer_texts()


def test_systems_are_chosen_by_name_and_refused_by_the_command_without_them(tmp_path: Path) -> None:
    assert task1_systems(None) is None
    assert task1_systems(["all"]) == [*TASK1, *ANSWER_SYSTEMS.values()]
    assert task1_systems(["structural SEARCH", FUSION]) == [FUSION, ANSWER_SYSTEMS["Structural search"]]
    with pytest.raises(ConfigError, match="Structural search"):
        task1_systems(["structure"])

    with pytest.raises(ConfigError, match=r"python -m studies task-1 FOLDER --systems"):
        run_arqmath(SAMPLE, "sample", tmp_path, model="mathamr-plus-mini", systems=["ColBERT"], verbose=False)


def test_other_systems_are_rows_and_missing_ones_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        *ANSWER_SYSTEMS.values(),
        System("absent", missing),
        System("again", bm25_by_threads),
    )
    monkeypatch.setattr(catalogue, "ANSWER_SYSTEMS", {row.name: row for row in rows})
    report = run_arqmath(
        SAMPLE,
        "sample",
        tmp_path,
        model="mathamr-plus-mini",
        systems=task1_systems(["tf-idf", "qasim", "structural search", "absent", "again"]),
        verbose=False,
    )
    table = report.tables["Task 1, sample"].set_index("name")
    absent = "absent: needs the extra answers"
    assert list(table.index) == [*BASELINES, WORDS, "Structural search", absent, "again", FLOOR]
    assert table.loc[WORDS, MAIN] > 0.6
    assert table.loc["again", MAIN] == table.loc[TUNED, MAIN] == pytest.approx(0.7945, abs=0.01)
    assert table.loc["Structural search", MAIN] > 0.7
    assert any("QASim. They are fitted on other years" in text for text in report.remarks["Task 1, sample"])
    assert FEW_JUDGED in report.about["Task 1, sample"]
    assert any("**Not measured**: absent" in text for text in report.remarks["Task 1, sample"])
    known = report.tables["Known items, test questions"].set_index("name")
    assert list(known.index) == [*BASELINES, WORDS, absent, "again", RANDOM_ANSWERS]
    assert known.loc["again", "RR@10"] == known.loc[TUNED, "RR@10"]
    assert "fusion weight" not in report.settings

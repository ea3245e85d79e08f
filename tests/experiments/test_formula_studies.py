"""A study trains and measures each model once; its table is made by hand here."""

from pathlib import Path

import pandas as pd
import pytest

import pyterrier_mathamr
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments import FORMULA_STUDIES, FormulaStudy, run_formula_study
from pyterrier_mathamr.experiments.artifacts import TANGENT
from pyterrier_mathamr.experiments.measuring import FLOOR
from pyterrier_mathamr.systems import InOut, InOutOptions
from studies.formulas.summary import MAIN, study_table

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
SMALL = {"epochs": 1, "width": 8, "batch_size": 64}
STUDY = FormulaStudy(
    "formula/test", "A test", {"OPG": {"condition": "opg"}, "Inner": {"condition": "inner"}}, formulas=200
)


def test_the_six_conditions_and_four_depths_are_those_of_the_options() -> None:
    for study in FORMULA_STUDIES.values():
        for changes in study.conditions.values():
            InOutOptions(**changes)
    assert list(FORMULA_STUDIES["formula/in-out"].conditions) == [
        *("SLG", "OPG", "SLG+OPG", "Inner", "Outer", "Inner+Outer")
    ]
    assert list(FORMULA_STUDIES["formula/message-passing"].conditions) == [
        "0 layers",
        "1 layer",
        "2 layers",
        "3 layers",
    ]


def test_a_study_is_run_once_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"years": ["sample"], "changes": SMALL, "known": 5, "verbose": False}
    report = run_formula_study(STUDY, SAMPLE, tmp_path, **options)
    table = report.tables["A test"]
    assert table[["condition", "combination"]].to_numpy().tolist() == [
        [FLOOR, ""],
        [TANGENT, ""],
        ["OPG", "one graph"],
        *(["Inner", name] for name in ("max", "avg", "f1", "rrf")),
    ]
    assert table[MAIN].between(0.5, 1).all()
    assert table["known RR@10"][1:].between(0.1, 1).all()
    assert table["p"].notna().tolist() == [False, False, True, True, True, True, True]
    assert not list(tmp_path.rglob("*.mathamr_in_out"))
    monkeypatch.setattr(InOut, "fit", None)
    again = run_formula_study(STUDY, SAMPLE, tmp_path, **options)
    pd.testing.assert_frame_equal(again.tables["A test"], table)
    assert (tmp_path / "studies" / "formula-test" / "report.md").is_file()
    with pytest.raises(ConfigError, match="at least one year"):
        run_formula_study(STUDY, SAMPLE, tmp_path, years=[])


def values(*seeds: tuple[float, float, float]) -> pd.DataFrame:
    """Two topics of one year and one of another, for each seed."""
    rows = [
        (year, qid, seed, MAIN, value)
        for seed, of in enumerate(seeds)
        for (year, qid), value in zip((("2020", "1"), ("2020", "2"), ("2022", "1")), of, strict=True)
    ]
    return pd.DataFrame(rows, columns=["topics", "qid", "seed", "measure", "value"])


def test_means_are_over_seeds_and_topics_and_tests_over_topics_of_all_years(monkeypatch: pytest.MonkeyPatch) -> None:
    from studies.formulas import summary

    monkeypatch.setattr(summary, "TASK2_MEASURES", [MAIN])
    found = {("no", "max"): values((0.2, 0.4, 0.6)), ("yes", "max"): values((0.4, 0.5, 0.9), (0.2, 0.7, 0.9))}
    table = study_table(found, {("yes", "max"): ("no", "max")}).set_index("condition")
    assert table["nDCG' 2020"].tolist() == pytest.approx([0.3, 0.45])
    assert table["nDCG' 2022"].tolist() == pytest.approx([0.6, 0.9])
    assert table[MAIN].tolist() == pytest.approx([0.4, 0.6])
    assert table["seeds"].tolist() == [1, 2]
    assert table["difference"]["yes"] == pytest.approx(0.2)
    assert table["p"]["yes"] == pytest.approx(0.0742, abs=1e-3)  # differences .1, .2, .3
    assert not table[f"{MAIN} reject"]["yes"]

"""A study trains and measures each model once; its table is made by hand here."""

from pathlib import Path

import pandas as pd
import pytest

import pyterrier_mathamr
from mathamr_systems import InOut, InOutOptions
from mathamr_systems.experiments.measuring import FLOOR
from mathamr_systems.experiments.workdir import TANGENT
from pyterrier_mathamr._common.errors import ConfigError
from studies.formulas import in_out
from studies.registry import STUDIES, run_study
from studies.study import Study, condition
from studies.tables import MAIN

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
SMALL = {"epochs": 1, "width": 8, "batch_size": 64}
STUDY = Study(
    "formula/test",
    "A test",
    "formulas",
    (condition("OPG", condition="opg"), condition("Inner", condition="inner")),
    combinations=in_out.IN_OUT.combinations,
    seeds=(42,),
    formulas=200,
)


def test_the_six_conditions_and_four_depths_match_the_options() -> None:
    for study in STUDIES.values():
        if study.kind == "formulas":
            for one in study.conditions:
                InOutOptions(**dict(one.changes))
    assert STUDIES["formula/in-out"].compared == ["SLG", "OPG", "SLG+OPG", "Inner", "Outer", "Inner+Outer"]
    assert STUDIES["formula/message-passing"].compared == ["0 layers", "1 layer", "2 layers", "3 layers"]


def test_a_study_is_run_once_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_out, "KNOWN_FORMULAS", 5)
    options = {"years": ["sample"], "changes": SMALL, "verbose": False}
    report = run_study(STUDY, SAMPLE, tmp_path, **options)
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
    again = run_study(STUDY, SAMPLE, tmp_path, **options)
    pd.testing.assert_frame_equal(again.tables["A test"], table)
    assert (tmp_path / "studies" / "formula-test" / "report.md").is_file()
    with pytest.raises(ConfigError, match="years"):
        run_study(STUDY, SAMPLE, tmp_path, years=[])

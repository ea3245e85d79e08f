"""The study of formulas in context: its conditions are the paper's, and it is run once and reported."""

from pathlib import Path

import pandas as pd
import pytest

import pyterrier_mathamr
from mathamr_systems import FitOptions, FormulaContexts, MathAMRSentenceBERT
from mathamr_systems.experiments.measuring import FLOOR
from mathamr_systems.experiments.workdir import TANGENT
from studies.formulas import mathamr_sbert
from studies.formulas.mathamr_sbert import COSINE, FIRST, RRF, SCALED
from studies.registry import run_study
from studies.study import Setting, Study

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


def test_the_conditions_are_five_representations_and_two_windows() -> None:
    contexts = [FormulaContexts(**dict(one.changes)) for one in mathamr_sbert.STUDY.conditions]
    assert contexts[0] == FormulaContexts("amr+opt", 1)
    assert len({(one.representation, one.window) for one in contexts}) == 9
    assert {one.representation for one in contexts} == {"opt", "amr+opt", "amr+latex", "text+opt", "text+latex"}


@pytest.mark.filterwarnings("ignore:negative scores")
def test_models_are_trained_once_and_other_systems_re_ranked(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study("formula/test", "A test", "contexts", mathamr_sbert.STUDY.conditions[:1], seeds=(1,))
    recipe = mathamr_sbert.Recipe(str(backbone), FitOptions(epochs=1, batch_size=16), 10)
    monkeypatch.setattr(mathamr_sbert, "RECIPES", {"mini": recipe})

    def on_itself(_: Setting, year: str) -> list[str]:
        return [year]

    monkeypatch.setattr(mathamr_sbert, "other_years", on_itself)
    new = MathAMRSentenceBERT.new

    def short(*given: object, **options: object) -> MathAMRSentenceBERT:
        return new(*given, **{**options, "max_length": 40})  # type: ignore[arg-type]

    monkeypatch.setattr(MathAMRSentenceBERT, "new", short)
    report = run_study(study, SAMPLE, tmp_path, years=["sample"], preset="mini", verbose=False)
    judged, others = report.tables.values()
    names = [one.name for one in study.conditions]
    assert judged["condition"].tolist() == [FLOOR, names[0], names[0]]
    assert others["system"].tolist()[:4] == [FIRST, COSINE, RRF, SCALED]
    assert others["condition"].iloc[0] == TANGENT
    measures = ["nDCG'@5", "nDCG'@10", "P'@5", "P'@10"]
    assert judged[measures].stack().between(0, 1).all()
    assert others[measures].stack().between(0, 1).all()
    monkeypatch.setattr(MathAMRSentenceBERT, "fit", None)
    again = run_study(study, SAMPLE, tmp_path, years=["sample"], preset="mini", verbose=False)
    pd.testing.assert_frame_equal(again.tables[mathamr_sbert.JUDGED], judged)
    deeper = run_study(study, SAMPLE, tmp_path, years=["sample"], preset="mini", changes={"depth": 20}, verbose=False)
    found = report.values["by-topic"], deeper.values["by-topic"]
    assert not found[0].equals(found[1])
    pd.testing.assert_frame_equal(deeper.tables[mathamr_sbert.JUDGED], judged)

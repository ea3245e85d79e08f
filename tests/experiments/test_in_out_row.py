"""The rows of In+Out in the table of Task 2."""

from pathlib import Path

import pyterrier_mathamr
from pyterrier_mathamr.experiments import run_task2
from pyterrier_mathamr.experiments.measuring import FLOOR

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
NDCG = "nDCG(judged_only=True)@1000"


def test_in_out_is_measured_with_each_combination(tmp_path: Path) -> None:
    names = ["In+Out", "In+Out (avg)", "In+Out (rrf)"]
    table = run_task2(SAMPLE, "sample", tmp_path, model="mathamr-plus-mini", systems=names, verbose=False)
    values = table.tables["Task 2"].set_index("name")[NDCG]
    assert list(values.index) == ["Tangent", *names, FLOOR]
    assert values[names].min() > values[FLOOR]
    assert values[names].nunique() == 3
    assert (tmp_path / "formulas.inout" / "pt_meta.json").is_file()

import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments import run_demo


def test_the_demo_compares_all_systems_without_network_or_java() -> None:
    table = run_demo().set_index("name")
    assert {"BM25", "single vector", "doc-VN + MaxSim", "ColBERT-style", "BM25 >> scorer"} <= set(table.index)
    for measure in map(str, TASK1_MEASURES):
        assert table[measure].between(0, 1).all()
        assert table[measure].isna().sum() == 0
    assert not pt.java.started()

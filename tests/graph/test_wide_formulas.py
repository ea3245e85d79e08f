from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.graph import MathAMRGraph, attach_formulas, detach_formulas


def test_a_formula_of_very_many_operands_is_written_and_read_back() -> None:
    labels = [chr(code) for code in (*range(0x30, 0x100), 0x2028, 0x1D465)]  # 65th operands have labels beyond "z"
    edges = tuple((0, i, label) for i, label in enumerate(labels, 1))
    tree = FormulaTree(("E!", *["N!1"] * len(labels)), edges, kind="opt")
    pair = FormulaPair(slt=None, opt=tree)
    graph = MathAMRGraph(attach_formulas(decode_penman("(f / FORMULA_0)"), [pair]), ("",))
    again = MathAMRGraph.from_penman(graph.to_penman())
    assert again == graph
    assert detach_formulas(again.amr, 1)[1] == (pair,)

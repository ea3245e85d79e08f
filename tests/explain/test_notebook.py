"""A notebook shows the results of the room's functions, without magic and without pyplot."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CELLS = {
    "image/svg+xml": """
import numpy as np
from pyterrier_mathamr import explain
from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.graph import MathAMRGraph
graph = MathAMRGraph(decode_penman("(f / find-01 :ARG1 (m / FORMULA_0))"), ("",), "1", latex=("x^2",))
explain.draw_graph(graph)
""",
    "image/svg+xml ": "rows = np.eye(3, dtype=np.float32)\nexplain.draw_maxsim(graph, rows, graph, rows)",
    " image/svg+xml": "explain.draw_formula('x^2')",
    "text/html": "from pyterrier_mathamr.formula import opt_from_latex\nopt_from_latex('x^2')",
    "image/png": """
import mathamr_systems
import pandas as pd
mathamr_systems.draw_speed(pd.DataFrame({'name': ['a', 'b'], 'AP': [.1, .2], 'ms': [1., 2.]}), 'AP', time='ms')
""",
    "image/png ": """
table = pd.DataFrame([('A', '1', 'AP', .1), ('B', '1', 'AP', .4)], columns=['name', 'qid', 'measure', 'value'])
mathamr_systems.draw_topic_differences(table, 'AP', 'A', 'B')
""",
}


@pytest.mark.enable_socket  # the kernel is a process that is spoken to by sockets of this machine
def test_pictures_are_shown_as_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra test is not installed")
    nbclient = pytest.importorskip("nbclient", reason="the extra test is not installed")
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "systems"))))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS.values()])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    for cell, kind in zip(notebook.cells, CELLS, strict=True):
        (output,) = cell.outputs
        assert kind.strip() in output.data, cell.source

"""The notebooks of the tutorial run, and their stored outputs are of the kinds and sizes that they have today."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"
NOTEBOOKS = ("compare", "search", "train")


def code_cells(path: Path) -> list[Any]:
    nbformat = pytest.importorskip("nbformat", reason="the extra test is not installed")
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def kinds(cell: Any) -> list[object]:
    """The kind of each output of a cell; of a table also its rows and cells."""
    found: list[object] = []
    for output in cell.outputs:
        data = output.get("data", {})
        table, markdown = data.get("text/html", ""), data.get("text/markdown", "")
        size = [len(re.findall(f"<{tag}[ >]", table)) for tag in ("tr", "td")] + [markdown.count(c) for c in "\n|"]
        found.append((output.output_type, sorted(data), size))
    return found


def test_the_notebooks_run_and_their_stored_outputs_are_current(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="the extra test is not installed")
    command = [sys.executable, ROOT / "tools/run_tutorial.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in tmp_path.glob("*.ipynb")) == sorted(NOTEBOOKS)
    for path in sorted(TUTORIAL.glob("*.ipynb")):
        for stored, fresh in zip(code_cells(path), code_cells(tmp_path / path.name), strict=True):
            assert kinds(stored) == kinds(fresh), stored.source


def test_most_cells_have_a_stored_output_without_errors() -> None:
    outputs = [cell.outputs for name in NOTEBOOKS for cell in code_cells(TUTORIAL / f"{name}.ipynb")]
    assert sum(map(bool, outputs)) >= 16
    assert not [output for found in outputs for output in found if output.output_type == "error"]
    shown = {kind for found in outputs for output in found for kind in output.get("data", {})}
    assert shown >= {"text/html", "text/markdown", "image/svg+xml"}

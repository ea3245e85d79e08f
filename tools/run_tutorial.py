"""Run a notebook in an empty folder and store its outputs: ``python tools/run_tutorial.py docs/tutorial.ipynb``.

Outputs are stored as the code made them, without warnings, times and counters of the machine.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(source: Path, target: Path) -> None:
    """Run ``source`` and write it with its outputs to ``target``.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)  # the version of this Python
    nbformat.write(notebook, target)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[-1]))

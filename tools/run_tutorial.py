"""Run the tutorial's notebooks, each in an empty folder, and store their outputs: ``tools/run_tutorial.py [FOLDER]``.

Outputs are stored as the code made them, without warnings, times and counters of the machine. With FOLDER the
notebooks are written there, and those in ``docs/tutorial`` stay.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"


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
    folder = Path(sys.argv[1]) if sys.argv[1:] else TUTORIAL
    for source in sorted(TUTORIAL.glob("*.ipynb")):
        run(source, folder / source.name)

"""Everything that the README shows is run."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_python_examples_of_the_readme_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        if "QdrantIndex(" in block and find_spec("qdrant_client") is None:
            continue  # needs the extra qdrant
        exec(compile(block, str(README), "exec"), names)
    table = names["table"]
    assert next(iter(table["name"])) == "BM25"  # type: ignore[index]
    assert len(table) == 5  # type: ignore[arg-type]


@pytest.mark.parametrize("example", sorted((README.parent / "examples").glob("*.py")), ids=lambda path: path.name)
def test_each_example_runs_as_it_stands(example: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_results_of_the_readme_are_those_of_the_model_s_card() -> None:
    card = (README.parent / "pyterrier_mathamr/data/models/mathamr-plus-mini/README.md").read_text(encoding="utf-8")
    measured = {row[0].replace(", fitted weight", ""): row[1:] for row in rows_of_numbers(card)}
    shown = rows_of_numbers(README.read_text(encoding="utf-8").partition("## Try it")[0])
    assert len(shown) == 5
    for name, *numbers in shown:
        assert numbers == measured[name.replace(", fitted weight", "")]


def rows_of_numbers(text: str) -> list[list[str]]:
    """The rows of Markdown tables that have measures, such as .763, without what stands in brackets."""
    rows = [[cell.partition("(.")[0].strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [row for row in rows if len(row) > 1 and re.fullmatch(r"\.\d{3}", row[1])]

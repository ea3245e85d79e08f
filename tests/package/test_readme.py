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

"""The line for PyTerrier's list of extensions, read as the generator of its documentation reads it."""

import importlib.metadata
import importlib.resources
from pathlib import Path

LINE = Path(__file__).parents[2] / "contrib" / "pyterrier" / "extensions.txt"


def test_the_line_names_an_installed_package_with_pages_and_a_title() -> None:
    package, _, title = LINE.read_text().strip().partition("#")
    assert title.strip() == "Math-aware Retrieval <URL>"
    assert importlib.metadata.metadata(package.strip())["name"] == "pyterrier-mathamr"
    assert importlib.resources.files(package.strip()).joinpath("pt_docs", "index.rst").is_file()


def test_the_name_of_each_artifact_has_one_dot_as_the_table_of_artifacts_expects() -> None:
    named = importlib.metadata.entry_points(group="pyterrier.artifact")
    ours = [each.name for each in named if each.value.startswith("pyterrier_mathamr")]
    assert ours
    assert all(name.count(".") == 1 for name in ours)

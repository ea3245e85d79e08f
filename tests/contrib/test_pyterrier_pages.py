"""The pages and the patch for PyTerrier: code runs as a package with its entry points; the patch works."""

import importlib.util
import re
import shutil
import subprocess
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG

CONTRIB = Path(__file__).parents[2] / "contrib" / "pyterrier"
BLOCK = re.compile(r"^\.\. code-block:: (\w+)\n(?: +:caption: (\S+)\n)?\n((?:    .*\n|\n)+)", re.M)


@pytest.mark.parametrize("page", sorted(CONTRIB.glob("*.rst")), ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_as_an_installed_package(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lz4", reason="the extra hub is not installed")
    blocks = [
        (language, file, textwrap.dedent(code)) for language, file, code in BLOCK.findall(page.read_text("utf-8"))
    ]
    assert {language for language, _, _ in blocks} == {"python", "toml"}
    for language, _, code in blocks:
        if language == "toml":
            project = tomllib.loads(code)["project"]
            installed = tmp_path / "site" / f"{project['name']}-{project['version']}.dist-info"
            installed.mkdir(parents=True)
            (installed / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", "utf-8")
            lines = [
                line
                for group, points in project["entry-points"].items()
                for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
            ]
            (installed / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    for _, file, code in blocks:
        if file.endswith(".py"):
            (tmp_path / "site" / file).write_text(code, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_ARTIFACTS", "")  # blocks may set variables, which are put back
    monkeypatch.setenv("LAB_TOKEN", "")
    names: dict[str, object] = {}
    for language, file, code in blocks:
        if language == "python" and not file:
            exec(compile(code, str(page), "exec"), names)


class Constant(pt.Transformer):  # type: ignore[misc]
    """Retrieves the document with the number ``best``."""

    def __init__(self, best: int) -> None:
        self.best = best

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return inp.assign(docno=f"d{self.best}", score=1.0, rank=0)


def patched(folder: Path, patch: str, module: str) -> ModuleType:
    """Apply a patch to a copy of a module of the installed PyTerrier."""
    if shutil.which("git") is None or pt.__version__ != "1.1.2":
        pytest.skip("needs git and PyTerrier 1.1.2")
    copy = folder / "pyterrier" / f"{module}.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(Path(pt.__file__).parent / f"{module}.py", copy)
    subprocess.run(["git", "apply", "--include=pyterrier/*", str(CONTRIB / patch)], cwd=folder, check=True)
    package, _, name = f"pyterrier/{module}".replace("/", ".").rpartition(".")
    spec = importlib.util.spec_from_file_location(f"{package}._patched_{name.removeprefix('_')}", copy)
    assert spec is not None
    assert spec.loader is not None
    patched_module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(patched_module)
    return patched_module


def test_the_patch_lets_grid_search_maximize_a_measure_of_judged_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = patched(tmp_path, "grid-search-measures.patch", "_evaluation/_grid")
    topics = pd.DataFrame({"qid": ["1"], "query": ["q"]})
    qrels = pd.DataFrame({"qid": ["1", "1"], "docno": ["d2", "d3"], "label": [1, 0]})
    system, measure = Constant(1), nDCG(judged_only=True) @ 10
    with pytest.raises(KeyError):  # as long as PyTerrier needs the patch
        pt.GridSearch(system, {system: {"best": [1, 2, 3]}}, topics, qrels, measure)
    found = grid.GridSearch(system, {system: {"best": [1, 2, 3]}}, topics, qrels, measure, return_type="best_setting")
    assert found == (1.0, [(system, "best", 2)])


def test_a_stage_has_no_link_where_the_documentation_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documentation = patched(tmp_path, "drawing-offline.patch", "documentation")
    requests: list[object] = []

    def offline(*request: object, **options: object) -> None:
        requests.append(request)
        raise ConnectionError("offline")

    monkeypatch.setattr(pt.io, "download", offline)
    monkeypatch.setattr(documentation, "_is_old", lambda *_: True)
    assert [documentation.url_for_class(stage) for stage in (pt.RankCutoff(1), pt.rewrite.reset())] == [None, None]
    assert len(requests) == 1
    monkeypatch.setattr(pt.documentation, "_cached_objects_inv", None)
    monkeypatch.setattr(pt.documentation, "_is_old", lambda *_: True)
    with pytest.raises(ConnectionError):  # as long as PyTerrier needs the patch
        pt.documentation.url_for_class(pt.RankCutoff(1))

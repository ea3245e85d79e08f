"""The pages: they build as one site without a warning, and what they name exists."""

import html
import importlib
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

import mathamr_systems
import pyterrier_mathamr as mathamr
from pyterrier_mathamr.cli import main
from studies.__main__ import main as studies_main
from studies.registry import STUDIES

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "pyterrier_mathamr").rglob("*.md")),
    *sorted((ROOT / "systems" / "mathamr_systems").rglob("*.md")),
    *sorted((ROOT / "pyterrier_mathamr/pt_docs").glob("*.rst")),
]
DOTTED = re.compile(r"(?<![\w/.@-])(?:pyterrier_mathamr|mathamr_systems|mathamr)((?:\.[A-Za-z_]\w*)+)")
FILE = re.compile(r"(?<![\w/.-])(?:pyterrier_mathamr|systems|docs|examples|benchmarks|tools|tests)/[\w./-]*\w")
WRITTEN = (".mathamr", ".bm25", ".tangent", ".sqlite", ".html")  # files that an example writes or names


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built without a warning."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-c", "docs", ".", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_pages_build_as_one_site_that_needs_no_network_and_links_within_itself(site: Path) -> None:
    texts = {file.relative_to(site).with_suffix(""): file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    pages = {page.relative_to(ROOT).with_suffix("") for page in (*PAGES, *(ROOT / "docs").rglob("*.ipynb"))}
    assert pages - set(texts) == {Path("README")}  # for the package index; the site begins with docs/index
    assert f"pyterrier-mathamr {mathamr.__version__}" in texts[Path("docs/index")]
    loaded = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=.?https?://|<link\b[^>]*rel=.stylesheet[^>]*https?://"
    )
    assert [name for name, text in texts.items() if loaded.search(text)] == []
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert not [style for style in styles if re.search(r"url\([\"']?https?://|@import [\"']https?://", style)]
    away = re.compile(r'href="https://github\.com/pyterrier-mathamr/pyterrier-mathamr/blob/main/(docs/[\w./-]+\.md)')
    assert {match[1] for text in texts.values() for match in away.finditer(text.partition("<article")[2])} == set()
    assert 'href="../../docs/how-it-works.html"' in texts[Path("pyterrier_mathamr/pt_docs/pipelines")]
    api = "".join(text for name, text in texts.items() if name.parts[:2] == ("docs", "api"))
    [call] = re.findall(r'<dt class="sig [^>]* id="pyterrier_mathamr\.BM25Index\.retriever">(.*?)</dt>', api, re.DOTALL)
    assert "weighting='bm25'" in html.unescape(re.sub(r"<[^>]+>", "", call))


def mentioned(pattern: re.Pattern[str]) -> dict[str, str]:
    """Matches of a pattern in the pages and in the package's own text, each with the file that mentions it."""
    files = [*PAGES, *sorted((ROOT / "pyterrier_mathamr").rglob("*.py")), *sorted((ROOT / "systems").rglob("*.py"))]
    return {match.group(): str(file) for file in files for match in pattern.finditer(file.read_text(encoding="utf-8"))}


def exists(name: str) -> bool:
    """Whether a dotted name is a module or an attribute of one."""
    value: object = mathamr_systems if name.startswith("mathamr_systems") else mathamr
    path = value.__name__
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if not hasattr(value, part) and not (isinstance(value, ModuleType) and find_spec(path)):
            return False
        value = getattr(value, part) if hasattr(value, part) else importlib.import_module(path)
    return True


def test_each_name_of_the_package_that_a_page_mentions_exists() -> None:
    names = mentioned(DOTTED)
    assert len(names) > 100
    assert {name: page for name, page in names.items() if not exists(name) and not name.endswith(WRITTEN)} == {}
    assert not exists("pyterrier_mathamr.graph.no_such_thing")


def test_each_file_of_the_repository_that_a_page_mentions_exists() -> None:
    names = mentioned(FILE)
    assert len(names) > 10
    assert {name: page for name, page in names.items() if not (ROOT / name).exists()} == {}


def test_the_citation_names_this_release_and_the_thesis() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (thesis,) = citation["references"]
    assert citation["version"] == mathamr.__version__
    assert f"## [{citation['version']}] - {citation['date-released']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"[*{thesis['title']}*]({thesis['url']})" in " ".join((ROOT / "README.md").read_text("utf-8").split())


def test_each_study_that_a_page_names_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = set(re.findall(r"\b(?:paper|ablation|best)/[a-z0-9.-]*[a-z0-9]", text))
    assert len(names) >= 3
    assert names <= set(STUDIES)


def test_each_command_that_a_page_shows_exists_with_its_options() -> None:
    lines = [line.partition("#")[0].split() for page in PAGES for line in page.read_text("utf-8").splitlines()]
    commands = [words for words in lines if words[:1] == ["mathamr"] and words[1:]]
    assert len(commands) > 20
    assert [words for words in commands if not is_command(words)] == []
    assert not is_command(["mathamr", "demo", "--no-such-option"])
    studies = [words[2:] for words in lines if words[:3] == ["python", "-m", "studies"]]
    assert len(studies) > 20
    assert [words for words in studies if not is_command(words, studies_main)] == []


def test_each_configuration_of_the_page_on_deployment_starts_a_command_that_exists() -> None:
    page = (ROOT / "docs/deployment.md").read_text("utf-8")
    [unit] = re.findall("^ExecStart=/opt/mathamr/bin/(.*)$", page, re.M)
    [entry] = re.findall("^ENTRYPOINT (.*)$", page, re.M)
    assert is_command(unit.split())
    assert is_command(json.loads(entry))
    assert set(re.findall(r"(?:localhost|127\.0\.0\.1):(\d+)", page)) == {"8000"}  # the default of serve


def is_command(words: list[str], program: click.Group = main) -> bool:
    """Whether ``mathamr …`` names a command and options that it has."""
    command: click.Command = program
    context = click.Context(program, info_name=words[0], **program.context_settings)  # click keeps the names of --help
    for word in words[1:]:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command, context = found, click.Context(found, parent=context, info_name=word)
    known = {
        option
        for parameter in command.get_params(context)
        if not getattr(parameter, "hidden", False)
        for option in parameter.opts
    }
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return options <= known and (not isinstance(command, click.Group) or bool(options))

"""The README and the manual: short pages whose blocks of Python and shell all run as printed.

The blocks of a page run in order, in a folder of their own. Before a block, ``<!-- not run: reason -->`` (in
reStructuredText ``.. not run: reason``) exempts it.
"""

import ast
import inspect
import operator
import os
import re
import runpy
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyterrier as pt
import pytest
from test_docstrings import local_release

import mathamr_systems
import pyterrier_mathamr as mathamr

ROOT = Path(__file__).parents[2]
PT_DOCS = ROOT / "pyterrier_mathamr" / "pt_docs"
NOT_RUN = 12
MANUAL = [
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            *("install", "library", "lean", "page", "query-syntax", "quickstart", "tutorial", "static-site"),
            *("deployment", "questions", "benchmarks", "alternatives", "glossary", "training", "multi-vector"),
            *("large-collections", "how-it-works", "troubleshooting"),
        )
    ),
    *(PT_DOCS / f"{name}.rst" for name in ("pipelines", "arqmath", "formula-search", "api")),
]
PAGES = [ROOT / "README.md", ROOT / "systems" / "README.md", *MANUAL]
FENCED = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>python|sh)\n(?P<code>.*?)^```$", re.M | re.DOTALL
)
DIRECTED = re.compile(
    r"(?:^[ ]*\.\. not run: (?P<reason>[^\n]+)\n\n?)?^(?P<indent>[ ]*)\.\. code-block:: (?P<language>python|sh)\n"
    r"(?P<code>(?:(?P=indent)[ ]{4}.*\n|[ ]*\n)+)",
    re.MULTILINE,
)

PROGRAM = """#!/bin/bash
case " $* " in
  *" serve "* | *" --watch "*)  # runs until it is stopped
    set -- "$@" $([ "$1" = serve ] && echo --port 0)
    {python} -u -m pyterrier_mathamr "$@" > running.log 2>&1 &
    until grep -q -e http:// -e Watching running.log; do kill -0 $! || {{ cat running.log; exit 1; }}; sleep .1; done
    kill -INT $!; wait $!; rm running.log; exit 0 ;;
esac
exec {python} -m pyterrier_mathamr "$@" < /dev/null
"""
PIP = """#!/bin/bash
# Installs nothing: checks that the extras exist.
for extra in $(printf '%s\\n' "$@" | sed -n 's/^pyterrier-mathamr\\[\\([^]]*\\)\\].*$/\\1/p' | tr , ' '); do
  grep -q "^$extra =$" {root}/setup.cfg || {{ echo "no extra $extra"; exit 1; }}
done
"""


class Block(NamedTuple):
    language: str
    code: str
    reason: str  # why it is not run, if so
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8") + "\n"
    for match in (FENCED if page.suffix == ".md" else DIRECTED).finditer(text):
        code = textwrap.dedent(match["code"])
        yield Block(match["language"], code, match["reason"] or "", text[: match.start("code")].count("\n"))


def words(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of the programs that pages call."""
    folder = tmp_path / "programs"
    folder.mkdir()
    python = f'#!/bin/bash\nexec {sys.executable} "$@"\n'
    made = {"mathamr": PROGRAM.format(python=sys.executable), "pip": PIP.format(root=ROOT), "python": python}
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_as_printed(
    page: Path, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("matplotlib", "qdrant_client", "uvicorn"):
        pytest.importorskip(package, reason=f"{package} is not installed (extras plots, qdrant, serve)")
    place = tmp_path / "reader"
    place.mkdir()
    if page.name == "README.md":  # whose reader has notes
        (place / "notes").mkdir()
        (place / "notes" / "root.md").write_text("The number √2 is irrational.", encoding="utf-8")
    if page.stem in ("arqmath", "formula-search", "large-collections"):  # whose reader has the release
        local_release(place / "arqmath")
    monkeypatch.chdir(place)
    monkeypatch.setattr("pyterrier_mathamr.arqmath.collection._named", [])  # a page may register its copy
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "BROWSER": "true"}
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        if block.reason:
            continue
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
            continue
        command = ["bash", "-e", "-u", "-o", "pipefail", "-c", block.code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, f"{page.name}, line {block.line}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    for name, stage in names.items():
        if pt.inspect.transformer_type(stage) & pt.inspect.TransformerType.transformer:
            assert_accepts_what_inspection_says(f"{name} of {page.name}", stage)


def assert_accepts_what_inspection_says(name: str, stage: pt.Transformer) -> None:
    """Compare what ``pt.inspect`` says of a pipeline with what happens, for each form of topics."""
    task1, task2 = (pt.get_dataset(f"arqmath:sample/task{number}") for number in (1, 2))
    for topics in (task1.get_topics("text"), task1.get_topics(), task2.get_topics()):
        said = pt.inspect.transformer_outputs(stage, list(topics.columns), strict=False)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of queries without a formula
                found = list(stage(topics.head(2)).columns)
        except (pt.validate.InputValidationError, ValueError):  # which PyTerrier's loader of texts raises
            found = None
        assert said == found, f"{name}, given {list(topics.columns)}"
        if isinstance(stage, pt.Compose):  # of a pipeline, PyTerrier knows the inputs of the first stage only
            continue
        modes = pt.inspect.transformer_inputs(stage)
        assert found is not None or not any(set(mode) <= set(topics.columns) for mode in modes), name


def test_pages_are_read_in_five_minutes_and_few_blocks_are_exempt_for_a_machine_or_data_that_a_test_lacks() -> None:
    assert {page.stem: words(page) for page in MANUAL if words(page) > 1200} == {}
    exempt = [block for page in PAGES for block in blocks(page) if block.reason]
    assert len(exempt) <= NOT_RUN
    assert all(block.reason.startswith("needs ") for block in exempt)


def test_every_page_of_the_manual_is_in_the_index_and_the_reference_of_commands_is_current() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    names = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert names == {page.stem for page in MANUAL if page.parent.name == "docs"} | {"commands"}
    contents = (PT_DOCS / "index.rst").read_text(encoding="utf-8").partition(":maxdepth: 1\n")[2]
    listed = {PT_DOCS / f"{name}.rst" for name in re.findall(r"^    ([a-z-]+)$", contents, re.M)}
    assert listed == set(PT_DOCS.glob("*.rst")) - {PT_DOCS / "index.rst"} <= set(MANUAL)
    assert [name for name in names if not re.search(rf"^(.* <)?{name}>?$", index, re.M)] == []
    written = runpy.run_path(str(ROOT / "tools" / "command_reference.py"))["reference"]()
    assert written == (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")  # python tools/command_reference.py


def test_the_readme_is_short_and_each_of_its_addresses_in_the_repository_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 112
    links = re.findall(r"\]\(([^)#]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    targets = [target for link in links for target in link if target]
    assert all(target.startswith("https://") for target in targets)  # also where the package index shows the page
    (source,) = re.findall(r"^    Source = https://github\.com/(\S+)$", (ROOT / "setup.cfg").read_text("utf-8"), re.M)
    ours = re.compile(rf"https://(?:github\.com/{source}/blob|raw\.githubusercontent\.com/{source})/main/(\S+)")
    files = [match[1] for target in targets if (match := ours.fullmatch(target))]
    assert len(files) > 15
    assert [file for file in files if not (ROOT / file).exists()] == []
    first = "install library tutorial deployment training large-collections how-it-works troubleshooting"
    assert {f"docs/{name}.md" for name in first.split()} <= set(files)
    assert {f"pyterrier_mathamr/pt_docs/{page.name}" for page in MANUAL if page.suffix == ".rst"} <= set(files)


DRAWINGS = re.findall(r"^\.\. schematic::\n((?:    .*\n|\n)+)", (PT_DOCS / "pipelines.rst").read_text("utf-8"), re.M)


@pytest.mark.parametrize("code", DRAWINGS)
def test_a_drawing_needs_no_more_than_pyterrier_and_no_built_index(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pt.documentation, "url_for_class", lambda _: None)  # would ask PyTerrier's site
    *body, last = ast.parse(re.sub(r"^ *:\w+:$", "", textwrap.dedent(code), flags=re.M).strip()).body
    assert isinstance(last, ast.Expr)
    names = {"pt": pt}
    exec(compile(ast.Module(body, []), "<drawing>", "exec"), names)
    assert "MathAMR" in pt.schematic.draw(eval(compile(ast.Expression(last.value), "<drawing>", "eval"), names))


REFERENCE = (PT_DOCS / "api.rst").read_text(encoding="utf-8")


def test_the_reference_names_the_whole_public_face() -> None:
    documented = set(re.findall(r"auto\w+:: pyterrier_mathamr\.(\w+)$", REFERENCE, re.M))
    layers = {name for name in mathamr.__all__ if inspect.ismodule(getattr(mathamr, name))}
    assert set(mathamr.__all__) - layers - {"__version__"} <= documented


def named_object(dotted: str) -> object:
    package, _, rest = dotted.partition(".")
    return operator.attrgetter(rest)({"pyterrier_mathamr": mathamr, "mathamr_systems": mathamr_systems}[package])


def test_the_reference_shows_each_method_that_constructs_a_transformer() -> None:
    hidden = []
    for dotted, options in re.findall(r"autoclass:: ([\w.]+)\n((?:    :.*\n)*)", REFERENCE):
        kind = named_object(dotted)
        listed = re.findall(r"\w+", "".join(re.findall(r":members:(.*)", options)))
        not_inherited = re.findall(r"\w+", "".join(re.findall(r":inherited-members:(.*)", options)))
        for name, of in inspect.getmembers(kind, inspect.isfunction):
            if "__signature__" in vars(of):  # one that `parameters.method` made
                owner = next(base for base in kind.__mro__ if name in vars(base))
                inherits = ":inherited-members:" in options and owner.__name__ not in not_inherited
                if name not in listed and (listed or not (owner is kind or inherits)):
                    hidden.append(f"{dotted}.{name}")
    assert hidden == []

"""Every example in a docstring runs, and every option of a public call is explained where ``help()`` shows it."""

import ast
import builtins
import contextlib
import doctest
import enum
import importlib
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyterrier as pt
import pytest
from tiny_colbert import tiny_colbert

import mathamr_systems
import pyterrier_mathamr as mathamr

PACKAGE, SYSTEMS = Path(mathamr.__file__).parent, Path(mathamr_systems.__file__).parent
SAMPLE = PACKAGE / "data" / "sample"
LAYERS = ["posts", "formula", "amr", "graph", "explain", "model", "index", "sparse", "fusion", "arqmath", "engine"]
MODULES = {
    path: ".".join(path.relative_to(package.parent).with_suffix("").parts)
    for package in (PACKAGE, SYSTEMS)
    for path in sorted(package.rglob("*.py"))
    if path.name != "__main__.py"
}


def examples() -> Iterator[Any]:
    """Find the indented block after each ``Example::`` and ``… makes one::`` of a docstring."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                for part in re.split(r"(?:Example|makes one)::\n", text)[1:]:
                    lines = []
                    for line in part.splitlines():
                        if line.strip() and not line.startswith(" "):
                            break
                        lines.append(line)
                    code = textwrap.dedent("\n".join(lines)).strip()
                    name = f"{MODULES[path]}:{getattr(node, 'name', 'module')}"
                    yield pytest.param(code, id=name)


def public_name(name: str) -> Any:
    """Look a name up in the package's face, then in each layer's."""
    for layer in (
        mathamr,
        *(getattr(mathamr, layer) for layer in LAYERS),
        mathamr_systems,
        mathamr_systems.experiments,
    ):
        if hasattr(layer, name):
            return getattr(layer, name)
    return getattr(builtins, name)


@pytest.fixture(scope="session")
def known(sample: SimpleNamespace) -> dict[str, Any]:
    """The names that an example may use without making them."""
    topic_graphs = mathamr.GraphStore(sample.folder / "topics")
    (sample.graphs >> topic_graphs.indexer()).index(sample.topics.to_dict("records"))
    collection = mathamr.arqmath.ARQMathCollection(SAMPLE)
    threads = mathamr_systems.ThreadStore(sample.folder / "threads of examples").index(collection.posts())
    questions = mathamr.BM25Index(sample.folder / "questions")
    questions.index({"docno": question.id, "html": question.title} for question in collection.questions())
    same = ("marf", "marf_index", "graphs", "model", "encode", "index", "formulas", "topics", "qrels")
    return {
        **{name: getattr(sample, name) for name in same},
        "collection": collection,
        "questions": questions.retriever(),
        "threads": threads,
        "colbert": tiny_colbert(sample.folder / "tiny colbert of examples"),
        "candidates": sample.bm25 >> threads.questions(),
        "dataset": sample.task1,
        "arqmath": sample.task1,
        "ids": {},
        "mathamr_index": sample.index,
        "formula_index": sample.formulas,
        "bm25": sample.bm25.retriever(),
        "bm25_index": sample.bm25,
        "pairs": mathamr.arqmath.read_training_pairs(SAMPLE).train[:40],
        "graph_store": sample.store,
        "document_graphs": sample.store,
        "topic_graphs": topic_graphs,
    }


@pytest.mark.parametrize("code", examples())
def test_example(code: str, known: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "ARQMath" in code:
        local_release(tmp_path / "ARQMath")
    if "NTCIR" in code:
        shutil.copytree(Path(__file__).parents[1] / "data" / "ntcir12", tmp_path / "NTCIR-12")
    names = {
        **known,
        "mathamr": mathamr,
        "mathamr_systems": mathamr_systems,
        "pt": pt,
        "store": mathamr.GraphStore("new-graphs.mathamr"),
    }
    if " index.indexer(" in code:
        names["index"] = mathamr.MathAMRIndex("new-index.mathamr")
    if " marf_index.indexer(" in code:
        names["marf_index"] = mathamr_systems.MaRFIndex("new-marf.mathamr")
    if "my-marf" in code:
        names["marf"].save("my-marf")
    if " formula_index.indexer(" in code:
        names["formula_index"] = mathamr.MathAMRFormulaIndex("new-formulas.mathamr")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in names:
            with contextlib.suppress(AttributeError):  # a name that the example itself makes
                names[node.id] = public_name(node.id)
    exec(compile(code, "<example>", "exec"), names)
    if "pipeline" in names:
        assert isinstance(names["pipeline"], pt.Transformer)


def local_release(folder: Path) -> None:
    """Lay out the sample as if it were the release of 2022."""
    shutil.copytree(SAMPLE, folder)
    for file in [*folder.glob("*/*sample*")]:
        file.rename(file.with_name(file.name.replace("sample", "2022")))


DOCTESTED = [path for path in MODULES if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", DOCTESTED, ids=MODULES.get)
def test_doctests(path: Path) -> None:
    result = doctest.testmod(importlib.import_module(MODULES[path]))
    assert result.attempted > 0
    assert result.failed == 0


def public_calls() -> Iterator[tuple[str, Any]]:
    """Yield each function, class and method that a layer exports, once, with its name."""
    seen = set()
    for face in (*sorted(PACKAGE.rglob("__init__.pyi")), *sorted(SYSTEMS.rglob("__init__.pyi"))):
        layer = importlib.import_module(MODULES[face.with_suffix(".py")].removesuffix(".__init__"))
        for name in layer.__all__:
            value = getattr(layer, name)
            found = {name: value} if inspect.isroutine(value) else {}
            if inspect.isclass(value) and not issubclass(value, (BaseException, enum.Enum)):
                found = {} if getattr(value, "_is_protocol", False) else {name: value}
                members = inspect.getmembers(value, inspect.isroutine)
                found |= {f"{name}.{method}": of for method, of in members if not method.startswith("_")}
            for called, of in found.items():
                key = getattr(of, "__module__", None), getattr(of, "__qualname__", None)
                if str(key[0]).startswith(("pyterrier_mathamr", "mathamr_systems")) and key not in seen:
                    seen.add(key)
                    yield f"{layer.__name__}.{called}", of


def options_of(call: Any) -> list[inspect.Parameter]:
    """Return the parameters that a caller gives."""
    parameters = inspect.signature(call).parameters.values()
    return [one for one in parameters if one.name != "self" and not one.name.startswith("_")]


def explained_in(docstring: str) -> list[str]:
    """List the names that the sections ``Args`` and ``Attributes`` explain; pointing elsewhere is no explanation."""
    sections = re.findall(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?\n)*)", f"{docstring}\n", re.MULTILINE)
    return re.findall(r"^ {4}\*{0,2}(\w+): (?!see |as for |likewise)", "".join(sections), re.MULTILINE)


def test_every_option_of_a_public_call_is_explained_where_help_shows_it() -> None:
    """A sentence that names them suffices for one or two; a call of one argument is explained by its first line."""
    unexplained = {}
    for name, call in public_calls():
        options, docstring = options_of(call), inspect.getdoc(call) or ""
        known = set(explained_in(docstring))
        if len(options) <= 2:
            known.update(re.findall(r"``(\w+)``", docstring))
        if len(options) == 1 and options[0].default is inspect.Parameter.empty:
            continue
        missing = [option.name for option in options if option.name not in known]
        if missing:
            unexplained[name] = missing
    assert unexplained == {}


def test_no_docstring_explains_an_option_that_the_call_lacks() -> None:
    for name, call in public_calls():
        if inspect.isroutine(call):
            options = {option.name for option in options_of(call)}
            assert set(explained_in(inspect.getdoc(call) or "")) <= options, name

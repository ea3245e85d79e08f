"""A Lean project with a blueprint as an engine: found by words, names and formulas, and as tools for assistants."""

import re
import shutil
from pathlib import Path

import pytest

from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.mcp import DECLARATION_TOKENS, Tools, count_tokens
from tests.engine.conftest import built

PROJECT = Path(__file__).parents[1] / "posts" / "corpus" / "lean"
RETURN = "Parity/Walk.lean#LatticeWalk.isTwice_length"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> SearchEngine:
    folder = tmp_path_factory.mktemp("lean")
    shutil.copytree(PROJECT, folder / "parity", ignore=shutil.ignore_patterns("*.toml"))
    return built(folder / "parity.engine", folder / "parity")


@pytest.mark.parametrize(
    "query",
    [
        "Whoever comes home has gone an even number of steps.",  # of the blueprint
        "A closed walk on the integers",  # of the docstring
        "LatticeWalk.isTwice_length",
        "lattice walk length is twice",
        "Theorem 1",
    ],
)
def test_a_declaration_is_found_by_its_statement_docstring_and_name(project, query) -> None:
    found = project.search(query, k=20)["docno"].tolist()
    assert found[0] == RETURN
    assert found.count(RETURN) == 1
    assert not any(docno.startswith("blueprint") and docno.endswith("#return") for docno in found)


def test_a_claim_is_found_as_a_formula(project) -> None:
    [best] = project.search_formula("|a| + |b| = b", k=1).to_dict("records")
    assert best["post_id"] == "Parity/Basic.lean#Parity.abs_isTwice"


def test_declarations_are_filtered_by_module_and_kind(project) -> None:
    found = project.search("walk", k=20, within="Parity.Walk", kind="instance")["docno"].tolist()
    assert sorted(found) == [
        "Parity/Walk.lean#LatticeWalk.instEmptyClosed",
        "Parity/Walk.lean#LatticeWalk.instInhabitedTurn",
    ]


def test_an_assistant_gets_name_signature_file_and_line_in_few_tokens(project) -> None:
    answer = Tools(project).search("even numbers", 20, weak=True, within="Parity/")
    entries = [entry.strip() for entry in re.split(r"^(?=\d+\. )", answer, flags=re.M) if ".lean#" in entry]
    assert len(entries) == 13
    assert max(map(count_tokens, entries)) <= DECLARATION_TOKENS
    [added] = [entry for entry in entries if "isTwice_add" in entry]
    assert added.split()[1] == "Parity/Basic.lean#Parity.isTwice_add"
    assert added.endswith(", line 30)\n   theorem … m) (hn : IsTwice n) : IsTwice (m + n)")
    [closed] = [entry for entry in entries if RETURN in entry]
    assert "…" in closed
    assert closed.endswith(": IsTwice w.length")


def test_an_update_appends_a_declaration_and_moves_the_lines_of_others(project) -> None:
    file = project.path.parent / "parity" / "Parity" / "Walk.lean"
    file.write_text("-- a line more\n" + file.read_text() + "\ntheorem LatticeWalk.added : 1 + 1 = 2 := rfl\n")
    update = project.update([project.path.parent / "parity"])
    assert update
    origins = project.snapshot().origins
    assert origins["Parity/Walk.lean#LatticeWalk.added"].kind == "theorem"
    assert origins[RETURN].line == 31

"""The command line: help for newcomers, errors as one line, and the steps of a run on a small folder."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import pyterrier_mathamr
from pyterrier_mathamr.cli import main

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
PAIRS = [
    {
        "qid": f"q{i}",
        "question": f"How do I solve ${i}x = {i + 1}$ for $x$?",
        "aid": f"a{i}",
        "answer": f"Divide by ${i}$: $x = \\frac{{{i + 1}}}{{{i}}}$.",
    }
    for i in range(1, 13)
]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(pair) + "\n" for pair in PAIRS)
    return path


def commands(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands of a group and of the groups in it."""
    for name, command in group.commands.items():
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)


COMMANDS = dict(commands(main))


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_each_command_documents_itself_and_its_options(names: tuple[str, ...]) -> None:
    command = COMMANDS[names]
    assert run(*names, "--help").exit_code == 0
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help or option.show_default, f"{names} {option.opts[0]}"


def test_the_program_names_its_first_command_and_is_the_package_as_a_module() -> None:
    assert "mathamr demo" in run("--help").output
    command = [sys.executable, "-m", "pyterrier_mathamr", "--version"]  # as launchers of several processes need it
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown == f"mathamr, version {pyterrier_mathamr.__version__}\n"


def test_an_error_of_the_package_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    result = run("experiment", tmp_path, "--workdir", tmp_path / "work", "--quiet")
    assert result.exit_code == 1
    # when first imported, urllib3 tries a socket, and pytest-socket warns before our line
    shown = result.output.splitlines()
    assert shown[-1].startswith("Error: ")
    assert str(tmp_path) in shown[-1]
    assert "Traceback" not in result.output


def test_graphs_train_and_index_follow_one_another(pair_file: Path, tmp_path: Path) -> None:
    graphs, model, index = tmp_path / "graphs.mathamr", tmp_path / "model", tmp_path / "index.mathamr"
    assert "24 graphs" in run("graphs", pair_file, "-o", graphs, "-q", "--workers", 1).output
    options = ("epochs=2", "hidden=8", "projection=4", "bases=None", "layers=1")
    small = [part for option in options for part in ("--set", option)]
    for change, named in (("layers", "--set"), ("color=3", "color"), ("layers=-1", "layers")):
        wrong = run("train", graphs, pair_file, "-o", model, "--set", change, "-q")
        assert (wrong.exit_code in (1, 2), named in wrong.output) == (True, True)
    untagged = run("train", graphs, pair_file, "-o", model, *small, "--negatives", "tags", "-q")
    assert (untagged.exit_code, "no tags" in untagged.output) == (1, True)
    further = ["--negatives", "bm25", "--first", pair_file, "--linked-questions", "duplicate"]
    trained = run("train", graphs, pair_file, "-o", model, *small, *further, "-q")
    assert trained.exit_code == 0, trained.output
    config = pyterrier_mathamr.MathAMR.from_pretrained(model).config
    assert (config.hidden, config.bases, config.layers) == (8, None, 1)
    assert (config.training.hard_negatives, config.training.first_epochs) == (1, 1)
    again = run("train", graphs, pair_file, "-o", model, "-q")
    assert (again.exit_code, "give a folder that does not exist yet" in again.output) == (1, True)
    assert not (tmp_path / "model.training").exists()
    assert "24 documents" in run("index", graphs, model, "-o", index, "-q").output
    assert len(pyterrier_mathamr.MathAMRIndex(index)) == 24
    pyterrier_mathamr.GraphStore(tmp_path / "none").indexer().index_records([], {})
    empty = run("index", tmp_path / "none", model, "-o", tmp_path / "other", "-q")
    assert (empty.exit_code, (tmp_path / "other").exists()) == (1, False)
    assert "it holds nothing to index; `mathamr graphs` builds" in empty.output


@pytest.mark.filterwarnings("always::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_graphs_of_a_persons_posts_are_built_and_what_cannot_be_read_at_all_is_an_error(tmp_path: Path) -> None:
    posts, graphs = tmp_path / "posts.jsonl", tmp_path / "graphs.mathamr"
    posts.write_text('{"docno": "a", "text": "Is $x$ even?"}\n{"docno": "b"}\n', encoding="utf-8")
    result = run("graphs", posts, "-o", graphs, "--workers", "1")
    assert result.exit_code == 0, result.output
    assert "1 graph\n" in result.output
    assert "1 of 2 posts were left out: " in result.output
    assert "posts.jsonl, line 2: no text; give one of html" in result.output
    posts.write_text('{"docno": "a", "content": "Is $x$ even?"}\n', encoding="utf-8")
    refused = run("graphs", posts, "-o", tmp_path / "other", "-q", "--workers", "1")
    assert refused.exit_code == 1
    assert "posts.jsonl, line 1: no text; give one of html" in refused.output
    assert "319 graphs" in run("graphs", SAMPLE, "-o", graphs, "-q", "--workers", "1", "--fresh").output
    assert (tmp_path / "graphs.mathamr.formulas").is_dir(), "official trees of a folder are used"
    assert not (tmp_path / "other").exists()


def test_graphs_that_others_made_are_imported_with_a_report(tmp_path: Path) -> None:
    file, graphs = tmp_path / "made.amr", tmp_path / "graphs.mathamr"
    file.write_text("# ::id 1\n(a / b :arg0 (c / d)\n\n# ::id 2\nnothing\n", encoding="utf-8")
    result = run("import-graphs", file, "-o", graphs, "-q")
    assert result.exit_code == 0, result.output
    assert "2 records: 1 stored, 1 of them repaired; 1 refused" in result.output
    assert "  repaired: a closing bracket added, 1 times" in result.output
    assert f"{file}, line 4: skipped, no graph" in result.output
    assert "Warning" not in result.output
    assert run("import-graphs", file, "-o", graphs, "-q").exit_code == 1
    assert pyterrier_mathamr.GraphStore(graphs).ids() == ["1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "it has no record"), ("\nnothing\n", "none of its 1 records is a graph (line 2: skipped")],
)
def test_a_file_without_graphs_is_an_error_that_leaves_what_was_there(
    tmp_path: Path, content: str, message: str
) -> None:
    file, good, graphs = tmp_path / "bad.amr", tmp_path / "good.amr", tmp_path / "graphs.mathamr"
    file.write_text(content, encoding="utf-8")
    result = run("import-graphs", file, "-o", graphs, "-q")
    assert result.exit_code == 1
    assert message in result.output
    assert sorted(tmp_path.iterdir()) == [file]
    good.write_text("# ::id 1\n(a / b)", encoding="utf-8")
    assert run("import-graphs", good, "-o", graphs, "-q").exit_code == 0
    assert run("import-graphs", file, "-o", graphs, "-q", "--mode", "overwrite").exit_code == 1
    assert pyterrier_mathamr.GraphStore(graphs).ids() == ["1"]
    assert run("import-graphs", good, "-o", graphs, "-q", "--mode", "append").exit_code == 0  # all there already
    assert pyterrier_mathamr.GraphStore(graphs).ids() == ["1"]

"""The commands over a person's own posts, from a folder of files to answers."""

import json
import shutil

import pytest
from click.testing import CliRunner

from pyterrier_mathamr.cli import main

MODEL = ("--model", "mathamr-plus-mini", "-q", "--workers", "1")


def run(*arguments: str):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "basel.md").write_text(
        "# Basel problem\n\nWe sum $\\sum 1/n^2$.\n\n\\begin{align}S &= 1\\\\ &= \\pi^2/6\\end{align}"
    )
    (notes / "root.txt").write_text("The number √2 is irrational: p² = 2q² has no solution.")
    result = run("build", notes, "-o", folder / "my.engine", *MODEL)
    assert result.exit_code == 0, result.output
    assert "2 posts" in result.output
    return folder / "my.engine"


def test_a_folder_becomes_an_engine_that_answers(engine) -> None:
    result = run("search", engine, r"why is $\sqrt{2}$ irrational?", "--explain")
    assert result.exit_code == 0, result.output
    first, snippet, *_ = result.output.splitlines()
    assert first.split()[0] == "1"
    assert first.endswith("root  root")
    assert r"**$\sqrt{2}$** is **irrational**" in snippet
    assert "Why root has" in result.output
    lines = [json.loads(line) for line in run("search", engine, "Basel", "--json", "-k", "1").output.splitlines()]
    assert [line["docno"] for line in lines] == ["basel"]
    assert "root" in run("search", engine, "--formula", "√2", "-k", "1").output


def test_an_engine_is_not_replaced_by_mistake_and_posts_are_added(engine, tmp_path) -> None:
    (tmp_path / "more.jsonl").write_text('{"id": "new", "text": "Rings and ideals"}\n')
    again = run("build", tmp_path / "more.jsonl", "-o", engine, *MODEL)
    assert again.exit_code == 1
    assert "--overwrite" in again.output or "overwrite" in again.output
    added = run("build", tmp_path / "more.jsonl", "-o", engine, "--add", "-q")
    assert "3 posts" in added.output
    assert "new" in run("search", engine, "ideals", "-k", "1").output


def test_posts_that_cannot_be_read_at_all_are_an_error(tmp_path) -> None:
    (tmp_path / "posts.jsonl").write_text('{"docno": "a", "content": "x"}\n')
    result = run("build", tmp_path / "posts.jsonl", "-o", tmp_path / "e", *MODEL)
    assert result.exit_code == 1
    assert "line 1: no text; give one of html" in result.output
    assert "content" in result.output


def test_verify_reads_every_part_of_an_engine(engine, tmp_path) -> None:
    result = run("verify", engine)
    assert (result.exit_code, "search_engine.mathamr, " in result.output) == (0, True)
    copy = tmp_path / "copy.engine"
    shutil.copytree(engine, copy)
    vectors = next(copy.glob("generation-*/vectors/part-*/arrays.safetensors"))
    data = bytearray(vectors.read_bytes())
    data[-5] ^= 1
    vectors.write_bytes(data)
    result = run("verify", copy)
    assert result.exit_code == 1
    assert "vectors" in result.output

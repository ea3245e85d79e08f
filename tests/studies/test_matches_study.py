"""Good matches: questions with and without an answer, asked to an engine of the sample."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.arqmath.collection import SAMPLE
from pyterrier_mathamr.engine import SearchEngine
from studies.__main__ import main
from studies.protocol import matches
from studies.protocol.matches import FOUND, RIGHT


def test_the_command_counts_what_is_found_at_each_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "COUNT", 5)
    posts = ARQMathCollection(SAMPLE).documents()
    SearchEngine.build(posts, tmp_path / "e", model="mathamr-plus-mini", verbose=False)
    (tmp_path / "kitchen.txt").write_text("How long does sourdough bread bake?\n\nWhich oven bakes bread best?\n")
    options = ["--workdir", tmp_path / "work", "--years", "sample", "--foreign", tmp_path / "kitchen.txt", "-q"]
    done = CliRunner().invoke(main, ["matches", *map(str, [tmp_path / "e", SAMPLE, *options])])
    assert done.exit_code == 0, done.output
    tables = json.loads((tmp_path / "work" / "report.json").read_text())["tables"]
    found, right = ({row["questions"]: row for row in tables[name]} for name in (FOUND, RIGHT))
    assert (found["kitchen"]["number"], found["kitchen"]["0.9"]) == (2, 0.0)
    assert found["random letters"]["0.9"] == 0.0
    assert right["sentences of posts"]["0.9"] > 0.9
    assert "kitchen" not in right
    for row in (*found.values(), *right.values()):
        shares = [row[level] for level in ("0.8", "0.85", "0.9", "0.95", "0.99")]
        assert shares == sorted(shares, reverse=True)

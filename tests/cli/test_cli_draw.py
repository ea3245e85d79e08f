"""Pictures from the command line."""

import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pyterrier_mathamr._cli_draw import draw
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.graph import GraphBuilder, GraphStore


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["draw", *map(str, arguments)])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drawn") / "graphs.mathamr"
    posts = [{"docno": "1", "text": "Why is $x^2 \\geq 0$?"}, {"docno": "2", "text": "A square $a^2$ is positive."}]
    (GraphBuilder() >> GraphStore(path).indexer()).index(posts)
    return path


@pytest.mark.parametrize("command", sorted(draw.commands))
def test_each_picture_says_what_it_shows_and_what_each_option_means(command: str) -> None:
    assert run(command, "--help").exit_code == 0
    assert draw.commands[command].help
    for option in draw.commands[command].params:
        if isinstance(option, click.Option):
            assert option.help or option.show_default, option.opts[0]


def test_a_graph_of_a_store_is_drawn(store: Path, tmp_path: Path) -> None:
    result = run("graph", store, "1", "-o", tmp_path / "one.svg", "--theme", "dark")
    assert result.exit_code == 0, result.output
    assert ET.parse(tmp_path / "one.svg").getroot().get("role") == "img"
    unknown = run("graph", store, "nobody", "-o", tmp_path / "two.svg")
    assert unknown.exit_code == 1
    assert "nobody" in unknown.output


def test_two_posts_are_compared_as_a_model_sees_them(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("maxsim", store, "mathamr-plus-mini", "1", "2", "-o", tmp_path / "heat.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "heat.png").read_bytes()[1:4] == b"PNG"


def test_files_of_an_experiment_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "topics.csv").write_text("name,qid,measure,value\nA,1,AP,0.1\nB,1,AP,0.3\n", encoding="utf-8")
    (tmp_path / "table.csv").write_text("name,AP\nA,0.1\nB,0.3\n", encoding="utf-8")
    (tmp_path / "time.csv").write_text("name,ms per query\nA,1\nB,20\n", encoding="utf-8")
    bars = run("topics", tmp_path / "topics.csv", "A", "B", "--measure", "AP", "-o", tmp_path / "bars.svg")
    speed = run("speed", tmp_path / "table.csv", tmp_path / "time.csv", "--measure", "AP", "-o", tmp_path / "speed.pdf")
    assert bars.exit_code == 0, bars.output
    assert speed.exit_code == 0, speed.output
    assert (tmp_path / "bars.svg").stat().st_size
    assert (tmp_path / "speed.pdf").read_bytes().startswith(b"%PDF")
    wrong = run("topics", tmp_path / "topics.csv", "A", "C", "--measure", "AP", "-o", tmp_path / "none.png")
    assert wrong.exit_code == 1
    assert "'C'" in wrong.output

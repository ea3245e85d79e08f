"""Pictures from the command line."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mathamr_systems import charts
from mathamr_systems.charts import new_figure
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
    assert run("maxsim", store, "mathamr-plus-mini", "1", "2", "-o", tmp_path / "heat.svg").exit_code == 0
    shown = re.findall(r">([^<]*)</text>", (tmp_path / "heat.svg").read_text(encoding="utf-8"))
    terms = [float(number) for number in shown[shown.index("in the score") + 1 : -1]]
    assert float(shown[-1].removeprefix("= ")) == pytest.approx(sum(terms))
    assert shown[0].endswith(f"score {sum(terms):.3f}")
    assert "1 × 1" in shown, "the product of the document vectors, which this model weighs"


def test_a_formula_is_drawn_with_both_trees(tmp_path: Path) -> None:
    assert run("formula", r"\frac{a}{b}", "-o", tmp_path / "formula.svg").exit_code == 0
    drawn = (tmp_path / "formula.svg").read_text(encoding="utf-8")
    assert all(kind in drawn for kind in ("OPT", "SLT"))
    wrong = run("formula", "x", "-o", tmp_path / "formula.jpg")
    assert wrong.exit_code == 1
    assert ".svg or .png or .pdf" in wrong.output


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


def test_files_of_a_study_name_a_system_by_its_condition_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "by-topic.csv").write_text(
        "topics,system,qid,measure,value,condition,seed\n"
        "2022,BM25,A.1,AP,0.5,–,-1\n2022,MaxSim,A.1,AP,0.2,None,1\n2022,MaxSim,A.1,AP,0.4,None,2\n",
        encoding="utf-8",
    )
    (tmp_path / "every.csv").write_text("condition,system,AP\n–,BM25,0.5\nNone,MaxSim,0.3\n", encoding="utf-8")
    (tmp_path / "speed.csv").write_text("system,p50 ms\nBM25,2\nMaxSim,4\n", encoding="utf-8")
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    drawn: list[Any] = []
    monkeypatch.setattr(charts, "new_figure", lambda *size: drawn.append(new_figure(*size)) or drawn[-1])
    bars = run(
        "topics", tmp_path / "by-topic.csv", "BM25", "None / MaxSim", "--measure", "AP", "-o", tmp_path / "b.svg"
    )
    assert bars.exit_code == 0, bars.output
    assert [bar.get_height() for bar in drawn[0].axes[0].patches] == pytest.approx([-0.2])  # 0.3 over the seeds
    files = (tmp_path / "every.csv", tmp_path / "speed.csv")
    speed = run("speed", *files, "--measure", "AP", "--time", "p50 ms", "-o", tmp_path / "s.svg")
    assert speed.exit_code == 0, speed.output
    names = [text.get_text() for text in drawn[1].legends[0].get_texts()]
    assert names == ["BM25  (0.500, 500.0/s)", "None / MaxSim  (0.300, 250.0/s)"]

"""NTCIR-12 formula browsing on a written example, from its files to the report."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from mathamr_systems import NTCIR12Folder
from mathamr_systems.experiments import ExperimentError, Report, run_ntcir12
from mathamr_systems.experiments.measuring import FLOOR
from mathamr_systems.experiments.ntcir12 import BROWSING, DIFFERENCES
from mathamr_systems.experiments.task2 import FORMULA_ONLY, PATTERNS
from mathamr_systems.experiments.workdir import TANGENT
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.sparse import PatternIndex, TangentIndex

EXAMPLE = Path(__file__).parents[1] / "data" / "ntcir12"
BOTH = f"{TANGENT} + {FORMULA_ONLY}"


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ntcir12") / "work"


@pytest.fixture(scope="module")
def report(workdir: Path) -> Report:
    return run_ntcir12(EXAMPLE, workdir, model="mathamr-plus-mini", verbose=False)


def test_concrete_topics_and_those_with_wildcards_are_measured_apart(report: Report) -> None:
    table = report.tables[BROWSING]
    assert table["topics"].unique().tolist() == ["concrete", "wildcards", "all topics"]
    assert table.groupby("topics", sort=False)["number"].first().tolist() == [3, 2, 5]
    assert table["name"].tolist() == [TANGENT, PATTERNS, FORMULA_ONLY, BOTH, FLOOR] * 3
    assert {"Bpref partial p-value", "Bpref full reject"} <= set(table.columns)
    systems = table[table["name"] != FLOOR]
    assert systems["Bpref full"].min() > table.loc[table["name"] == FLOOR, "Bpref full"].max()
    assert report.tables[DIFFERENCES]["name"].tolist() == [PATTERNS, FORMULA_ONLY, BOTH]
    assert [caption.partition(" of ")[0] for caption in report.published] == ["Table 2", "Table 5", "Table 6"]


def test_wildcards_match_sub_expressions_in_one_system(report: Report, workdir: Path) -> None:
    table = report.tables[BROWSING].set_index(["topics", "name"])["Bpref full"]
    assert table["wildcards", PATTERNS] >= table["wildcards", TANGENT]
    topics = NTCIR12Folder(EXAMPLE).topics()
    found = PatternIndex(workdir / "formulas.patterns").retriever(10)(topics[topics["wildcards"]])
    assert set(found["tier"]) <= {"instance", "contains, instance"}
    assert found.loc[found["qid"] == "NTCIR12-MathWiki-21", "tier"].iloc[0] == "instance"


def test_the_figures_match_the_rankings(report: Report, workdir: Path) -> None:
    folder = NTCIR12Folder(EXAMPLE)
    topics, qrels = folder.topics(), folder.qrels()
    ranking = TangentIndex(workdir / "formulas.tangent").retriever(1000)(topics)
    expected = []
    for qid, judged in qrels.groupby("qid", sort=False):
        places = ranking.loc[ranking["qid"] == qid].merge(judged, on=["qid", "docno"]).sort_values("rank")["label"] >= 1
        least = min((judged["label"] >= 1).sum(), (judged["label"] < 1).sum())
        above = (~places).cumsum()[places].clip(upper=least) / max(1, least)
        expected.append((1 - above).sum() / (judged["label"] >= 1).sum())
    table = report.tables[BROWSING].set_index(["topics", "name"])
    found = table.loc[("all topics", TANGENT), "Bpref partial"]
    assert found == pytest.approx(sum(expected) / 5)
    kept = pd.read_csv(workdir / "ntcir12" / "ntcir12-by-topic.csv")
    own = kept[(kept["name"] == TANGENT) & (kept["measure"] == "Bpref partial") & (kept["topics"] != "all topics")]
    assert own["value"].tolist() == pytest.approx(expected)


def test_instances_are_ranked_also_where_they_look_the_same(report: Report, workdir: Path) -> None:
    del report
    found = TangentIndex(workdir / "formulas.tangent").search("b^2-4ac")[:2]
    assert sorted(found["docno"]) == ["Discriminant:1", "Quadratic_equation:2"]
    assert found["visual_id"].tolist() == found["docno"].tolist()


def test_the_command_repeats_no_stage_and_accepts_no_years(report: Report, workdir: Path) -> None:
    options = ["--task", "ntcir12", "--workdir", str(workdir), "--systems", "tangent", "--quiet"]
    done = CliRunner().invoke(main, ["experiment", str(EXAMPLE), *options, "--model", "mathamr-plus-mini"])
    assert done.exit_code == 0, done.output
    kept = json.loads((workdir / "ntcir12" / "report.json").read_text())
    assert {stage["name"] for stage in kept["stages"] if stage["resumed"]} == {"graphs", "formula-index", "tangent"}
    rows = [row for row in kept["tables"][BROWSING] if row["name"] == TANGENT]
    before = report.tables[BROWSING]
    assert [row["Bpref full"] for row in rows] == before.loc[before["name"] == TANGENT, "Bpref full"].tolist()
    refused = CliRunner().invoke(main, ["experiment", str(EXAMPLE), *options, "--years", "2022"])
    assert refused.exit_code == 2
    assert "Nothing is trained for --task ntcir12. Give only --systems, --model and --workdir." in refused.output


def test_judged_formulas_that_the_corpus_lacks_are_named(tmp_path: Path) -> None:
    folder, work = tmp_path / "ntcir", tmp_path / "work"
    shutil.copytree(EXAMPLE, folder)
    corpus = (folder / "corpus.tsv").read_text()
    (folder / "corpus.tsv").write_text(corpus.replace("Discriminant:1\t", "Discriminant:7\t"))
    found = run_ntcir12(folder, work, systems=["Tangent"], model="mathamr-plus-mini", verbose=False)
    assert any(
        "1 judged formulas are not in the corpus, such as Discriminant:1" in one for one in found.remarks[BROWSING]
    )
    assert found.tables[BROWSING]["Bpref full"][0] < 1
    (folder / "corpus.tsv").write_text(corpus.replace(":", "/"))
    with pytest.raises(ExperimentError, match=r"none of the judged formulas, such as Quadratic_equation:2"):
        run_ntcir12(folder, tmp_path / "other", model="mathamr-plus-mini", verbose=False)
    (folder / "qrels").write_text("T-1 0 Discriminant:0 1.0\n")
    with pytest.raises(ExperimentError, match="no topic is judged"):
        run_ntcir12(folder, tmp_path / "other", model="mathamr-plus-mini", verbose=False)
    with pytest.raises(ConfigError, match="python -m studies ntcir12 FOLDER"):
        run_ntcir12(folder, work, systems=["Tangent-S"], verbose=False)

"""Run files measured on the command line: figures worked by hand, comparisons, and files that cannot be read."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathError, parse_measure
from pyterrier_mathamr.cli import main

QRELS = "A 0 d1 3\nA 0 d2 0\nB 0 d1 2\nB 0 d3 1\nC 0 d4 2\nC 0 d5 0\n"
GOOD = "A Q0 x 1 9 r\nA Q0 d1 2 8 r\nA Q0 d2 3 7 r\nB Q0 d1 1 5 r\nB Q0 d3 2 4 r\nC Q0 d4 1 1 r\n"
POOR = "A Q0 d2 1 9 r\nA Q0 d1 2 8 r\nB Q0 d3 1 5 r\nB Q0 d1 2 4 r\nZ Q0 d1 1 1 r\n"  # C is missing; Z is not judged


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"good": GOOD, "poor": POOR, "qrels": QRELS}
    paths = {name: tmp_path / f"{name}.txt" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    return paths


def values(result: Result) -> list[dict]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_means_are_over_all_judged_topics_and_unjudged_documents_are_removed_first(files) -> None:
    lines = values(run(files["good"], files["poor"], files["qrels"], "--json", "-m", "MAP'", "-m", "P'@5", "-m", "AP"))
    good, poor = lines
    assert (good["run"], good["topics"], good["missing"]) == ("good", 3, [])
    assert (poor["run"], poor["topics"], poor["missing"]) == ("poor", 3, ["C"])
    assert good["measures"] == pytest.approx({"MAP'": 1.0, "P'@5": 0.2, "AP": (0.5 + 1 + 1) / 3})
    assert poor["measures"] == pytest.approx({"MAP'": (0.5 + 0.5 + 0) / 3, "P'@5": 0.4 / 3, "AP": (0.5 + 1 + 0) / 3})


def test_a_comparison_is_the_paired_t_test_over_the_topics(files) -> None:
    (same, line) = values(run(files["good"], files["qrels"], "--baseline", files["poor"], "--json", "-m", "MAP'"))
    assert "compared" not in same
    p = stats.ttest_rel([1, 1, 1], [0.5, 0.5, 0]).pvalue
    outcome = line["compared"]["MAP'"]
    assert (line["baseline"], outcome["better"], outcome["worse"]) == ("poor", 3, 0)
    assert outcome["difference"] == pytest.approx(2 / 3)
    assert outcome["p"] == outcome["p corrected"] == pytest.approx(p)
    assert outcome["significant"] == (p < 0.05)


def test_p_values_are_corrected_for_the_number_of_runs_and_equal_runs_do_not_differ(files, tmp_path) -> None:
    (tmp_path / "twin.txt").write_text(POOR)
    arguments = (files["good"], tmp_path / "twin.txt", files["qrels"], "--baseline", files["poor"], "-m", "MAP'")
    _, good, twin = values(run(*arguments, "--json"))
    assert good["compared"]["MAP'"]["p corrected"] == pytest.approx(2 * good["compared"]["MAP'"]["p"])
    assert twin["compared"]["MAP'"]["significant"] is False
    assert twin["compared"]["MAP'"]["t"] is None
    shown = run(*arguments).output
    assert "Bonferroni for 2 runs" in " ".join(shown.split())
    assert "3 judged topics." in shown
    assert "poor lacks 1 topic, counted as 0: C" in shown


def test_the_default_measures_are_arqmath_s_and_the_judged_share_is_not_tested(files) -> None:
    result = run(files["good"], files["qrels"], "--baseline", files["poor"])
    header, _, poor, good = result.stdout.splitlines()[:4]
    assert header.replace("|", " ").split() == ["run", "nDCG'", "MAP'", "P'@10", "Bpref", "Judged@10"]
    assert (poor.split()[1], good.split()[1]) == ("poor", "good")
    assert result.stdout.count("Judged@10") == 1


def test_values_by_topic_are_a_table_that_draw_reads(files, tmp_path) -> None:
    result = run(files["good"], files["poor"], files["qrels"], "--by-topic", "-m", "nDCG'")
    table = pd.read_csv(io.StringIO(result.stdout))
    assert list(table.columns) == ["name", "qid", "measure", "value"]
    assert table[table["name"] == "poor"].set_index("qid")["value"]["C"] == 0
    file, picture = tmp_path / "by-topic.csv", tmp_path / "topics.svg"
    file.write_text(result.stdout)
    arguments = ["draw", "topics", file, "poor", "good", "--measure", "nDCG'", "-o", picture]
    drawn = CliRunner().invoke(main, list(map(str, arguments)))
    assert drawn.exit_code == 0, drawn.output
    assert picture.stat().st_size > 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("good", GOOD + "A Q0 d9 4\n", "good.txt:7: 'A Q0 d9 4\\n': the line does not have the columns of its run"),
        ("good", "A Q0 d1 1 high r\n", "good.txt:1: topic A, id d1, score 'high': the score is not a number"),
        ("good", "A Q0 d1 1 2 r\nA Q0 d1 2 1 r\n", "good.txt:2: topic A, id d1: the id is ranked twice"),
        ("good", "\x00\xff\xfe\n", "good.txt:1: "),
        ("good", "", "good.txt: it holds no ranking"),
        ("good", "Y Q0 d1 1 2 r\n", "good: none of its topics is judged; it has 'Y', the judgments have 'A'"),
        ("qrels", "A 0 d1\n", "qrels.txt:1: 'A 0 d1\\n': the line does not have the four columns"),
        ("qrels", "A 0 d1 relevant\n", "qrels.txt:1: topic A, id d1, grade 'relevant': the grade is not 0, 1, 2 or 3"),
        ("qrels", "\n\n", "qrels.txt: it holds no judgment"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error_with_its_place(files, name: str, text: str, message: str) -> None:
    files[name].write_text(text, encoding="latin-1")
    result = run(files["good"], files["qrels"])
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.filterwarnings("always::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_codes_that_are_not_grades_and_judgments_without_grades_cause_warnings(files) -> None:
    files["qrels"].write_text("A 0 d1 1\nA 0 d2 5\n")
    result = run(files["good"], files["qrels"])
    assert result.exit_code == 0
    assert "1 lines with code 5" in result.output
    assert "MAP', P'@10, Bpref can only be 0: the best grade of these judgments is 1" in " ".join(result.output.split())


def test_runs_in_the_wrong_order_or_of_one_name_are_distinguished(files, tmp_path) -> None:
    assert run(files["qrels"], files["good"]).exit_code == 1
    other = tmp_path / "other" / "good.txt"
    other.parent.mkdir()
    other.write_text(POOR)
    lines = values(run(files["good"], other, files["good"], files["qrels"], "--json", "-m", "MAP'"))
    assert [line["run"] for line in lines] == [str(files["good"]), str(other)]


def test_measures_have_the_names_of_papers_and_of_ir_measures() -> None:
    assert [parse_measure(name) for name in ("nDCG'", "MAP'", "P'@10", "Bpref")] == TASK1_MEASURES
    assert str(parse_measure("P'@5")) == "P(rel=2,judged_only=True)@5"
    assert str(parse_measure("MRR'")) == "RR(rel=2,judged_only=True)"
    assert str(parse_measure("nDCG'@10")) == "nDCG(judged_only=True)@10"
    assert str(parse_measure("AP(rel=2)@100")) == "AP(rel=2)@100"
    for name in ("nDCG'x", "foo", "P'@", "", "Bpref'", "nDCG(", "AP(rel=two)"):
        with pytest.raises(ARQMathError, match="there is no measure"):
            parse_measure(name)


@pytest.mark.filterwarnings("always::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_a_run_of_another_collection_is_reported(files: dict[str, Path]) -> None:
    files["poor"].write_text("A Q0 elsewhere 1 9 r\n")
    result = run(files["poor"], files["qrels"])
    assert result.exit_code == 0
    assert "none of its documents is judged; it has 'elsewhere', the judgments have 'd1'" in result.stderr

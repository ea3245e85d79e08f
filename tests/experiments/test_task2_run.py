import json
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments import ExperimentError, Report, System, run_arqmath
from mathamr_systems.experiments.measuring import FLOOR, TimedPipeline
from mathamr_systems.experiments.task2 import FormulaParts
from mathamr_systems.experiments.workdir import TANGENT as BASELINE
from mathamr_systems.experiments.workdir import distinct, formula_topics, visual_judgments
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import ARQMathCollection, MissingFileError
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import post_from_html
from studies.formulas import known_items
from studies.formulas.systems import DISTANCE, TANGENT_S, compare_formulas, task2_systems

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
NDCG = "nDCG(judged_only=True)@1000"


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("task2") / "work"


@pytest.fixture(scope="module")
def report(workdir: Path) -> Report:
    return run_arqmath(SAMPLE, "sample", workdir, task=2, model="mathamr-plus-mini", verbose=False)


def test_the_report_has_all_systems_and_is_kept_with_its_costs(report: Report, workdir: Path) -> None:
    table = report.tables["Task 2"]
    assert table["name"].tolist() == [*(BASELINE, "MathAMR+", "MathAMR+ (formula only)", "Tangent + MathAMR+", FLOOR)]
    assert set(table["judged"]) == {"formula ids"}  # the sample has no judgments by visual id
    assert table["topics"].tolist() == [20] * 5
    values = table.set_index("name")[NDCG]
    assert values.tolist() == pytest.approx([0.8829, 0.9183, 0.9183, 0.9106, 0.7935], abs=0.01)
    assert {f"{NDCG} p-value", f"{NDCG} reject"} <= set(table.columns)
    kept = json.loads((workdir / "task-2" / "report.json").read_text())
    assert [stage["name"] for stage in kept["stages"]] == [
        *("formulas", "graphs", "formula-index", "tangent", "task 2, sample", "time of a query")
    ]
    by_topic = pd.read_csv(workdir / "task-2" / "task-2-by-topic.csv")
    mean = by_topic[(by_topic["name"] == BASELINE) & (by_topic["measure"] == NDCG)]["value"].mean()
    assert mean == pytest.approx(report.tables["Task 2"][NDCG][0])


def test_a_second_run_repeats_no_stage_and_finds_the_same(report: Report, workdir: Path) -> None:
    again = run_arqmath(SAMPLE, ["sample"], workdir, task=2, model="mathamr-plus-mini", verbose=False)
    assert {stage.name for stage in again.stages if stage.resumed} == {"formulas", "graphs", "formula-index", "tangent"}
    pd.testing.assert_frame_equal(again.tables["Task 2"], report.tables["Task 2"])


def test_systems_are_chosen_by_name_in_addition_to_the_baseline(report: Report, workdir: Path) -> None:
    options = {"model": "mathamr-plus-mini", "verbose": False}
    found = run_arqmath(SAMPLE, "sample", workdir, task=2, systems=task2_systems(["tangent-s", DISTANCE]), **options)
    table = found.tables["Task 2"].set_index("name")
    assert list(table.index) == [BASELINE, TANGENT_S, DISTANCE, FLOOR]
    assert table[NDCG][BASELINE] == report.tables["Task 2"][NDCG][0]
    assert table[NDCG][FLOOR] < min(table[NDCG][TANGENT_S], table[NDCG][DISTANCE])
    assert set(found.tables["Time of a query"]["name"]) == {BASELINE, TANGENT_S, DISTANCE}
    with pytest.raises(ConfigError, match=r"all, variants, or some of: Tangent; Tangent-S; "):
        task2_systems(["Tangent-CFT"])
    with pytest.raises(ConfigError, match=r"python -m studies task-2 FOLDER --systems"):
        run_arqmath(SAMPLE, "sample", workdir, task=2, systems=["Tangent-S"], **options)


def test_a_user_s_system_is_measured_with_the_baseline(report: Report, workdir: Path) -> None:
    def backwards(parts: FormulaParts) -> TimedPipeline:
        turned = pt.apply.doc_score(lambda row: -row["score"])
        return TimedPipeline(distinct(parts.shared.tangent.retriever(50, store=parts.trees)) >> turned)

    own = System("Tangent, backwards", backwards)
    options = {"model": "mathamr-plus-mini", "verbose": False}
    table = run_arqmath(SAMPLE, "sample", workdir, task=2, systems=[own], **options).tables["Task 2"]
    assert table["name"].tolist() == [BASELINE, own.name, FLOOR]
    assert table[NDCG][1] < table[NDCG][0]


def test_known_items_are_a_separate_table(report: Report, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_items, "_DRAWN", 1)
    options = {"model": "mathamr-plus-mini", "systems": ["tangent"], "verbose": False}
    found = compare_formulas(SAMPLE, "sample", workdir, known_items=True, **options)
    table = found.tables["Known formulas"]
    assert table["queries"].unique().tolist() == ["all", "cut", "renamed"]
    assert table["name"].unique().tolist() == [BASELINE, known_items.RANDOM_FORMULAS]
    assert table["RR@10"].between(0, 1).all()
    assert "Known formulas" in (workdir / "task-2" / "report.md").read_text()
    assert "Known formulas" not in report.tables


class VisualIds(FormulaStore):
    """Formula ``n`` looks like formula ``n % 10``."""

    def __init__(self) -> None:
        super().__init__("nowhere")

    def visual_ids(self, ids: object) -> dict[str, str]:
        return {formula: str(int(formula) % 10) for formula in ids}  # type: ignore[attr-defined]


def collection(folder: Path, formulas: str = "", visual: str = "") -> ARQMathCollection:
    for kind, text in (("formula_id", formulas), ("visual_id", visual)):
        if text:
            (folder / f"qrels.arqmath-2022-task2.{kind}.txt").write_text(text)
    return ARQMathCollection(folder)


def test_both_kinds_of_judgments_are_read_by_visual_id_and_one_suffices(tmp_path: Path) -> None:
    both = collection(tmp_path, "B.1 0 11 1\nB.1 0 21 3\nB.1 0 12 0\nB.2 0 13 1\n", "B.1 0 1 2\nB.3 0 77 3\n")
    judged = visual_judgments(both, 2022, VisualIds(), {"1", "2", "3"})
    # 11 and 21 look the same: the best grade counts; B.2 has no relevant formula; 77 cannot be found
    assert judged["formula ids"].to_numpy().tolist() == [["B.1", "1", 3], ["B.1", "2", 0]]
    assert judged["visual ids"].to_numpy().tolist() == [["B.1", "1", 2]]

    (tmp_path / "only").mkdir()
    only = collection(tmp_path / "only", visual="B.1 0 1 2\n")
    assert list(visual_judgments(only, 2022, VisualIds(), {"1"})) == ["visual ids"]
    with pytest.raises(ExperimentError):
        visual_judgments(only, 2022, VisualIds(), {"5"})
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingFileError):
        visual_judgments(ARQMathCollection(tmp_path / "empty"), 2022, VisualIds(), {"1"})


@pytest.mark.parametrize(("year", "count"), [(2020, 85), (2022, 100)])
def test_each_real_topic_finds_its_formula_in_its_question(shared_data: Path, year: int, count: int) -> None:
    topics = formula_topics(ARQMathCollection(shared_data / "arqmath-mini"), year)
    assert len(topics) == count
    for topic in topics.itertuples():
        found = [f.latex for f in post_from_html(topic.body, topic.title).formulas if f.id == topic.formula_id]
        assert len(found) == 1, topic.qid
        if topic.qid != "B.394":  # whose formula is cut short in the official question, and whole in the table
            assert "".join(found[0].split()) == "".join(topic.latex.split()), topic.qid

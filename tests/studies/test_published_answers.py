"""The published figures of other answer systems, each as its paper prints it."""

import re
from pathlib import Path

import pytest

from pyterrier_mathamr.experiments import published
from studies.answers import published_of
from studies.registry import STUDIES
from studies.study import Study

MEASURES = ("nDCG'", "MAP'", "P'@10")
PAPERS = {
    "zhong": "004_c8cdb70c22a8c00d.txt",
    "mansouri": "003_01e670e7210d3786.txt",
    "wang": "002_ef00694c11bc017f.txt",
}


@pytest.mark.parametrize(
    ("paper", "table", "row", "column", "value"),
    [
        ("zhong", "3", "colbert", "nDCG' 2020", 0.375),
        ("zhong", "3", "fusion_alpha05", "judged 2021", 91.0),
        ("zhong", "3", "DPRL_QASim", "Bpref 2021", 0.135),
        ("zhong", "5", "colbert", "nDCG'", 0.418),
        ("zhong", "5", "a0none", "nDCG'", 0.397),
        ("zhong", "5", "fusion_alpha05", "nDCG'", 0.508),
        ("zhong", "2", "Switch stemmer etc.", "P'@10", 0.235),
        ("zhong", "6", "fusion02_ctx", "MAP'", 0.490),
        ("zhong", "7", "run1", "AR'", 1.282),
        ("zhong", "7", "GPT-3 (baseline)", "P'@1", 0.5),
        ("mansouri", "5.2", "SVM-Rank", "MAP'", 0.342),
        ("mansouri", "5.5", "Baseline (TF-IDF (Terrier))", "nDCG'", 0.272),
        ("mansouri", "5.3", "RRF-AMR-SVM", "Formula", 0.648),
        ("mansouri", "5.6", "SVM-Rank", "Concept", 0.294),
        ("wang", "1", "Fine-tuned BERT + Formula Encoder", "nDCG'", 0.535),
        ("wang", "1", "Qwen3-Embedding 0.6B + Formula Encoder", "P'@10", 0.433),
        ("wang", "2", "Fine-tuned BERT + Formula Encoder", "MAP'", 0.526),
        ("wang", "3", "MaRF, >70%", "P'@10", 0.2938),
        ("wang", "4", "BERT, >50%", "Recall", 0.5772),
        ("wang", "5", "Token-Level, several formulas", "nDCG'", 0.526),
        ("wang", "6", "Fine-tuned BERT + Formula Encoder", "Bpref full", 0.651),
    ],
)
def test_figures_are_found_by_table_row_and_column(paper: str, table: str, row: str, column: str, value: float) -> None:
    assert published(paper).tables[table].figure(row, column) == value


def test_figures_that_a_paper_does_not_have_are_none() -> None:
    assert published("wang").tables["1"].figure("LLaMa-2 7B", "MAP'") is None


@pytest.mark.parametrize("paper", PAPERS)
def test_all_rows_are_those_of_the_paper(paper: str, shared_data: Path) -> None:
    text = (shared_data / "papers" / PAPERS[paper]).read_text(encoding="utf-8")
    text = re.sub(r"</?b>|\*", "", text)
    for table in published(paper).tables.values():
        assert table.caption.partition(".")[0][:60] in text
        for name, cells in table.rows:
            assert len(cells) == len(table.columns)
            assert "\t" + "\t".join(cells) in text, (table.number, name)


def test_each_study_has_the_published_tables_of_its_systems_with_their_source() -> None:
    for study in (study for study in STUDIES.values() if study.kind == "answers"):
        assert published_of(study)
    assert any("Zhong" in caption and "Table 7 of" in caption for caption in published_of(STUDIES["answers/extract"]))
    assert published_of(Study("answers/of my own", "", "answers")) == {}


def test_the_page_has_the_figures_of_task_1_as_they_are_printed() -> None:
    text = (Path(__file__).parents[2] / "docs" / "answer-systems.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## Published figures")
    found = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    tables = {  # by paper, those of each year
        "Zhong": {"2020": "3", "2021": "3", "2022": "5"},
        "Mansouri": {"2021": "5.2", "2022": "5.5"},
        "Wang": {"2022": "1"},
    }
    assert len(found) > 30
    for name, paper, *cells in found[1:]:
        for year, cell in zip(("2020", "2021", "2022"), cells, strict=True):
            table = published(paper.lower()).tables[tables[paper].get(year, "")] if cell != "–" else None
            if table is not None:
                columns = [f"{measure} {year}" if table.number == "3" else measure for measure in MEASURES]
                printed = [dict(table.rows)[name][table.columns.index(column)] for column in columns]
                assert cell.split(" / ") == [value.removeprefix("0") for value in printed], (name, year)

"""The published figures of other answer systems, each as its paper prints it."""

import re
from pathlib import Path

import pytest

from mathamr_systems.experiments import published
from studies.answers import published_of
from studies.registry import STUDIES
from studies.study import Study

MEASURES = ("nDCG'", "MAP'", "P'@10")
PAPERS = {
    "zhong": "004_c8cdb70c22a8c00d.txt",
    "mansouri": "003_01e670e7210d3786.txt",
    "wang": "002_ef00694c11bc017f.txt",
    "amador": "001_9fe1b5c5ad81a807.txt",
}


@pytest.mark.parametrize("paper", PAPERS)
def test_all_rows_match_the_paper(paper: str, shared_data: Path) -> None:
    text = (shared_data / "papers" / PAPERS[paper]).read_text(encoding="utf-8")
    text = re.sub(r" *(?:\$\\dagger\$|<math>\\dagger</math>)|</?b>|\*", "", text)
    for table in published(paper).tables.values():
        assert table.caption.partition(".")[0][:60] in text
        for name, cells in table.rows:
            assert len(cells) == len(table.columns)
            assert "\t" + "\t".join(cells).replace("*", "") in text, (table.number, name)
            for column, cell in zip(table.columns, cells, strict=True):
                assert table.figure(name, column) is not None or not cell[:1].isdigit(), (table.number, name, column)


def test_each_study_has_the_published_tables_of_its_systems_with_their_source() -> None:
    for study in (study for study in STUDIES.values() if study.kind == "answers"):
        assert published_of(study)
    assert any("Zhong" in caption and "Table 7 of" in caption for caption in published_of(STUDIES["answers/extract"]))
    assert published_of(Study("answers/of my own", "", "answers")) == {}


def test_the_page_has_the_figures_of_task_1_as_printed() -> None:
    text = (Path(__file__).parents[2] / "docs" / "archive" / "answers.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## Published figures")
    found = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    tables = {  # by paper, the tables of each year
        "Zhong": {"2020": "3", "2021": "3", "2022": "5"},
        "Mansouri": {"2021": "5.2", "2022": "5.5"},
        "Wang": {"2022": "1"},
    }
    assert len(found) > 10
    for name, paper, *cells in found[1:]:
        for year, cell in zip(("2020", "2021", "2022"), cells, strict=True):
            table = published(paper.lower()).tables[tables[paper].get(year, "")] if cell != "–" else None
            if table is not None:
                columns = [f"{measure} {year}" if table.number == "3" else measure for measure in MEASURES]
                printed = [dict(table.rows)[name][table.columns.index(column)] for column in columns]
                assert cell.split(" / ") == [value.removeprefix("0") for value in printed], (name, year)

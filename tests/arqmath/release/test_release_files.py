"""Files are found by the names that the organizers and their participants gave them."""

import pickle
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import ARQMathCollection, ARQMathError, MissingFileError, Pair

# as listed by the organizers' backup and by public download scripts
DRIVE = Path(__file__).with_name("drive.txt").read_text().splitlines()


@pytest.fixture
def drive(tmp_path: Path) -> ARQMathCollection:
    for name in DRIVE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return ARQMathCollection(tmp_path)


def test_the_latest_posts_and_tables_are_found(drive: ARQMathCollection) -> None:
    assert drive.posts_file.name == "Posts.V1.3.xml"
    assert [f"{file.parent.name}/{file.name}" for file in drive.latex_tables] == [
        "latex_representation_v3/1.tsv",
        "latex_representation_v3/2.tsv",
        "latex_representation_v3/10.tsv",
    ]
    assert [file.name for file in drive.slt_tables] == ["1.tsv"]
    assert [file.name for file in drive.opt_tables] == ["1.tsv.gz"]


@pytest.mark.parametrize(
    ("year", "task", "judged", "name"),
    [
        (2020, 1, "formula", "qrel_official_task1"),
        (2021, 1, "formula", "qrel_task1_2021_test.tsv"),
        (2022, 1, "formula", "qrel_task1_2022_official.tsv"),
        (2020, 2, "formula", "qrel_task2.tsv"),
        (2020, 2, "visual", "qrel_task2_official_2020_visual_id.tsv"),
        (2021, 2, "visual", "qrel_task2_2021_test_official_evaluation.tsv"),
        (2022, 2, "visual", "qrel_task2_2022_official.tsv"),
    ],
)
def test_the_judgments_of_the_official_topics_are_found(
    drive: ARQMathCollection, year: int, task: int, judged: str, name: str
) -> None:
    assert drive.qrels_file(year, task, judged=judged).name == name  # type: ignore[arg-type]


def test_the_tables_of_the_topics_formulas_are_found_or_empty(drive: ARQMathCollection) -> None:
    names = {
        2019: "",
        2020: "Formula_topics_latex_V2.0.tsv Formula_topics_slt_V2.0.tsv Formula_topics_opt_V2.0.tsv",
        2021: "Topics_2021_Formulas_Latex_V1.1.tsv Topics_2021_Formulas_SLT_V1.1.tsv Topics_2021_Formulas_OPT_V1.1.tsv",
        2022: "Topics_Formulas_Latex.V0.1.tsv Topics_Formulas_SLT.V0.1.tsv Topics_Formulas_OPT.V0.1.tsv",
    }
    for year, expected in names.items():
        assert [file.name for files in drive.topic_tables(year) for file in files] == expected.split()


def test_topics_are_found_for_all_years_and_tasks(drive: ARQMathCollection) -> None:
    found = {}
    for year in (2020, 2021, 2022):
        for task in (1, 2, 3):
            with pytest.raises(ARQMathError) as caught:  # the files of this drive are empty
                list(drive.topics(year, task))  # type: ignore[arg-type]
            found[year, task] = Path(str(caught.value).split(":")[0]).name
    assert found[2020, 1] == found[2020, 3] == "Topics_V2.0.xml"
    assert found[2020, 2] == "Topics_V1.1.xml"
    assert found[2021, 1] == "Topics_Task1_2021_V1.1.xml"
    assert found[2022, 2] == "Topics_Task2_2022_V0.1.xml"


def test_judgments_cut_down_to_a_part_are_preferred_unless_the_complete_ones_are_asked_for(tmp_path: Path) -> None:
    for name in ("a/qrels.arqmath-2022-task1.txt", "b/qrels.arqmath-2022-task1.mini.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    collection = ARQMathCollection(tmp_path)
    assert collection.qrels_file(2022).name == "qrels.arqmath-2022-task1.mini.txt"
    assert collection.qrels_file(2022, complete=True).name == "qrels.arqmath-2022-task1.txt"


def test_packed_posts_are_an_error_with_the_advice_to_unpack(tmp_path: Path) -> None:
    (tmp_path / "Posts.V1.3.zip").write_text("")
    with pytest.raises(MissingFileError, match=r"no posts.*Unpack .*Posts\.V1\.3\.zip") as caught:
        ARQMathCollection(tmp_path).posts()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(("task", "judged"), [(4, "formula"), (2, "picture")])
def test_an_unknown_task_or_kind_of_judgment_is_refused(drive: ARQMathCollection, task: int, judged: str) -> None:
    with pytest.raises(ConfigError):
        drive.qrels(2022, task, judged=judged)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        drive.topics(2022, 4)  # type: ignore[arg-type]
    for year in (2021, 2022):  # judgments by formula id are not published
        with pytest.raises(MissingFileError, match=rf"judgments of {year}, task 2, by formula id.*formula_id\.tsv"):
            drive.qrels(year, 2)
    with pytest.raises(ARQMathError, match="nowhere is not a folder"):
        ARQMathCollection(drive.path / "nowhere")


def test_pairs_are_those_of_the_table_else_accepted_answers_else_all_answers(release: Path) -> None:
    assert list(ARQMathCollection(release).pairs()) == [Pair("10", "12")]
    file = release / "Collection/Posts.V1.3.xml"
    file.write_text(file.read_text().replace(' AcceptedAnswerId="12"', ""))
    assert list(ARQMathCollection(release).pairs()) == [Pair("10", "11"), Pair("10", "12"), Pair("13", "14")]
    (release / "pairs.tsv").write_text("question_id\tanswer_id\n13\t14\n")
    assert list(ARQMathCollection(release).pairs()) == [Pair("13", "14")]


def test_collections_of_the_same_folder_are_equal_and_their_repr_rebuilds(release: Path) -> None:
    collection = ARQMathCollection(release)
    again = eval(repr(collection), {"ARQMathCollection": ARQMathCollection})
    assert (collection == again, hash(collection) == hash(again)) == (True, True)
    assert collection != ARQMathCollection(release.parent)

"""ARQMath through ir_datasets and PyTerrier."""

import os
import shutil
from pathlib import Path

import ir_datasets
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import ARQMathError, MissingFileError, register_arqmath
from pyterrier_mathamr.arqmath.datasets.definitions import DATASETS, ARQMathDoc, ARQMathFormula, Task1Query, Task2Query

ANSWER = '<p>Since <span class="math-container" id="2">3-2=1</span> is positive.</p>'
BODY = '<p>Is <span class="math-container" id="q_2">$a<b$</span> &amp; true?</p>'


@pytest.fixture
def registered(release: Path) -> Path:
    register_arqmath(release)
    return release


def test_all_years_and_tasks_are_known() -> None:
    asked_for = {f"arqmath/{year}/task{task}" for year in (2020, 2021, 2022) for task in (1, 2)}
    asked_for |= {"arqmath", "arqmath/questions", "arqmath/answers", "arqmath/formulas", "arqmath/2022/task3"}
    assert asked_for <= set(DATASETS)


def test_the_documents_of_task_1_are_the_answers(registered: Path) -> None:
    docs = list(ir_datasets.load("arqmath/2022/task1").docs_iter())
    assert [doc.doc_id for doc in docs] == ["11", "12", "14"]
    text = "Since $3-2=1$ is positive."
    assert docs[1] == ARQMathDoc("12", "answer", "10", "", ANSWER, text, "", "", score=None, date=None)
    assert docs[1].default_text() == docs[1].text
    frame = pd.DataFrame({"qid": ["1", "1"], "docno": ["14", "12"]})
    dataset = pt.get_dataset("irds:arqmath/2022/task1")
    assert pt.text.get_text(dataset, "text")(frame).text.tolist() == ["Answer.", "Since $3-2=1$ is positive."]
    assert dataset.text_loader(["body", "parent_id"])(frame).parent_id.tolist() == ["13", "10"]


def test_the_documents_of_task_2_are_all_posts_looked_up_by_id_and_sliced(registered: Path) -> None:
    dataset = ir_datasets.load("arqmath/2022/task2")
    docs, store = list(dataset.docs_iter()), dataset.docs_store()
    assert docs[0].text == "Why is $2<3$?\nI do not see it."
    assert (docs[0].tags, docs[0].score, docs[0].accepted_answer_id) == ("inequality order-theory", 7, "12")
    assert (dataset.docs_count(), ir_datasets.load("arqmath/2022/task1").docs_count()) == (5, 3)
    assert not store.built()
    assert store.get("12").body == ANSWER
    assert {doc.doc_id for doc in store.get_many_iter(["10", "14", "nope"])} == {"10", "14"}
    assert [doc.doc_id for doc in dataset.docs_iter()[1:3]] == ["11", "12"]
    assert docs == [store.get(str(i)) for i in range(10, 15)]


def test_queries_have_html_with_ids_and_plain_text(registered: Path) -> None:
    first, second = ir_datasets.load("arqmath/2022/task1").queries_iter()
    title = 'Norms of <span class="math-container" id="q_1">$A$</span>'
    assert first == Task1Query("A.301", title, BODY, "linear-algebra norm", "Norms of $A$\nIs $a<b$ & true?")
    assert first.default_text() == first.text
    assert second.text == "Second\nNo formula here."
    query = next(ir_datasets.load("arqmath/2022/task2").queries_iter())
    assert isinstance(query, Task2Query)
    assert (query.query_id, query.topic_id, query.formula_id, query.latex) == ("B.301", "A.301", "q_2", "a<b")
    assert query.default_text() == "a<b"


def test_judgments_by_visual_id_are_a_separate_dataset_and_given_with_a_warning_if_there_are_no_others(
    registered: Path,
) -> None:
    with pytest.warns(MathAMRWarning, match="visual ids"):
        (qrel,) = ir_datasets.load("arqmath/2022/task2").qrels_iter()
    assert (qrel.query_id, qrel.doc_id, qrel.relevance) == ("B.301", "77", 2)
    dataset = ir_datasets.load("arqmath/2022/task2/visual")
    assert [(qrel.doc_id, qrel.relevance) for qrel in dataset.qrels_iter()] == [("77", 2)]
    assert next(dataset.queries_iter()).formula_id == "q_2"


def test_a_changed_dump_gets_a_new_store(registered: Path) -> None:
    dataset = ir_datasets.load("arqmath/2022/task1")
    assert dataset.docs_store().get("14").text == "Answer."
    file = registered / "Collection/Posts.V1.3.xml"
    before = file.stat()
    file.write_text(file.read_text().replace("Answer.", "Solved."))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
    assert file.stat().st_size == before.st_size
    assert dataset.docs_store().get("14").text == "Solved."


def test_pyterrier_gives_topics_judgments_and_corpus(registered: Path) -> None:
    dataset = pt.get_dataset("irds:arqmath/2022/task1")
    assert dataset.get_topics("text").to_dict("list") == {
        "qid": ["A.301", "A.302"],
        "query": ["Norms of $A$\nIs $a<b$ & true?", "Second\nNo formula here."],
    }
    assert list(dataset.get_topics("title").columns) == ["qid", "query"]
    assert list(dataset.get_topics().columns) == ["qid", "title", "body", "tags", "text"]
    qrels = dataset.get_qrels()
    assert qrels[["qid", "docno", "label"]].to_numpy().tolist() == [["A.301", "12", 3], ["A.301", "14", 0]]
    corpus = dataset.get_corpus_iter(verbose=False)
    assert len(corpus) == 3
    assert [doc["docno"] for doc in corpus] == ["11", "12", "14"]


def test_a_call_goes_before_the_environment_and_that_before_the_home_of_ir_datasets(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "Posts.V1.2.xml").write_text('<posts><row Id="99" PostTypeId="2"/></posts>')
    dataset = ir_datasets.load("arqmath/2022/task1")
    monkeypatch.setenv("ARQMATH_HOME", str(other))
    assert [doc.doc_id for doc in dataset.docs_iter()] == ["99"]
    register_arqmath(release)
    assert len(list(dataset.docs_iter())) == 3
    with pytest.raises(ARQMathError, match="not a folder"):
        register_arqmath(tmp_path / "nowhere")
    assert len(list(dataset.docs_iter())) == 3
    register_arqmath(other)
    assert [doc.doc_id for doc in dataset.docs_iter()] == ["99"]
    monkeypatch.setattr("pyterrier_mathamr.arqmath.collection._named", [])
    monkeypatch.delenv("ARQMATH_HOME")
    (tmp_path / "irds").mkdir(exist_ok=True)
    (tmp_path / "irds/arqmath").symlink_to(release)
    assert dataset.docs_count() == 3


def test_without_a_copy_the_error_names_the_download_and_its_place() -> None:
    dataset = ir_datasets.load("arqmath/2021/task1")
    for what in ("docs_iter", "queries_iter", "qrels_iter", "docs_count", "docs_store"):
        with pytest.raises(ARQMathError, match=r"Posts.*https://www\.cs\.rit\.edu.*ARQMATH_HOME.*register_arqmath"):
            list(getattr(dataset, what)())


def test_the_sample_that_comes_with_the_package_needs_no_copy() -> None:
    for task in (1, 2):
        dataset = pt.get_dataset(f"irds:arqmath/sample/task{task}")
        topics, qrels = dataset.get_topics("text"), dataset.get_qrels()
        assert len(topics) >= 20
        assert set(qrels.qid) <= set(topics.qid)
        assert set(qrels.label) <= {0, 1, 2, 3}
    answers = list(ir_datasets.load("arqmath/sample/task1").docs_iter())
    posts = {doc.doc_id: doc.kind for doc in ir_datasets.load("arqmath/sample/task2").docs_iter()}
    assert len(answers) >= 150
    assert sum(kind == "question" for kind in posts.values()) >= 60
    assert {qrel.doc_id for qrel in ir_datasets.load("arqmath/sample/task1").qrels_iter()} <= set(posts)
    assert {doc.parent_id for doc in answers} <= set(posts)


def test_all_posts_the_questions_and_the_answers_are_separate_datasets(registered: Path) -> None:
    parts = {"": ["10", "11", "12", "13", "14"], "/questions": ["10", "13"], "/answers": ["11", "12", "14"]}
    for name, ids in parts.items():
        dataset = ir_datasets.load(f"arqmath{name}")
        assert [doc.doc_id for doc in dataset.docs_iter()] == ids
        assert dataset.docs_count() == len(ids)
        assert [doc.doc_id for doc in dataset.docs_iter()[1:]] == ids[1:]
        assert (dataset.has_queries(), dataset.has_qrels(), dataset.docs_lang()) == (False, False, "en")
    (registered / "links.tsv").write_text(
        "question_id\trelated_question_id\ttype\trelated_title\n10\t13\tduplicate\t\n"
    )
    whole = ir_datasets.load("arqmath")
    assert list(whole.pairs_iter()) == [("10", "12")]
    assert list(whole.links_iter()) == [("10", "13", "duplicate", "")]


def test_formulas_are_documents_with_post_and_visual_id_each_id_once(registered: Path) -> None:
    dataset = ir_datasets.load("arqmath/formulas")
    docs = list(dataset.docs_iter())
    assert docs[0] == ARQMathFormula("1", "10", "10", "title", "77", "2<3")
    assert docs[0].default_text() == "2<3"
    assert [doc.doc_id for doc in docs] == ["1", "2", "3"]
    assert dataset.docs_count() == 3
    assert dataset.docs_store().get("2").visual_id == "78"
    loaded = pt.get_dataset("irds:arqmath/formulas").text_loader(["latex", "post_id"])(pd.DataFrame({"docno": ["2"]}))
    assert loaded.to_dict("list") == {"docno": ["2"], "latex": ["3-2=1"], "post_id": ["12"]}
    shutil.rmtree(registered / "Formulas/latex_representation_v3")
    (registered / "Formulas/latex_representation_v3.zip").write_text("")
    with pytest.raises(MissingFileError, match=r"Unpack .*v3\.zip: mathamr arqmath convert"):
        list(dataset.docs_iter())


def test_task_3_has_the_questions_of_task_1_and_judgments_without_the_codes_5_and_6(registered: Path) -> None:
    dataset = pt.get_dataset("irds:arqmath/2022/task3")
    assert dataset.get_topics("title").qid.tolist() == ["A.301", "A.302"]
    with pytest.warns(MathAMRWarning, match="1 lines with code 5, 1 lines with code 6"):
        qrels = dataset.get_qrels()
    assert qrels[["qid", "docno", "label"]].to_numpy().tolist() == [["A.301", "d_1", 3], ["A.302", "d_4", 1]]


def test_counts_are_of_the_local_copy_and_metadata_of_the_complete_release(registered: Path) -> None:
    dataset = ir_datasets.load("arqmath/2022/task1")
    assert (dataset.docs_count(), dataset.queries_count(), dataset.qrels_count()) == (3, 2, 2)
    assert dataset.metadata() == {"docs": {"count": 1445495}, "queries": {"count": 100}, "qrels": {"count": 34847}}
    assert ir_datasets.load("arqmath").docs_metadata() == {"count": 2466080}
    assert ir_datasets.load("arqmath/sample/task1").metadata() == {"docs": {}, "queries": {}, "qrels": {}}


def test_each_dataset_has_a_description_and_a_citation() -> None:
    for name in DATASETS:
        dataset = ir_datasets.load(name)
        assert dataset.dataset_id() == name
        assert dataset.documentation()["desc"]
        assert dataset.citation().startswith("@inproceedings{Mansouri2022ARQMath3")

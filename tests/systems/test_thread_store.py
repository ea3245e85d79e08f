"""`ThreadStore`: known data of a thread, rankings of questions and answers, and data that the collection lacks."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mathamr_systems import SystemsError, ThreadStore
from mathamr_systems.threads import ThreadPost, thread_store
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import Post
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.store import DuplicateIdError, UnfinishedJobError, UnknownIdError


def question(id: str, tags: str = "", accepted: str = "", title: str = "", body: str = "") -> Post:
    return Post(id, "question", title, body, tuple(tags.split()), "", accepted, 5, None, 1)


def answer(id: str, of: str, votes: int | None, comments: int | None = None, body: str = "") -> Post:
    return Post(id, "answer", "", body, (), of, "", votes, None, comments)


POSTS = [
    question("10", "limits sums", accepted="12", title="Does $a<b$ hold?", body="<p>Let $a=1$.</p>"),
    answer("13", "10", 9, 4, body="<p>Yes, $b$.</p>"),
    answer("12", "10", 2),
    question("20", "sums", accepted="99"),  # which is not in the collection
    answer("21", "20", -3),
    answer("9", "20", 4),
    answer("22", "20", 4),
    question("30", "algebra"),
    answer("40", "", 1),
]


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> ThreadStore:
    return ThreadStore(tmp_path_factory.mktemp("threads") / "threads.mathamr").index(POSTS)


def ranking(*rows: tuple[str, str, float], **columns: Any) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"]).assign(**columns)
    return frame.assign(rank=frame.groupby("qid").cumcount())


def test_a_ranking_of_questions_becomes_all_their_answers_in_the_order_of_the_questions(threads: ThreadStore) -> None:
    given = ranking(("A.1", "20", 0.7), ("A.1", "30", 0.6), ("A.1", "10", 0.5), ("A.2", "10", 3.0), query="why")
    found = threads.answers()(given.assign(html="<p>the question</p>"))
    assert list(found.columns) == ["qid", "query", "docno", "question_docno", "qq_score", "score", "rank"]
    assert found[["qid", "docno", "question_docno", "qq_score", "rank"]].to_numpy().tolist() == [
        ["A.1", "21", "20", 0.7, 0],
        ["A.1", "22", "20", 0.7, 1],
        ["A.1", "9", "20", 0.7, 2],
        ["A.1", "12", "10", 0.5, 3],
        ["A.1", "13", "10", 0.5, 4],
        ["A.2", "12", "10", 3.0, 0],
        ["A.2", "13", "10", 3.0, 1],
    ]
    assert found["score"].equals(found["qq_score"].rename("score"))


def test_a_question_without_answer_has_no_row_and_an_unknown_post_is_named(threads: ThreadStore) -> None:
    found = threads.answers()(ranking(("A.1", "30", 1.0)))
    assert found.empty
    assert list(found.columns) == ["qid", "docno", "question_docno", "qq_score", "score", "rank"]
    assert list(threads.best_answer()(ranking(("A.1", "30", 1.0))).columns) == [
        "qid", "docno", "question_docno", "score", "rank",
    ]  # fmt: skip

    for transformer in (threads.answers(), threads.questions(), threads.metadata(), threads.best_answer()):
        with pytest.raises(UnknownIdError, match="'77'"):
            transformer(ranking(("A.1", "10", 1.0), ("A.1", "77", 0.5)))


def test_each_answer_has_its_question_metadata_and_text(threads: ThreadStore) -> None:
    found = threads.questions()(ranking(("A.1", "9", 2.0), ("A.1", "40", 1.0), ("A.1", "10", 0.5)))
    assert found["question_docno"].tolist() == ["20", "", "10"]

    given = ranking(("A.1", "13", 2.0), ("A.1", "12", 1.0), ("A.1", "9", 0.5), ("A.1", "40", 0.1))
    found = threads.metadata()(given.assign(tags="sums limits <series>,integrals"))
    assert found[["votes", "comments", "accepted", "tag_overlap"]].to_numpy().tolist() == [
        [9, 4, 0, 0.5],
        [2, 0, 1, 0.5],
        [4, 0, 0, 0.25],
        [1, 0, 0, 0.0],
    ]
    assert threads.metadata()(given)["tag_overlap"].tolist() == [0.0] * 4
    assert threads.metadata()(given.assign(tags=[["sums"]] * 4))["tag_overlap"].tolist() == [1.0, 1.0, 1.0, 0.0]

    found = threads.text_loader()(ranking(("A.1", "13", 1.0), ("A.1", "10", 0.5), ("A.2", "13", 0.5)))
    assert found["html"].tolist() == [
        "<p>Yes, $b$.</p>", "<p>Does $a<b$ hold?</p><p>Let $a=1$.</p>", "<p>Yes, $b$.</p>",
    ]  # fmt: skip

    assert "9 posts, 3 questions, 6 answers, 6 with votes, 1 with comments, 2 accepted answers" in str(threads)


def test_the_best_answer_is_the_accepted_one_else_that_with_most_votes(threads: ThreadStore) -> None:
    # 12 is accepted though 13 has more votes; 22 and 9 have as many, and "22" comes before "9"
    assert threads.best_answers(["10", "20", "30"]) == {"10": "12", "20": "22"}
    given = ranking(("A.1", "21", 5.0), ("A.1", "13", 4.0), ("A.1", "9", 3.0), ("A.1", "40", 2.0), html="<p>old</p>")
    found = threads.best_answer()(given)
    assert found[["docno", "question_docno", "score", "rank"]].to_numpy().tolist() == [
        ["22", "20", 5.0, 0],
        ["12", "10", 4.0, 1],
        ["40", "", 2.0, 2],
    ]
    assert "html" not in found.columns
    filtered = pd.concat([ranking(("A.2", "21", 1.0)), given])  # each part counts its rows from 0
    assert threads.best_answer()(filtered)[["qid", "docno"]].to_numpy().tolist() == [
        ["A.2", "22"],
        *(["A.1", docno] for docno in found["docno"]),
    ]
    assert threads.best_answer()(ranking(("A.1", "10", 1.0), ("A.1", "30", 0.5)))["docno"].tolist() == ["12"]


def test_data_that_no_post_has_is_zero_with_one_warning(tmp_path: Path) -> None:
    bare = [question("1")._replace(score=None, comment_count=None), answer("2", "1", None), answer("3", "1", None)]
    threads = ThreadStore(tmp_path / "bare.mathamr").index(bare)
    assert threads.posts(["2"]) == [ThreadPost("2", "answer", "1", "", None, None, ())]
    given = ranking(("A.1", "3", 1.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MathAMRWarning)
        found = threads.metadata()(given)
        threads.metadata()(given)
        assert threads.best_answer()(given)["docno"].tolist() == ["2"]
    assert [str(warning.message).partition(": ")[2] for warning in caught] == [
        "no post has votes or comments or accepted answers, so these columns are 0: votes, comments, accepted"
    ]
    assert found[["votes", "comments", "accepted"]].to_numpy().tolist() == [[0, 0, 0]]
    assert threads.unknown() == ["votes", "comments", "accepted"]


def test_an_answer_is_indexed_with_its_question_in_front(threads: ThreadStore, tmp_path: Path) -> None:
    mapper = threads.with_question()
    rows = mapper(
        pd.DataFrame(
            {"docno": ["13", "12", "40", "10"], "text": ["<p>Yes, $b$.</p>", "If $x<y$,\n\nno.", "Alone", "Q"]}
        )
    )
    assert rows["title"].tolist() == ["Does $a<b$ hold?", "Does $a<b$ hold?", "", ""]
    assert rows["html"].tolist() == [
        "<p>Let $a=1$.</p><p>Yes, $b$.</p>",
        "<p>Let $a=1$.</p><p>If $x&lt;y$,</p><p>no.</p>",
        "<p>Alone</p>",
        "<p>Q</p>",
    ]
    index = BM25Index(tmp_path / "bm25")
    (mapper >> index.indexer()).index([{"docno": "13", "html": "<p>Yes.</p>"}, {"docno": "21", "html": "<p>No.</p>"}])
    assert index.retriever()(pd.DataFrame({"qid": ["1"], "query": ["hold"]}))["docno"].tolist() == ["13"]


def test_the_title_of_its_question_is_added_to_an_answer_and_read_before_it(threads: ThreadStore) -> None:
    answers = pd.DataFrame({"docno": ["13", "40", "10"], "text": ["Yes, $b$.", "Alone", "Q"]})
    titled = threads.parent_titles()(answers)
    assert titled.drop(columns="parent_title").equals(answers)
    assert titled["parent_title"].tolist() == ["Does $a<b$ hold?", "", ""]
    assert [graph.text for graph in GraphBuilder()(titled)["graph"]] == [
        "Does FORMULA_1 hold?\nYes, FORMULA_0.", "Alone", "Q",
    ]  # fmt: skip


def test_a_store_is_appended_to_and_refuses_what_it_holds(tmp_path: Path) -> None:
    threads = ThreadStore(tmp_path / "it").index(POSTS[:3])
    assert len(threads.answers_of(["10"])["10"]) == 2
    threads.indexer("append").index([answer("14", "10", 50), question("50")])
    assert [post.id for post in threads] == ["10", "13", "12", "14", "50"]
    assert [post.id for post in threads.answers_of(["10"])["10"]] == ["12", "13", "14"]
    with pytest.raises(DuplicateIdError, match="'14'"):
        threads.indexer("append").index([question("60"), answer("14", "10", 1)])
    assert len(ThreadStore(tmp_path / "it")) == 5
    with pytest.raises(DuplicateIdError, match="'70'"):
        threads.indexer("append").index([question("70"), question("70")])
    threads.verify()


def test_an_interrupted_job_continues_after_its_last_step_with_the_same_posts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_store, "STEP", 2)
    stored: list[int] = []
    pack = thread_store.pack_text
    monkeypatch.setattr(thread_store, "pack_text", lambda record: stored.append(1) or pack(record))
    threads = ThreadStore(tmp_path / "it")

    def broken() -> Any:
        yield from POSTS[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.index(broken())
    assert not threads.built()
    assert threads.unfinished() == 4
    with pytest.raises(UnfinishedJobError):
        threads.index([POSTS[0]._replace(title="another"), *POSTS[1:]])
    with pytest.raises(UnfinishedJobError):
        threads.index(POSTS[:3])
    stored.clear()
    threads.index(POSTS)
    assert len(stored) == len(POSTS) - 4
    assert [post.id for post in threads] == [post.id for post in POSTS]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "7", "kind": "wiki"}, "post '7': its kind is 'wiki', neither"),
        ({"id": "7", "kind": "answer", "score": "many"}, "post '7': its score is 'many', no whole number"),
        ({"id": "7", "kind": "answer", "body": 3}, "post '7': its body is 3, no text"),
    ],
)
def test_a_post_that_cannot_be_stored_is_named(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(SystemsError) as error:
        ThreadStore(tmp_path / "it").index([row])
    assert str(error.value).startswith(message)


def test_ids_tags_and_texts_of_any_characters_come_back(tmp_path: Path) -> None:
    odd = "\ud83d"
    rows = [
        {"id": odd, "kind": "question", "title": odd, "body": odd, "tags": ["é", odd], "accepted_answer_id": "007"},
        {"id": "007", "kind": "answer", "parent_id": odd, "score": float("nan")},
        {"id": "7", "kind": "answer", "parent_id": odd, "score": 1.0},
    ]
    threads = ThreadStore(tmp_path / "it").index(rows)
    assert threads.posts([odd]) == [ThreadPost(odd, "question", odd, "007", None, None, ("é", odd))]
    assert threads.texts([odd]) == [(odd, odd)]
    assert threads.best_answers([odd]) == {odd: "007"}
    assert [post.id for post in threads.answers_of([odd])[odd]] == ["007", "7"]

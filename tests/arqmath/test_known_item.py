"""The known-item split and its judgments."""

import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import (
    Pair,
    Post,
    known_item_qrels,
    known_item_split,
    known_item_topics,
    split_pairs,
)

# Last digit of the number that the command sha256sum prints, worked out with awk: 0, 1, 3, 5, 9.
KNOWN = {"154": "validation", "2": "test", "255": "train", "1": "train", "7": "train"}

PAIRS = [Pair(str(question), f"a{question}.{i}") for question in range(200) for i in range(2)]


def test_the_part_is_the_last_digit_of_the_sha256_of_the_id_and_parts_make_up_the_whole() -> None:
    assert {question: known_item_split(question) for question in KNOWN} == KNOWN
    parts = [split_pairs(PAIRS, part) for part in ("train", "validation", "test")]
    assert sorted(pair for part in parts for pair in part) == sorted(PAIRS)
    questions = [{pair.question_id for pair in part} for part in parts]
    assert len(questions[0] | questions[1] | questions[2]) == sum(map(len, questions)) == 200


def test_the_judgments_are_the_questions_own_answers() -> None:
    assert list(known_item_qrels([]).columns) == ["qid", "docno", "label"]
    frame = known_item_qrels(PAIRS, "test")
    assert list(frame.columns) == ["qid", "docno", "label"]
    assert set(frame.label) == {1}
    assert [Pair(q, d) for q, d in zip(frame.qid, frame.docno, strict=True)] == split_pairs(PAIRS, "test")


def test_the_topics_are_the_questions_of_one_part() -> None:
    title = '<span class="math-container" id="7">x^2</span>'
    questions = [Post(i, "question", title, "<p>Why?</p>", (), "", "", None, None) for i in ("154", "2", "255")]
    assert known_item_topics(questions, "test").to_dict("records") == [
        {"qid": "2", "query": "$x^2$\nWhy?", "title": title, "body": "<p>Why?</p>"}
    ]
    for read in (known_item_topics, known_item_qrels):
        with pytest.raises(ConfigError, match="dev"):
            read([], "dev")  # type: ignore[operator]

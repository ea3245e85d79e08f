"""Sources of posts and pairs: ARQMath folders and pair files."""

from pathlib import Path

import pytest

import pyterrier_mathamr
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import known_item_split
from pyterrier_mathamr.experiments import SourceError, read_documents, read_training_pairs

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
LINE = '{"qid": "q", "question": "Is $x$?", "aid": "a", "answer": "Yes."}\n'


def test_a_question_with_two_answers_comes_once(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(LINE + LINE.replace('"a"', '"b"'), encoding="utf-8")
    assert [document["docno"] for document in read_documents(file)] == ["q", "a", "b"]
    assert read_training_pairs(file) == ([("q", "a"), ("q", "b")], [])


@pytest.mark.parametrize("bad", ["{", "[]", '{"qid": "q"}', LINE.replace('"Yes."', "7")])
def test_a_bad_line_is_named_and_the_rest_is_read(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(f"{bad}\n\n{LINE}", encoding="utf-8")
    with pytest.warns(MathAMRWarning, match=r"pairs\.jsonl:1: .* the line is skipped"):
        assert read_training_pairs(file).train == [("q", "a")]


def test_a_missing_source_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere"):
        next(read_documents(tmp_path / "nowhere"))


def test_test_questions_of_a_folder_are_never_among_the_training_pairs() -> None:
    pairs = read_training_pairs(SAMPLE)
    assert {known_item_split(question) for question, _ in pairs.train} == {"train"}
    assert {known_item_split(question) for question, _ in pairs.validation} == {"validation"}

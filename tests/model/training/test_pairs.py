"""Pairs: accepted forms, the split by question, batches, and which documents are never negatives."""

import pandas as pd
import pytest
import torch

from pyterrier_mathamr.model import TrainingError
from pyterrier_mathamr.model.pairs import PairAnswers, batches_of, read_pairs, split_pairs


def test_tuples_and_frames_are_the_same_pairs_without_repeats() -> None:
    frame = pd.DataFrame({"qid": [1, 2, 1], "docno": [7, 8, 7], "label": [1, 1, 1]})
    assert read_pairs(frame) == read_pairs([("1", "7"), (2, 8)]) == (("1", "7"), ("2", "8"))


@pytest.mark.parametrize("bad", [["ab"], [7], [("1", "2", "3")], pd.DataFrame({"qid": ["1"], "answer": ["2"]})])
def test_records_that_are_not_pairs_are_refused(bad) -> None:
    with pytest.raises(TrainingError, match="pair"):
        read_pairs(bad)


def test_no_question_is_on_both_sides_of_the_split() -> None:
    pairs = [(f"q{i % 30}", f"a{i}") for i in range(90)]
    train, held = split_pairs(pairs, 0.1, 42)
    assert sorted(train + held) == sorted(pairs)
    assert len({question for question, _ in held}) == 3
    assert not {question for question, _ in held} & {question for question, _ in train}
    assert (train, held) == split_pairs(pairs, 0.1, 42) != split_pairs(pairs, 0.1, 43)


def test_a_small_share_holds_one_question_and_a_share_of_zero_none() -> None:
    pairs = [("q0", "a0"), ("q1", "a1")]
    assert len(split_pairs(pairs, 0.01, 0)[1]) == 1
    assert split_pairs(pairs, 0.0, 0) == (tuple(pairs), ())
    assert split_pairs(pairs[:1], 0.5, 0) == (tuple(pairs[:1]), ())


def test_every_pair_is_in_one_batch_and_a_batch_of_one_is_left_out() -> None:
    pairs = [(f"q{i}", f"a{i}") for i in range(9)]
    assert [len(batch) for batch in batches_of(pairs, 4)] == [4, 4]
    shuffled = batches_of(pairs, 3, torch.Generator().manual_seed(0))
    assert sorted(pair for batch in shuffled for pair in batch) == pairs
    assert [pair for batch in shuffled for pair in batch] != pairs


def test_answers_known_to_be_right_are_never_negatives() -> None:
    answers = PairAnswers([("q0", "a0"), ("q0", "a1"), ("q1", "a1"), ("q2", "a2")])
    batch = [("q0", "a0"), ("q1", "a1"), ("q2", "a2"), ("q0", "a1")]
    assert answers.allowed(batch).tolist() == [
        [True, False, True, False],  # q0 also has a1, twice in the batch
        [True, True, True, False],  # a1 again
        [True, True, True, True],
        [False, False, True, True],  # the same question once more
    ]


def test_never_negative_are_also_documents_given_as_such_and_the_question_itself() -> None:
    answers = PairAnswers([("q0", "a0"), ("q1", "q0")], never={"q0": ["a1", "x"]})
    batch = [("q0", "a0"), ("q1", "q0")]  # q0 is the document that answers q1
    assert answers.allowed(batch, ["x", "y"]).tolist() == [[True, False, False, True], [True, True, True, True]]
    assert [answers.known("q0", name) for name in ("a0", "a1", "x", "q0", "y")] == [True, True, True, True, False]

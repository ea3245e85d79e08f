"""Training pairs as the papers on ColBERT and MaRF choose them: accepted answers, answers with votes, duplicates."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_split, linked_pairs, read_training_pairs


def right_answers(source: Path, least_votes: int, *, of_duplicates: bool = False) -> list[tuple[str, str]]:
    """Pair the training questions of a collection with their right answers.

    An answer is right for its question if the asker accepted it, or if it has ``least_votes``. If a collection has
    neither votes nor accepted answers, such as arqmath-mini, its own training pairs are returned.

    Args:
        source: an ARQMath folder.
        least_votes: minimum votes of a right answer.
        of_duplicates: the accepted answer of a duplicate is right, too; only training questions count as duplicates,
            so that answers of test questions are never trained on.
    """
    collection = ARQMathCollection(source)
    accepted = {
        question.id: question.accepted_answer_id
        for question in collection.questions()
        if known_item_split(question.id) == "train"
    }
    found, known = dict[tuple[str, str], None](), any(accepted.values())
    for answer in collection.answers():
        known |= answer.score is not None
        pair = answer.parent_id, answer.id
        if pair[0] in accepted and (accepted[pair[0]] == answer.id or (answer.score or 0) >= least_votes):
            found[pair] = None
    if not known:
        return list(dict.fromkeys(read_training_pairs(source).train))
    if of_duplicates:
        for question, duplicate in linked_pairs(source, "duplicate"):
            answer_id = accepted[duplicate]
            if (duplicate, answer_id) in found:  # the accepted answer is in the collection
                found[question, answer_id] = None
    return list(found)

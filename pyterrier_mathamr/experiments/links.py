"""What links between questions say about their answers: who is no negative of whom, and further pairs to train on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pyterrier_mathamr.arqmath import ARQMathCollection, Link, MissingFileError, known_item_split

LinkedQuestions = Literal["none", "duplicate", "all"]
LINKED_QUESTIONS: tuple[LinkedQuestions, ...] = ("none", "duplicate", "all")


def known_answers(source: str | Path, questions: Iterable[str]) -> dict[str, set[str]]:
    """Collect for each question what answers it or may do so: no such document is ever a negative of it.

    These are all its own answers, whatever was made of them in the pairs; the questions it is linked with, in either
    direction; and their answers. Duplicates of duplicates are duplicates; a related question's relations are not.

    Args:
        source: an ARQMath folder; of a pair file nothing is known but its pairs.
        questions: question ids.

    Returns:
        Docnos by question id; a folder without links gives own answers alone.
    """
    wanted = dict.fromkeys(questions)
    if not Path(source).is_dir():
        return {}
    collection = ARQMathCollection(source)
    links = _links(collection)
    same = _classes(link for link in links if link.kind == "duplicate")
    near: defaultdict[str, set[str]] = defaultdict(set)
    for link in links:
        near[link.question_id].add(link.related_id)
        near[link.related_id].add(link.question_id)
    linked = {question: {question, *same.get(question, ()), *near.get(question, ())} for question in wanted}
    asked = set().union(*linked.values())
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for post in collection.answers():
        if post.parent_id in asked:
            answers[post.parent_id].add(post.id)
    for question, answer in collection.pairs():
        answers[question].add(answer)
    return {
        question: (others - {question}).union(*(answers[other] for other in others if other in answers))
        for question, others in linked.items()
    }


def linked_pairs(source: str | Path, which: LinkedQuestions) -> list[tuple[str, str]]:
    """Pair the training questions of a folder that are linked: each is to find the other.

    Args:
        source: an ARQMath folder; a pair file has no links.
        which: ``duplicate`` links, or ``all`` with the related ones; ``none`` gives nothing.

    Returns:
        Pairs in both directions, in the order of the links; both questions are in the collection and in the training
        part.
    """
    if which == "none" or not Path(source).is_dir():
        return []
    collection = ARQMathCollection(source)
    there = {post.id for post in collection.questions() if known_item_split(post.id) == "train"}
    found: dict[tuple[str, str], None] = {}
    for link in _links(collection):
        ends = (link.question_id, link.related_id)
        if there.issuperset(ends) and ends[0] != ends[1] and which in ("all", link.kind):
            found.update({ends: None, ends[::-1]: None})
    return list(found)


def _links(collection: ARQMathCollection) -> list[Link]:
    try:
        return list(collection.links())
    except MissingFileError:
        return []


def _classes(links: Iterable[Link]) -> dict[str, set[str]]:
    """Join linked questions into classes: each question's id to the one set of all that it is joined with."""
    of: dict[str, set[str]] = {}
    for link in links:
        first, second = (of.setdefault(name, {name}) for name in (link.question_id, link.related_id))
        if first is not second:
            small, large = sorted((first, second), key=len)
            large |= small
            of.update(dict.fromkeys(small, large))
    return of

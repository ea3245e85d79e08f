"""Posts, pairs and links of a source: a local ARQMath folder, a file of question-answer pairs, or a person's posts.

A pair file has one JSON object a line, plain or gzipped, texts with formulas as ``$…$``::

    {"qid": "fcla-12", "question": "Let $A$ be …", "aid": "fcla-12-proof", "answer": "Since $A$ …"}

Graphs are built from each of the three, models trained on the first two. A person's posts are a ``.jsonl`` file or a
folder, see :func:`~pyterrier_mathamr.posts.read_posts`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pyterrier_mathamr.posts import (
    IDS,
    TEXTS,
    DocumentError,
    accepted_posts,
    count_posts,
    json_lines,
    post_files,
    readable,
)
from pyterrier_mathamr.store import file_fingerprint

from .collection import ARQMathCollection, known_item_split, split_pairs
from .dump import Link
from .errors import ARQMathError, MissingFileError
from .release_files import is_release

_FIELDS = ("qid", "question", "aid", "answer")
_EXAMPLE = '{"qid": "q1", "question": "What is $2^3$?", "aid": "a1", "answer": "It is $8$."}'

LinkedQuestions = Literal["none", "duplicate", "all"]


class TrainingPairs(NamedTuple):
    """Pairs (question id, answer id) by their use.

    Attributes:
        train: to train on.
        validation: for early stopping.
    """

    train: Sequence[tuple[str, str]]
    validation: Sequence[tuple[str, str]]


def read_documents(source: str | Path) -> Iterator[dict[str, Any]]:
    """Read the posts of a source as input of ``GraphBuilder``.

    Args:
        source: an ARQMath folder, a pair file, or a file or folder of posts.

    Returns:
        An iterator of ``{docno, title, html}`` or ``{docno, text}``; a post that several pairs share comes once. A
        warning names the posts that cannot be read.

    Raises:
        ARQMathError: there is no such source, or a file of the folder is missing. DocumentError: nothing in it can be
            read.
    """
    path = Path(source)
    kind = _kind(path)
    if kind == "release":
        yield from ARQMathCollection(path).documents()
    elif kind == "posts":
        yield from (document.record() for document in accepted_posts(path))
    else:
        seen: set[str] = set()
        for pair in read_pair_file(path):
            for docno, text in ((pair["qid"], pair["question"]), (pair["aid"], pair["answer"])):
                if docno not in seen:
                    seen.add(docno)
                    yield {"docno": docno, "text": text}


def count_documents(source: str | Path) -> int | None:
    """Count the posts that :func:`read_documents` yields, bad ones included, for the total of a progress bar."""
    path = Path(source)
    kind = _kind(path)
    if kind == "posts":
        return count_posts(path)
    if kind == "release":
        return ARQMathCollection(path).count_posts()
    pairs = (pair for _, pair in json_lines(path, texts=_FIELDS) if not isinstance(pair, DocumentError))
    return len({name for pair in pairs for name in (pair["qid"], pair["aid"])})


def _kind(path: Path) -> Literal["release", "pairs", "posts"]:
    """Recognize a source: the release by the names of its files, pairs by the first line that is a JSON object."""
    if path.is_dir():
        return "release" if is_release(path) else "posts"
    if not path.is_file():
        raise _missing(path)
    if not path.name.endswith((".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz")):
        return "posts"
    place, record = next(((place, line) for place, line in json_lines(path) if isinstance(line, dict)), ("", {}))
    if record and not any(name in record for name in (*_FIELDS, *IDS, *TEXTS)):
        reason = (
            f"it is neither a pair nor a post. A pair has the texts {', '.join(_FIELDS)}, such as {_EXAMPLE}; "
            "a post has docno and text"
        )
        raise DocumentError(place, reason)
    is_post = any(name in record for name in TEXTS) and not ("qid" in record or "aid" in record)
    return "pairs" if not is_post and any(name in record for name in _FIELDS) else "posts"


def _missing(path: Path) -> ARQMathError:
    return ARQMathError(
        f"{path}: no such file or folder. Name a local ARQMath folder, a file of pairs (.jsonl, .jsonl.gz), or posts "
        "as `mathamr build` reads them: a .jsonl file, or a file or folder of notes in LaTeX, Markdown and the like."
    )


def read_training_pairs(source: str | Path) -> TrainingPairs:
    """Read the pairs of a source that may be trained on.

    The questions of an ARQMath folder are split into training, validation and test by their id; the test part
    is left out. All pairs of a pair file are for training.

    Args:
        source: an ARQMath folder, or a pair file.

    Raises:
        ARQMathError: the source is neither, or a file of the folder is missing.
    """
    path = Path(source)
    if not path.is_dir():
        return TrainingPairs([(pair["qid"], pair["aid"]) for pair in read_pair_file(path)], [])
    pairs = list(ARQMathCollection(path).pairs())
    return TrainingPairs(split_pairs(pairs, "train"), split_pairs(pairs, "validation"))


def source_fingerprints(sources: Sequence[str | Path]) -> dict[str, object]:
    """Identify the content of sources, so that graphs of other content are not used for them."""
    fingerprints: dict[str, object] = {}
    for number, path in enumerate(map(Path, sources), 1):
        kind = _kind(path)
        if kind == "release":
            collection = ARQMathCollection(path)
            files = [collection.posts_file, *collection.slt_tables, *collection.opt_tables]
        else:
            files = post_files(path) if path.is_dir() else [path]
        for file in files:
            fingerprints[f"source {number}, {file.relative_to(path.parent)}"] = file_fingerprint(file)
    return fingerprints


def read_pair_file(path: Path) -> Iterator[dict[str, str]]:
    """Read the valid lines of a file of pairs; a warning at the end names the others."""
    if not path.is_file():
        raise _missing(path)
    yield from readable(json_lines(path, texts=_FIELDS), "pairs", str(path))


def known_answers(source: str | Path, questions: Iterable[str]) -> dict[str, set[str]]:
    """Collect for each question the documents that answer it or may answer it; none of them is ever its negative.

    These are all its own answers, in the pairs or not; the questions it is linked with, in either direction; and their
    answers. Duplicates are transitive, relations are not.

    Args:
        source: an ARQMath folder; for a pair file the result is empty.
        questions: question ids.

    Returns:
        Docnos by question id; only own answers if the folder has no links.
    """
    if not Path(source).is_dir():
        return {}
    collection = ARQMathCollection(source)
    duplicates: dict[str, set[str]] = {}  # question to all its duplicates and itself, a set that they share
    neighbors: defaultdict[str, set[str]] = defaultdict(set)
    for link in _links(collection):
        neighbors[link.question_id].add(link.related_id)
        neighbors[link.related_id].add(link.question_id)
        if link.kind == "duplicate":
            first, second = (duplicates.setdefault(name, {name}) for name in (link.question_id, link.related_id))
            if first is not second:
                small, large = sorted((first, second), key=len)
                large |= small
                duplicates.update(dict.fromkeys(small, large))
    linked = {
        question: {question, *duplicates.get(question, ()), *neighbors.get(question, ())}
        for question in dict.fromkeys(questions)
    }
    asked = set().union(*linked.values())
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for post in collection.answers():
        if post.parent_id in asked:
            answers[post.parent_id].add(post.id)
    for question, answer in collection.pairs():
        answers[question].add(answer)
    return {
        question: (near - {question}).union(*(answers[name] for name in near if name in answers))
        for question, near in linked.items()
    }


def linked_pairs(source: str | Path, which: LinkedQuestions) -> list[tuple[str, str]]:
    """Pair the linked training questions of a folder, so that each learns to find the other.

    Args:
        source: an ARQMath folder; a pair file has no links.
        which: ``duplicate`` links, ``all`` with the related ones, or ``none``.

    Returns:
        Pairs in both directions, in the order of the links, of questions in the training part of the collection.
    """
    if which == "none" or not Path(source).is_dir():
        return []
    collection = ARQMathCollection(source)
    training = {post.id for post in collection.questions() if known_item_split(post.id) == "train"}
    pairs: dict[tuple[str, str], None] = {}
    for link in _links(collection):
        ends = (link.question_id, link.related_id)
        if training.issuperset(ends) and ends[0] != ends[1] and which in ("all", link.kind):
            pairs.update({ends: None, ends[::-1]: None})
    return list(pairs)


def _links(collection: ARQMathCollection) -> list[Link]:
    try:
        return list(collection.links())
    except MissingFileError:
        return []

"""Checks of a local copy, and its counts next to the published ones.

Each file is read once, its rows counted, its ids compared with the ids of the posts. A part of the release can be a
good copy: fewer rows than published are a note. Files that cannot be read, are truncated, or have rows that break a
rule are a problem.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyterrier_mathamr.arqmath import (
    ARQMathCollection,
    BadRowWarning,
    Item,
    MissingFileError,
    inventory,
    read_dump,
    read_pairs,
    read_qrels,
    read_topics,
)
from pyterrier_mathamr.extending import (
    DOCUMENT_COUNTS,
    Judged,
    MathAMRError,
    MathAMRWarning,
    SeenIds,
    Task,
    count_rows,
    progress,
    read_links,
    recorded_warnings,
)
from pyterrier_mathamr.formula import read_formula_table

TABLE_4_3: Mapping[str, int] = {
    "Total posts": DOCUMENT_COUNTS["posts"],
    "Question posts": DOCUMENT_COUNTS["questions"],
    "Answer posts": DOCUMENT_COUNTS["answers"],
    "Mathematical formulas": DOCUMENT_COUNTS["formulas"],
    "Task 1 topics": 78,
    "Task 2 topics": 76,
    "Task 1 total judgments": 34_847,
    "Task 1 unique judged answer posts": 33_383,
    "Task 2 total judgments": 11_538,
    "Task 2 unique judged formulas": 9_975,
    "Training pairs (question + accepted answer)": 545_638,
    "Task 1 retrieval index (answer posts)": 1_365_254,
    "Task 2 retrieval index (question+answer posts)": 2_058_341,
}
"""MathAMR+, Table 4.3: ARQMath-3 benchmark and MathAMR+ corpus statistics, as printed."""


HARMLESS = {"Q303"}  # the codes 5 and 6 are intended


class RoleCheck(NamedTuple):
    """The result of the check of one role."""

    role: str
    good: bool
    counts: str  # such as "6,164 posts: 2,769 questions, 3,395 answers"
    problems: tuple[str, ...] = ()  # one sentence each
    notes: tuple[str, ...] = ()  # observations that are not faults


class _Ids(NamedTuple):
    """The ids that later files are compared with; empty if their file is missing."""

    posts: SeenIds
    formulas: SeenIds


def verify(folder: Path, *, verbose: bool = False) -> Iterator[RoleCheck]:
    """Check the files in a folder, role by role: ten minutes for the whole release, a bit of memory for each id.

    Args:
        folder: the local copy.
        verbose: whether to show progress.

    Yields:
        A finding for each role that is present, complete or in part.
    """
    ids = _Ids(SeenIds(), SeenIds())
    for item in inventory(folder):
        if item.state in ("present", "incomplete"):
            yield _check(item, ids, verbose)


def _check(item: Item, ids: _Ids, verbose: bool) -> RoleCheck:
    problems = [f"{item.files[0].parent}: {item.note}"] if item.note else []
    notes: list[str] = []
    counts = ""
    with recorded_warnings() as caught:
        try:
            counts, noted, wrong = _CHECKS[item.reader](item, ids, verbose)
            notes += noted
            problems += wrong
        except (MathAMRError, OSError) as error:
            problems.append(str(error))
    messages = [warning.message for warning in caught if isinstance(warning.message, MathAMRWarning)]
    for message in messages:
        harmless = isinstance(message, BadRowWarning) and message.code in HARMLESS
        (notes if harmless else problems).append(str(message))
    return RoleCheck(item.role, not problems, counts, tuple(problems), tuple(notes))


_Report = tuple[str, list[str], list[str]]


def _posts(item: Item, ids: _Ids, verbose: bool) -> _Report:
    kinds: Counter[str] = Counter()
    orphans = 0
    total = count_rows(item.files[0]) if verbose else None
    rows = progress(read_dump(item.files[0]), item.role, "posts", verbose=verbose, total=total)
    for post in rows:
        kinds[post.kind] += 1
        ids.posts.add(post.id)
        orphans += post.kind == "answer" and post.parent_id not in ids.posts
    notes = [f"{orphans:,} answers without their question before them"] if orphans else []
    notes += _of_all(kinds.total(), DOCUMENT_COUNTS["posts"], "posts")
    counts = f"{kinds.total():,} posts: {kinds['question']:,} questions, {kinds['answer']:,} answers"
    return counts, notes, [] if kinds else ["no post"]


def _table(item: Item, ids: _Ids, verbose: bool) -> _Report:
    """Count formulas and compare their ids with the table of LaTeX, which is checked first."""
    of_posts = item.role.startswith("formulas, ")
    first = of_posts and not ids.formulas
    seen, compared, post, missing = ids.formulas if first else SeenIds(), of_posts and bool(ids.posts), "", False
    total = repeated = elsewhere = foreign = empty = 0
    problems: list[str] = []
    for file in progress(item.files, item.role, "files", verbose=verbose):
        if of_posts and _is_truncated(file):  # tables of topics are published without a final line end
            problems.append(f"{file} is truncated, in the middle of a line; download it again")
        for row in read_formula_table(file):
            total += 1
            known = first or not of_posts or row.id in ids.formulas
            repeated += not seen.add(row.id)
            foreign += not known
            empty += not row.formula
            if compared and row.type != "comment":
                if row.post_id != post:  # the formulas of a post follow each other
                    post, missing = row.post_id, row.post_id not in ids.posts
                elsewhere += missing
    problems += [f"{repeated:,} duplicate ids"] if repeated else []
    notes = [f"{foreign:,} formulas are not in the table of LaTeX"] if foreign else []
    notes += [f"{elsewhere:,} formulas are of posts that are missing here"] if elsewhere else []
    notes += [f"{empty:,} formulas are empty"] if empty else []
    notes += _of_all(total, DOCUMENT_COUNTS["formulas"], "formulas") if of_posts else []
    return f"{total:,} formulas in {len(item.files)} files", notes, problems if total else ["no formula"]


def _is_truncated(file: Path) -> bool:
    """Return whether a plain file ends in the middle of a line; the reader of a gzipped one reports that itself."""
    if file.suffix == ".gz" or file.stat().st_size == 0:
        return False
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"


def _topics(item: Item, ids: _Ids, verbose: bool) -> _Report:
    topics = list(read_topics(item.files[0]))
    lost = [
        topic.id for topic in topics if topic.formula_id and f'id="{topic.formula_id}"' not in topic.title + topic.body
    ]
    problems = [f"topic {topic}: its formula is not in its question" for topic in lost]
    return f"{len(topics):,} topics", [], problems if topics else ["no topic"]


def _qrels(item: Item, ids: _Ids, verbose: bool) -> _Report:
    grades: Counter[int] = Counter()
    topics, judged = set(), set()
    for qrel in read_qrels(item.files[0]):
        grades[qrel.relevance] += 1
        topics.add(qrel.query_id)
        judged.add(qrel.doc_id)
    known = ids.posts if item.role.endswith("task 1") else ids.formulas if item.role.endswith("formula id") else None
    notes = []
    if known:
        here = sum(docno in known for docno in judged)
        notes = [f"{here:,} of the {len(judged):,} judged ids are here"] if here < len(judged) else []
    spread = " / ".join(f"{grades[grade]:,}" for grade in range(4))
    counts = f"{grades.total():,} judgments of {len(topics)} topics, grades 0 to 3: {spread}"
    return counts, notes, [] if grades else ["no judgment"]


def _references(rows: Iterable[tuple[Any, ...]], what: str, ids: _Ids, *, ends: int) -> _Report:
    """Count rows of post ids, and compare the first ``ends`` of each with the posts."""
    total = foreign = 0
    for row in rows:
        total += 1
        foreign += bool(ids.posts) and any(post not in ids.posts for post in row[:ends])
    notes = [f"{foreign:,} {what} of posts that are missing here"] if foreign else []
    return f"{total:,} {what}", notes, [] if total else [f"no {what}"]


def _of_all(count: int, published: int, what: str) -> list[str]:
    if count == published:
        return []
    return [f"{count / published:.2%} of the {published:,} {what} of the complete release"]


_CHECKS: dict[str, Callable[[Item, _Ids, bool], _Report]] = {
    "posts": _posts,
    "table": _table,
    "topics": _topics,
    "qrels": _qrels,
    "pairs": lambda item, ids, _: _references(read_pairs(item.files[0]), "pairs", ids, ends=2),
    "links": lambda item, ids, _: _references(read_links(item.files[0]), "links", ids, ends=1),
}


class Statistic(NamedTuple):
    """One row of the table."""

    name: str  # as in the paper
    here: int | None  # None if the copy lacks the file
    published: int | None  # in the paper; None if it gives no number
    note: str = ""


_NOTES = {
    "Task 1 retrieval index (answer posts)": "here all answers; in the paper the answers that its parser parsed",
    "Task 2 retrieval index (question+answer posts)": "here all posts with a formula; in the paper the parsed ones",
}


def release_statistics(collection: ARQMathCollection, *, year: int = 2022, verbose: bool = False) -> list[Statistic]:
    """Count the rows of Table 4.3.

    The judgments are the official ones, complete even if the posts are a part; Task 2 is counted by visual id.
    Topics are the topics with judgments.

    Args:
        collection: the local copy; the counts of missing files are None.
        year: the year of the topics; 2022 in the paper.
        verbose: whether to show progress.
    """
    total = collection.count_posts() if verbose else None
    posts = progress(collection.posts(), "reading", "posts", verbose=verbose, total=total)
    kinds = Counter(post.kind for post in posts)
    counts: dict[str, int | None] = {
        "Total posts": kinds.total(),
        "Question posts": kinds["question"],
        "Answer posts": kinds["answer"],
        "Training pairs (question + accepted answer)": sum(1 for _ in collection.pairs()),
    }
    formulas, visual, holding = _formula_counts(collection, verbose)
    counts["Mathematical formulas"] = formulas
    counts |= _judgment_counts(collection, year, 1, "formula", "Task 1 unique judged answer posts")
    counts |= _judgment_counts(collection, year, 2, "visual", "Task 2 unique judged formulas")
    counts["Task 1 retrieval index (answer posts)"] = counts["Answer posts"]
    counts["Task 2 retrieval index (question+answer posts)"] = holding
    rows = []
    for name, printed in TABLE_4_3.items():
        of_topics = name.startswith("Task ") and "index" not in name
        published = printed if year == 2022 or not of_topics else None
        rows.append(Statistic(name, counts[name], published, _NOTES.get(name, "")))
    return [*rows, Statistic("Visually distinct formulas", visual, None)]


def _formula_counts(collection: ARQMathCollection, verbose: bool) -> tuple[int | None, int | None, int | None]:
    """Count formulas, visual ids, and posts with a formula."""
    if not collection.latex_tables:
        return None, None, None
    formulas = visual = posts = 0
    visual_ids, post_ids, post = SeenIds(), SeenIds(), ""  # a bit each; a set of 28 million ids needs gigabytes
    for table in progress(collection.latex_tables, "formulas", "tables", verbose=verbose):
        for row in read_formula_table(table):
            formulas += 1
            visual += bool(row.visual_id) and visual_ids.add(row.visual_id)
            if row.type != "comment" and row.post_id != post:  # the formulas of a post follow each other
                post = row.post_id
                posts += post_ids.add(post)
    return formulas, visual, posts


def _judgment_counts(
    collection: ARQMathCollection, year: int, task: Task, judged: Judged, unique: str
) -> dict[str, int | None]:
    names = (f"Task {task} topics", f"Task {task} total judgments", unique)
    try:
        qrels = list(collection.qrels(year, task, judged=judged, complete=True))
    except MissingFileError:
        return dict.fromkeys(names)
    counts = (len({qrel.query_id for qrel in qrels}), len(qrels), len({qrel.doc_id for qrel in qrels}))
    return dict(zip(names, counts, strict=True))

"""The statistics of benchmark and corpus in the paper (MathAMR+, Table 4.3), counted on a local copy."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.arqmath.collection import ARQMathCollection
from pyterrier_mathamr.arqmath.errors import MissingFileError
from pyterrier_mathamr.arqmath.files.rows import SeenIds
from pyterrier_mathamr.formula import read_formula_table

from .file_names import Judged, Task
from .published import TABLE_4_3


class Statistic(NamedTuple):
    """One row of the table."""

    name: str  # as in the paper
    here: int | None  # None where the copy lacks the file
    published: int | None  # in the paper; None for what it does not print
    note: str = ""


_NOTES = {
    "Task 1 retrieval index (answer posts)": "here all answers; in the paper those that its parser parsed",
    "Task 2 retrieval index (question+answer posts)": "here all posts with a formula; in the paper those parsed",
}


def release_statistics(collection: ARQMathCollection, *, year: int = 2022, verbose: bool = False) -> list[Statistic]:
    """Count the rows of Table 4.3.

    The judgments are the official ones, complete even if the posts are a part; those of Task 2 are by visual id.
    Topics are those with judgments.

    Args:
        collection: the local copy; the counts of missing files are None.
        year: the year of the topics; 2022 in the paper.
        verbose: whether to show progress.
    """
    counts = _post_counts(collection, verbose)
    formulas, visual, holding = _formula_counts(collection, verbose)
    counts["Mathematical formulas"] = formulas
    counts |= _judgment_counts(collection, year, 1, "formula", "Task 1 unique judged answer posts")
    counts |= _judgment_counts(collection, year, 2, "visual", "Task 2 unique judged formulas")
    counts["Task 1 retrieval index (answer posts)"] = counts["Answer posts"]
    counts["Task 2 retrieval index (question+answer posts)"] = holding
    rows = []
    for name, printed in TABLE_4_3.items():
        published = printed if year == 2022 or not _is_of_topics(name) else None
        rows.append(Statistic(name, counts[name], published, _NOTES.get(name, "")))
    return [*rows, Statistic("Visually distinct formulas", visual, None)]


def _is_of_topics(name: str) -> bool:
    return name.startswith("Task ") and "index" not in name


def _post_counts(collection: ARQMathCollection, verbose: bool) -> dict[str, int | None]:
    total = collection.count_posts() if verbose else None
    kinds = Counter(
        post.kind for post in progress(collection.posts(), "reading", "posts", verbose=verbose, total=total)
    )
    return {
        "Total posts": kinds.total(),
        "Question posts": kinds["question"],
        "Answer posts": kinds["answer"],
        "Training pairs (question + accepted answer)": sum(1 for _ in collection.pairs()),
    }


def _formula_counts(collection: ARQMathCollection, verbose: bool) -> tuple[int | None, int | None, int | None]:
    """Count formulas, visual ids, and posts with a formula."""
    if not collection.latex_tables:
        return None, None, None
    formulas = visual = posts = 0
    visual_ids, post_ids, post = SeenIds(), SeenIds(), ""  # a bit for each, where a set of 28 million takes gigabytes
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
    found = (len({qrel.query_id for qrel in qrels}), len(qrels), len({qrel.doc_id for qrel in qrels}))
    return dict(zip(names, found, strict=True))

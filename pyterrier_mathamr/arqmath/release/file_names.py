"""The names of the files of the release, by the organisers and participants.

File names changed each year, and folders differ between the organisers' drive, its backup and local copies. So files
are found by name anywhere below the folder. Each role has a list of patterns, best first::

    qrels, 2022, task 1 ── qrels.arqmath-2022-task1.mini.txt     restricted to a partial collection (preferred)
                        ├─ qrels.arqmath-2022-task1.txt
                        └─ qrel_task1_2022_official.tsv          the organisers' name
"""

from __future__ import annotations

import re
from typing import Literal

from pyterrier_mathamr._common.parameters import one_of

Task = Literal[1, 2, 3]
Judged = Literal["formula", "visual"]
Representation = Literal["latex", "slt", "opt"]

Patterns = tuple[str, ...]
"""Regular expressions of file names, best first, each matched against a whole name, ignoring case."""

POSTS: Patterns = (r"Posts\.V[\d.]+\.xml(\.gz)?", r"Posts\.xml(\.gz)?")
PACKED_POSTS: Patterns = (r"Posts(\.V[\d.]+)?\.(xml\.)?(zip|7z|bz2|xz)",)
PAIRS: Patterns = (r"pairs\.tsv(\.gz)?",)
LINKS: Patterns = (r"links\.tsv(\.gz)?", r"PostLinks\.V[\d.]+\.xml(\.gz)?", r"PostLinks\.xml(\.gz)?")

PACKED_LINKS: Patterns = (r"PostLinks(\.V[\d.]+)?\.(xml\.)?(zip|7z|bz2|xz)",)

_TASK = one_of(1, 2, 3)
_JUDGED = one_of("formula", "visual")
_VERSION = r"([._]V[\d.]+)?"


def packed_table_patterns(kind: Representation) -> Patterns:
    """Return the names of the archive of the formula tables of one representation."""
    return (rf"{kind}_representation(_v\d+)?\.(zip|7z|tar\.gz)",)


def topic_patterns(year: str, task: Task) -> Patterns:
    """Return the names of the topics of a year; Task 3 uses those of Task 1."""
    _TASK.check("task", task)
    of = 2 if task == 2 else 1
    # The names of 2020 have no task; the files differ in their version.
    plain = {(1, "2020"): (r"Topics_V2\.0\.xml",), (2, "2020"): (r"Topics_V1\.1\.xml",)}.get((of, year), ())
    return (rf"Topics_Task{of}_{re.escape(year)}{_VERSION}\.xml(\.gz)?", *plain)


def topic_table_patterns(year: str, kind: Representation) -> Patterns:
    """Return the names of the table of the topics' formulas in one representation."""
    end = rf"{_VERSION}\.tsv(\.gz)?"
    year_ = re.escape(year)
    plain = {"2020": (rf"Formula_topics_{kind}_V2\.0\.tsv",), "2022": (rf"Topics_Formulas_{kind}\.V0\.1\.tsv",)}
    return (
        rf"Topics_Formulas_{kind}_{year_}{end}",
        rf"Topics_{year_}_Formulas_{kind}{end}",
        rf"Formula_topics_{kind}_{year_}{end}",
        *plain.get(year, ()),
    )


def qrels_patterns(year: str, task: Task, judged: Judged = "formula") -> Patterns:
    """Return the names of the judgments of a year; official test topics precede all topics."""
    _TASK.check("task", task)
    _JUDGED.check("judged", judged)
    y = re.escape(year)
    if task == 2:
        return _visual_patterns(y) if judged == "visual" else _formula_patterns(y)
    return (
        rf"qrels\.arqmath-{y}-task{task}\.txt",
        rf"qrel_task{task}_{y}_official(_complete)?(\.tsv)?",
        *((r"qrel_official_task1(\.tsv)?",) if (y, task) == ("2020", 1) else ()),
        rf"qrel_task{task}_{y}_test\.tsv",
        rf"qrels\.arqmath-{y}-task{task}-official\.txt",
        rf"qrel_task{task}_{y}(_all)?\.tsv",
    )


def _formula_patterns(y: str) -> Patterns:
    return (
        rf"qrels\.arqmath-{y}-task2(\.formula_id)?\.txt",
        rf"qrel_task2_{y}_formula_id\.tsv",
        *((r"qrel_task2\.tsv",) if y == "2020" else ()),  # in the folder qrel_with_formula_ids
        rf"qrels\.arqmath-{y}-task2\.formula_id\.all\.txt",
        rf"qrel_task2_{y}_all_formula_id\.tsv",
        *((r"qrel_task2_all\.tsv",) if y == "2020" else ()),
    )


def _visual_patterns(y: str) -> Patterns:
    return (
        rf"qrels\.arqmath-{y}-task2\.visual_id(\.v\d+)?\.txt",
        rf"qrels\.arqmath-{y}-task2-official\.v3\.txt",
        rf"qrel_task2_{y}_official\.tsv",
        rf"qrel_task2_official_{y}_visual_id\.tsv",
        rf"qrel_task2_{y}_test_official_evaluation\.tsv",
        rf"qrel_task2_{y}_(visual_id|all)\.tsv",
    )

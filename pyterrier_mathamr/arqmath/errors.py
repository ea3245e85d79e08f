"""Faults in a local copy of the release: errors, and the rules for bad rows.

A bad *row* is not an error and costs only that row. A :class:`BadRowWarning` names file and line, and
the rest of the file is read. Each rule has a code, which is also the name of its test fixture.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import recorded_warnings

DOWNLOAD_PAGE = "https://www.cs.rit.edu/~dprl/ARQMath/arqmath-resources.html"
"""The organizers' page from which the release is downloaded."""


class ARQMathError(MathAMRError):
    """The release, a run or a submission cannot be used; the base of all errors about ARQMath."""

    reason: str
    template = "{reason}"


class MissingFileError(ARQMathError):
    """A folder of the release lacks a file.

    Attributes:
        reason: the missing file in words.
        folder: the folder that was searched.
        names: the file names that were searched for.
        hint: the remedy; if empty, download the file.
    """

    folder: Path
    names: tuple[str, ...]
    hint: str = ""
    template = "{folder}: there are no {reason}. Looked for {tried}. {remedy}"

    @property
    def tried(self) -> str:
        return ", ".join(self.names)

    @property
    def remedy(self) -> str:
        return self.hint or f"Download them from {DOWNLOAD_PAGE}"


T = TypeVar("T")

RULES = {
    "P101": "the row is not well-formed XML; it is skipped",
    "P102": "the row has no Id; it is skipped",
    "P103": "the row's PostTypeId is missing or not a number; it is skipped",
    "P104": "the Score or CommentCount is not a whole number; the post is kept without it",
    "P105": "the row has characters that XML forbids, or bytes that are not UTF-8; they are dropped, the row is kept",
    "P106": "the file is truncated; the rows before are kept. Download it again",
    "P107": "the row is longer than 64 MiB; it is skipped",
    "P108": "the Id is a duplicate; the first row is kept, this one is skipped",
    "T201": "the topic has no number; it is skipped",
    "T202": "the topic is not well-formed XML; it is skipped",
    "T203": "the topic's number is a duplicate; the first topic is kept, this one is skipped",
    "T204": "the topic has neither title nor question; it is skipped",
    "T205": "the file is truncated; the topics before are kept. Download it again",
    "T206": "the choice is neither a term nor a tex with its text; it is skipped",
    "Q301": "the line does not have the four columns topic, iteration, id, grade; it is skipped",
    "Q302": "the grade is not 0, 1, 2 or 3; the line is skipped",
    "Q303": "5 (system failure) and 6 (do not know) are not grades; these lines are dropped",
    "Q304": "the id is judged twice for this topic; the first judgment is kept, this one is skipped",
    "L401": "the line lacks a column or an id; it is skipped",
    "L402": "the type of the link is neither duplicate (3) nor related (1); it is skipped",
    "R501": "the line does not have the columns of its run: topic, Q0, id, rank, score, name; it is skipped",
    "R502": "the score is not a number; the line is skipped",
    "R503": "the id is ranked twice for this topic; the first line is kept, this one is skipped",
    "R504": "the topic has two answers, and Task 3 allows one; the first is kept, this one is skipped",
    "R505": "the answer is longer than the 1,200 characters that Task 3 allows; it is kept",
}
"""The rules by code. P: posts, T: topics, Q: judgments (qrels), L: links and pairs, R: runs."""


class BadRowWarning(MathAMRWarning):
    """A row of an official file broke a rule; the message names place and rule, and how the row is handled."""

    def __init__(self, path: Path, line: int, code: str, what: str) -> None:
        super().__init__(path, line, code, what)
        self.path, self.line, self.code, self.what = path, line, code, what

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}: {RULES[self.code]} [{self.code}]"


_HARMLESS = {"Q303", "Q304"}  # the organizers' own files break these


def strictly(read: Callable[[], T]) -> T:
    """Read a file in which a bad row is an error, since skipping it would change a measure.

    Args:
        read: reads a whole file.

    Raises:
        ARQMathError: the first row that breaks a rule; invalid grades and repeated judgments are only
            reported as warnings.
    """
    with recorded_warnings() as caught:
        result = read()
    rows = [entry.message for entry in caught if isinstance(entry.message, BadRowWarning)]
    if bad := [row for row in rows if row.code not in _HARMLESS]:
        more = f"; {len(bad) - 1:,} more faults follow" if len(bad) > 1 else ""
        rule = RULES[bad[0].code].partition(";")[0]
        raise ARQMathError(f"{bad[0].path}:{bad[0].line}: {bad[0].what}: {rule}{more}. Correct the file.")
    for entry in caught:
        warnings.warn(entry.message, stacklevel=2)
    return result


class BadRows:
    """Reports the bad rows of one file: the first twenty one by one, the number of others at the end."""

    limit = 20

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0

    def __call__(self, code: str, line: int, what: str) -> None:
        self.count += 1
        if self.count <= self.limit:
            warnings.warn(BadRowWarning(self.path, line, code, what), stacklevel=3)

    def __enter__(self) -> BadRows:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None and self.count > self.limit:
            more = self.count - self.limit
            warnings.warn(MathAMRWarning(f"{self.path}: {more} more bad rows were skipped or repaired"), stacklevel=3)

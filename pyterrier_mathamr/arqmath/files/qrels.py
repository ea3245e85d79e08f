"""The judgments (qrels): four columns, separated by tabs or spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr._common.types import QueryId

from .rows import open_text
from .rules import BadRows

NO_GRADES = {"5": "system failure", "6": "do not know"}
"""Codes in the column of the grade that are no grades; read as such they would be the best of all."""

Failures = Literal["drop", "zero"]
"""How lines with these codes are read: dropped, so that the answer is unjudged, or as grade 0."""

_GRADES = {"0": 0, "1": 1, "2": 2, "3": 3}


class Qrel(NamedTuple):
    """A judgment: of a post in Task 1, a formula or visual id in Task 2, an answer of the pool in Task 3."""

    query_id: QueryId
    doc_id: str
    relevance: int  # 0 not relevant, 1 low, 2 medium, 3 high
    iteration: str


def read_qrels(path: str | Path, *, failures: Failures = "drop") -> Iterator[Qrel]:
    """Read a file of judgments.

    Lines that break a rule (Q301 to Q304 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that
    name file and line; lines with the codes 5 and 6 are dropped with one warning for the file.

    Args:
        path: the file, plain or gzipped.
        failures: ``"zero"`` reads the codes 5 and 6 as grade 0 without a warning, as the organisers' program for
            Task 3 does.

    Yields:
        The judgments in the order of the file, each pair of topic and id once.

    Raises:
        ConfigError: ``failures`` has another value.
    """
    one_of("drop", "zero").check("failures", failures)
    return _read_qrels(Path(path), {**_GRADES, **dict.fromkeys(NO_GRADES, 0)} if failures == "zero" else _GRADES)


def _read_qrels(path: Path, grades: Mapping[str, int]) -> Iterator[Qrel]:
    seen: set[tuple[str, str]] = set()
    dropped: Counter[str] = Counter()
    with BadRows(path) as report, open_text(path) as stream:
        number = 0
        for number, line in enumerate(stream, 1):
            columns = line.split()
            if not columns:
                continue
            if len(columns) != 4:
                report("Q301", number, repr(line[:60]))
                continue
            query, iteration, judged, grade = columns
            if grade in NO_GRADES and grade not in grades:
                dropped[grade] += 1
            elif grade not in grades:
                report("Q302", number, f"topic {query}, id {judged}, grade {grade[:20]!r}")
            elif (query, judged) in seen:
                report("Q304", number, f"topic {query}, id {judged}")
            else:
                seen.add((query, judged))
                yield Qrel(query, judged, grades[grade], iteration)
        if dropped:
            lines = ", ".join(f"{count} lines with code {code}" for code, count in sorted(dropped.items()))
            report("Q303", number, lines)

"""Run files: rankings in the three formats that ARQMath uses.

========  =======================================  ====================================================
format    columns, separated by tabs or spaces     used for
========  =======================================  ====================================================
trec      topic  Q0  id  rank  score  name         trec_eval
task1     topic  post  rank  score  name           submissions to Task 1
task2     topic  formula  post  rank  score  name  submissions to Task 2
========  =======================================  ====================================================

Ranks start at 1 in the files and at 0 in frames, as in PyTerrier. Submissions to Task 3 are no rankings but texts: see
``answers.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.arqmath.errors import ARQMathError, FileFormatError
from pyterrier_mathamr.store import replace_file, writing

from .rows import open_text
from .rules import BadRows

RunFormat = Literal["trec", "task1", "task2"]

_COLUMNS: dict[RunFormat, tuple[str, ...]] = {
    "trec": ("qid", "iteration", "docno", "rank", "score", "run"),
    "task1": ("qid", "docno", "rank", "score", "run"),
    "task2": ("qid", "docno", "post_id", "rank", "score", "run"),
}
_FORMAT = one_of(*_COLUMNS)
_ITERATIONS = {"q0", "0", "_", "-", "iter"}  # in TREC's second column; no formula ids


class _Line(NamedTuple):
    qid: str
    docno: str
    post_id: str
    score: float
    run: str


def read_run(path: str | Path, format: RunFormat | None = None) -> pd.DataFrame:
    """Read a run file.

    Lines that break a rule (R501 to R503 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that
    name file and line, and the rest is read.

    Args:
        path: the file, plain or gzipped.
        format: its format, by default that of its first line: five columns are Task 1's, six are TREC's if the second
            is ``Q0`` or ``0``, else Task 2's.

    Returns:
        ``qid``, ``docno``, ``score``, ``rank``, ``run`` (the run's name) and, for Task 2, ``post_id``: topics in the
        order of the file, the answers to each by score, ties in the order of the file.

    Raises:
        ConfigError: there is no such format.
        FileFormatError: it is a submission to Task 3, which :func:`read_answers` reads.
    """
    _FORMAT.or_none().check("format", format)
    rows = list(_lines(Path(path), format))
    frame = pd.DataFrame(rows, columns=list(_Line._fields))
    frame = frame.assign(_topic=pd.factorize(frame["qid"])[0])
    frame = frame.sort_values(["_topic", "score"], ascending=[True, False], kind="stable").reset_index(drop=True)
    frame = frame.assign(rank=frame.groupby("qid", sort=False).cumcount())
    columns = ["qid", "docno", "score", "rank", "run"]
    of_formulas = len(frame) > 0 and bool((frame["post_id"] != "").any())
    result: pd.DataFrame = frame[[*columns, "post_id"] if of_formulas else columns]
    return result


def write_run(run: pd.DataFrame, path: str | Path, format: RunFormat = "trec", *, name: str = "mathamr") -> None:
    """Write a run file atomically.

    Args:
        run: ``qid``, ``docno`` and ``score``, and ``post_id`` for Task 2. Answers are written by score, ties in the
            order of the frame.
        path: the file; an existing one is replaced.
        format: its format.
        name: name of the run; its spaces become underscores.

    Raises:
        ConfigError: there is no such format.
        ARQMathError: the frame lacks a column, or has a value with white space or a score that is no number.
        WriteError: it cannot be written; an existing file is unchanged.
    """
    _FORMAT.check("format", format)
    needed = ["qid", "docno", "score", *(["post_id"] if format == "task2" else [])]
    for column in needed:
        if column not in run.columns:
            raise column_error(column, format, "it is missing")
    scores = pd.to_numeric(run["score"], errors="coerce")
    for column in needed:
        bad = scores.isna() if column == "score" else ~run[column].astype(str).str.fullmatch(r"\S+")
        if bad.any():
            qid, value = run.loc[bad, "qid"].iloc[0], run.loc[bad, column].iloc[0]
            shown = repr(value) if isinstance(value, str) else value
            reason = f"{shown} of topic {qid!r} cannot be written to a run file"
            rule = "it must be a number" if column == "score" else "white space separates its columns: give ids without"
            raise column_error(column, format, f"{reason}; {rule}")
    ordered = run.assign(_topic=pd.factorize(run["qid"])[0], score=scores)
    ordered = ordered.sort_values(["_topic", "score"], ascending=[True, False], kind="stable")
    ordered = ordered.assign(rank=ordered.groupby("qid", sort=False).cumcount() + 1, iteration="Q0")
    ordered = ordered.assign(run="_".join(name.split()) or "mathamr")
    lines = ordered[list(_COLUMNS[format])].itertuples(index=False, name=None)
    target = Path(path)
    with writing(target):
        replace_file(target, "".join("\t".join(map(str, line)) + "\n" for line in lines).encode())


def _lines(path: Path, format: RunFormat | None) -> Iterator[_Line]:
    """Read the good lines in the order of the file."""
    seen: set[tuple[str, str]] = set()
    with BadRows(path) as report, open_text(path) as stream:
        for number, text in enumerate(stream, 1):
            cells = text.split()
            if not cells:
                continue
            if format is None and _has_answers(text):
                raise FileFormatError("this is a submission to Task 3; read_answers reads it", path, number)
            format = format or _format_of(cells)
            if format is None or len(cells) != len(_COLUMNS[format]):
                report("R501", number, repr(text[:60]))
                continue
            line = dict(zip(_COLUMNS[format], cells, strict=True))
            score = number_of(line["score"])
            if score is None:
                report("R502", number, f"topic {line['qid']}, id {line['docno']}, score {line['score'][:20]!r}")
            elif (line["qid"], line["docno"]) in seen:
                report("R503", number, f"topic {line['qid']}, id {line['docno']}")
            else:
                seen.add((line["qid"], line["docno"]))
                yield _Line(line["qid"], line["docno"], line.get("post_id", ""), score, line["run"])


def _format_of(cells: list[str]) -> RunFormat | None:
    if len(cells) == 5:
        return "task1"
    if len(cells) == 6:
        return "trec" if cells[1].lower() in _ITERATIONS else "task2"
    return None


def _has_answers(line: str) -> bool:
    """Return whether a line is one of Task 3: the last of six columns is a text of several words."""
    columns = line.split("\t")
    return len(columns) == 6 and columns[1].strip() == "1" and " " in columns[-1].strip()


def column_error(column: str, format: str, reason: str) -> ARQMathError:
    """Make the error of a run that cannot be written because of one of its columns."""
    return ARQMathError(f"column {column!r} of a run in the format {format}: {reason}")


def number_of(text: str) -> float | None:
    """Return a score, or ``None`` if it is not a number."""
    try:
        score = float(text)
    except ValueError:
        return None
    return None if math.isnan(score) else score

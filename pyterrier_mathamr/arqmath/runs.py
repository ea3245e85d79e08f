"""Submissions: rankings of Tasks 1 and 2, and the texts of Task 3.

========  =======================================  ====================================================
format    columns, separated by tabs or spaces     used for
========  =======================================  ====================================================
trec      topic  Q0  id  rank  score  name         trec_eval
task1     topic  post  rank  score  name           submissions to Task 1
task2     topic  formula  post  rank  score  name  submissions to Task 2
========  =======================================  ====================================================

Ranks start at 1 in the files and at 0 in frames, as in PyTerrier. A submission to Task 3 has one text for each topic,
in columns separated by tabs and quoted as in CSV::

    topic  rank  score  name of the run  sources  answer
    A.301  1     12.5   mathamr          1859     Both norms are …      rank is 1; at most 1,200 characters

For judging, answers got ids (``d_1``). The organizers' list of these ids, with three columns ``name of the run  topic
id`` (``teams_answer_id.tsv``), connects a submission with its judgments.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pandas as pd

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr._common.types import QueryId
from pyterrier_mathamr.store import replace_file

from .dump import open_text
from .errors import ARQMathError, BadRows

RunFormat = Literal["trec", "task1", "task2"]

_COLUMNS: dict[RunFormat, tuple[str, ...]] = {
    "trec": ("qid", "iteration", "docno", "rank", "score", "run"),
    "task1": ("qid", "docno", "rank", "score", "run"),
    "task2": ("qid", "docno", "post_id", "rank", "score", "run"),
}
_FORMAT = one_of(*_COLUMNS)
_ITERATIONS = {"q0", "0", "_", "-", "iter"}  # in TREC's second column; no formula ids


def read_run(path: str | Path, format: RunFormat | None = None) -> pd.DataFrame:
    """Read a run file.

    Lines that break a rule (R501 to R503 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that
    name file and line, and the rest is read.

    Args:
        path: the file, plain or gzipped.
        format: its format, by default judged by its first line: five columns are Task 1's, six are TREC's if the
            second is ``Q0`` or ``0``, else Task 2's.

    Returns:
        ``qid``, ``docno``, ``score``, ``rank``, ``run`` (the run's name) and, for Task 2, ``post_id``: topics in the
        order of the file, the answers to each by score, ties in the order of the file.

    Raises:
        ConfigError: there is no such format.
        ARQMathError: it is a submission to Task 3, which :func:`read_answers` reads.
    """
    _FORMAT.or_none().check("format", format)
    rows = list(_run_lines(Path(path), format))
    run = _ranked(pd.DataFrame(rows, columns=["qid", "docno", "score", "run", "post_id"]))
    columns = ["qid", "docno", "score", "rank", "run"]
    result: pd.DataFrame = run[[*columns, "post_id"] if (run["post_id"] != "").any() else columns]
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
        ARQMathError: the frame lacks a column, or has a value with white space or a score that is not a number.
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
    table = _ranked(run.assign(score=scores)).assign(iteration="Q0", run="_".join(name.split()) or "mathamr")
    table["rank"] += 1
    lines = table[list(_COLUMNS[format])].itertuples(index=False, name=None)
    replace_file(Path(path), "".join("\t".join(map(str, line)) + "\n" for line in lines).encode())


def _ranked(run: pd.DataFrame) -> pd.DataFrame:
    """Order rows by topic, in order of appearance, and score, ties as they are; number them from 0."""
    ordered = run.assign(_topic=pd.factorize(run["qid"])[0])
    ordered = ordered.sort_values(["_topic", "score"], ascending=[True, False], kind="stable").reset_index(drop=True)
    return ordered.drop(columns="_topic").assign(rank=ordered.groupby("qid", sort=False).cumcount())


def _run_lines(path: Path, format: RunFormat | None) -> Iterator[tuple[str, str, float, str, str]]:
    """Yield topic, id, score, run and post of the good lines in the order of the file."""
    seen: set[tuple[str, str]] = set()
    with BadRows(path) as report, open_text(path) as stream:
        for number, text in enumerate(stream, 1):
            cells = text.split()
            if not cells:
                continue
            if format is None:
                columns = text.split("\t")
                if len(columns) == 6 and columns[1].strip() == "1" and " " in columns[-1].strip():  # several words
                    raise ARQMathError(f"{path}:{number}: this is a submission to Task 3; read_answers reads it")
                if len(cells) in (5, 6):
                    format = "task1" if len(cells) == 5 else "trec" if cells[1].lower() in _ITERATIONS else "task2"
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
                yield line["qid"], line["docno"], score, line["run"], line.get("post_id", "")


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


ANSWER_LIMIT = 1200
"""Limit of an answer of Task 3 in Unicode characters."""


def read_answers(path: str | Path) -> pd.DataFrame:
    """Read a submission to Task 3.

    Lines that break a rule (R501, R502, R504, R505 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as
    warnings that name file and line, and the rest is read.

    Args:
        path: the file, plain or gzipped.

    Returns:
        ``qid``, ``qanswer`` (the text, named as in pyterrier-rag), ``score``, ``run`` (the run's name) and ``sources``,
        in the order of the file.

    Raises:
        ARQMathError: a quotation mark that opens an answer is never closed.
    """
    return pd.DataFrame(list(_answers(Path(path))), columns=["qid", "qanswer", "score", "run", "sources"])


def write_answers(answers: pd.DataFrame, path: str | Path, *, name: str = "mathamr") -> None:
    """Write a submission to Task 3 atomically.

    Args:
        answers: ``qid`` and ``qanswer``, each topic once; optionally ``score`` (1 by default) and ``sources``, the
            sources of an answer (the run's name by default).
        path: the file; an existing one is replaced.
        name: name of the run; its spaces become underscores.

    Raises:
        ARQMathError: a column is missing, a topic has two answers, a score is not a number, or an answer is empty,
            longer than :data:`ANSWER_LIMIT` or has a lone surrogate.
        WriteError: it cannot be written; an existing file is unchanged.

    Example::

        first = (bm25 % 1 >> dataset.text_loader("text"))(topics)  # the first answer of Task 1
        first = first.assign(qanswer=first["text"].str[:1200], sources=first["docno"])
        write_answers(first, "task3.tsv", name="mathamr")
    """
    for column in ("qid", "qanswer"):
        if column not in answers.columns:
            raise column_error(column, "task3", "it is missing")
    run = "_".join(name.split()) or "mathamr"
    complete = answers.assign(**{key: value for key, value in (("score", 1.0), ("sources", run)) if key not in answers})
    complete = complete.fillna({"sources": run})
    if len(twice := complete["qid"][complete["qid"].duplicated()]):
        raise column_error("qid", "task3", f"topic {twice.iloc[0]} has more than one answer")
    if pd.to_numeric(complete["score"], errors="coerce").isna().any():
        raise column_error("score", "task3", "a value is missing or no number")
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", lineterminator="\n")
    for row in complete.itertuples(index=False):
        if not isinstance(row.qanswer, str) or not row.qanswer.strip():
            raise column_error("qanswer", "task3", f"topic {row.qid} has no answer")
        if len(row.qanswer) > ANSWER_LIMIT:
            reason = f"topic {row.qid} has {len(row.qanswer):,} characters; the lab allows {ANSWER_LIMIT:,}"
            raise column_error("qanswer", "task3", reason)
        if any("\ud800" <= character <= "\udfff" for character in row.qanswer):
            raise column_error("qanswer", "task3", f"topic {row.qid} has a lone surrogate")
        writer.writerow((row.qid, 1, row.score, run, row.sources, row.qanswer))
    replace_file(Path(path), table.getvalue().encode())


def _answers(path: Path) -> Iterator[tuple[QueryId, str, float, str, str]]:
    """Yield topic, answer, score, run and sources of the good lines in the order of the file."""
    seen: set[QueryId] = set()
    with BadRows(path) as report, open_text(path, newline="") as stream:
        rows = csv.reader(stream, delimiter="\t")
        try:
            for cells in rows:
                if not "".join(cells).strip():
                    continue
                if len(cells) != 6:
                    report("R501", rows.line_num, repr("\t".join(cells)[:60]))
                    continue
                topic, _, text, run, sources, answer = cells
                if any(line.count("\t") >= 5 for line in answer.splitlines()[1:]):
                    raise csv.Error("an answer has swallowed lines")
                score = number_of(text)
                if score is None:
                    report("R502", rows.line_num, f"topic {topic}, score {text[:20]!r}")
                elif topic in seen:
                    report("R504", rows.line_num, f"topic {topic}")
                else:
                    if len(answer) > ANSWER_LIMIT:
                        report("R505", rows.line_num, f"topic {topic}, {len(answer):,} characters")
                    seen.add(topic)
                    yield topic, answer, score, run, sources
        except csv.Error as error:
            raise ARQMathError(f"{path}:{rows.line_num}: {error}: a quotation mark is never closed") from error

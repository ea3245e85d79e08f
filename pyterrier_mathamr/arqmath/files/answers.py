"""Submissions to Task 3: one text for each topic, where the other tasks have a ranking of ids.

A submission has one line for each topic, with columns separated by tabs and quoted as in CSV::

    topic  rank  score  name of the run  sources  answer
    A.301  1     12.5   mathamr          1859     Both norms are …      rank is 1; at most 1,200 characters

For judging, answers got ids (``d_1``). The organisers' list of these ids, with three columns ``name of the run  topic
id`` (``teams_answer_id.tsv``), connects a submission with its judgments.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr._common.types import QueryId
from pyterrier_mathamr.arqmath.errors import FileFormatError
from pyterrier_mathamr.store import replace_file, writing

from .rows import open_text
from .rules import BadRows
from .runs import column_error, number_of

ANSWER_LIMIT = 1200
"""Limit of an answer of Task 3 in Unicode characters."""


class _Answer(NamedTuple):
    qid: QueryId
    qanswer: str
    score: float
    run: str
    sources: str


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
        FileFormatError: a quotation mark that opens an answer is never closed.
    """
    frame: pd.DataFrame = pd.DataFrame(list(_answers(Path(path))), columns=list(_Answer._fields))
    return frame


def write_answers(answers: pd.DataFrame, path: str | Path, *, name: str = "mathamr") -> None:
    """Write a submission to Task 3 atomically.

    Args:
        answers: ``qid`` and ``qanswer``, each topic once; optionally ``score`` (1 by default) and ``sources``, what an
            answer was made of (the run's name by default).
        path: the file; an existing one is replaced.
        name: name of the run; its spaces become underscores.

    Raises:
        ARQMathError: a column is missing, a topic has two answers, a score is no number, or an answer is empty, longer
            than :data:`ANSWER_LIMIT` or has a lone surrogate.
        WriteError: it cannot be written; an existing file is unchanged.

    Example::

        first = (bm25 % 1 >> dataset.text_loader("text"))(topics)  # the first answer of Task 1
        first = first.assign(qanswer=first["text"].str[:ANSWER_LIMIT], sources=first["docno"])
        write_answers(first, "task3.tsv", name="mathamr")
    """
    for column in ("qid", "qanswer"):
        if column not in answers.columns:
            raise column_error(column, "task3", "it is missing")
    run = "_".join(name.split()) or "mathamr"
    complete = answers.assign(**{key: value for key, value in (("score", 1.0), ("sources", run)) if key not in answers})
    complete = complete.fillna({"sources": run})
    _check(complete)
    target = Path(path)
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", lineterminator="\n")
    for row in complete.itertuples(index=False):
        writer.writerow((row.qid, 1, row.score, run, row.sources, row.qanswer))
    with writing(target):
        replace_file(target, table.getvalue().encode())


def read_answer_ids(path: str | Path, run: str) -> dict[QueryId, str]:
    """Read the ids under which the answers of a run were judged.

    Args:
        path: the organisers' list, plain or gzipped.
        run: the name of the run: that of its file without ``.tsv``.

    Returns:
        Topic to answer id: ``answers["qid"].map(ids)`` is the ``docno`` for ``task3_scores``. Lines that break rule
        L401 are reported and skipped.
    """
    path = Path(path)
    ids: dict[QueryId, str] = {}
    with BadRows(path) as report, open_text(path) as stream:
        for line, text in enumerate(stream, 1):
            cells = [cell.strip() for cell in text.split("\t")]
            if len(cells) == 3 and all(cells):
                name, topic, answer = cells
                if name == run:
                    ids[topic] = answer
            elif text.strip():
                report("L401", line, repr(text[:60]))
    return ids


def _answers(path: Path) -> Iterator[_Answer]:
    """Read the good lines in the order of the file."""
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
                    yield _Answer(topic, answer, score, run, sources)
        except csv.Error as error:
            raise FileFormatError(f"{error}: a quotation mark is never closed", path, rows.line_num) from error


def _check(answers: pd.DataFrame) -> None:
    """Check answers before they are written."""
    twice = answers["qid"][answers["qid"].duplicated()]
    if len(twice):
        raise column_error("qid", "task3", f"topic {twice.iloc[0]} has more than one answer")
    if pd.to_numeric(answers["score"], errors="coerce").isna().any():
        raise column_error("score", "task3", "a value is missing or no number")
    for row in answers.itertuples(index=False):
        if not isinstance(row.qanswer, str) or not row.qanswer.strip():
            raise column_error("qanswer", "task3", f"topic {row.qid} has none")
        if len(row.qanswer) > ANSWER_LIMIT:
            reason = f"topic {row.qid} has {len(row.qanswer):,} characters; the lab allows {ANSWER_LIMIT:,}"
            raise column_error("qanswer", "task3", reason)
        if any("\ud800" <= character <= "\udfff" for character in row.qanswer):
            raise column_error("qanswer", "task3", f"topic {row.qid} has a lone surrogate")

"""The topics of tasks 1 to 3 (``Topics_Task1_2022_V0.1.xml``) and their judgments (qrels).

Title and question are HTML, escaped once as XML; a formula is ``<span class="math-container" id="q_7">$…$</span>``. The
``<`` of a formula is HTML-escaped in 2020 and bare in 2022, which the reader of the HTML handles. A bare ``<`` or ``&``
in the XML itself is handled here. Judgments have four columns, separated by tabs or spaces.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

import pandas as pd

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr._common.types import FormulaId, QueryId

from .dump import clean, open_binary, open_text, parse_piece, parse_tags
from .errors import ARQMathError, BadRows

_TOPIC = re.compile(rb"<Topic[\s>].*?(?=<Topic[\s>]|\Z)", re.DOTALL)
_END = b"</Topic>"
_BARE_LESS = re.compile(rb"<(?!/?(?:Topic|Title|Question|Tags|Formula_Id|Latex)[\s>])")
_ESCAPED = re.compile(r"&(?:lt|gt|amp);")  # two formulas of 2020 are escaped as HTML, and then as XML
_CDATA = re.compile(rb"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_BARE_AND = re.compile(rb"&(?!(?:lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);)")


class Topic(NamedTuple):
    """A question, and for Task 2 the formula in it that is searched for.

    Attributes:
        id: ``A.301`` in tasks 1 and 3, ``B.301`` in Task 2.
        title: HTML.
        body: HTML.
        tags: of the question.
        formula_id: such as ``q_6``; blank in tasks 1 and 3.
        latex: of that formula, without dollars; blank in tasks 1 and 3.
        topic_id: the topic of Task 1 with the same question: ``A.301`` of ``B.301``.
    """

    id: QueryId
    title: str
    body: str
    tags: tuple[str, ...]
    formula_id: FormulaId
    latex: str
    topic_id: QueryId


def read_topics(path: str | Path) -> Iterator[Topic]:
    """Read a file of topics of Task 1 or 2.

    Topics that break a rule (T201 to T205 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that
    name file and line, and the rest is read.

    Args:
        path: the XML file, plain or gzipped.

    Yields:
        The topics in the order of the file, each number once.

    Raises:
        ARQMathError: the file has no ``<Topic>`` and is not an empty list of topics.
    """
    path = Path(path)
    with open_binary(path) as stream:
        data = stream.read()
    if b"<Topic" not in data:
        raise ARQMathError(f"{path}:1: this is not a file of topics: it has no <Topic …>")
    seen: set[QueryId] = set()
    line, at = 1, 0
    with BadRows(path) as report:
        for match in _TOPIC.finditer(data):
            line, at = line + data.count(b"\n", at, match.start()), match.start()
            topic = _topic(match[0], line, report)
            if topic is None:
                continue
            if topic.id in seen:
                report("T203", line, f"topic {topic.id}")
                continue
            seen.add(topic.id)
            yield topic
        if b"</Topics" not in data[-200:] and not data.rstrip().endswith(b"/>"):
            report("T205", line, repr(data[-40:].decode("utf-8", "replace")))


def _topic(piece: bytes, line: int, report: BadRows) -> Topic | None:
    whole, end, _ = piece.partition(_END)
    element = parse_piece(whole + _END, _repair)[0] if end else None
    if element is None:
        report("T202", line, repr(piece[:60].decode("utf-8", "replace")))
        return None
    number = element.get("number", "").strip()
    if not number:
        report("T201", line, "topic")
        return None
    field = {str(child.tag): "".join(str(text) for text in child.itertext()) for child in element}
    title, body = field.get("Title", "").strip(), field.get("Question", "").strip()
    if not title and not body:
        report("T204", line, f"topic {number}")
        return None
    return Topic(
        id=number,
        title=title,
        body=body,
        tags=parse_tags(field.get("Tags", "")),
        formula_id=field.get("Formula_Id", "").strip(),
        latex=_ESCAPED.sub(lambda match: unescape(match[0]), field.get("Latex", "")).strip(),
        topic_id=f"A.{number[2:]}" if number.startswith("B.") else number,
    )


def _repair(piece: bytes) -> bytes:
    """Escape each ``<`` and ``&`` that is not markup, also in CDATA sections, where none is."""
    piece = _CDATA.sub(lambda match: match[1].replace(b"&", b"&amp;").replace(b"<", b"&lt;"), piece)
    return _BARE_AND.sub(b"&amp;", _BARE_LESS.sub(b"&lt;", clean(piece)))


def read_manual_topics(path: str | Path) -> pd.DataFrame:
    """Read the words and formulas that people chose for the topics of Task 1, as published with Approach Zero's runs.

    Two formats are read: JSON, as of 2020, ``[{"qid": "A.1", "kw": [{"type": "term" or "tex", "str": "…"}, …]}, …]``;
    and tables separated by tabs, as of 2021 and 2022, with the columns topic, words separated by commas, and any number
    of formulas, below a header that begins with ``qid``. The frame is an input for any lexical or structural system.

    Zhong, Xie and Lin, "Applying structural and dense semantic matching for the ARQMath Lab 2022", CLEF 2022, section
    4.5; the files are in ``topics-and-qrels`` of github.com/approach0/pya0, branch ``arqmath3``. Entries that break a
    rule (T201, T203, T206 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings and skipped.

    Args:
        path: the file, plain or gzipped.

    Returns:
        Columns ``qid``; ``query``, the words and then each formula between dollars; ``words``; and ``formulas``, a list
        of LaTeX without dollars. Topics are in the order of the file.

    Raises:
        ARQMathError: the file is in neither format.
    """
    path = Path(path)
    with open_text(path) as stream:
        text = stream.read()
    rows: dict[QueryId, dict[str, object]] = {}
    with BadRows(path) as report:
        is_json = text.lstrip().startswith("[")
        choices = _json_choices(path, text, report) if is_json else _table_choices(path, text)
        for number, qid, terms, formulas in choices:
            if not qid:
                report("T201", number, "entry")
            elif qid in rows:
                report("T203", number, f"topic {qid}")
            else:
                latex = [bare for each in formulas if (bare := each.strip().strip("$").strip())]
                words = " ".join(terms)
                query = " ".join([words, *(f"${each}$" for each in latex)]).strip()
                rows[qid] = {"qid": qid, "query": query, "words": words, "formulas": latex}
    return pd.DataFrame(list(rows.values()), columns=["qid", "query", "words", "formulas"])


_Choices = Iterator[tuple[int, str, list[str], list[str]]]
"""The line or entry, the topic, its words, its formulas."""


def _json_choices(path: Path, text: str, report: BadRows) -> _Choices:
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise ARQMathError(f"{path}: this is not JSON ({error}). Download it again") from error
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("kw"), list):
            raise ARQMathError(f"{path}: entry {number} is not an object with the keys 'qid' and 'kw'")
        chosen: dict[str, list[str]] = {"term": [], "tex": []}
        for choice in entry["kw"]:
            kind = choice.get("type") if isinstance(choice, dict) else None
            if kind in chosen and isinstance(choice.get("str"), str):
                chosen[kind].append(choice["str"].strip())
            else:
                report("T206", number, repr(choice)[:60])
        yield number, str(entry.get("qid", "")).strip(), chosen["term"], chosen["tex"]


def _table_choices(path: Path, text: str) -> _Choices:
    lines = text.splitlines()
    if not lines or lines[0].split("\t")[0].strip() != "qid":
        raise ARQMathError(
            f"{path}:1: this is not a list of chosen words and formulas: its first line does not begin with qid"
        )
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            qid, words, *formulas = [*line.split("\t"), ""]
            yield number, qid.strip(), [word for each in words.split(",") if (word := each.strip())], formulas


TOPIC_CATEGORIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "difficulty": ("hard", "medium", "easy"),
        "dependency": ("formula", "text", "both"),
        "type": ("computation", "concept", "proof"),
    }
)
"""The three kinds of categories that the organizers gave the topics of Task 1, and the values of each."""


def read_topic_categories(path: str | Path) -> pd.DataFrame:
    """Read the categories of topics: a table separated by tabs, ``topic, difficulty, dependency, type``.

    The release has no such file. A first line that begins with ``topic`` or ``qid`` is a header; an empty cell means
    no category.

    Args:
        path: the file, plain or gzipped.

    Returns:
        ``qid``, ``difficulty``, ``dependency`` and ``type``, in lower case; see :data:`TOPIC_CATEGORIES`.

    Raises:
        ARQMathError: a line lacks a column, has another category, or repeats a topic.
    """
    path = Path(path)
    rows: dict[QueryId, list[str]] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
            if not any(cells) or (number == 1 and cells[0].lower() in ("topic", "qid")):
                continue
            qid, *given = cells
            if len(given) != len(TOPIC_CATEGORIES) or not qid:
                columns = ", ".join(TOPIC_CATEGORIES)
                raise ARQMathError(f"{path}:{number}: {line[:60]!r} does not have the columns topic, {columns}")
            for value, (kind, allowed) in zip(given, TOPIC_CATEGORIES.items(), strict=True):
                if value and value.lower() not in allowed:
                    raise ARQMathError(f"{path}:{number}: the {kind} {value[:20]!r} is none of {', '.join(allowed)}")
            if qid in rows:
                raise ARQMathError(f"{path}:{number}: topic {qid} comes twice; remove one of the lines")
            rows[qid] = [value.lower() for value in given]
    return pd.DataFrame([[qid, *given] for qid, given in rows.items()], columns=["qid", *TOPIC_CATEGORIES], dtype=str)


_GRADES = {"0": 0, "1": 1, "2": 2, "3": 3}
_NO_GRADES = ("5", "6")  # codes for a system failure and "do not know"; as grades they would be the highest

Failures = Literal["drop", "zero"]
"""How lines with these codes are read: dropped, so that the answer is unjudged, or as grade 0."""


class Qrel(NamedTuple):
    """A judgment.

    Attributes:
        query_id: the topic.
        doc_id: a post in Task 1, a formula or visual id in Task 2, an answer of the pool in Task 3.
        relevance: 0 not relevant, 1 low, 2 medium, 3 high.
        iteration: the second column of the file, which nothing uses.
    """

    query_id: QueryId
    doc_id: str
    relevance: int
    iteration: str


def read_qrels(path: str | Path, *, failures: Failures = "drop") -> Iterator[Qrel]:
    """Read a file of judgments.

    Lines that break a rule (Q301 to Q304 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that
    name file and line; lines with the codes 5 and 6 are dropped with one warning for the file.

    Args:
        path: the file, plain or gzipped.
        failures: ``"zero"`` reads the codes 5 and 6 as grade 0 without a warning, as the organizers' program for
            Task 3 does.

    Yields:
        The judgments in the order of the file, each pair of topic and id once.

    Raises:
        ConfigError: ``failures`` has another value.
    """
    one_of("drop", "zero").check("failures", failures)
    return _qrels(Path(path), _GRADES | dict.fromkeys(_NO_GRADES, 0) if failures == "zero" else _GRADES)


def _qrels(path: Path, grades: Mapping[str, int]) -> Iterator[Qrel]:
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
            if grade in _NO_GRADES and grade not in grades:
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

r"""Topics in their usual forms, recognized by their content.

==========  ==========================================================================================================
ARQMath     ``<Topic number="A.301"><Title>…</Title><Question>…</Question></Topic>``; title and question are the query
TREC        ``<top><num> 301 <title> …</top>``, fields closed or not, also ``<topic number="1"><query>…``
JSON lines  ``{"qid": "1", "query": "…"}``; also ``id`` or ``_id``, and ``text``, or ``title`` and ``body``
TSV         ``1⇥the query``
==========  ==========================================================================================================

An unreadable part of a file is an error: a topic that is missing from a run would count as 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.records import parse_json

_IDS = ("qid", "query_id", "id", "_id")
_TEXTS = ("query", "text", "title", "question", "body")
_TOP = re.compile(
    r"<top(?:ic)?\b(?P<attributes>[^<>]*)>(?P<fields>.*?)(?P<end></top(?:ic)?\s*>|(?=<top(?:ic)?\b)|\Z)",
    re.DOTALL | re.I,
)
_NUMBER = re.compile(r"""\bnumber\s*=\s*["']([^"']*)["']""", re.I)
_FIELD = re.compile(r"</?(num|title|query|question|desc|description|narr|narrative|subtopic)\b[^<>]*>", re.I)
_LABEL = re.compile(r"\s*(?:Number|Topic|Description|Narrative)\s*:", re.I)
_QUERIES = ("query", "title", "question", "desc", "description")


class TypedTopic(NamedTuple):
    """A query of a file."""

    qid: str  # without white space
    query: str  # text or HTML with formulas between delimiters or in math containers
    line: int


def read_topic_file(path: Path) -> list[TypedTopic]:
    """Read a file of topics, plain or gzipped; a topic that cannot be read is an error."""
    from pyterrier_mathamr.arqmath import read_topics, strictly
    from pyterrier_mathamr.arqmath.dump import open_text

    try:
        with open_text(path) as file:
            text = file.read()
    except (OSError, EOFError) as error:
        raise _fault(path, 1, f"the file cannot be read ({error}); check that it is complete") from error
    start = text.lstrip()
    if re.search(r"<Topics?\b", text) and start.startswith("<"):
        posts = strictly(lambda: list(read_topics(path)))
        topics = [TypedTopic(post.id, f"<div>{post.title}</div>{post.body}", 1) for post in posts]
    elif start.startswith("<"):
        topics = list(_trec(path, text))
    else:
        topics = list((_json if start.startswith("{") else _table)(path, text))
    seen: dict[str, int] = {}
    for topic in topics:
        if not topic.qid or re.search(r"\s", topic.qid):
            raise _fault(path, topic.line, f"the topic's id {topic.qid!r} is not one word; write it without spaces")
        if not topic.query.strip():
            raise _fault(path, topic.line, f"topic {topic.qid} has no text; give one of {', '.join(_TEXTS)}")
        if topic.qid in seen:
            reason = f"topic {topic.qid} is also in line {seen[topic.qid]}; give each topic its own id"
            raise _fault(path, topic.line, reason)
        seen[topic.qid] = topic.line
    if not topics:
        forms = "topics of ARQMath or TREC (<top>), JSON lines, or lines of an id, a tab and a query"
        raise _fault(path, 1, f"it has no topic; give {forms}")
    return topics


def _fault(path: Path, line: int, reason: str) -> MathAMRError:
    return MathAMRError(f"{path}:{line}: {reason}.")


def _trec(path: Path, text: str) -> Iterator[TypedTopic]:
    for top in _TOP.finditer(text):
        line = text.count("\n", 0, top.start()) + 1
        if not top["end"]:
            raise _fault(path, line, "the topic has no end; add </top>")
        fields: dict[str, str] = {}
        pieces = _FIELD.split(top["fields"])
        for name, value in zip(pieces[1::2], pieces[2::2], strict=True):
            fields.setdefault(name.lower(), _LABEL.sub("", value, count=1).strip())
        number = _NUMBER.search(top["attributes"])
        query = next((fields[name] for name in _QUERIES if fields.get(name)), "")
        yield TypedTopic(number[1].strip() if number else fields.get("num", ""), " ".join(query.split()), line)


def _json(path: Path, text: str) -> Iterator[TypedTopic]:
    for number, line in _lines(text):
        try:
            record = parse_json(line)
        except ValueError as error:
            raise _fault(path, number, f"this is not JSON ({error}); write one JSON object in each line") from error
        if not isinstance(record, dict):
            example = '{"qid": "1", "query": "$x^2$"}'
            raise _fault(path, number, f"this is not a JSON object; write one in each line, such as {example}")
        qid = next((str(record[name]) for name in _IDS if record.get(name) is not None), "")
        given = {name: record[name] for name in _TEXTS if isinstance(record.get(name), str)}
        query = given.get("query") or given.get("text") or "\n\n".join(given.values())
        yield TypedTopic(qid, query, number)


def _table(path: Path, text: str) -> Iterator[TypedTopic]:
    for number, line in _lines(text):
        qid, tab, query = line.partition("\t")
        if not tab:
            raise _fault(path, number, f"{line[:60]!r} has no tab; write an id, a tab and a query")
        yield TypedTopic(qid.strip(), query.strip(), number)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank; only line ends of files end them."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line

"""What a thread store keeps of a post, and how it is read from any object or dictionary with the fields of a post."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.systems.errors import SystemsError

Kind = Literal["question", "answer"]

Get = Callable[[str], Any]

_TAG = re.compile(r"[^<>|,\s]+")
_MOST = 1 << 62


class ThreadPostError(SystemsError):
    """A post cannot be stored."""

    post: str
    reason: str
    template = "{post}: {reason}."
    advice = "Give posts with the fields of pyterrier_mathamr.arqmath.Post, such as collection.posts()."


class ThreadPost(NamedTuple):
    """A post in its thread; ``None`` or empty is what the collection does not say."""

    id: DocNo
    kind: Kind
    question_id: DocNo  # of an answer; a question's is its own id
    accepted_id: DocNo  # of a question
    votes: int | None
    comments: int | None
    tags: tuple[str, ...]  # of a question


class Record(NamedTuple):
    """A post with its text."""

    post: ThreadPost
    title: str
    body: str


def record_of(row: object, number: int) -> Record:
    """Read a post."""
    get: Get = row.get if isinstance(row, Mapping) else lambda name: getattr(row, name, None)
    name = _first_text(get, ("id", "docno"), f"post {number:,}")
    if not name:
        raise ThreadPostError(f"post {number:,}", "it has no id")
    where, kind = f"post {name!r:.80}", get("kind")
    if kind not in get_args(Kind):
        raise ThreadPostError(where, f"its kind is {kind!r:.40}, neither 'question' nor 'answer'")
    post = ThreadPost(
        id=name,
        kind=kind,
        question_id=name if kind == "question" else _text(get, "parent_id", where),
        accepted_id=_text(get, "accepted_answer_id", where) if kind == "question" else "",
        votes=_number(get, "score", where),
        comments=_number(get, "comment_count", where),
        tags=tags_of(get("tags")),
    )
    return Record(post, _text(get, "title", where), _first_text(get, ("body", "html", "text"), where))


def tags_of(value: object) -> tuple[str, ...]:
    """Read tags: a list, or ``calculus limits``, ``calculus,limits``, ``<calculus><limits>``."""
    if is_missing(value):
        return ()
    text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, Iterable) else str(value)
    return tuple(dict.fromkeys(_TAG.findall(text)))


def _first_text(get: Get, names: Sequence[str], where: str) -> str:
    return next((text for name in names if (text := _text(get, name, where))), "")


def _text(get: Get, name: str, where: str) -> str:
    value = get(name)
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise ThreadPostError(where, f"its {name} is {value!r:.40}, no text")
    return value


def _number(get: Get, name: str, where: str) -> int | None:
    value = get(name)
    if is_missing(value):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = _MOST
    if abs(number) >= _MOST or number != value:
        raise ThreadPostError(where, f"its {name} is {value!r:.40}, no whole number")
    return number

r"""One rule for the ids of documents, queries and formulas, in every index and store.

::

    "a1", "é 7"                             as given
    7, numpy.int64(7)                       "7"
    None, NaN, pd.NA, no such key           refused: missing
    "", " "                                 refused: blank
    "a\nb", "a\tb", "a\x85b", "a\u2028b"     refused: a control character or line break, which cuts a run's line in two
    7.0, True, ["a"], b"a"                  refused: neither a text nor an integer
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

from .errors import DocumentError

if TYPE_CHECKING:  # a server that only passes requests on does without pandas
    import pandas as pd

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # C0, DEL, C1 and Unicode's two separators of lines
# further, what changes the direction of writing, and halves of surrogate pairs
_UNSEEN = re.compile(f"{CONTROL.pattern[:-1]}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def pseudo_random(name: str) -> int:
    """Return a pseudo-random number that is a function of a name, to shuffle names by."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def visible(text: str, kept: str = "") -> str:
    r"""Write characters that change how text around them is shown as ``\x1b`` or ``\u202e``, except those ``kept``.

    An id or a file name with one could rewrite a terminal, or forge lines of an answer.
    """
    return _UNSEEN.sub(lambda sign: sign[0] if sign[0] in kept else sign[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Write such characters of a JSON text as JSON has them, so that it keeps its meaning."""
    return _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


class InvalidIdError(DocumentError):
    """An id is missing, blank, has a control character or line break, or is neither a text nor an integer."""


def as_id(value: object) -> str | None:
    """Return a text or an integer as text; ``None`` for anything else, which cannot be an id."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    return None


def valid_id(value: object, place: str, name: str = "docno") -> str:
    """Return an id as text; an :class:`InvalidIdError` names its column ``name`` and the ``place`` that it is in."""
    text = as_id(value)
    if text is None:
        from .frames import is_missing

        fault = f"is {value!r:.80}, neither a text nor an integer"
        if is_missing(value):
            fault = "is missing"
        elif isinstance(value, float):
            fault += " (pandas turns integers into floats in a column with gaps)"
    elif not text.strip():
        fault = "is blank"
    elif control := CONTROL.search(text):
        fault = f"{text!r:.80} has a control character at place {control.start() + 1:,}"
    else:
        return text
    raise InvalidIdError(place, f"its {name} {fault}; give a text without line breaks, or an integer")


def identified(
    stream: pd.DataFrame | Iterable[Mapping[Any, Any]], *names: str, optional: bool = False
) -> Iterator[dict[str, Any]]:
    """Iterate over the documents that an indexer is given, the id of each as text.

    Args:
        stream: a frame or dictionaries.
        names: where an id is, in order of preference; by default ``docno``. All must be a :func:`valid_id`.
        optional: a later stage may add the ids of documents without any of these keys.
    """
    from .frames import documents, is_missing

    names = names or ("docno",)
    for number, row in enumerate(documents(stream), start=1):
        name = next((name for name in names if not is_missing(row.get(name))), names[0])
        if optional and name not in row:
            yield row
            continue
        text = valid_id(row.get(name), f"document {number:,}", name)
        yield row if text is row[name] else {**row, name: text}

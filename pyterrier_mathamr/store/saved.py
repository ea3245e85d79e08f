"""Small JSON files of learned values: weights of blends, ensembles and rankers, descriptions of models.

::

    {"format": 2, "type": "LinearBlend", "weights": [0.5, 1.0], "scorers": ["…"], "checksum": <of all of these>}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pyterrier_mathamr._common.errors import MathAMRError

from . import DamagedError, parse_object, read_signed, replace_file, signed, unreadable

T = TypeVar("T")

FORMAT = 2
_LARGEST = 1 << 26  # bytes

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MathAMRError)
"""Exceptions of reading such a file, and of making an object of its content."""


def write_saved(path: str | Path, kind: str, content: Mapping[str, Any]) -> None:
    replace_file(Path(path), signed({"format": FORMAT, "type": kind, **content}))


def read_saved(path: str | Path, kind: str | None = None) -> dict[str, Any]:
    """Read a file that :func:`write_saved` wrote."""
    path = Path(path)
    if (size := path.stat().st_size) > _LARGEST:
        raise ValueError(f"it has {size:,} bytes")
    version = parse_object(path.read_bytes(), path).get("format")
    if type(version) is not int or version != FORMAT:
        raise ValueError(f"format {version!r:.80}, but this release reads {FORMAT}")
    content = read_signed(path)
    if (written := content.pop("type", None)) != kind and kind is not None:
        raise ValueError(f"its type is {written!r:.80}")
    return content


def field(content: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return one of the values of a file."""
    if name not in content:
        raise ValueError(f"its {name} is missing")
    value = content[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"its {name} is {value!r:.80}")
    return value


def finite(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        raise ValueError(f"its {name} is {value!r:.80}, no finite number")
    return float(value)


def reason_of(error: BaseException) -> str:
    """Return the reason of an error about a file, without its path."""
    return error.reason if isinstance(error, DamagedError) else str(error)


def is_saved(path: Path) -> bool:
    """Whether a file seems to be one of these: it begins as a JSON object."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def saved_faults(path: Path) -> Iterator[MathAMRError]:
    """Compare a file with its checksum, and yield its faults."""
    try:
        described(path)
    except OSError as error:
        yield unreadable(error, path)
    except UNREADABLE as error:
        yield error if isinstance(error, DamagedError) else DamagedError(path, reason_of(error))


def described(path: Path) -> str:
    """Describe a file in a few words."""
    read_saved(path)
    return f"{read_signed(path)['type']!s:.80}"

"""JSON from outside, every fault of which is a `ValueError`, and files of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Read JSON; Python's own reader ends in ``RecursionError`` where it nests deeply.

    Raises:
        ValueError: it is no JSON, nests too deeply, is no UTF-8 or has numbers of thousands of digits.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that nests too deeply") from None


def write_json(path: str | Path, value: object) -> None:
    """Write a value as JSON of several lines, replacing the file at once."""
    unfinished = Path(f"{path}.tmp")
    unfinished.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(path)

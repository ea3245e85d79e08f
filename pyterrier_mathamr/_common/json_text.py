"""JSON from outside, every fault of which is a `ValueError`."""

from __future__ import annotations

import json
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

"""Indexes of removed systems: opening one raises an error that names the replacement."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from pyterrier_mathamr.store import FormatError


def GraphTermsIndex(path: Path | str) -> NoReturn:  # noqa: N802 - the name of the entry point
    """Raise an error for an index of graph terms."""
    raise FormatError(
        Path(path),
        "it is an index of graph terms, which were removed since they add nothing to any combination "
        "(docs/archive/what-did-not-help.md). Remove the folder; BM25Index has the words of posts.",
    )

"""What an index holds, in one line: ``print(index)``, and an index at the end of a notebook's cell.

MathAMRIndex('posts.mathamr'): 6,164 documents, 98,312 vectors of 64 dimensions, 34.7 MB
BM25Index('new.bm25'): new.bm25: there is no finished sparse_index. …
"""

from __future__ import annotations

from typing import Any

from pyterrier_mathamr._common.errors import MathAMRError


class Counted:
    """Gives a class the text of its counts; its `repr` stays the call that rebuilds it."""

    def counts(self) -> list[str]:
        """List what it holds."""
        raise NotImplementedError

    def __str__(self) -> str:
        try:
            return f"{self!r}: {', '.join(self.counts())}"
        except MathAMRError as error:
            return f"{self!r}: {error}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show it in IPython and in notebooks as ``print`` does."""
        printer.text(str(self))


def counted(count: int, noun: str) -> str:
    """Write a number of things: ``1 document``, ``6,164 documents``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def size_of(count: int) -> str:
    """Write a number of bytes: ``12 bytes``, ``3.4 MB``."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"

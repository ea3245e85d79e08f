"""Files of graphs, compressed or not, split into records in bounded memory.

Two forms are told apart by their first lines::

    # ::id 154                              A.301<TAB>"(m / multi-sentence
    # ::formula_map {"FORMULA_0": "7"}            :snt1 (c / come-21 :value ""x""))"
    (e / equal-01 …                         A.302<TAB>"(f / find-01 …

Left: Penman, records separated by blank lines, or where another one begins without a blank line. Right: the files of
MathAMR, an id and the graph in quotes, with doubled quotation marks.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

MAX_RECORD = 2_000_000
"""Characters of the longest record that is read; the longest posts of ARQMath have a quarter of that."""

_GZIP = b"\x1f\x8b"
_ROW = re.compile(r'([^\s:#()"][^\t#()]*)\t("?)(?=\()')
_ID_LINE = re.compile(r"#.*::id\s")
_ENDS_IN_ROLE = re.compile(r":[^\s()]*\s*$")


class RawRecord(NamedTuple):
    """One record of a file.

    Attributes:
        line: number of its first line.
        text: its lines.
        id: the id next to the text; empty where it is in the text.
        damage: why the record cannot be read; empty otherwise.
        replaced: bytes that are not UTF-8 were replaced.
    """

    line: int
    text: str
    id: str = ""
    damage: str = ""
    replaced: bool = False


class _Line(NamedTuple):
    number: int
    text: str
    begins: bool  # false for the later pieces of a very long line
    replaced: bool


def iter_raw_records(path: Path) -> Iterator[RawRecord]:
    """Split a file into records."""
    cutter = _Cutter()
    with open(path, "rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        try:
            for line in _lines(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw):
                yield from cutter.add(line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield from cutter.end()
            yield RawRecord(cutter.line, "", damage=f"the compressed file is damaged from here on: {error}")
            return
    yield from cutter.end()


def count_records(path: Path) -> int | None:
    """Count the ids of a Penman file, or the lines of a table, without reading them; ``None`` if it is damaged."""
    ids = lines = 0
    with open(path, "rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        try:
            for line in _lines(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw):
                ids += line.text.startswith("# ::id")
                lines += line.begins
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return None
    return ids or lines


def _lines(data: IO[bytes]) -> Iterator[_Line]:
    """Decode lines; a very long line is read in pieces."""
    number, begins = 1, True
    while piece := data.readline(MAX_RECORD):
        if number == 1 and begins:
            piece = piece.removeprefix(b"\xef\xbb\xbf")
        text = piece.decode("utf-8", "replace")
        replaced = "\ufffd" in text and text.encode("utf-8") != piece
        yield _Line(number, text, begins, replaced)
        begins = piece.endswith(b"\n")
        number += begins


class _Cutter:
    """Collects the lines of a record."""

    def __init__(self) -> None:
        self._begin(1)

    def _begin(self, line: int, id: str = "") -> None:
        self.line, self.id = line, id
        self.lines: list[str] = []
        self.size = 0
        self.has_graph = self.replaced = self.quoted = False

    def add(self, line: _Line) -> Iterator[RawRecord]:
        """Add a line; yield the record that ends before it, if any."""
        bare = line.text.strip()
        if line.begins:
            row = _ROW.match(line.text)
            if row:
                yield from self.end()
                self._begin(line.number, row[1].strip())
                self.quoted = bool(row[2])
                line = line._replace(text=line.text[row.end() :])
            elif not bare or self._starts_another(line.text):
                yield from self.end()
                self._begin(line.number)
            if not bare:
                return
        if not self.lines:
            self.line = line.number
        self.replaced |= line.replaced
        self.has_graph |= not bare.startswith("#") or not line.begins
        self.size += len(line.text)
        if self.size <= MAX_RECORD:
            self.lines.append(line.text.rstrip("\r\n"))

    def _starts_another(self, text: str) -> bool:
        """Whether a record begins here without a blank line before it: an id or a bracket after a graph."""
        if not self.has_graph:
            return False
        return bool(_ID_LINE.match(text)) or (text.startswith("(") and not _ENDS_IN_ROLE.search(self.lines[-1][-200:]))

    def end(self) -> Iterator[RawRecord]:
        """Yield the collected record, if it has more than comments."""
        if self.has_graph and self.lines:
            if self.size > MAX_RECORD:
                yield RawRecord(self.line, "", self.id, f"longer than {MAX_RECORD:,} characters", self.replaced)
            else:
                text = "\n".join(self.lines)
                if self.quoted:
                    text = text.rstrip().removesuffix('"').replace('""', '"')
                yield RawRecord(self.line, text, self.id, "", self.replaced)
        self.has_graph = False

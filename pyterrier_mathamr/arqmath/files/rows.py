"""Rows of an XML dump, one at a time, in constant memory; a bad row costs only that row.

An incremental XML parser stops at the first malformed byte, perhaps two million posts before the end. So the dump is
split where a row begins, which is safe because an attribute cannot contain a bare ``<``, and each piece is parsed
separately::

    <posts>            │ header: ignored
      <row Id="1" …/>⏎ │ piece 1
      <row Id="2" …/>⏎ │ piece 2, of any number of lines
    </posts>           │ tail: its absence means that the file is truncated
"""

from __future__ import annotations

import gzip
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from lxml import etree

from pyterrier_mathamr.arqmath.errors import FileFormatError

from .rules import BadRows

CHUNK = 1 << 20
MAX_ROW = 64 << 20

_ROW = re.compile(rb"<row(?=[\s/>])")
_TAG = re.compile(rb"""<row[^>"']*(?:(?:"[^"]*"|'[^']*')[^>"']*)*>""")
_ROOT = re.compile(rb"<(?!row[\s/>])([A-Za-z_]\w*)")
_TAIL = re.compile(rb"</(?!row[\s>])\w+\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)
_FORBIDDEN = bytes(i for i in range(32) if i not in (9, 10, 13))
_FORBIDDEN_REFERENCE = re.compile(rb"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[\da-f]));", re.IGNORECASE)
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)


def open_binary(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for reading bytes, unpacked where its name ends in ``.gz``."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def open_text(path: Path, newline: str | None = None) -> io.TextIOWrapper:
    """Open a file for reading UTF-8, unpacked where its name ends in ``.gz``; other bytes are replaced."""
    return io.TextIOWrapper(open_binary(path), "utf-8-sig", "replace", newline=newline)


def clean(piece: bytes) -> bytes:
    """Remove what XML 1.0 forbids (control characters and references to them) and replace bytes that are not UTF-8."""
    piece = _FORBIDDEN_REFERENCE.sub(b"", piece.translate(None, _FORBIDDEN))
    return piece.decode("utf-8", "replace").replace("\ufffe", "").replace("\uffff", "").encode()


def parse_piece(piece: bytes, repair: Callable[[bytes], bytes]) -> tuple[etree._Element | None, bool]:
    """Parse one element; if it is malformed, parse it again after ``repair``."""
    try:
        return etree.fromstring(piece, _PARSER), False
    except etree.XMLSyntaxError:
        try:
            return etree.fromstring(repair(piece), _PARSER), True
        except etree.XMLSyntaxError:
            return None, True


def read_rows(path: Path, report: BadRows) -> Iterator[tuple[int, etree._Element]]:
    """Read each ``<row …/>`` of a Stack Exchange dump."""
    hidden = False  # whether in a comment
    for line, piece, last in _pieces(path, report):
        tag, cut = _TAG.match(piece), last and not _TAIL.search(piece)
        if hidden:
            hidden = b"-->" not in piece
        else:
            # A row has no content: its start tag is all of it.
            row, repaired = parse_piece(tag[0].rstrip(b"/>") + b"/>" if tag else piece, clean)
            if row is not None:
                if repaired:
                    report("P105", line, f"row {row.get('Id', '')}")
                yield line, row
            elif not cut:
                report("P101", line, _excerpt(piece))
            after = piece[tag.end() :] if tag else b""
            hidden = after.rfind(b"<!--") > after.rfind(b"-->")
        if cut:
            report("P106", line, _excerpt(piece))


def count_rows(path: Path, mark: bytes = b"<row ") -> int:
    """Count the rows of a dump without reading them, for the total of a progress bar."""
    count, rest = 0, b""
    for chunk in read_chunks(path):
        data = rest + chunk
        count += data.count(mark)
        rest = data[1 - len(mark) :]
    return count


def read_chunks(path: Path) -> Iterator[bytes]:
    """Read a file, plain or gzipped, in pieces of about :data:`CHUNK` bytes, to its end or to where it is truncated."""
    chunk = bytearray()
    with open_binary(path) as stream:
        try:
            while some := stream.read1(CHUNK):  # read() would lose the end of a truncated gzip file
                chunk += some
                if len(chunk) >= CHUNK:
                    yield bytes(chunk)
                    chunk.clear()
        except EOFError:
            pass  # the reader of the rows reports the missing tail
        except (gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(f"this is no gzip file ({error})", path, 1) from error
    if chunk:
        yield bytes(chunk)


def _pieces(path: Path, report: BadRows) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (first line, bytes from one ``<row`` to the next, whether it is the last)."""
    rest, line, head, found = b"", 1, b"", False
    for chunk in read_chunks(path):
        data = rest + chunk
        head = head or data[:4096]
        starts = [match.start() for match in _ROW.finditer(data)]
        if starts and not found:
            line += data.count(b"\n", 0, starts[0])
            found = True
        for start, end in itertools.pairwise(starts):
            piece = data[start:end]
            yield line, piece, False
            line += piece.count(b"\n")
        # Before the first row, keep only what may begin one or end an empty dump.
        rest = data[starts[-1] :] if starts else data if found else data[-64:]
        line += 0 if found else data.count(b"\n", 0, len(data) - len(rest))
        if len(rest) > MAX_ROW:
            report("P107", line, _excerpt(rest))
            line, rest, found = line + rest.count(b"\n"), b"", False
    if found:
        yield line, rest, True
    elif not head or not (root := _ROOT.search(head)) or root[1].lower() not in (b"posts", b"postlinks"):
        raise FileFormatError("this is no dump of posts or links: it has no <row …/>", path, 1)
    elif not (_TAIL.search(rest) or head.rstrip().endswith(b"/>")):
        report("P106", line, _excerpt(rest))


def _excerpt(piece: bytes) -> str:
    text = piece[:60].decode("utf-8", "replace").strip()
    return repr(text + "…" if len(piece) > 60 else text)


class SeenIds:
    """A compact set of ids: numbers of at most 8 digits take a bit each (12 MiB at most), others a set's entry."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._others: set[str] = set()

    def add(self, item: str) -> bool:
        """Add an id; return whether it is new."""
        place = _place(item)
        if place is None:
            before = len(self._others)
            self._others.add(item)
            return len(self._others) > before
        byte, bit = place >> 3, 1 << (place & 7)
        bits = self._bits
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        elif bits[byte] & bit:
            return False
        bits[byte] |= bit
        return True

    def __contains__(self, item: str) -> bool:
        place = _place(item)
        if place is None:
            return item in self._others
        byte = place >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (place & 7) & 1)

    def __bool__(self) -> bool:
        return bool(self._bits or self._others)


def _place(item: str) -> int | None:
    """Return the bit of an id, or ``None`` for one that is not a number in canonical form."""
    if item.isdigit() and len(item) <= 8 and item.isascii() and (item[0] != "0" or item == "0"):
        return int(item)
    return None

"""The dump of the posts (``Posts.V1.3.xml``), and the pairs and links between them.

Rows of XML are read one at a time, in constant memory. An incremental XML parser stops at the first malformed byte,
perhaps two million posts before the end. So the dump is split where a row begins, which is safe because an attribute
cannot contain a bare ``<``, and each piece is parsed separately::

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
from typing import Literal, NamedTuple

from lxml import etree

from pyterrier_mathamr._common.types import DocNo

from .errors import ARQMathError, BadRows

CHUNK = 1 << 20
MAX_ROW = 64 << 20

_ROW = re.compile(rb"<row(?=[\s/>])")
_ROW_TAG = re.compile(rb"""<row[^>"']*(?:(?:"[^"]*"|'[^']*')[^>"']*)*>""")
_ROOT = re.compile(rb"<(?!row[\s/>])([A-Za-z_]\w*)")
_TAIL = re.compile(rb"</(?!row[\s>])\w+\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)
_FORBIDDEN = bytes(i for i in range(32) if i not in (9, 10, 13))
_FORBIDDEN_REFERENCE = re.compile(rb"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[\da-f]));", re.IGNORECASE)
_XML = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)


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
        return etree.fromstring(piece, _XML), False
    except etree.XMLSyntaxError:
        try:
            return etree.fromstring(repair(piece), _XML), True
        except etree.XMLSyntaxError:
            return None, True


def read_rows(path: Path, report: BadRows) -> Iterator[tuple[int, etree._Element]]:
    """Read each ``<row …/>`` of a Stack Exchange dump."""
    hidden = False  # whether in a comment
    for line, piece, last in _pieces(path, report):
        tag, cut = _ROW_TAG.match(piece), last and not _TAIL.search(piece)
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


def count_rows(path: Path, *marks: bytes) -> int:
    """Count the rows of a dump that have one of some marks of one length, or all rows; bad rows are included."""
    marks = marks or (b"<row ",)
    count, rest = 0, b""
    for chunk in read_chunks(path):
        data = rest + chunk
        count += sum(map(data.count, marks))
        rest = data[1 - len(marks[0]) :]
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
            raise ARQMathError(f"{path}:1: this is not a gzip file ({error})") from error
    if chunk:
        yield bytes(chunk)


def _pieces(path: Path, report: BadRows) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (first line, bytes from one ``<row`` to the next, whether it is the last)."""
    rest, line, head, begun = b"", 1, b"", False
    for chunk in read_chunks(path):
        data = rest + chunk
        head = head or data[:4096]
        starts = [match.start() for match in _ROW.finditer(data)]
        if starts and not begun:
            line += data.count(b"\n", 0, starts[0])
            begun = True
        for start, end in itertools.pairwise(starts):
            piece = data[start:end]
            yield line, piece, False
            line += piece.count(b"\n")
        # Before the first row, keep only what may begin one or end an empty dump.
        rest = data[starts[-1] :] if starts else data if begun else data[-64:]
        line += 0 if begun else data.count(b"\n", 0, len(data) - len(rest))
        if len(rest) > MAX_ROW:
            report("P107", line, _excerpt(rest))
            line, rest, begun = line + rest.count(b"\n"), b"", False
    if begun:
        yield line, rest, True
    elif not head or not (root := _ROOT.search(head)) or root[1].lower() not in (b"posts", b"postlinks"):
        raise ARQMathError(f"{path}:1: this is not a dump of posts or links: it has no <row …/>")
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
        number = _short_number(item)
        if number is None:
            before = len(self._others)
            self._others.add(item)
            return len(self._others) > before
        byte, bit = number >> 3, 1 << (number & 7)
        bits = self._bits
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        elif bits[byte] & bit:
            return False
        bits[byte] |= bit
        return True

    def __contains__(self, item: str) -> bool:
        number = _short_number(item)
        if number is None:
            return item in self._others
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (number & 7) & 1)

    def __bool__(self) -> bool:
        return bool(self._bits or self._others)


def _short_number(item: str) -> int | None:
    """Return the bit of an id, or ``None`` for one that is not a number in canonical form."""
    if item.isdigit() and len(item) <= 8 and item.isascii() and (item[0] != "0" or item == "0"):
        return int(item)
    return None


PostKind = Literal["question", "answer"]

_POST_KINDS: dict[str, PostKind] = {"1": "question", "2": "answer"}
_TAG_NAME = re.compile(r"[^<>|,\s]+")
_NUMBER = re.compile(r"[-+]?\d{1,18}")


class Post(NamedTuple):
    """A question or an answer; all but ``id`` and ``kind`` may be missing in the dump.

    Attributes:
        id: its number, as text.
        kind: ``question`` or ``answer``.
        title: HTML; blank for an answer.
        body: HTML, formulas as ``<span class="math-container" id="…">``.
        tags: of a question; of an answer none.
        parent_id: the question of an answer; blank for a question.
        accepted_answer_id: blank if the question has none.
        score: votes for it less votes against it.
        date: of its creation, ISO 8601 as written.
        comment_count: its comments.
    """

    id: DocNo
    kind: PostKind
    title: str
    body: str
    tags: tuple[str, ...]
    parent_id: DocNo
    accepted_answer_id: DocNo
    score: int | None
    date: str | None
    comment_count: int | None = None


def read_dump(path: str | Path) -> Iterator[Post]:
    """Read the questions and answers of a dump; other kinds of post, such as wikis, are skipped.

    Rows that break a rule (P101 to P108 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that name
    file and line, and the rest is read; a truncated file causes a warning after its last complete post.

    Args:
        path: ``Posts.V1.3.xml`` or an earlier version, plain or gzipped.

    Yields:
        The posts in the order of the file, each id once.

    Raises:
        ARQMathError: the file is not a dump of posts.
    """
    path = Path(path)
    seen = SeenIds()
    with BadRows(path) as report:
        for line, row in read_rows(path, report):
            post = _post(row, line, report)
            if post is None:
                continue
            if seen.add(post.id):
                yield post
            else:
                report("P108", line, f"post {post.id}")


def parse_tags(text: str) -> tuple[str, ...]:
    """Read a list of tags: ``<calculus><limits>``, ``|calculus|limits|`` or ``calculus,limits``."""
    return tuple(_TAG_NAME.findall(text))


def _post(row: etree._Element, line: int, report: BadRows) -> Post | None:
    get = row.get
    post_id, kind = get("Id", "").strip(), get("PostTypeId", "").strip()
    if not post_id:
        report("P102", line, "row")
        return None
    if not kind.isdecimal():
        report("P103", line, f"post {post_id}")
        return None
    if kind not in _POST_KINDS:
        return None
    numbers: dict[str, int | None] = {}
    for name in ("Score", "CommentCount"):
        number = get(name)
        if number is not None and not _NUMBER.fullmatch(number):
            report("P104", line, f"post {post_id}, {name}={number[:40]!r}")
            number = None
        numbers[name] = None if number is None else int(number)
    return Post(
        id=post_id,
        kind=_POST_KINDS[kind],
        title=get("Title", ""),
        body=get("Body", ""),
        tags=parse_tags(get("Tags", "")),
        parent_id=get("ParentId", "").strip(),
        accepted_answer_id=get("AcceptedAnswerId", "").strip(),
        score=numbers["Score"],
        date=get("CreationDate"),
        comment_count=numbers["CommentCount"],
    )


LinkKind = Literal["duplicate", "related"]

_LINK_KINDS: dict[str, LinkKind] = {"1": "related", "3": "duplicate", "related": "related", "duplicate": "duplicate"}


class Pair(NamedTuple):
    """A question and an answer to it, by ``question_id`` and ``answer_id``."""

    question_id: DocNo
    answer_id: DocNo


class Link(NamedTuple):
    """A link from one question to another.

    Attributes:
        question_id: the question with the link.
        related_id: the question linked to.
        kind: ``duplicate`` or ``related``.
        title: of the question linked to, formulas as ``$…$``; blank if unknown.
    """

    question_id: DocNo
    related_id: DocNo
    kind: LinkKind
    title: str


def read_pairs(path: str | Path) -> Iterator[Pair]:
    """Read ``pairs.tsv``: a header, then question and answer separated by a tab.

    Args:
        path: the file, plain or gzipped.

    Yields:
        The pairs in the order of the file. Lines that break rule L401 are reported and skipped.

    Raises:
        ARQMathError: the header is not ``question_id  answer_id``.
    """
    path = Path(path)
    with BadRows(path) as report:
        for line, columns in _table_rows(path, ("question_id", "answer_id")):
            if len(columns) == 2 and all(columns):
                yield Pair(*columns)
            else:
                report("L401", line, repr("\t".join(columns)[:60]))


def read_links(path: str | Path) -> Iterator[Link]:
    """Read the links between questions: ``links.tsv``, or ``PostLinks.V1.3.xml`` of the release."""
    path = Path(path)
    with BadRows(path) as report:
        for line, question, related, kind, title in _rows_of_links(path, report):
            if not question or not related:
                report("L401", line, repr(f"{question} {related}"))
            elif kind not in _LINK_KINDS:
                report("L402", line, f"link {question} to {related}, type {kind[:20]!r}")
            else:
                yield Link(question, related, _LINK_KINDS[kind], title)


def _rows_of_links(path: Path, report: BadRows) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield line, question, related question, type and title of each link."""
    if ".xml" in path.suffixes:
        for line, row in read_rows(path, report):
            # PostLinkTypeId in the organizers' description, LinkTypeId in the file
            kind = row.get("LinkTypeId") or row.get("PostLinkTypeId") or ""
            yield line, row.get("PostId", "").strip(), row.get("RelatedPostId", "").strip(), kind.strip(), ""
    else:
        for line, columns in _table_rows(path, ("question_id", "related_question_id", "type", "related_title")):
            question, related, kind, title, *_ = (*columns, "", "", "", "")
            yield line, question, related, kind, title


def _table_rows(path: Path, header: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and columns of each line of a tab-separated file below its header; skip blank lines."""
    with open_text(path) as stream:
        first = tuple(stream.readline().rstrip("\r\n").split("\t"))
        if first[: len(header)] != header:
            raise ARQMathError(f"{path}:1: the header is {first[:6]}, expected {header}")
        for line, text in enumerate(stream, 2):
            if text.strip():
                yield line, text.rstrip("\r\n").split("\t")

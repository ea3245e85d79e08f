"""Pairs of question and answer (``pairs.tsv``), and links between questions (``links.tsv``, ``PostLinks.xml``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.arqmath.errors import FileFormatError

from .rows import open_text, read_rows
from .rules import BadRows

LinkKind = Literal["duplicate", "related"]

_KINDS: dict[str, LinkKind] = {"1": "related", "3": "duplicate", "related": "related", "duplicate": "duplicate"}


class Pair(NamedTuple):
    """A question and an answer to it."""

    question_id: DocNo
    answer_id: DocNo


class Link(NamedTuple):
    """A link from one question to another."""

    question_id: DocNo
    related_id: DocNo
    kind: LinkKind
    title: str  # of the question linked to, formulas as $…$; "" if unknown


def read_pairs(path: str | Path) -> Iterator[Pair]:
    """Read ``pairs.tsv``: a header, then question and answer separated by a tab.

    Args:
        path: the file, plain or gzipped.

    Yields:
        The pairs in the order of the file. Lines that break rule L401 are reported and skipped.

    Raises:
        FileFormatError: the header is not ``question_id  answer_id``.
    """
    path = Path(path)
    with BadRows(path) as report:
        for line, columns in _table(path, ("question_id", "answer_id")):
            if len(columns) == 2 and all(columns):
                yield Pair(*columns)
            else:
                report("L401", line, repr("\t".join(columns)[:60]))


def read_links(path: str | Path) -> Iterator[Link]:
    """Read the links between questions: ``links.tsv``, or ``PostLinks.V1.3.xml`` of the release.

    Args:
        path: the file, plain or gzipped.

    Yields:
        The links in the order of the file. Rows that break a rule (L401, L402) are reported and skipped.

    Raises:
        FileFormatError: the file is no list of links.
    """
    path = Path(path)
    with BadRows(path) as report:
        rows = _xml_links(path, report) if ".xml" in path.suffixes else _tsv_links(path)
        for line, question, related, kind, title in rows:
            if not question or not related:
                report("L401", line, repr(f"{question} {related}"))
            elif kind not in _KINDS:
                report("L402", line, f"link {question} to {related}, type {kind[:20]!r}")
            else:
                yield Link(question, related, _KINDS[kind], title)


def _xml_links(path: Path, report: BadRows) -> Iterator[tuple[int, str, str, str, str]]:
    for line, row in read_rows(path, report):
        # PostLinkTypeId in the organisers' description, LinkTypeId in the file
        kind = row.get("LinkTypeId") or row.get("PostLinkTypeId") or ""
        yield line, row.get("PostId", "").strip(), row.get("RelatedPostId", "").strip(), kind.strip(), ""


def _tsv_links(path: Path) -> Iterator[tuple[int, str, str, str, str]]:
    for line, columns in _table(path, ("question_id", "related_question_id", "type", "related_title")):
        question, related, kind, title, *_ = (*columns, "", "", "", "")
        yield line, question, related, kind, title


def _table(path: Path, header: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and columns of each line of a tab-separated file below its header; skip blank lines."""
    with open_text(path) as stream:
        found = tuple(stream.readline().rstrip("\r\n").split("\t"))
        if found[: len(header)] != header:
            raise FileFormatError(f"the header is {found[:6]}, expected {header}", path, 1)
        for line, text in enumerate(stream, 2):
            if text.strip():
                yield line, text.rstrip("\r\n").split("\t")

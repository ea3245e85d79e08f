"""Files of graphs of others, read leniently: records are repaired where possible, else skipped and counted.

::

    file ── split in bounded memory ──▶ one record ── read leniently ──▶ graph
                                            └── no graph, no id, … ──▶ refused, with its line and the reason

Two forms of files, compressed or not, are recognized by their first lines::

    # ::id 154                              A.301<TAB>"(m / multi-sentence
    # ::formula_map {"FORMULA_0": "7"}            :snt1 (c / come-21 :value ""x""))"
    (e / equal-01 …                         A.302<TAB>"(f / find-01 …

Left: Penman, records separated by blank lines, or where another one begins without a blank line. Right: the files of
MathAMR, an id and the graph in quotes, with doubled quotation marks.
"""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NamedTuple, cast

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.ids import valid_id
from pyterrier_mathamr.amr.lenient import decode_leniently

from .mathamr import NO_TREES, MathAMRGraph, attach_formulas
from .structure import MissingPlaceholderError, layout_of

MAX_RECORD = 2_000_000
"""Characters of the longest record that is read; the longest posts of ARQMath have a quarter of that."""

SHOWN = 20
"""The most refused records that a report names."""

_GZIP = b"\x1f\x8b"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_ROW = re.compile(r'([^\s:#()"][^\t#()]*)\t("?)(?=\()')
_ID_LINE = re.compile(r"#.*::id\s")
_ENDS_IN_ROLE = re.compile(r":[^\s()]*\s*$")
_MAP_NAME = re.compile(r'"formula_[0-9]+"\s*:')
KNOWN = "an id that came before"


class RawRecord(NamedTuple):
    line: int  # the number of its first line
    text: str
    id: str = ""  # empty if it is in the text
    damage: str = ""  # why the record cannot be read
    replaced: bool = False  # bytes that are not UTF-8 were replaced


class _Line(NamedTuple):
    number: int
    text: str
    begins: bool  # false for the later pieces of a very long line
    replaced: bool


def _lines(path: Path) -> Iterator[_Line]:
    """Decode the lines of a file, compressed or not; a very long line is read in pieces."""
    number, begins = 1, True
    with open(path, "rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        data = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
        while piece := data.readline(MAX_RECORD):
            if number == 1 and begins:
                piece = piece.removeprefix(b"\xef\xbb\xbf")
            text = piece.decode("utf-8", "replace")
            replaced = "\ufffd" in text and text.encode("utf-8") != piece
            yield _Line(number, text, begins, replaced)
            begins = piece.endswith(b"\n")
            number += begins


def count_records(path: Path) -> int | None:
    """Count the ids of a Penman file, or the lines of a table, without reading them; ``None`` if it is damaged."""
    ids = lines = 0
    try:
        for line in _lines(path):
            ids += line.text.startswith("# ::id")
            lines += line.begins
    except _DAMAGED:
        return None
    return ids or lines


def _raw_records(path: Path) -> Iterator[RawRecord]:
    """Cut a file into records; one that is damaged ends with a record that says so."""
    record, damage = _OpenRecord(1), ""
    try:
        for line in _lines(path):
            text, blank = line.text, not line.text.strip()
            if line.begins:
                row = _ROW.match(text)
                if row or blank or record.ends_before(text):
                    yield from record.closed()
                    record = _OpenRecord(line.number)
                if row:
                    record.id, record.quoted = row[1].strip(), bool(row[2])
                    text = text[row.end() :]
                elif blank:
                    continue
            record.add(line._replace(text=text))
    except _DAMAGED as error:
        damage = f"the compressed file is damaged from here on: {error}"
    yield from record.closed()
    if damage:
        yield RawRecord(record.line, "", damage=damage)


@dataclass
class _OpenRecord:
    """The lines of a record so far."""

    line: int
    id: str = ""
    quoted: bool = False
    replaced: bool = False
    has_graph: bool = False  # more than comments
    size: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, line: _Line) -> None:
        if not self.lines:
            self.line = line.number
        self.replaced |= line.replaced
        self.has_graph |= not line.text.strip().startswith("#") or not line.begins
        self.size += len(line.text)
        if self.size <= MAX_RECORD:
            self.lines.append(line.text.rstrip("\r\n"))

    def ends_before(self, text: str) -> bool:
        """Whether a record begins here without a blank line before it: an id or a bracket after a graph."""
        if not self.has_graph:
            return False
        return bool(_ID_LINE.match(text)) or (text.startswith("(") and not _ENDS_IN_ROLE.search(self.lines[-1][-200:]))

    def closed(self) -> Iterator[RawRecord]:
        """Yield the record, if it has more than comments."""
        if not self.has_graph or not self.lines:
            return
        if self.size > MAX_RECORD:
            yield RawRecord(self.line, "", self.id, f"longer than {MAX_RECORD:,} characters", self.replaced)
            return
        text = "\n".join(self.lines)
        if self.quoted:
            text = text.rstrip().removesuffix('"').replace('""', '"')
        yield RawRecord(self.line, text, self.id, "", self.replaced)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that was skipped.

    Attributes:
        line: number of its first line in the file.
        reason: a few words that are the same for all such records.
        detail: the details of this record.
    """

    line: int
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: skipped, {self.reason}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class ImportReport:
    """The outcome of an import.

    Attributes:
        records: number of records in the file; each was stored or refused.
        stored: number of stored records.
        repaired: number of stored records that were repaired.
        refused: number of skipped records.
        repairs: number of repairs by name; a record may need many.
        reasons: number of refused records by reason.
        refusals: the first 20 refused records.
    """

    records: int = 0
    stored: int = 0
    repaired: int = 0
    refused: int = 0
    repairs: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()

    def __str__(self) -> str:
        head = f"{self.records:,} records: {self.stored:,} stored, {self.repaired:,} of them repaired; "
        lines = [head + f"{self.refused:,} refused"]
        lines += [f"  repaired: {name}, {count:,} times" for name, count in self.repairs.items()]
        lines += [f"  refused: {name}, {count:,} records" for name, count in self.reasons.items()]
        return "\n".join(lines)


class PenmanReader:
    """One pass over a file, with its counts; ``taken`` are ids that no record may have."""

    def __init__(self, path: Path, taken: set[str]) -> None:
        self.path, self.taken = path, taken
        self.stored = self.repaired = 0
        self.repairs: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.refusals: list[Refusal] = []

    def graphs(self) -> Iterator[MathAMRGraph]:
        """Yield the graphs that can be stored, and count the other records."""
        for raw in _raw_records(self.path):
            repairs: Counter[str] = Counter()
            graph = self._read(raw, repairs)
            if isinstance(graph, Refusal):
                self.reasons[graph.reason] += 1
                if len(self.refusals) < SHOWN:
                    self.refusals.append(graph)
                    warnings.warn(f"{self.path}, {graph}.", MathAMRWarning, stacklevel=2)
            else:
                self.taken.add(graph.id)
                self.stored += 1
                self.repaired += any(repairs.values())
                self.repairs += repairs
                yield graph

    def _read(self, raw: RawRecord, repairs: Counter[str]) -> MathAMRGraph | Refusal:
        """Read one record leniently, and count its repairs."""
        if raw.damage:
            return Refusal(raw.line, raw.damage)
        try:
            graph = _graph(raw, repairs)
            if not graph.id:
                return Refusal(raw.line, "no '# ::id'")
            try:
                layout_of(graph.amr, graph.n_formulas, graph.id)
            except MissingPlaceholderError as error:
                repairs["a formula without a node attached to the root"] += len(error.numbers)
                graph = replace(graph, amr=attach_formulas(graph.amr, [NO_TREES] * graph.n_formulas))
                layout_of(graph.amr, graph.n_formulas, graph.id)
            if graph.id in self.taken:
                return Refusal(raw.line, KNOWN, repr(graph.id[:80]))
            valid_id(graph.id, "a record")
            graph.check()
            return graph
        except (MathAMRError, ValueError) as error:
            return Refusal(raw.line, "no graph", str(error).partition("\n")[0][:300])

    def report(self) -> ImportReport:
        refused = self.reasons.total()
        return ImportReport(
            records=self.stored + refused,
            stored=self.stored,
            repaired=self.repaired,
            refused=refused,
            repairs=dict(sorted(self.repairs.items())),
            reasons=dict(sorted(self.reasons.items())),
            refusals=tuple(self.refusals),
        )


def _graph(raw: RawRecord, repairs: Counter[str]) -> MathAMRGraph:
    amr, repairs_of_text = decode_leniently(raw.text, first_line=raw.line)
    repairs += repairs_of_text
    repairs["bytes that are not UTF-8 replaced"] += raw.replaced
    metadata = dict(amr.metadata)
    if raw.id:
        metadata["id"] = raw.id
    if repairs_of_text["the case of a placeholder"] and "formula_map" in metadata:
        metadata["formula_map"] = _MAP_NAME.sub(lambda name: name[0].upper(), metadata["formula_map"])
    unreadable: list[str] = []
    graph = MathAMRGraph.from_amr(amr.with_metadata(tuple(metadata.items())), unreadable=unreadable)
    repairs["metadata that cannot be read left out"] += len(unreadable)
    return graph

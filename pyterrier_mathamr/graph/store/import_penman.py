"""Foreign graphs to a :class:`GraphStore`: records are repaired where possible, else skipped and counted.

file ──penman_files──▶ one record ──read leniently──▶ graph ──▶ store
                            └── no graph, no id, … ──▶ refused, with its line and the reason
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.amr import decode_leniently
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.graph.errors import GraphError, GraphMetadataError, MissingPlaceholderError
from pyterrier_mathamr.graph.formula_trees import attach_formulas
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.graph.structure import layout_of
from pyterrier_mathamr.store import Mode, file_fingerprint

from .penman_files import RawRecord, count_records, iter_raw_records
from .records import Record
from .transformers import record_of_row

if TYPE_CHECKING:
    from .graph_store import GraphStore

SHOWN = 20
"""The most refused records that a report names."""

_KNOWN = "an id that came before"

_MAP_NAME = re.compile(r'"formula_[0-9]+"\s*:')
_NO_TREES = FormulaPair(slt=None, opt=None)


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


def import_penman(
    file: str | Path, store: GraphStore, *, mode: Mode = "create", allow_empty: bool = True, verbose: bool = False
) -> ImportReport:
    """Store the graphs of a file, repaired where necessary; memory holds the records of one part.

    Valid Penman notation is read literally, except that lower-cased roles and placeholders (``:arg0``, ``formula_0``)
    are restored. Wrong or missing brackets, quotation marks, variables and roles are repaired; an unreadable formula
    map or text is dropped; a formula of the map without a node is attached to the root. A record without a graph,
    without ``# ::id`` or with a repeated id is refused.

    Args:
        file: see :meth:`GraphStore.from_penman`.
        store: the store to build.
        mode: see :meth:`GraphStore.indexer`.
        allow_empty: make an empty store of a file without a graph, instead of an error.
        verbose: show progress.

    Returns:
        How many records were stored, repaired and refused, and why. A ``MathAMRWarning`` names each of the first
        refused records, and another sums up where any was repaired or none stored.

    Raises:
        StoreError: see :meth:`GraphStoreIndexer.index`; OSError: the file cannot be read.
        GraphError: the file has no graph, and ``allow_empty`` is false; nothing is written.
    """
    taken = set(store.ids()) if mode == "append" and store.built() else set()
    reader = _Reader(Path(file), taken)
    records = reader.records()
    if not allow_empty:  # before anything is written
        first = next(records, None)
        if first is None and _KNOWN not in reader.reasons:
            raise reader.nothing()
        records = chain(() if first is None else (first,), records)
    total = count_records(Path(file)) if verbose else None
    shown = progress(records, "storing", "graphs", verbose=verbose, total=total)
    store.indexer(mode).index_records(shown, {"file": file_fingerprint(file)})
    report = reader.report()
    if not report.stored or report.repaired or report.refused > SHOWN:
        warnings.warn(f"{file}: {report}", MathAMRWarning, stacklevel=2)
    return report


class _RefusedError(Exception):
    """A record cannot be stored: reason and detail."""


class _Reader:
    """One pass over a file, with its counts."""

    def __init__(self, path: Path, taken: set[str]) -> None:
        self.path, self.taken = path, taken
        self.stored = self.repaired = 0
        self.repairs: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.refusals: list[Refusal] = []

    def records(self) -> Iterator[Record]:
        """Yield the records that can be stored, and count the others."""
        for raw in iter_raw_records(self.path):
            try:
                graph, repairs = read_record(raw)
                if graph.id in self.taken:
                    raise _RefusedError(_KNOWN, repr(graph.id[:80]))
                record = record_of_row({"docno": graph.id, "graph": graph})
            except _RefusedError as refused:
                self.refuse(Refusal(raw.line, *map(str, refused.args)))
            except (MathAMRError, ValueError) as error:
                self.refuse(Refusal(raw.line, "no graph", str(error).partition("\n")[0][:300]))
            else:
                self.taken.add(graph.id)
                self.stored += 1
                self.repaired += bool(repairs)
                self.repairs += repairs
                yield record

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal; warn of the first ones."""
        self.reasons[refusal.reason] += 1
        if len(self.refusals) < SHOWN:
            self.refusals.append(refusal)
            warnings.warn(f"{self.path}, {refusal}.", MathAMRWarning, stacklevel=2)

    def report(self) -> ImportReport:
        """Make the report."""
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

    def nothing(self) -> GraphError:
        """Make the error of a file without a graph that can be stored."""
        report = self.report()
        reason = f"none of its {report.records:,} records is a graph" if report.records else "it has no record"
        reason += f" ({report.refusals[0]})" if report.refusals else ""
        advice = "nothing was written; pass Penman records with '# ::id', or a table of ids and graphs"
        return GraphError(str(self.path), f"{reason}; {advice}")


def read_record(raw: RawRecord) -> tuple[MathAMRGraph, Counter[str]]:
    """Read one record leniently; return the graph and its repairs."""
    if raw.damage:
        raise _RefusedError(raw.damage)
    amr, repairs = decode_leniently(raw.text, first_line=raw.line)
    repairs["bytes that are no UTF-8 replaced"] += raw.replaced
    metadata = dict(amr.metadata)
    if raw.id:
        metadata["id"] = raw.id
    if repairs["the case of a placeholder"] and "formula_map" in metadata:
        metadata["formula_map"] = _MAP_NAME.sub(lambda name: name[0].upper(), metadata["formula_map"])
    graph = None
    while graph is None:
        try:
            graph = MathAMRGraph.from_amr(amr.with_metadata(tuple(metadata.items())))
        except GraphMetadataError as error:
            del metadata[error.key]
            repairs["metadata that cannot be read left out"] += 1
        except RecursionError:  # lists in lists in lists
            metadata = {"id": metadata.get("id", "")}
            repairs["metadata that cannot be read left out"] += 1
    if not graph.id:
        raise _RefusedError("no '# ::id'")
    return _with_all_formulas(graph, repairs), +repairs


def _with_all_formulas(graph: MathAMRGraph, repairs: Counter[str]) -> MathAMRGraph:
    """Add a node for each formula of the map without one."""
    try:
        layout_of(graph.amr, graph.n_formulas, graph.id)
    except MissingPlaceholderError as error:
        repairs["a formula without a node attached to the root"] += len(error.numbers)
        amr = attach_formulas(graph.amr, [_NO_TREES] * graph.n_formulas)
        layout_of(amr, graph.n_formulas, graph.id)
        return MathAMRGraph(amr, graph.formula_ids, graph.id, graph.text, graph.sentence_texts, graph.latex)
    return graph

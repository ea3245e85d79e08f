"""What can go wrong with graphs, their vocabulary and their stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyterrier_mathamr._common.errors import MathAMRError

if TYPE_CHECKING:
    from .import_penman import ImportReport


class GraphError(MathAMRError):
    """Something about a graph, a vocabulary or a store of graphs."""


class MissingPlaceholderError(GraphError):
    """A formula has no node in its graph, so nothing could stand for it."""

    def __init__(self, graph_id: str, numbers: Sequence[int], formulas: int) -> None:
        super().__init__(graph_id, numbers, formulas)
        self.graph_id, self.numbers, self.formulas = graph_id, numbers, formulas

    def __str__(self) -> str:
        lost = ", ".join(f"FORMULA_{number}" for number in self.numbers[:5])
        return (
            f"graph {self.graph_id!r} of {self.formulas} formulas has no node for {lost}. "
            f"Put the trees in with attach_formulas, which adds what a parser dropped."
        )


class WritingOrderError(GraphError):
    """The nodes and edges of a graph put together by hand are in another order than its text has."""

    def __init__(self, graph_id: str) -> None:
        super().__init__(graph_id)
        self.graph_id = graph_id

    def __str__(self) -> str:
        return (
            f"graph {self.graph_id!r}: an edge leaves a node that is not written yet, or a node is never reached. "
            "Give the AmrGraph's arranged() copy."
        )


class FormulaMapError(GraphError):
    """The metadata ``formula_map`` of a Penman record cannot be read."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason)
        self.text, self.reason = text, reason

    def __str__(self) -> str:
        return (
            f"# ::formula_map {self.text[:80]!r}: {self.reason}. "
            'Write it as JSON from placeholder to formula id, such as {"FORMULA_0": "9549293"}.'
        )


class TextMetadataError(GraphError):
    """The texts in the metadata of a Penman record cannot be read."""

    def __init__(self, key: str, text: str, reason: str) -> None:
        super().__init__(key, text, reason)
        self.key, self.text, self.reason = key, text, reason

    def __str__(self) -> str:
        return (
            f"# ::{self.key} {self.text[:80]!r}: {self.reason}. "
            "Write it as MathAMRGraph.to_penman does, as a JSON string or list of strings, or leave the line out."
        )


class MissingTextsError(GraphError):
    """A graph does not hold the texts that a text encoder is to read."""

    def __init__(self, graph_id: str, what: str) -> None:
        super().__init__(graph_id, what)
        self.graph_id, self.what = graph_id, what

    def __str__(self) -> str:
        return (
            f"graph {self.graph_id!r} has {self.what}, which a model with text features reads. "
            "Build the graph from its post with GraphBuilder, which keeps the texts; a graph from Penman text has them "
            "only where to_penman wrote them."
        )


class VocabularyError(GraphError):
    """A vocabulary file does not hold a vocabulary that this release reads."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source, self.reason = source, reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}. Build the vocabulary again with Vocabulary.build and save it."


class TensorsError(GraphError):
    """Arrays that do not fit together."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where, self.reason = where, reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}."


class StoreError(GraphError):
    """Something about a store of graphs or tensors on disk."""


class StoreFormatError(StoreError):
    """The store was written in a format this release does not read."""

    def __init__(self, path: Path, found: object, readable: range) -> None:
        super().__init__(path, found, readable)
        self.path, self.found, self.readable = path, found, readable

    def __str__(self) -> str:
        return (
            f"{self.path}: store format {self.found}, but this release reads {self.readable[0]} to "
            f"{self.readable[-1]}. Build it again (unfinished work goes with discard()), or write it with to_penman "
            f"under a release that reads format {self.found} and read that file here with from_penman."
        )


class DamagedStoreError(StoreError):
    """A file of the store is missing, cut short or not what the metadata says."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Build the store again, or copy it again from where it came."


class StoreExistsError(StoreError):
    """There is a store already, and the mode does not replace it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} exists already. Use mode='overwrite' to replace it or mode='append' to add to it."


class NotBuiltError(StoreError):
    """There is no finished store at the path."""

    def __init__(self, path: Path, unfinished: int = 0) -> None:
        super().__init__(path, unfinished)
        self.path, self.unfinished = path, unfinished

    def __str__(self) -> str:
        if self.unfinished:
            return (
                f"{self.path}: a job stopped after {self.unfinished} graphs. Run it again in the same mode and it goes "
                f"on from there, or call discard() to begin anew."
            )
        return f"{self.path}: no store has been built here. Build one with .indexer().index(...)."


class UnfinishedJobError(StoreError):
    """A job of another mode stopped half way and its work is still there."""

    def __init__(self, path: Path, found: str, wanted: str) -> None:
        super().__init__(path, found, wanted)
        self.path, self.found, self.wanted = path, found, wanted

    def __str__(self) -> str:
        return (
            f"{self.path}: a job with mode={self.found!r} stopped half way, so mode={self.wanted!r} cannot begin. "
            f"Run mode={self.found!r} again to finish it, or call discard() to drop its work."
        )


class DuplicateIdError(StoreError):
    """An id came twice."""

    def __init__(self, path: Path, duplicate: str) -> None:
        super().__init__(path, duplicate)
        self.path, self.duplicate = path, duplicate

    def __str__(self) -> str:
        return f"{self.path}: the id {self.duplicate!r} came twice. Each id has one graph; remove the second."


class ChangedGraphError(StoreError):
    """A job goes on with the work of an earlier run, but its input is another."""

    def __init__(self, path: Path, changed: str) -> None:
        super().__init__(path, changed)
        self.path, self.changed = path, changed

    def __str__(self) -> str:
        return (
            f"{self.path}: the unfinished job has another graph of {self.changed!r}. Run it with the input it began "
            "with, or call discard() to begin anew."
        )


class NothingImportedError(StoreError):
    """A file of graphs holds none that can be stored.

    Attributes:
        path: the file.
        report: what became of its records.
    """

    def __init__(self, path: Path, report: ImportReport) -> None:
        super().__init__(path, report)
        self.path, self.report = path, report

    def __str__(self) -> str:
        records = self.report.records
        refused = f"none of its {records:,} records is a graph" if records else "it has no record"
        first = f" ({self.report.refusals[0]})" if self.report.refusals else ""
        return (
            f"{self.path}: {refused}{first}. Nothing was written. Give Penman records with '# ::id', "
            "or a table of ids and graphs."
        )


class UnknownIdError(StoreError, KeyError):
    """Ids that the store does not have."""

    def __init__(self, path: Path, ids: Sequence[str]) -> None:
        super().__init__(path, ids)
        self.path, self.ids = path, ids

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.ids[:5])) + (", …" if len(self.ids) > 5 else "")
        return f"{self.path} has no graph for {len(self.ids)} of the ids: {shown}. Add them with mode='append'."

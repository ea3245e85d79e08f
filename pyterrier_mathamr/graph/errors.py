"""What can go wrong with graphs and their vocabulary; with stores of them: see `pyterrier_mathamr.store`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyterrier_mathamr._common.errors import MathAMRError

if TYPE_CHECKING:
    from .store.import_penman import ImportReport


class GraphError(MathAMRError):
    """Something about a graph or a vocabulary."""


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


class NothingImportedError(GraphError):
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

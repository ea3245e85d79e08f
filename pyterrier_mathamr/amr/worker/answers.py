"""What a worker says of a text, made fit to be kept: a graph on one line, or the reason why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pyterrier_mathamr.amr.errors import AmrError
from pyterrier_mathamr.amr.graph import AmrGraph
from pyterrier_mathamr.amr.penman_atoms import spell
from pyterrier_mathamr.amr.penman_io import decode_penman, encode_penman

EMPTY = "(a / amr-empty)"
_ALIGNMENT = re.compile(r"~(?:[a-z]\.)?\d+(?:,\d+)*$")
_PLACEHOLDER = re.compile(r"formula_(\d+)(?:-\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a text.

    Attributes:
        graph: its Penman text on one line; empty where there is none.
        error: why there is none.
    """

    graph: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        """Write the answer as the cache keeps it: ``graph:`` or ``error:``, and the text."""
        text = f"error:{self.error}" if self.error else f"graph:{self.graph}"
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """Read what :meth:`to_bytes` wrote."""
        kind, _, text = data.decode("utf-8", "surrogatepass").partition(":")
        return cls(**{kind: text})


def read_answer(annotation: object) -> Answer:
    """Read what a parser wrote for one text.

    Args:
        annotation: Penman notation with comments and alignment marks, blank for an empty parse, or nothing.

    Returns:
        The graph without comments and marks, placeholders written as such whatever the parser made of them; a blank
        annotation is ``(a / amr-empty)``.
    """
    if not isinstance(annotation, str):
        return Answer(error="no graph")
    if not annotation.strip():
        return Answer(EMPTY)
    try:
        return Answer(encode_penman(_cleaned(decode_penman(annotation))))
    except AmrError as error:
        return Answer(error=str(error).partition("\n")[0])


def _cleaned(graph: AmrGraph) -> AmrGraph:
    """Leave out metadata and alignments, and give placeholders back their form."""
    labels = tuple(_PLACEHOLDER.sub(r"FORMULA_\1", label) if _PLACEHOLDER.fullmatch(label) else label
                   for label in graph.labels)  # fmt: skip
    names = set(filter(None, graph.variables))
    spellings = []
    for node, atom in graph.spellings:
        bare = _ALIGNMENT.sub("", atom)
        if labels[node] == graph.labels[node] and bare != spell(labels[node], () if graph.variables[node] else names):
            spellings.append((node, bare))
    return replace(graph, labels=labels, metadata=(), spellings=tuple(spellings), alignments=())

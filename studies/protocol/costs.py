"""What a query costs with a system, from its text to its ranking, and what the system keeps on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.json_text import parse_json, write_json
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.store import StoredArtifact
from studies.answers import AnswerParts

QUERIES = 20
"""Topics that are timed, one at a time."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a system.

    Attributes:
        ms: CPU milliseconds of a query, over all threads; opening files and loading models is not counted.
        files: the bytes of each artifact that is searched, by its path: indexes and threads, not models.
    """

    ms: float = 0.0
    files: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Cost) -> Cost:
        """Add the time; an artifact that both search is kept once."""
        return Cost(self.ms + other.ms, {**self.files, **other.files})


def cost_of(system: pt.Transformer, topics: pd.DataFrame, most: int = QUERIES) -> Cost:
    """Answer topics one at a time."""
    queries = [topics.iloc[[row]] for row in range(min(most, len(topics)))]
    system(queries[0])
    start = time.process_time()
    for query in queries:
        system(query)
    ms = 1000 * (time.process_time() - start) / len(queries)
    return Cost(ms, {str(path): _bytes(path) for path in _artifacts(system)})


def kept_cost(parts: AnswerParts, name: str, measure: Callable[[], Cost], **settings: Any) -> Cost:
    """Measure a cost, unless the work folder has it."""

    def build(path: Path) -> None:
        cost = measure()
        write_json(path, {"ms": cost.ms, "files": dict(cost.files)})

    content: Any = parse_json(parts.stage(f"cost of {name}", build, **settings).read_bytes())
    return Cost(content["ms"], content["files"])


def _artifacts(system: object) -> set[Path]:
    """Find the artifacts that a pipeline searches: attributes of its stages, whatever these call them."""
    found, seen, open_ = set[Path](), set[int](), [system]
    while open_:
        one = open_.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, StoredArtifact):
            if not isinstance(one, FormulaStore | GraphStore):  # of topics; they are read, not searched
                found.add(Path(one.path))
        elif isinstance(one, pt.Transformer):
            open_ += _values(vars(one).values())
    return found


def _values(values: Iterable[object]) -> list[object]:
    """Return values, and those in lists and tuples of them."""
    return list(chain.from_iterable(one if isinstance(one, list | tuple) else (one,) for one in values))


def _bytes(path: Path) -> int:
    files: Collection[Path] = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)

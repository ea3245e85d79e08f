"""The base classes of our stages of a pipeline: what PyTerrier leaves to each of them.

::

    GraphBuilder() >> model.doc_encoder() >> index.indexer()     a Pipeline, whose index() takes a DataFrame
    stage.transform_iter([])                                     no rows, where pandas would lose the columns
    pt.schematic.draw(stage)                                     a label and a link, without asking the network
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, ClassVar

import pandas as pd
import pyterrier as pt

from .frames import documents
from .parameters import ByParameters

HELP_URL = "https://pypi.org/project/pyterrier-mathamr/"
"""Where a drawn stage points."""


class Stage(ByParameters):
    """A stage of a pipeline is its parameters, and says what a drawing shows."""

    label: ClassVar[str] = ""
    """What a drawing shows, at most 20 characters; the class's name where it is empty."""

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """Return what ``pt.schematic`` draws."""
        return {"label": self.label or type(self).__name__, "help_url": HELP_URL}

    def __rshift__(self, right: pt.Transformer) -> Pipeline:
        return Pipeline(self, right)


class Transformer(Stage, pt.Transformer):  # type: ignore[misc]
    """A transformer of DataFrames."""

    def transform_iter(self, inp: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Transform rows; no rows are none again, with no columns to check."""
        rows = list(inp)
        found: list[dict[str, Any]] = self.transform(pd.DataFrame(rows)).to_dict(orient="records") if rows else []
        return found


class Indexer(Stage, pt.Indexer):  # type: ignore[misc]
    """The last stage of an indexing pipeline; its ``index`` begins with :func:`~.frames.documents`."""


class Pipeline(pt.Compose):  # type: ignore[misc]
    """PyTerrier's pipeline, equal to the one of the same stages, that indexes a DataFrame, too."""

    def __init__(self, *stages: pt.Transformer) -> None:
        super().__init__(*chain.from_iterable(stage if isinstance(stage, pt.Compose) else [stage] for stage in stages))

    def index(self, iter: pd.DataFrame | Iterable[Mapping[Any, Any]], batch_size: int | None = None) -> Any:
        """Index documents, given as a DataFrame or as dictionaries; see ``pt.Compose.index``."""
        return super().index(documents(iter), batch_size)

    def compile(self, verbose: bool = False) -> pt.Transformer:
        """Return the pipeline with neighbouring stages fused."""
        compiled = super().compile(verbose)
        return Pipeline(compiled) if isinstance(compiled, pt.Compose) else compiled

    def __rshift__(self, right: pt.Transformer) -> Pipeline:
        return Pipeline(self, right)

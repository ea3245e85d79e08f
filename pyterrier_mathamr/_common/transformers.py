"""The base classes of our pipeline stages: protocols that PyTerrier leaves to each stage.

::

    GraphBuilder() >> model.doc_encoder() >> index.indexer()     a Pipeline, whose index() accepts a DataFrame
    stage.transform_iter([])                                     no rows, where pandas would lose the columns
    pt.schematic.draw(stage)                                     a label and a link, without asking the network
    str(stage >> another)                                        a name for tables and files (`names`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from itertools import chain, product
from typing import Any, ClassVar

import pandas as pd
import pyterrier as pt
from pyterrier import _ops as operators

from .feedback import reported_once
from .ids import identified
from .names import pipeline_name, stage_name, transformer_name
from .parameters import COUNT, ByParameters, Rule

HELP_URL = "https://pypi.org/project/pyterrier-mathamr/"
"""Where a drawn stage points."""


class Composing:
    """Gives a stage or pipeline operators whose results have names for tables and files."""

    def __rshift__(self, right: pt.Transformer) -> Pipeline:
        return Pipeline(self, right)

    def __add__(self, right: pt.Transformer) -> Sum:
        return Sum(self, right)

    def __or__(self, right: pt.Transformer) -> SetUnion:
        return SetUnion(self, right)

    def __and__(self, right: pt.Transformer) -> SetIntersection:
        return SetIntersection(self, right)

    def __xor__(self, right: pt.Transformer) -> Concatenate:
        return Concatenate(self, right)

    def __pow__(self, right: pt.Transformer) -> FeatureUnion:
        return FeatureUnion(self, right)


class Stage(Composing, ByParameters):
    """A stage of a pipeline is its parameters, and has a label in drawings."""

    label: ClassVar[str] = ""
    """The label in drawings, at most 20 characters; the class's name where it is empty."""
    help_url: ClassVar[str] = HELP_URL

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """Return what ``pt.schematic`` draws, whatever the ``input_columns``."""
        return {"label": self.label or type(self).__name__, "help_url": self.help_url}

    def __str__(self) -> str:
        return stage_name(self.schematic()["label"], self.parameters(), signature(type(self)))


class Transformer(Stage, pt.Transformer):  # type: ignore[misc]
    """A transformer of DataFrames."""

    def transform_iter(self, inp: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Transform rows. An empty input returns an empty list and skips the column check."""
        rows = list(inp)
        found: list[dict[str, Any]] = self.transform(pd.DataFrame(rows)).to_dict(orient="records") if rows else []
        return found


class ColumnAdder:
    """A transformer that adds columns to each row and keeps the existing ones."""

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Apply the cutoff before this stage; the result is the same."""
        return pt.RankCutoff(k) >> self


class Leaf:
    """A stage without stages in it: its indexes, stores and models may be callable, but are not stages."""

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: see :class:`Leaf`."""
        return {}


class Retriever(Transformer):
    """A transformer of queries to a ranking of at most ``num_results`` documents each."""

    checks: ClassVar[Mapping[str, Rule]] = {"num_results": COUNT}
    num_results: int

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the retriever of ``k`` documents, this one where it returns no more, ``None`` for a ``k`` below 1."""
        if k >= self.num_results:
            return self
        return pt.inspect.transformer_apply_attributes(self, num_results=k) if k >= 1 else None


class Indexer(Stage, pt.Indexer):  # type: ignore[misc]
    """The last stage of an indexing pipeline; its ``index`` begins with :func:`~.ids.identified`."""


class Pipeline(Composing, pt.Compose):  # type: ignore[misc]
    """PyTerrier's pipeline, equal to the one of the same stages, that indexes a DataFrame, too."""

    def __init__(self, *transformers: pt.Transformer) -> None:
        stages = (stage if isinstance(stage, pt.Compose) else [stage] for stage in transformers)
        super().__init__(*chain.from_iterable(stages))

    def index(self, iter: pd.DataFrame | Iterable[Mapping[Any, Any]], batch_size: int | None = None) -> Any:
        """Index documents, given as a DataFrame or as dictionaries; see ``pt.Compose.index``."""
        with reported_once():
            return super().index(identified(iter, "docno", "qid", optional=True), batch_size)

    def compile(self, verbose: bool = False) -> pt.Transformer:
        """Return the pipeline with neighboring stages fused."""
        compiled = super().compile(verbose)
        return Pipeline(compiled) if isinstance(compiled, pt.Compose) else compiled

    def __rrshift__(self, left: pt.Transformer) -> Pipeline:
        return Pipeline(left, self)

    def __str__(self) -> str:
        return pipeline_name(self)

    def __repr__(self) -> str:
        return f"({' >> '.join(map(repr, self))})"


class _Named(Composing):
    def __str__(self) -> str:
        return transformer_name(self)


class Sum(_Named, operators.Sum):  # type: ignore[misc]
    """``+`` of PyTerrier with a name."""


class SetUnion(_Named, operators.SetUnion):  # type: ignore[misc]
    """``|`` of PyTerrier with a name."""


class SetIntersection(_Named, operators.SetIntersection):  # type: ignore[misc]
    """``&`` of PyTerrier with a name."""


class Concatenate(_Named, operators.Concatenate):  # type: ignore[misc]
    """``^`` of PyTerrier with a name."""


class FeatureUnion(_Named, operators.FeatureUnion):  # type: ignore[misc]
    """``**`` of PyTerrier with a name."""


def inputs_of_all(stages: Sequence[pt.Transformer], *needed: str) -> list[list[str]]:
    """Find the columns that several transformers need together."""
    modes: list[list[list[str]]] = [
        [[]] if _takes(stage, list(needed)) else pt.inspect.transformer_inputs(stage, strict=False) or [[]]
        for stage in stages
    ]
    unions = [list(dict.fromkeys([*needed, *chain.from_iterable(some)])) for some in product(*modes)]
    taken = [columns for columns in unions if all(_takes(stage, columns) for stage in stages)]
    of_all = set.intersection(*({frozenset([*needed, *columns]) for columns in of_one} for of_one in modes))
    smallest = [
        columns
        for columns in taken
        if frozenset(columns) in of_all or not any(set(other) < set(columns) for other in taken)
    ]
    return [columns for i, columns in enumerate(smallest) if set(columns) not in map(set, smallest[:i])]


def outputs_of_all(stages: Sequence[pt.Transformer], columns: Sequence[str]) -> list[list[str] | None]:
    """Check a frame for several transformers before anything is computed."""
    found: list[list[str] | None] = []
    for stage in stages:
        try:
            found.append(pt.inspect.transformer_outputs(stage, list(columns)))
        except pt.inspect.InspectError:
            found.append(None)
    return found


def _takes(stage: pt.Transformer, columns: list[str]) -> bool:
    try:
        outputs_of_all([stage], columns)
    except pt.validate.InputValidationError:
        return False
    return True

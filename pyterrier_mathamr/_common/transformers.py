"""The base classes of our pipeline stages: protocols that PyTerrier leaves to each stage, and short names.

::

    GraphBuilder() >> model.doc_encoder() >> index.indexer()     a Pipeline, whose index() accepts a DataFrame
    stage.transform_iter([])                                     no rows, where pandas would lose the columns
    pt.schematic.draw(stage)                                     a label and a link, without asking the network

``pt.Experiment`` names systems by ``str``, and files of ``save_dir`` by the same names; ``repr`` has everything. So the
names are without paths, and the same on every machine::

    BM25(sample)                                               an index by its folder, sample.bm25
    MathAMR ColBERT(sample, num_results=10)                    options that change results and differ from the default
    BM25(sample) top 100 → GraphBuilder → MathAMR queries(mathamr-plus-text) → MathAMR scorer(sample)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyterrier as pt
from pyterrier import _ops as operators

from .feedback import reported_once
from .ids import identified
from .parameters import COUNT, ByParameters, Rule, artifact_name

HELP_URL = "https://pypi.org/project/pyterrier-mathamr/"
"""Where a drawn stage points."""

_QUIET = frozenset(("verbose", "batch_size", "device", "executor", "total", "resume", "sources", "time_limit"))
"""Options that change how something is computed, but no result."""

_SIGNS = {
    operators.Sum: "+", operators.SetUnion: "or", operators.SetIntersection: "and", operators.Concatenate: "then",
}  # fmt: skip
_LONGEST = 40
_FOLDERS = re.compile(r"(?:[\w.~:-]*[/\\])+")
_NOT_IN_FILES = re.compile(r'[:"%/<>^|?*\\\x00-\x1f]+')


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
        return stage_name(self.schematic()["label"], self.parameters(), inspect.signature(type(self)))


class Transformer(Stage, pt.Transformer):  # type: ignore[misc]
    """A transformer of DataFrames."""

    def transform_iter(self, inp: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Transform rows. An empty input returns an empty list and skips the column check."""
        rows = list(inp)
        return self.transform(pd.DataFrame(rows)).to_dict(orient="records") if rows else []


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
    """An operator of PyTerrier with a name."""

    def __str__(self) -> str:
        return transformer_name(self)


class Sum(_Named, operators.Sum): ...  # type: ignore[misc]


class SetUnion(_Named, operators.SetUnion): ...  # type: ignore[misc]


class SetIntersection(_Named, operators.SetIntersection): ...  # type: ignore[misc]


class Concatenate(_Named, operators.Concatenate): ...  # type: ignore[misc]


class FeatureUnion(_Named, operators.FeatureUnion): ...  # type: ignore[misc]


def inputs_of_all(stages: Sequence[pt.Transformer], *needed: str) -> list[list[str]]:
    """Find the columns that several transformers need together."""
    modes: list[list[list[str]]] = [
        [[]] if _takes(stage, list(needed)) else pt.inspect.transformer_inputs(stage, strict=False) or [[]]
        for stage in stages
    ]
    unions = [list(dict.fromkeys([*needed, *chain.from_iterable(columns)])) for columns in product(*modes)]
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
    outputs: list[list[str] | None] = []
    for stage in stages:
        try:
            outputs.append(pt.inspect.transformer_outputs(stage, list(columns)))
        except pt.inspect.InspectError:
            outputs.append(None)
    return outputs


def _takes(stage: pt.Transformer, columns: list[str]) -> bool:
    try:
        outputs_of_all([stage], columns)
    except pt.validate.InputValidationError:
        return False
    return True


def stage_name(label: str, parameters: Mapping[str, Any], signature: inspect.Signature) -> str:
    """Name a stage by its label, and by the parameters that distinguish it."""
    shown: list[str] = []
    for name, value in parameters.items():
        parameter = signature.parameters.get(name)
        if parameter is not None and parameter.kind is parameter.VAR_POSITIONAL:
            shown += map(value_name, value)
        elif parameter is not None and parameter.default is parameter.empty:
            shown.append(value_name(value))
        elif name not in _QUIET and (parameter is None or value != parameter.default):
            shown.append(f"{name}={value_name(value)}")
    return _NOT_IN_FILES.sub("-", f"{label}({', '.join(shown)})" if shown else label)


def value_name(value: object) -> str:
    """Name the value of a parameter: a pipeline by its last stage, an index or a model by its folder."""
    if isinstance(value, pt.Compose):
        return value_name(list(value)[-1])
    if nickname := getattr(value, "nickname", ""):
        return str(nickname)
    if isinstance(value, pt.Transformer):
        return transformer_name(value)
    if isinstance(value, Path):
        return artifact_name(value)
    if value is None or isinstance(value, bool | str):
        text = _FOLDERS.sub("", str(value))
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    if isinstance(value, Real):
        return f"{value:.3g}" if isinstance(value, float) else str(value)
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(value_name, value))}]" if len(value) <= 6 else f"{len(value)} values"
    return type(value).__name__


def transformer_name(transformer: pt.Transformer) -> str:
    """Name any transformer; one of another package by its ``str``, as far as this is short and free of paths."""
    if isinstance(transformer, pt.Compose):
        return pipeline_name(transformer)
    if isinstance(transformer, ByParameters):
        return str(transformer)
    if nickname := getattr(transformer, "nickname", ""):
        return f"{type(transformer).__name__}({nickname})"
    for kind, sign in _SIGNS.items():
        if isinstance(transformer, kind):
            return f"({transformer_name(transformer.left)} {sign} {transformer_name(transformer.right)})"
    if isinstance(transformer, operators.FeatureUnion):
        return f"({', '.join(map(transformer_name, transformer))})"
    text = _FOLDERS.sub("", str(transformer))
    if " object at 0x" in text or len(text) > 2 * _LONGEST:
        text = type(transformer).__name__
    return _NOT_IN_FILES.sub("-", text)


def pipeline_name(stages: Iterable[pt.Transformer]) -> str:
    """Name a pipeline by its stages; a cutoff or factor belongs to the stage before it."""
    names: list[str] = []
    for stage in stages:
        if names and isinstance(stage, pt.RankCutoff):
            names[-1] += f" top {stage.k}"
        elif names and isinstance(stage, operators.ScalarProduct):
            names[-1] += f" times {value_name(stage.scalar)}"
        else:
            names.append(transformer_name(stage))
    return " → ".join(names)

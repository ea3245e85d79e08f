"""Short names of transformers for tables and files: without paths, and the same on every machine.

::

    BM25(sample)                                               an index by its folder, sample.bm25
    MathAMR ColBERT(sample, num_results=10)                    options that change results and differ from the default
    BM25(sample) top 100 → GraphBuilder → MathAMR queries(mathamr-plus-text) → MathAMR scorer(sample)

``pt.Experiment`` names systems by ``str``, and files of ``save_dir`` by the same names; ``repr`` has everything.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import pyterrier as pt
from pyterrier import _ops as operators

from .parameters import ByParameters, artifact_name

QUIET = frozenset(("verbose", "batch_size", "device", "executor", "total", "resume", "sources", "time_limit"))
"""Options that change how something is computed, but no result."""

_SIGNS = {
    operators.Sum: "+",
    operators.SetUnion: "or",
    operators.SetIntersection: "and",
    operators.Concatenate: "then",
}
_LONGEST = 40
_FOLDERS = re.compile(r"(?:[\w.~:-]*[/\\])+")
_NOT_IN_FILES = re.compile(r'[:"%/<>^|?*\\\x00-\x1f]+')


def stage_name(label: str, parameters: Mapping[str, Any], signature: inspect.Signature) -> str:
    """Name a stage by its label, and by the parameters that distinguish it."""
    shown: list[str] = []
    for name, value in parameters.items():
        parameter = signature.parameters.get(name)
        if parameter is not None and parameter.kind is parameter.VAR_POSITIONAL:
            shown += map(value_name, value)
        elif parameter is not None and parameter.default is parameter.empty:
            shown.append(value_name(value))
        elif name not in QUIET and (parameter is None or value != parameter.default):
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
        return _shortened(_FOLDERS.sub("", str(value)))
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


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

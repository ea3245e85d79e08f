"""Options of earlier releases, in configurations that were stored or written then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError

_REMOVED: dict[str, Any] = {
    "aggregation": "mean",
    "bag_counts": "linear",
    "bag_edges": 0,
    "formula_contrast": 0.0,
    "sentence_dropout": 0.0,
    "subexpression": 0.0,
    "text_concepts": False,
    "text_rows": "all",
    "unknown_labels": 0,
}
"""Options of earlier releases without effect (docs/ablations.md) or use, with the default that stored models have."""


def without_removed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out removed options that have their old default; another value is an error."""
    for name, default in _REMOVED.items():
        if options.get(name, default) != default:
            raise ConfigError(name, options[name], f"{default!r}: the option is no longer in the package")
    kept = {name: value for name, value in options.items() if name not in _REMOVED}
    if "text_passages" in kept:  # the option that was text_context before there were windows
        passages = kept.pop("text_passages")
        if kept.get("features") == "text" or passages:
            kept.setdefault("text_context", "passages" if passages else "alone")
    return kept


def stored_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the options of a model that was stored before its text encoder could read windows."""
    if options.get("features") == "text" and "text_context" not in options:
        return {"text_passages": False, **options}
    return dict(options)

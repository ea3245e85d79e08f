"""Systems that cannot be measured since an extra is missing: their rows say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from pyterrier_mathamr._common.errors import BrokenExtraError, MissingExtraError

Missing = dict[str, MissingExtraError | BrokenExtraError]
"""By system, what is not installed."""


def with_missing(
    table: pd.DataFrame,
    names: Sequence[str],
    missing: Mapping[str, MissingExtraError | BrokenExtraError],
    column: str = "name",
) -> pd.DataFrame:
    """Add a row for each system that an extra is missing for, which says so."""
    said = {name: f"{name}: needs the extra {error.extra}" for name, error in missing.items()}
    rows = pd.concat([table, pd.DataFrame({column: list(said.values())})], ignore_index=True)
    order = {said.get(name, name): place for place, name in enumerate(names)}
    places = rows[column].map(order).fillna(len(order))
    result: pd.DataFrame = rows.iloc[places.argsort(kind="stable")].reset_index(drop=True)
    return result

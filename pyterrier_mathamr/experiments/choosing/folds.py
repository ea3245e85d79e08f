"""Who is chosen on, and who is measured: years crossed, and folds of the pooled topics."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.errors import ConfigError


class Fold(NamedTuple):
    """Topics to choose on, and topics to measure.

    Attributes:
        name: such as ``2020 → 2022``.
        training: qids.
        test: qids, none of them among those of ``training``.
    """

    name: str
    training: frozenset[str]
    test: frozenset[str]


def crossed_years(qids: Sequence[str]) -> list[Fold]:
    """Leave each year out in turn."""
    years = list(dict.fromkeys(map(_year, qids)))
    if len(years) < 2:
        raise ConfigError("years", years, "several, as everything is chosen on the others: --years 2020,2022")
    folds = []
    for year in years:
        test = frozenset(qid for qid in qids if _year(qid) == year)
        others = " and ".join(other for other in years if other != year)
        folds.append(Fold(f"{others} → {year}", frozenset(qids) - test, test))
    return folds


def pooled_folds(qids: Sequence[str], number: int = 10) -> list[Fold]:
    """Split the topics of all years into folds of the same size, by a hash of the qid."""
    if len(qids) < 2:
        raise ConfigError("years", list(qids), "years with at least two topics")
    order = sorted(qids, key=lambda qid: hashlib.sha256(qid.encode()).hexdigest())
    count, folds = min(number, len(order)), []
    for fold in range(count):
        test = frozenset(order[fold::count])
        folds.append(Fold(f"fold {fold + 1}", frozenset(qids) - test, test))
    return folds


def _year(qid: str) -> str:
    return qid.partition(" ")[0]

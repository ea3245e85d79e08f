"""What systems find for the topics of a year, or of several years together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd


class FoundTopics(NamedTuple):
    """What was found for the topics of a year.

    Attributes:
        rankings: by system.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        floor: ``qid``, ``measure``, ``value`` of the random order.
    """

    rankings: dict[str, pd.DataFrame]
    topics: pd.DataFrame
    qrels: pd.DataFrame
    floor: pd.DataFrame


def pooled(found: Mapping[str, FoundTopics]) -> FoundTopics:
    """Join the topics of several years, which have the same systems."""
    first = next(iter(found.values()))
    return FoundTopics(
        {name: joined({year: one.rankings[name] for year, one in found.items()}) for name in first.rankings},
        joined({year: one.topics for year, one in found.items()}),
        joined({year: one.qrels for year, one in found.items()}),
        joined({year: one.floor for year, one in found.items()}),
    )


def joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join frames of several years, whose qids may be the same: each gets its year in front."""
    return pd.concat([frame.assign(qid=f"{year} " + frame["qid"]) for year, frame in frames.items()])

"""From values by topic to the table of a study: means over seeds, tests over the topics of all years."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pyterrier_mathamr.arqmath import TASK2_MEASURES
from pyterrier_mathamr.experiments.measuring import KNOWN_ITEM_MEASURES, SHORT_NAMES, paired_test

from .measuring import KNOWN

Key = tuple[str, str]
"""Condition and combination."""
MAIN = str(TASK2_MEASURES[0])
_KNOWN_MEASURE = str(KNOWN_ITEM_MEASURES[0])


def study_table(values: Mapping[Key, pd.DataFrame], against: Mapping[Key, Key]) -> pd.DataFrame:
    """Make the table of a study."""
    rows = []
    for key, own in values.items():
        judged = own[own["topics"] != KNOWN]
        main = judged[judged["measure"] == MAIN]
        years = {f"{SHORT_NAMES[MAIN]} {year}": float(of["value"].mean()) for year, of in main.groupby("topics")}
        means = judged.groupby("measure")["value"].mean()
        known = own[(own["topics"] == KNOWN) & (own["measure"] == _KNOWN_MEASURE)]["value"]
        by_seed = main.groupby("seed")["value"].mean()
        row: dict[str, object] = {"condition": key[0], "combination": key[1], "seeds": main["seed"].nunique(), **years}
        row |= {str(measure): float(means[str(measure)]) for measure in TASK2_MEASURES}
        row |= {f"{MAIN} std": float(by_seed.std()), "known RR@10": float(known.mean())}
        if key in against:
            first, second = _by_topic(own), _by_topic(values[against[key]])
            test = paired_test(np.asarray(first), np.asarray(second.reindex(first.index)), len(against))
            # rounded, since a report writes the smallest numbers as those of p are written, "< 0.0001"
            row |= {"difference": round(test.difference, 4), "p": test.p, f"{MAIN} reject": test.significant}
        rows.append(row)
    return pd.DataFrame(rows)


def _by_topic(own: pd.DataFrame) -> pd.Series[float]:
    """Return nDCG' of the topics of all years, means over seeds."""
    main = own[(own["measure"] == MAIN) & (own["topics"] != KNOWN)]
    found: pd.Series[float] = main.groupby(["topics", "qid"])["value"].mean()
    return found

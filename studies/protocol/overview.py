"""All systems in one table with their costs, and what ensembles lose without one of their parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.measuring import KNOWN_ITEM_MEASURES, paired_test

from .costs import Cost
from .systems.ensembles import ABLATIONS
from .tables import CROSSED, FOLDS, KNOWN, LINKED

OVERVIEW, PARTS = "All systems", "Without one part"
MS, MB = "ms a query", "MB"
ABOUT = (
    "Years crossed; known items and duplicates: MRR@10. ms a query: CPU time from the text of a topic to its ranking, "
    "over all threads, measured once on the machine that first asked for it; a fusion costs what its parts cost. MB: "
    "the indexes that are searched, without models. Blank: not measured, or not possible."
)
ABOUT_PARTS = (
    "nDCG' of an ensemble less that of the same without one part, its weights learned anew, ± the interval of 95 % "
    "over topics; p is of a two-sided paired t-test, not corrected."
)
_MAIN = str(TASK1_MEASURES[0])
_MEGABYTE = 1e6


def overview_table(tables: Mapping[str, pd.DataFrame], names: Sequence[str], costs: Mapping[str, Cost]) -> pd.DataFrame:
    """Put the figures of each system in one row."""
    chosen = [name for name in names if name not in ABLATIONS]
    crossed, known, linked = (tables[caption].set_index("name") for caption in (CROSSED, KNOWN, LINKED))
    measures, found = [str(measure) for measure in TASK1_MEASURES[:3]], str(KNOWN_ITEM_MEASURES[0])
    columns = [*measures[:1], f"{_MAIN} error", f"{_MAIN} reject", *measures[1:]]
    table = crossed.reindex(chosen).reindex(columns=columns)
    table["known item"] = known[found].reindex(chosen)
    table["known item error"] = known[f"{found} error"].reindex(chosen)
    table["duplicates"] = linked[f"{found} of duplicates"].reindex(chosen)
    table["duplicates error"] = linked[f"{found} of duplicates error"].reindex(chosen)
    table[MS] = [costs[name].ms if name in costs else math.nan for name in chosen]
    table[MB] = [sum(costs[name].files.values()) / _MEGABYTE if name in costs else math.nan for name in chosen]
    return table.rename_axis("name").reset_index()


def parts_table(values: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare ensembles with the same without one part."""
    lines: dict[tuple[str, str], dict[str, object]] = {}
    for caption in (CROSSED, FOLDS):
        main = values[caption][values[caption]["measure"] == _MAIN]
        wide = main.pivot(index="qid", columns="name", values="value")
        for name, (whole, part) in ABLATIONS.items():
            if {name, whole} <= set(wide.columns):
                test = paired_test(wide[whole].to_numpy(), wide[name].to_numpy(), 1)
                spread = 1.96 * float((wide[whole] - wide[name]).std(ddof=1)) / math.sqrt(len(wide))
                line = lines.setdefault((whole, part), {"ensemble": whole, "without": part})
                line |= {caption: test.difference, f"{caption} error": spread, f"p, {caption.lower()}": test.p}
    return pd.DataFrame(lines.values())

"""Learned rankings of formulas: ways to compute features and to learn weights, each year's on the other year.

    python -m benchmarks.learning_to_rank ARQMATH_FOLDER [--workdir ltr] [--cft INDEX]

Each ranks the results of Tangent-S; visual ids, differences from Tangent with paired two-sided t-tests over the
topics of both years. Also printed: the CPU time of the features of a query. ``INDEX`` is a Tangent-CFT index of
the same formulas, whose cosines are added.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems import FormulaFeatures, ListwiseRanker, PairwiseRanker, TangentCFT, TangentS
from mathamr_systems.experiments.measuring import measure_by_topic, paired_test
from mathamr_systems.experiments.workdir import FORMULA_DEPTH, Artifacts, distinct, formula_topics, visual_judgments
from pyterrier_mathamr.arqmath import TASK2_MEASURES
from studies.formulas.indexes import formula_trees
from studies.formulas.systems import LTR_C

YEARS = ("2020", "2022")
DEFAULT, AS_RUN, COSTS = "default features", "features as run", "costs as run"
FEATURES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    AS_RUN: {"tuples": "as-run", "nodes": "as-run", "costs": "as-run"},
    COSTS: {"costs": "as-run"},
}
GROUPS: dict[str, Callable[[str], bool]] = {
    "tuples": lambda name: name.endswith("tuples"),
    "nodes": lambda name: name.endswith("nodes"),
    "MSS": lambda name: name.endswith("MSS"),
    "edit distances": lambda name: name.endswith("edit distance"),
    "the other 7": lambda name: " " not in name or name.endswith(("size", "depth", "baseline")),
}


@dataclass
class Year:
    """The topics of a year, the results of Tangent and Tangent-S for them, and features by variant."""

    qrels: pd.DataFrame
    topics: pd.DataFrame
    tangent: pd.DataFrame
    found: pd.DataFrame
    features: dict[str, np.ndarray]
    names: dict[str, tuple[str, ...]]

    def featured(self, kind: str, columns: list[int] | None = None) -> pd.DataFrame:
        """Return the results with features, all or some."""
        every = self.features[kind]
        return self.found.assign(features=list(every if columns is None else every[:, columns]))


def read(shared: Artifacts, year: str, kinds: Mapping[str, Mapping[str, Any]]) -> Year:
    """Search with the topics of a year, and compute features."""
    qrels = visual_judgments(shared.collection, year, shared.formulas, shared.visual_ids)["visual ids"]
    topics = formula_topics(shared.collection, year)
    topics = topics[topics["qid"].isin(qrels["qid"])].reset_index(drop=True)
    trees, store = formula_trees(shared), shared.topic_formulas(year)
    found = TangentS(shared.tangent, trees, num_results=FORMULA_DEPTH, complete=True, store=store)(topics)
    features, names = dict[str, np.ndarray](), dict[str, tuple[str, ...]]()
    for kind, options in kinds.items():
        transformer, seconds = FormulaFeatures(trees, store=store, **options), list[float]()
        names[kind] = transformer.names
        parts = []
        for _, rows in found.groupby("qid", sort=False):
            start = time.process_time()
            parts.append(np.stack(transformer(rows)["features"].tolist()))
            seconds.append(time.process_time() - start)
        features[kind] = np.concatenate(parts)
        print(f"{year} {kind}: {np.median(seconds):.2f} s a query of CPU time (median), at most {max(seconds):.2f} s")
    return Year(qrels, topics, shared.tangent.retriever(FORMULA_DEPTH, store=store)(topics), found, features, names)


def rankings(year: Year, other: Year) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rank the results for the topics of a year by weights that are learned on another."""

    def learned(ranker: PairwiseRanker | ListwiseRanker, kind: str, columns: list[int] | None = None) -> pd.DataFrame:
        ranker.fit_judged(other.featured(kind, columns), other.qrels)
        result: pd.DataFrame = distinct(pt.ltr.apply_learned_model(ranker, form="ltr"))(year.featured(kind, columns))
        return result

    yield "Tangent", distinct(pt.Transformer.identity())(year.tangent)
    yield "Tangent-S", distinct(pt.Transformer.identity())(year.found)
    for kind in year.features:
        yield f"pairwise, {kind}", learned(PairwiseRanker(LTR_C), kind)
    yield "pairwise, logistic loss", learned(PairwiseRanker(LTR_C, "logistic"), DEFAULT)
    yield "pairwise, C = 0.01", learned(PairwiseRanker(0.01), DEFAULT)
    for relevant in (1, 2):
        yield f"listwise, relevant from {relevant}", learned(ListwiseRanker(relevant=relevant), DEFAULT)
    yield "listwise, from 2, ridge 0.1", learned(ListwiseRanker(0.1, 2), DEFAULT)
    for group, within in GROUPS.items():
        kept = [column for column, name in enumerate(year.names[DEFAULT]) if not within(name)]
        yield f"pairwise, without {group}", learned(PairwiseRanker(LTR_C), DEFAULT, kept)


def main() -> None:
    """Print a line for each way to rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--workdir", type=Path, default=Path("ltr"))
    parser.add_argument("--cft", type=Path)
    arguments = parser.parse_args()
    shared = Artifacts(arguments.collection, arguments.workdir, say=None, verbose=False)
    kinds = dict(FEATURES)
    if arguments.cft:
        cft = {"cft": TangentCFT(arguments.cft)}
        kinds |= {f"{kind} and CFT": {**FEATURES[kind], **cft} for kind in (DEFAULT, AS_RUN)}
    years = [read(shared, year, kinds) for year in YEARS]
    values = []
    for name, year, other in zip(YEARS, years, years[::-1], strict=True):
        by_topic = measure_by_topic(dict(rankings(year, other)), year.topics, year.qrels, TASK2_MEASURES)
        values.append(by_topic.assign(qid=f"{name} " + by_topic["qid"], year=name))
    every, rows = pd.concat(values), []
    measures = [str(measure) for measure in TASK2_MEASURES[:2]]
    for name in every["name"].unique():
        row: dict[str, object] = {"name": name}
        for measure in measures:
            table = every[every["measure"] == measure].pivot(index="qid", columns="name", values="value")
            means = every[(every["measure"] == measure) & (every["name"] == name)].groupby("year")["value"].mean()
            row |= {f"{year} {measure[:4]}": round(means[year], 3) for year in YEARS}
            if name != "Tangent":
                test = paired_test(table[name].to_numpy(), table["Tangent"].to_numpy(), 1)
                row[f"{measure[:4]} - Tangent"] = f"{test.difference:+.3f} (p = {test.p:.3f})"
        rows.append(row)
    print(pd.DataFrame(rows).fillna("").to_string(index=False))


if __name__ == "__main__":
    main()

"""Features and weights against what the authors of the published formula ranker gave away."""

import csv
import gzip
import json
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mathamr_systems import PairwiseRanker
from mathamr_systems.formula_ltr.features import NAMES, FormulaComparison
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, opt_from_mathml, read_formula_table, slt_from_mathml
from pyterrier_mathamr.formula.packed_trees import PackedTrees

# The column of each of our features among the published 22, found by their values; the other four are cosines.
COLUMNS = {
    "SLT tuples": 19,
    "OPT tuples": 11,
    "SLT-type tuples": 3,
    "OPT-type tuples": 1,
    "SLT nodes": 7,
    "OPT nodes": 6,
    "SLT-type nodes": 9,
    "OPT-type nodes": 17,
    "SLT MSS": 10,
    "OPT MSS": 4,
    "SLT edit distance": 8,
    "OPT edit distance": 21,
    "SLT-type edit distance": 5,
    "OPT-type edit distance": 18,
    "SLT weighted edit distance": 12,
    "OPT weighted edit distance": 15,
    "SLT-type weighted edit distance": 2,
    "OPT-type weighted edit distance": 16,
}


@cache
def sample(shared: Path) -> list[dict[str, Any]]:
    with gzip.open(shared / "ltr-sample" / "rows.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def formulas_by_old_visual_id(shared: Path, wanted: set[str]) -> dict[str, str]:
    """A formula of each visual id, as visual ids were when the features were computed."""
    path, found = shared / "arqmath-mini" / "latex_representation_v3" / "1.tsv", dict[str, str]()
    with path.open(newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            if row["old_visual_id"] in wanted:
                found.setdefault(row["old_visual_id"], row["id"])
    return found


def official_trees(tables: tuple[tuple[Path, ...], tuple[Path, ...]], wanted: set[str]) -> dict[str, FormulaPair]:
    """The trees of some formulas of tables of layout trees and of operator trees."""
    found: dict[str, list[FormulaTree | None]] = {each: [None, None] for each in wanted}
    for place, (paths, read) in enumerate(zip(tables, (slt_from_mathml, opt_from_mathml), strict=True)):
        for row in chain.from_iterable(map(read_formula_table, paths)):
            if row.id in wanted and row.formula:
                found[row.id][place] = read(row.formula)
    return {each: FormulaPair(*pair) for each, pair in found.items()}


def compared(shared: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Our features, the published ones, and whether no tree repeats a label, of the formulas of the small release."""
    collection = ARQMathCollection(shared / "arqmath-mini")
    ids = formulas_by_old_visual_id(shared, {row["formula"] for row in sample(shared)})
    queries = {topic.id: topic.formula_id for topic in collection.topics(2020, 2)}
    of_topics = official_trees(collection.topic_tables(2020)[1:], set(queries.values()))
    of_posts = official_trees((collection.slt_tables, collection.opt_tables), set(ids.values()))
    ours, theirs, plain = [], [], []
    for row in sample(shared):
        if row["formula"] not in ids:
            continue
        query = of_topics[queries[f"B.{row['qid']}"]]
        candidate = of_posts[ids[row["formula"]]]
        packed = [PackedTrees.of_trees([tree], kind) for tree, kind in zip(candidate, ("slt", "opt"), strict=True)]
        values = FormulaComparison(tuples="as-run", nodes="as-run", costs="as-run").values(query, *packed)[0]
        named = dict(zip(NAMES, np.nan_to_num(values).tolist(), strict=True))
        ours.append([named[name] for name in COLUMNS])
        theirs.append([row["features"][column] for column in COLUMNS.values()])
        plain.append(distinct(query) and distinct(candidate))
    return np.array(ours), np.array(theirs), np.array(plain)


def distinct(pair: FormulaPair) -> bool:
    def labels(tree: FormulaTree | None) -> bool:
        return tree is None or len(set(tree.nodes)) == len(tree.nodes)

    return all(map(labels, pair))


def test_published_features_are_reproduced_if_the_trees_equal_the_authors(shared_data: Path) -> None:
    ours, theirs, plain = compared(shared_data)
    assert len(ours) == 75
    names = list(COLUMNS)
    for place, name in enumerate(names):
        if name.endswith("edit distance") and "weighted" not in name:
            ours[:, place] = 1 - (1 - ours[:, place]) / 10  # theirs divides distances by ten, since weights are tenths
    close = np.abs(ours - theirs) < 1e-5
    # A visual id of that time is not one formula: trees are the authors' where alignments are.
    same = close[:, [names.index(name) for name in ("SLT MSS", "OPT MSS", "SLT nodes", "OPT nodes")]].all(axis=1)
    assert same.sum() == 58
    shares = dict(zip(names, close[same].mean(axis=0).tolist(), strict=True))
    assert min(shares["SLT-type nodes"], shares["OPT-type nodes"]) > 0.98
    assert min(shares["OPT tuples"], shares["OPT-type tuples"]) > 0.98
    assert min(shares["SLT tuples"], shares["SLT-type tuples"]) > 0.8
    assert min(share for name, share in shares.items() if name.startswith("OPT") and "distance" in name) > 0.9
    # The authors' trees for edit distances are rebuilt from pairs of labels, which is right where no label repeats.
    distances = [names.index(name) for name in names if "distance" in name]
    assert close[same & plain][:, distances].mean() > 0.95


def test_the_published_order_is_learned_from_its_own_grades(shared_data: Path) -> None:
    tau = pytest.importorskip("scipy.stats").kendalltau
    weights = np.array(json.loads((shared_data / "ltr-sample" / "weights.json").read_text()))
    rows = sample(shared_data)
    qids = np.array([row["qid"] for row in rows])
    features = np.array([row["features"] for row in rows])
    assert {row["grade"] for row in rows} == {0}  # the file has none, so four levels of the published score are taken
    scores, grades, sizes = features @ weights, np.zeros(len(rows)), []
    for qid in dict.fromkeys(qids):
        own = scores[qids == qid]
        grades[qids == qid] = np.digitize(own, np.quantile(own, [0.5, 0.75, 0.9]))
        sizes.append(len(own))
    found = PairwiseRanker(1000.0).fit(features, grades, group=sizes).predict(features)
    assert min(tau(found[qids == qid], scores[qids == qid]).statistic for qid in set(qids)) >= 0.9

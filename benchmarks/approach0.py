"""The search of Approach Zero: time of a query, postings that pruning leaves out, and the speed of exact scores.

    python benchmarks/approach0.py TREES [--queries 200] [--plain 500]

``TREES`` is an artifact ``FormulaTrees``, such as ``formulas.trees`` in the folder of ``mathamr experiment --task 2
--systems all``. Queries are expressions of it at regular distances. CPU time of one core; with and without pruning, and
the package and the plain scorer, take turns on the same queries. Rankings are compared bit by bit, scores with those
of the plain scorer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mathamr_systems import FormulaTrees
from mathamr_systems.approach0.index import Constants, PathSearch, Scored, score_expressions
from mathamr_systems.approach0.path_lists import PathLists, indexed_paths, path_query
from mathamr_systems.approach0.tree import OperatorTree, canonical_tree, formula_paths
from pyterrier_mathamr.formula import FormulaPair, FormulaTree

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "systems" / "approach0"))
from approach0_plain import PlainScorer

PRINTED = Constants()


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return milliseconds of CPU time, and the result of a call."""
    start = time.process_time()
    found = call(*arguments)
    return 1000 * (time.process_time() - start), found


def index_of(trees: list[FormulaTree]) -> PathLists:
    """Index operator trees."""
    return PathLists.of_paths(indexed_paths(FormulaPair(None, tree)) for tree in trees)


def search(tree: FormulaTree, index: PathLists, count: int, prune: bool) -> tuple[Any, PathSearch]:
    """Return the best expressions with their scores, and the search, which counts its reads."""
    query = path_query(formula_paths(canonical_tree(tree)), index)
    sizes, penalties = np.ones(len(index.of.leaves), dtype=np.int64), PRINTED.penalties(index.of.leaves)
    found = PathSearch(query, index, sizes, penalties, PRINTED, count, prune=prune)
    scores = found.run()
    order = np.argsort(-scores, kind="stable")[:count]
    return (order, scores[order]), found


def compare_pruning(queries: list[FormulaTree], index: PathLists, count: int) -> None:
    """Print a line for a number of results."""
    times: tuple[list[float], list[float]] = ([], [])
    read, same = [0, 0], 0
    for query in queries:
        found = []
        for place, prune in enumerate((True, False)):
            taken, (ranking, done) = timed(search, query, index, count, prune)
            times[place].append(taken)
            found.append(ranking)
            read[place] += done.read
        same += all(np.array_equal(*pair) for pair in zip(*found, strict=True))
    skipped = 1 - read[0] / read[1]
    pruned, whole = (f"{np.median(way):.1f} ms (at most {max(way):.0f})" for way in times)
    print(f"{count:5} results  pruned {pruned}  whole {whole}  {skipped:.0%} of postings skipped  ", end="")
    print(f"{same} of {len(queries)} rankings the same")


def exactly(tree: OperatorTree, index: PathLists) -> Scored:
    """Score all expressions."""
    rows = np.arange(len(index.of.leaves))
    return score_expressions(path_query(formula_paths(tree), index), index.of, rows, PRINTED)


def compare_plain(queries: list[FormulaTree], trees: list[FormulaTree]) -> None:
    """Print how much faster exact scores are than the plain scorer."""
    index, plain = index_of(trees), PlainScorer([canonical_tree(tree) for tree in trees])
    ours = theirs = differ = 0.0
    for query in queries:
        sought = canonical_tree(query)
        taken, scored = timed(exactly, sought, index)
        ours += taken
        taken, wanted = timed(plain.scores, sought)
        theirs += taken
        scores = scored.structure * scored.symbols * PRINTED.penalties(index.of.leaves)
        differ = max(differ, float(np.abs(scores - wanted).max()))
    pairs = len(queries) * len(trees)
    print(f"exact scores  ours {1000 * ours / pairs:.1f} µs a pair  plain {1000 * theirs / pairs:.0f} µs  ", end="")
    print(f"{theirs / ours:.0f} times  {pairs} pairs, largest difference {differ:.0e}")


def main() -> None:
    """Print the time of a build, and a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--plain", type=int, default=500, help="expressions that are scored plainly")
    arguments = parser.parse_args()
    packed = FormulaTrees(arguments.trees).snapshot().expressions.payload.opt
    trees = [tree for tree in map(packed.tree, range(len(packed))) if tree is not None]
    taken, index = timed(index_of, trees)
    print(f"{len(trees)} expressions  {len(index.roots)} postings  {len(index.offsets) - 1} paths  ", end="")
    print(f"{sum(array.nbytes for array in index.arrays().values()) / 1e6:.0f} MB  built in {taken / 1000:.1f} s")
    queries = trees[:: max(1, len(trees) // arguments.queries)][: arguments.queries]
    for count in (10, 100, 1000):
        compare_pruning(queries, index, count)
    compare_plain(queries[:: max(1, len(queries) // 10)], trees[:: max(1, len(trees) // arguments.plain)])
    if find_spec("pya0") is None:
        print("pya0 is not installed: scores are not compared with the engine's own")


if __name__ == "__main__":
    main()

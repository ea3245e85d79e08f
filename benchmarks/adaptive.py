"""GAR with a budget of 100 documents, compared with re-ranking the 100 documents of its first stage.

    python benchmarks/adaptive.py [--documents 3000] [--queries 10]

Synthetic unit vectors have the paper's shape, 16 virtual nodes of 32 dimensions, and that of a text encoder's, 384
dimensions, stored as int8. The least that GAR can take is the time of re-ranking as many documents, ratio 1, since both
score 100 documents exactly; a round more for each turn of neighbors comes on top. The ratio is the median of pairs of
calls, one after the other, in CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from pyterrier_mathamr.index import MathAMRIndex

BUDGET, TURN, NEIGHBORS, CALLS = 100, 16, 16, 15
SHAPES = (16, 32), (16, 384)


def unit(random: np.random.Generator, rows: int, width: int) -> np.ndarray:
    """Draw unit vectors."""
    drawn = random.standard_normal((rows, width)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def cpu(stage: Callable[[pd.DataFrame], object], ranking: pd.DataFrame) -> float:
    """Return CPU milliseconds of all threads."""
    start = time.process_time()
    stage(ranking)
    return 1000 * (time.process_time() - start)


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--queries", type=int, default=10)
    given = parser.parse_args()
    print("| rows | re-ranking, ms | GAR, ms | ratio |\n|---|---:|---:|---:|")
    for rows, width in SHAPES:
        random = np.random.default_rng(0)
        with tempfile.TemporaryDirectory() as folder:
            index = MathAMRIndex(Path(folder) / "some.mathamr")
            index.index({"docno": f"d{i}", "doc_embs": unit(random, rows, width)} for i in range(given.documents))
            graph = index.corpus_graph(NEIGHBORS, candidates=2 * NEIGHBORS)
            queries = [unit(random, 13, width) for _ in range(given.queries)]
            ranking = pd.concat(
                pd.DataFrame({"qid": str(i), "docno": [f"d{n}" for n in random.permutation(given.documents)[:BUDGET]]})
                .assign(score=np.arange(BUDGET, 0, -1.0))
                .assign(query_embs=[rows_of] * BUDGET)
                for i, rows_of in enumerate(queries)
            ).reset_index(drop=True)
            scorer, gar = index.scorer(), index.gar(graph, budget=BUDGET, turn=TURN)
            times = [(cpu(scorer, ranking), cpu(gar, ranking)) for _ in range(CALLS + 1)][1:]
            plain, adaptive = map(statistics.median, zip(*times, strict=True))
            ratio = statistics.median(other / one for one, other in times)
            print(f"| {rows} of {width} | {plain:.1f} | {adaptive:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()

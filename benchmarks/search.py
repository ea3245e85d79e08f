"""How fast the index is built and searched, beside plain brute force and FAISS, and how far that is from the floor.

    python benchmarks/search.py --documents 3395 100000

Synthetic unit vectors of the paper's shape (16 virtual nodes of 32 dimensions, queries of 13). All systems answer the
same queries in one run; recall is against brute force in float32. Beside the time that passed stands the time of all
processors, which says more where other programs run.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyterrier_mathamr.index import MathAMRIndex

ROWS, DIMENSIONS, QUERY_ROWS, K = 16, 32, 13, 1000


def documents(m: int, ragged: bool, seed: int = 0) -> Iterator[dict[str, Any]]:
    """``m`` documents of 16 random unit rows (or of 1 to 31, 16 on average), made in pieces before they are timed."""
    rng = np.random.default_rng(seed)
    for start in range(0, m, 10_000):
        lengths = rng.integers(1, 2 * ROWS, min(10_000, m - start)) if ragged else [ROWS] * min(10_000, m - start)
        rows = rng.standard_normal((int(np.sum(lengths)), DIMENSIONS), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for i, of in enumerate(np.split(rows, np.cumsum(lengths)[:-1])):
            yield {"docno": str(start + i), "doc_embs": of}


def topics(count: int, seed: int = 1) -> pd.DataFrame:
    """Random queries of 13 unit rows."""
    rows = np.random.default_rng(seed).standard_normal((count, QUERY_ROWS, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    return pd.DataFrame({"qid": [f"q{i}" for i in range(count)]}).assign(query_embs=list(rows))


class Timing(NamedTuple):
    """The best of some runs: seconds that passed, seconds of all processors, and what was returned."""

    passed: float
    processors: float
    result: Any


def timed(run: Callable[[], Any], repeat: int = 3) -> Timing:
    """Time some runs after one to warm up."""
    run()
    runs = []
    for _ in range(repeat):
        start, cpu = time.perf_counter(), time.process_time()
        result = run()
        runs.append(Timing(time.perf_counter() - start, time.process_time() - cpu, result))
    return min(runs, key=lambda run: run.passed)


def brute_force(rows: np.ndarray, offsets: np.ndarray, queries: list[np.ndarray]) -> list[np.ndarray]:
    """Plain float32: one product for each query, the maximum of each document, the sum, the best k."""
    found = []
    for query in queries:
        scores = np.maximum.reduceat(rows @ query.T, offsets[:-1], axis=0).sum(axis=1)
        best = np.argpartition(-scores, min(K, len(scores) - 1))[:K]
        found.append(best[np.argsort(-scores[best])])
    return found


def faiss_tokens(
    graph: Any, owners: np.ndarray, queries: list[np.ndarray], rows: np.ndarray, offsets: np.ndarray
) -> list[np.ndarray]:
    """FAISS flat, 128 rows for each row of the query, then exact MaxSim over the documents that own them."""
    found = []
    for query in queries:
        candidates = np.unique(owners[graph.search(query, 128)[1].ravel()])
        scores = [float((rows[offsets[i] : offsets[i + 1]] @ query.T).max(axis=0).sum()) for i in candidates]
        found.append(candidates[np.argsort(-np.array(scores))][:K])
    return found


def recall(found: list[Any], true: list[Any]) -> float:
    """The share of the true best k that was found."""
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true, strict=True)]))


def line(name: str, timing: Timing, queries: int, of: float | None = None) -> None:
    """Print one system's row."""
    found = "" if of is None else f"   recall@{K} {of:.4f}"
    print(
        f"  {name:<34}{queries / timing.passed:>9.1f} q/s{timing.passed / queries * 1e3:>9.2f} ms/q"
        f"{timing.processors / queries * 1e3:>9.2f} cpu-ms/q{found}"
    )


def floor(rows: int) -> None:
    """Print what a scan must at least do for one query, and how long that takes on one core here."""
    block, query = np.ones((512, DIMENSIONS), np.float32), np.ones((DIMENSIONS, QUERY_ROWS), np.float32)
    rate = 2 * block.size * QUERY_ROWS / timed(lambda: block @ query, 200).passed
    copy = np.ones(1 << 26, np.uint8)
    speed = copy.nbytes / timed(lambda: copy.view(np.uint64).max()).passed
    operations = 2 * rows * DIMENSIONS * QUERY_ROWS
    for kind, size in (("float32", 4), ("bytes", 1)):
        least = max(rows * DIMENSIONS * size / speed, operations / rate if kind == "float32" else 0.0)
        print(
            f"  floor of one query in {kind}: {rows * DIMENSIONS * size / 1e6:.0f} MB at {speed / 1e9:.1f} GB/s, "
            f"{operations / 1e9:.2f} G operations (float32: {rate / 1e9:.0f} G/s): {least * 1e3:.2f} ms"
        )


def measure(m: int, count: int, ragged: bool, folder: Path) -> None:
    """Build an index of ``m`` documents and search it with every system."""
    docs = list(documents(m, ragged)) if m <= 200_000 else documents(m, ragged)
    index = MathAMRIndex(folder / f"{m}.mathamr")
    start = time.perf_counter()
    index.index(docs)
    seconds = time.perf_counter() - start
    size = sum(file.stat().st_size for file in index.path.rglob("*") if file.is_file())
    print(f"{m:,} documents, {index.snapshot().meta.rows:,} rows of {DIMENSIONS}, queries of {QUERY_ROWS} rows")
    print(f"  built in {seconds:.2f} s: {m / seconds:,.0f} documents/s; {size / m:.0f} bytes a document on disk")
    del docs
    frame = topics(count)
    search(index, frame, m)
    floor(index.snapshot().meta.rows)
    print(
        f"  peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB", flush=True
    )


def search(index: MathAMRIndex, frame: pd.DataFrame, m: int) -> None:
    """Search with every system, eight queries with those that go one by one."""
    import faiss

    queries, snapshot, few = list(frame["query_embs"]), index.snapshot(), 8
    rows, offsets = snapshot.rows(np.arange(m))
    names = np.array(snapshot.texts("docno", np.arange(m)))
    timing = timed(lambda: brute_force(rows, offsets, queries[:few]), 1)
    true = [names[of] for of in timing.result]
    line("plain float32 brute force", timing, few, 1.0)
    for name, transformer, some in (
        ("colbert() one by one", index.colbert(num_results=K, batch_size=1), frame.iloc[:few]),
        (f"colbert() {len(frame)} at once", index.colbert(num_results=K), frame),
        ("doc_vn(5000)", index.doc_vn(5000, num_results=K), frame),
        ("single_vector()", index.single_vector(num_results=K), frame),
    ):
        timing = timed(lambda transformer=transformer, some=some: transformer(some))
        lists = [group["docno"].tolist() for _, group in timing.result.groupby("qid", sort=False)][:few]
        line(name, timing, len(some), recall(lists, true))
    ranking = index.colbert(num_results=K)(frame)
    line("scorer() of 1,000 candidates", timed(lambda: index.scorer()(ranking)), len(frame))
    flat, single = faiss.IndexFlatIP(DIMENSIONS), faiss.IndexFlatIP(DIMENSIONS)
    flat.add(rows)
    single.add(rows[offsets[1:] - 1])
    owners = np.repeat(np.arange(m), np.diff(offsets))
    timing = timed(lambda: faiss_tokens(flat, owners, queries[:few], rows, offsets), 1)
    line("FAISS flat, 128 rows each + MaxSim", timing, few, recall([names[of] for of in timing.result], true))
    last = np.stack([query[-1] for query in queries])
    line("FAISS flat, document vectors", timed(lambda: single.search(last, min(K, m))), len(frame))


def main() -> None:
    """Read the options and measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[3395, 100_000], help="how many documents")
    parser.add_argument("--queries", type=int, default=78, help="how many queries at once")
    parser.add_argument("--ragged", action="store_true", help="1 to 31 rows a document instead of 16")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for m in options.documents:
            measure(m, options.queries, options.ragged, Path(folder))


if __name__ == "__main__":
    main()

"""How fast an index in parts is searched, whether it ranks as one index does, and the consequences for 10⁹ rows.

    python benchmarks/shards.py                                  # 100,000 documents in 1, 2 and 4 parts; 2 GB of disk
    python benchmarks/shards.py --documents 20000 --parts 2
    python benchmarks/shards.py --ray                            # on two nodes of this machine; one is killed

The vectors are as in ``benchmarks/search.py``: 16 rows of 32 dimensions a document, 13 rows a query. One document
in a hundred is a copy of another under a new docno, and parts are cut from a shuffled order, so that scores are
tied across parts. Each part has a process of one thread. Rounds alternate between the numbers of parts; figures are
medians.

The table has the CPU time of all processes, to compare while other programs run, and the wall-clock time.
The lines below it compare the rankings of 200 queries in parts and in one index, before and after a process, or with
``--ray`` a node, was killed, and how long the search took that noticed it. The last lines are computed from these.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from searching import corpus

from pyterrier_mathamr import MathAMRIndex, RayCluster, ShardedIndex
from pyterrier_mathamr._common.running.processes import limit_cores

K = 100
QUERIES = 200
COPIES = 100
"""One document in so many is a copy."""

_TICK = os.sysconf("SC_CLK_TCK")
_ROWS, _CORES, _NETWORK = 10**9, 64, 10e9 / 8


class Spent(NamedTuple):
    """Seconds of a search, for each query."""

    wall: float
    driver: float
    parts: float

    @property
    def cpu(self) -> float:
        """Of all processes."""
        return self.driver + self.parts


def documents(of: corpus.Corpus) -> list[dict[str, Any]]:
    """Return the documents in a random order, each hundredth a copy of the one before it."""
    found = list(of.documents())
    for number in range(COPIES - 1, len(found), COPIES):
        found[number]["doc_embs"] = found[number - 1]["doc_embs"]
    return [found[place] for place in np.random.default_rng(2).permutation(len(found))]


def frame(of: corpus.Corpus) -> pd.DataFrame:
    """Return the queries."""
    queries = pd.DataFrame({"qid": [f"q{i}" for i in range(len(of.queries))]})
    return queries.assign(query_embs=pd.Series(list(of.queries), dtype=object))


def in_parts(folder: Path, documents: list[dict[str, Any]], parts: int) -> Path:
    """Index documents in parts of one size."""
    for part, places in enumerate(np.array_split(np.arange(len(documents)), parts)):
        MathAMRIndex(folder / f"part-{part:06d}").index([documents[place] for place in places])
    return ShardedIndex.join(folder).path


def spent(index: ShardedIndex | MathAMRIndex, queries: pd.DataFrame) -> Spent:
    """Measure one search."""
    retriever = index.colbert(num_results=K)
    places = index.snapshot()._places.places if isinstance(index, ShardedIndex) else []
    start, driver, parts = time.perf_counter(), time.process_time(), sum(map(_cpu_of, places))
    retriever(queries)
    seconds = time.perf_counter() - start, time.process_time() - driver, sum(map(_cpu_of, places)) - parts
    return Spent(*(each / len(queries) for each in seconds))


def _cpu_of(place: Any) -> float:
    """Return the CPU seconds of a place's process, of all its threads."""
    fields = Path(f"/proc/{place.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def median(measured: list[Spent]) -> Spent:
    """Return the median of each time."""
    return Spent(*np.median(np.array(measured), axis=0).tolist())


def compare(indexes: dict[str, Any], queries: pd.DataFrame, rounds: int) -> dict[str, Spent]:
    """Measure all indexes in turn."""
    measured: dict[str, list[Spent]] = {name: [] for name in indexes}
    for index in indexes.values():
        spent(index, queries)  # starts processes, reads files
    for _ in range(rounds):
        for name, index in indexes.items():
            measured[name].append(spent(index, queries))
    print("| index | queries/s | wall-ms/q | cpu-ms/q | of it the caller | cpu to one index |")
    print("|---|---:|---:|---:|---:|---:|")
    medians = {name: median(of) for name, of in measured.items()}
    one = next(iter(medians.values()))
    for name, of in medians.items():
        times = f"{1 / of.wall:.1f} | {of.wall * 1e3:.1f} | {of.cpu * 1e3:.1f} | {of.driver * 1e3:.2f}"
        print(f"| {name} | {times} | {of.cpu / one.cpu:.2f} |")
    return medians


def same(name: str, index: ShardedIndex, whole: MathAMRIndex, queries: pd.DataFrame) -> None:
    """Compare the strategies of an index in parts and of one index, and print how many queries are equal."""
    strategies: dict[str, Callable[[Any], Any]] = {
        "colbert": lambda index: index.colbert(num_results=K),
        "single_vector": lambda index: index.single_vector(num_results=K),
        "doc_vn": lambda index: index.doc_vn(candidates=500, num_results=K),
    }
    lines = []
    start = time.perf_counter()
    for strategy, make in strategies.items():
        found, expected = make(index)(queries), make(whole)(queries)
        by_query = zip(found.groupby("qid", sort=False), expected.groupby("qid", sort=False), strict=True)
        equal = sum(
            one.drop(columns="query_embs").equals(other.drop(columns="query_embs")) for (_, one), (_, other) in by_query
        )
        lines.append(f"{strategy} {equal} of {len(queries)}")
    print(f"* {name}: {', '.join(lines)} rankings equal ({time.perf_counter() - start:.1f} s for all, both sides)")


def kill_a_process(index: ShardedIndex, queries: pd.DataFrame) -> None:
    """Kill a process, and print the duration of the next search."""
    victim = index.snapshot()._places.places[-1].pid
    os.kill(victim, signal.SIGKILL)
    start = time.perf_counter()
    index.colbert(num_results=K)(queries.head(1))
    print(f"* the first query after a process was killed took {time.perf_counter() - start:.1f} s")


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Start two nodes on this machine; yield the cluster and the second one."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_TMPDIR", tempfile.mkdtemp(prefix="r", dir="/tmp"))
    node = {"num_cpus": 1, "object_store_memory": 200 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        yield cluster, cluster.add_node(**node)
    finally:
        ray.shutdown()
        cluster.shutdown()


def on_ray(path: Path, whole: MathAMRIndex, queries: pd.DataFrame) -> None:
    """Compare on two nodes, before and after one was killed."""
    with two_nodes() as (cluster, second):
        index = ShardedIndex(path, RayCluster(cluster.address))
        start = time.perf_counter()
        index.colbert(num_results=K)(queries.head(1))
        nodes = [place.node[:6] for place in index.snapshot()._places.places]
        print(f"* the first query on two nodes took {time.perf_counter() - start:.1f} s; parts on {', '.join(nodes)}")
        same("two nodes", index, whole, queries)
        expected = whole.colbert(num_results=K)(queries.head(1))["docno"].tolist()
        slowest, asked, places = 0.0, 0, index.snapshot()._places.places
        cluster.remove_node(second, allow_graceful=False)
        while len({place.node for place in places}) > 1:  # its actors live on for seconds
            start = time.perf_counter()
            assert index.colbert(num_results=K)(queries.head(1))["docno"].tolist() == expected
            slowest, asked = max(slowest, time.perf_counter() - start), asked + 1
        print(
            f"* of {asked} queries, until its parts were searched on the other node, the slowest took {slowest:.1f} s"
        )
        same("one node left", index, whole, queries)
        index.close()


def conclude(medians: dict[str, Spent], most: str, index: ShardedIndex, queries: pd.DataFrame, rows: int) -> None:
    """Compute a search of 10⁹ rows on 64 cores from the measurements."""
    parts, shares = medians[most], len(index.parts())
    each = {int(name.split()[0]): of.parts for name, of in medians.items() if name[0].isdigit()}
    fixed, scanned = np.polyfit(list(each), list(each.values()), 1) if len(each) > 1 else (0.0, parts.parts)
    fixed, scan = max(fixed, 0.0), scanned / rows * _ROWS
    snapshot, retriever = index.snapshot(), index.colbert(num_results=K)
    batch = retriever.read(queries, snapshot)
    found = snapshot._ask_all("best", batch, K, "all", retriever.how())
    answer = len(pickle.dumps(found[0])) / len(queries)
    request = len(pickle.dumps(batch)) / len(queries)
    merging = parts.driver / shares * _CORES
    sent = _CORES * (answer + request) / _NETWORK
    print(
        f"* the scan needs {scanned * 1e3:.1f} CPU-ms a query for {rows:,} rows, so {scan:.1f} CPU s for 10⁹; "
        f"in addition each part needs {fixed * 1e3:.2f} ms"
    )
    print(f"* a part returns {answer:,.0f} bytes a query and receives {request:,.0f}; {K} documents for each")
    print(
        f"* 10⁹ rows on {_CORES} cores: {(scan / _CORES + fixed) * 1e3:.0f} ms of each core, {merging * 1e3:.1f} ms of "
        f"the caller at {parts.driver / shares * 1e3:.2f} for each part, {sent * 1e3:.2f} ms of 10 Gbit/s"
    )
    total = scan / _CORES + fixed + merging + sent
    print(f"* together {total * 1e3:.0f} ms a query; the scan is {scan / _CORES / total:.0%} of it")


def main() -> None:
    """Run the measurements of the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="for the indexes, by default a temporary one")
    parser.add_argument("--ray", action="store_true", help="compare on two nodes of this machine, and measure nothing")
    options = parser.parse_args()
    limit_cores(1)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        of = corpus.synthetic(options.documents, QUERIES, folder)
        all_documents, queries, rows = documents(of), frame(of), len(of.rows)
        whole = MathAMRIndex(folder / "whole").index(all_documents)
        paths = {parts: in_parts(folder / f"{parts}", all_documents, parts) for parts in options.parts}
        del all_documents
        print(f"## {options.documents:,} documents, {rows:,} rows of {of.dimensions}; {QUERIES} queries, best {K}\n")
        if options.ray:
            on_ray(paths[max(paths)], whole, queries)
            return
        sharded = {f"{parts} part{'s' * (parts > 1)}": ShardedIndex(path) for parts, path in paths.items()}
        medians = compare({"one index, in the caller": whole, **sharded}, queries, options.rounds)
        print()
        for title, index in sharded.items():
            same(title, index, whole, queries)
        most, index = list(sharded.items())[-1]
        kill_a_process(index, queries)
        same(f"{most}, after that", index, whole, queries)
        conclude(medians, most, index, queries, rows)


if __name__ == "__main__":
    main()

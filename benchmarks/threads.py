"""Measure the CPU time of each part with one thread and with several: no part may pay more for threads than it saves.

python benchmarks/threads.py ../shared [--posts 500] [--threads 1 2] [--rounds 3]

Each number of threads has a separate process, started with OMP_NUM_THREADS; rounds alternate, and medians are
printed: CPU seconds (including child processes) and wall-clock seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    """Print a line for each part."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    options.add_argument("--posts", type=int, default=500)
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        warnings.simplefilter("ignore")
        sys.stdout.write(json.dumps(measured(given.shared, given.posts)))
        return
    command = [sys.executable, __file__, str(given.shared), "--posts", str(given.posts), "--measure"]
    found: dict[int, list[dict[str, list[float]]]] = {threads: [] for threads in given.threads}
    for _ in range(given.rounds):
        for threads in given.threads:
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            found[threads].append(json.loads(subprocess.check_output(command, env=environment)))
    for part in found[given.threads[0]][0]:
        figures = []
        for threads, rounds in found.items():
            cpu, wall = (statistics.median(of[part][i] for of in rounds) for i in (0, 1))
            figures.append(f"{threads} threads: {cpu:6.2f} CPU s, {wall:6.2f} s")
        print(f"{part:32} {' | '.join(figures)}")


def measured(shared: Path, count: int) -> dict[str, list[float]]:
    """Measure CPU seconds and seconds of each part in this process."""
    from pyterrier_mathamr import BM25Index, GraphBuilder, MathAMR, SearchEngine, TangentIndex

    dump = ET.parse(shared / "arqmath-mini" / "Posts.V1.3.xml").getroot()
    posts = [{"docno": row.get("Id"), "title": row.get("Title") or "", "body": row.get("Body")} for row in dump[:count]]
    model, builder = MathAMR.from_pretrained("mathamr-plus-mini"), GraphBuilder()
    graphs = [row["graph"] for row in builder.build_rows(posts[:10])]
    model.encode(graphs)  # loads parser and model
    figures: dict[str, list[float]] = {}

    def part(name: str, work: Callable[[], Any]) -> Any:
        cpu, start = sum(os.times()[:4]), time.perf_counter()
        result = work()
        figures[name] = [sum(os.times()[:4]) - cpu, time.perf_counter() - start]
        return result

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graphs = [row["graph"] for row in part("GraphBuilder", lambda: builder.build_rows(posts))]
        part("encoding, 64 graphs at a time", lambda: [model.encode(graphs[i : i + 64]) for i in range(0, count, 64)])
        part("encoding, one graph at a time", lambda: [model.encode([graph]) for graph in graphs[:100]])
        part("BM25Index", lambda: BM25Index(folder / "bm25", preset="math").index(posts))
        part("TangentIndex", lambda: TangentIndex(folder / "tangent").index(posts))
        build = {"model": "mathamr-plus-mini", "workers": None, "verbose": False}
        engine = part("SearchEngine.build, all cores", lambda: SearchEngine.build(posts, folder / "engine", **build))
        queries = [post["title"] for post in posts if post["title"]][:20]
        part("20 searches of the engine", lambda: [engine.search(query) for query in queries])
    return figures


if __name__ == "__main__":
    main()

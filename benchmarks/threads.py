"""Measure the CPU time of each part with one thread and with several: no part may pay more for threads than it saves.

python benchmarks/threads.py ../shared [--posts 500] [--threads 1 2] [--rounds 3]
python benchmarks/threads.py ../shared --text --posts 54 --busy 1        # only the text encoder, beside a busy loop

Each number of threads has a separate process, started with OMP_NUM_THREADS; several threads are measured as they are by
default and with OMP_WAIT_POLICY=PASSIVE, with which they sleep while they wait. Rounds alternate, and medians are
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
    options.add_argument("--text", action="store_true", help="only the encoding of posts by mathamr-plus-text")
    options.add_argument("--busy", type=int, default=0, help="loops that keep a core busy meanwhile")
    options.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        warnings.simplefilter("ignore")
        sys.stdout.write(json.dumps(measured(given.shared, given.posts, only_text=given.text)))
        return
    command = [sys.executable, __file__, str(given.shared), "--posts", str(given.posts), "--measure"]
    command += ["--text"] if given.text else []
    ways: dict[str, dict[str, str]] = {}
    for threads in given.threads:
        ways[f"{threads} threads"] = {"OMP_NUM_THREADS": str(threads)}
        if threads > 1:
            ways[f"{threads} threads, PASSIVE"] = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    found: dict[str, list[dict[str, list[float]]]] = {way: [] for way in ways}
    usual = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.busy)]
    try:
        for _ in range(given.rounds):
            for way, variables in ways.items():
                found[way].append(json.loads(subprocess.check_output(command, env={**usual, **variables})))
    finally:
        for loop in loops:
            loop.kill()
    for part in found[next(iter(ways))][0]:
        figures = []
        for way, rounds in found.items():
            cpu, wall = (statistics.median(of[part][i] for of in rounds) for i in (0, 1))
            figures.append(f"{way}: {cpu:6.2f} CPU s, {wall:6.2f} s")
        print(f"{part:32} {' | '.join(figures)}")


def measured(shared: Path, count: int, *, only_text: bool = False) -> dict[str, list[float]]:
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

    if only_text:
        graphs, text = [row["graph"] for row in builder.build_rows(posts)], MathAMR.from_pretrained("mathamr-plus-text")
        text.encode(graphs[:2])
        part("encoding by mathamr-plus-text", lambda: text.encode(graphs[2:]))
        return figures
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

"""Measure the store of graphs: bytes a graph, and graphs written and read a second of CPU time, beside Penman text.

    OMP_NUM_THREADS=1 python benchmarks/graphs.py ../shared

Penman text, decoded by our own codec, is what format 1 of the store kept.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable
from pathlib import Path

from pyterrier_mathamr.graph import GraphBuilder, GraphStore, MathAMRGraph
from pyterrier_mathamr.posts import post_from_html

POSTS = 2000


def rate(work: Callable[[], object]) -> float:
    """Graphs a second of CPU time."""
    start = time.process_time()
    work()
    return POSTS / (time.process_time() - start)


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    dump = ET.parse(options.parse_args().shared / "arqmath-mini" / "Posts.V1.3.xml").getroot()
    posts = {row.get("Id"): post_from_html(row.get("Body"), row.get("Title") or "") for row in list(dump)[:POSTS]}
    graphs = GraphBuilder().build(posts)
    texts = [zlib.compress(graph.to_penman().encode(), 6) for graph in graphs]
    with tempfile.TemporaryDirectory() as folder:
        store = GraphStore(Path(folder) / "graphs.mathamr")
        written = rate(lambda: store.index({"docno": graph.id, "graph": graph} for graph in graphs))
        ids = random.Random(0).sample(store.ids(), POSTS)
        size = sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file()) / POSTS
        in_order = rate(lambda: [None for _ in store.get_corpus_iter()])
        at_random = rate(lambda: [None for name in ids if store[name] is None])
    decoded = rate(lambda: [None for text in texts if MathAMRGraph.from_penman(zlib.decompress(text).decode()) is None])
    print(f"Penman text: {sum(map(len, texts)) / POSTS:.0f} bytes a graph, {decoded:.0f} graphs/s read")
    print(f"store: {size:.0f} bytes a graph, {written:.0f} graphs/s written, {in_order:.0f} graphs/s read in order, "
          f"{at_random:.0f} graphs/s one by one at random")  # fmt: skip


if __name__ == "__main__":
    main()

"""Measure building, storing and reading graphs, per second of CPU time, and the size of a store beside Penman text.

OMP_NUM_THREADS=1 python benchmarks/graphs.py ../shared [--posts 2000]
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

from pyterrier_mathamr.graph import GraphBuilder, GraphStore, MathAMRGraph, build_store


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    options.add_argument("--posts", type=int, default=2000)
    given = options.parse_args()
    dump = ET.parse(given.shared / "arqmath-mini" / "Posts.V1.3.xml").getroot()
    posts = [
        {"docno": row.get("Id"), "title": row.get("Title"), "body": row.get("Body")} for row in dump[: given.posts]
    ]

    def rate(work: Callable[[], object]) -> float:
        """Measure graphs per second of CPU time."""
        start = time.process_time()
        work()
        return len(posts) / (time.process_time() - start)

    with tempfile.TemporaryDirectory() as folder:
        store = GraphStore(Path(folder) / "graphs.mathamr")
        build_store(posts[:10], GraphBuilder(), GraphStore(Path(folder) / "warm.mathamr"))  # loads the parser
        built = rate(lambda: build_store(posts, GraphBuilder(), store))
        graphs = [row["graph"] for row in store.get_corpus_iter()]
        written = rate(lambda: store.indexer("overwrite").index({"docno": g.id, "graph": g} for g in graphs))
        ids = random.Random(0).sample(store.ids(), len(posts))
        size = sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file()) / len(posts)
        in_order = rate(lambda: [None for _ in store.get_corpus_iter()])
        at_random = rate(lambda: [None for name in ids if store[name] is None])
    texts = [zlib.compress(graph.to_penman().encode(), 6) for graph in graphs]
    decoded = rate(lambda: [None for text in texts if MathAMRGraph.from_penman(zlib.decompress(text).decode()) is None])
    print(f"posts: {built:.0f} posts/s built and stored")
    print(
        f"store: {size:.0f} bytes per graph, {written:.0f} graphs/s written, {in_order:.0f} graphs/s read in order, "
        f"{at_random:.0f} graphs/s one by one at random"
    )
    print(f"Penman text: {sum(map(len, texts)) / len(texts):.0f} bytes per graph, {decoded:.0f} graphs/s read")


if __name__ == "__main__":
    main()

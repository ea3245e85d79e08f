"""Measure building, encoding, storing and reading graphs, and the size of a store compared with Penman text.

python benchmarks/graphs.py ../shared [--posts 2000]

Everything is per second of CPU time, of all threads. Next to building is its floor, the time of compiled code for the
same posts: lxml for the HTML, ``math-core`` for each distinct formula, and the products of the syntax network. See
``benchmarks/threads.py`` for the effect of threads.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lxml import html

from pyterrier_mathamr._common.running.resources import one_blas_thread
from pyterrier_mathamr.amr.dependency.syntax import bundled_net, tokenize
from pyterrier_mathamr.formula import trees_of_posts
from pyterrier_mathamr.formula.tex.converter import to_mathml
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, MathAMRGraph, build_store
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts.reading import document_post

Post = dict[str, Any]


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    options.add_argument("--posts", type=int, default=2000)
    given = options.parse_args()
    dump = ET.parse(given.shared / "arqmath-mini" / "Posts.V1.3.xml").getroot()
    posts = [
        {"docno": row.get("Id"), "title": row.get("Title") or "", "body": row.get("Body")}
        for row in dump[: given.posts]
    ]

    def rate(work: Callable[[], object]) -> float:
        """Measure graphs per second of CPU time."""
        start = time.process_time()
        work()
        return len(posts) / (time.process_time() - start)

    with tempfile.TemporaryDirectory() as folder:
        store = GraphStore(Path(folder) / "graphs.mathamr")
        build_store(posts[:10], GraphBuilder(), GraphStore(Path(folder) / "warm.mathamr"))  # loads the parser
        bare = rate(lambda: [GraphBuilder().build_rows(posts[i : i + 64]) for i in range(0, len(posts), 64)])
        trees_of_posts.cache_clear()  # the trees of the formulas are built again
        built = rate(lambda: build_store(posts, GraphBuilder(), store))
        graphs = [row["graph"] for row in store.get_corpus_iter()]
        written = rate(lambda: store.indexer("overwrite").index({"docno": g.id, "graph": g} for g in graphs))
        ids = random.Random(0).sample(store.ids(), len(posts))
        size = sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file()) / len(posts)
        in_order = rate(lambda: [None for _ in store.get_corpus_iter()])
        at_random = rate(lambda: [None for name in ids if store[name] is None])
    texts = [zlib.compress(graph.to_penman().encode(), 6) for graph in graphs]
    decoded = rate(lambda: [None for text in texts if MathAMRGraph.from_penman(zlib.decompress(text).decode()) is None])
    model = MathAMR.from_pretrained("mathamr-plus-mini")
    model.encode(graphs[:64])
    encoded = rate(lambda: [model.encode(graphs[i : i + 64]) for i in range(0, len(graphs), 64)])
    print(f"posts: {bare:.0f} posts/s built (floor {floor(posts, rate):.0f}), {built:.0f} posts/s built and stored")
    print(
        f"mathamr-plus-mini: {encoded:.0f} graphs/s encoded; {query_time(model, posts):.1f} ms a query with its graph"
    )
    print(
        f"store: {size:.0f} bytes per graph, {written:.0f} graphs/s written, {in_order:.0f} graphs/s read in order, "
        f"{at_random:.0f} graphs/s one by one at random"
    )
    print(f"Penman text: {sum(map(len, texts)) / len(texts):.0f} bytes per graph, {decoded:.0f} graphs/s read")


def floor(posts: list[Post], rate: Callable[[Callable[[], object]], float]) -> float:
    """Measure posts per second of the compiled code that building the graphs calls."""
    read = [document_post(post) for post in posts]
    latex = {formula.latex for post in read for formula in post.formulas}
    tokens = sum(len(tokenize(sentence)) for post in read for sentence in post.sentences)
    weights = [layer.weight for layer in bundled_net()._layers.values()]
    states = [np.ones((1000, len(weight)), np.float32) for weight in weights]

    def formulas() -> None:
        for each in latex:
            with suppress(Exception):
                to_mathml(each)

    def products() -> None:
        with one_blas_thread():
            for _ in range(tokens // 1000):
                for state, weight in zip(states, weights, strict=True):
                    state @ weight

    parts = (lambda: [html.fromstring(post["body"]) for post in posts if post["body"].strip()], formulas, products)
    return 1 / sum(1 / rate(part) for part in parts)


def query_time(model: MathAMR, posts: list[Post]) -> float:
    """Measure milliseconds of CPU time for a question of the collection as a query: its graph and its vectors."""
    encode = GraphBuilder() >> model.query_encoder()
    questions = [post for post in posts if post["title"]][:100]
    frames = [
        pd.DataFrame([{"qid": post["docno"], "title": post["title"], "body": post["body"]}]) for post in questions
    ]
    encode(frames[0].assign(title=""))  # loads the model, by another text: recent queries are kept
    start = time.process_time()
    for frame in frames:
        encode(frame)
    return 1000 * (time.process_time() - start) / len(frames)


if __name__ == "__main__":
    main()

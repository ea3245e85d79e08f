"""Measure the time of a text encoder for posts: each row by itself, or windows, in float32 and bfloat16.

python benchmarks/text_encoding.py ../shared [--posts 300] [--peer-posts 60]

Posts per second of CPU time of ``doc_encoder()`` from graphs, and the CPU time of a single query, median and mean over
the first 30 topics of 2020; no vector is kept between calls. The peer, in the same run, is ``text_context='passages'``,
which reads a sentence up to three times. The floor is the time of the network for all pieces of the same posts,
each once and in the largest windows, in the faster precision.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr import GraphBuilder, MathAMR, TextEncoder
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.graph import MathAMRGraph, segments_of

MODEL = "mathamr-plus-text"


def main() -> None:
    """Print a line for each way, and the floor."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    options.add_argument("--posts", type=int, default=300)
    options.add_argument("--peer-posts", type=int, default=60, help="of the peer, which is slow")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    collection = ARQMathCollection(given.shared / "arqmath-mini")
    answers = list(collection.answers())
    step = max(1, len(answers) // given.posts)
    chosen = [{"docno": post.id, "html": post.body} for post in answers[::step]][: given.posts]
    graphs = [row["graph"] for row in GraphBuilder()(chosen)]
    asked = [{"qid": topic.id, "title": topic.title, "body": topic.body} for topic in collection.topics(2020)]
    queries = GraphBuilder()(pd.DataFrame(asked[:30]))
    bundled = MathAMR.from_pretrained(MODEL).config
    rates = {}
    for context, count in (("passages", given.peer_posts), ("windows", given.posts)):
        for precision in ("float32", "auto"):
            config = bundled.replace(text_context=context)
            model = MathAMR.untrained(config, graphs[:1], text=TextEncoder(precision=precision))
            some = graphs[:: max(1, len(graphs) // count)][:count]
            frame = pd.DataFrame({"docno": [graph.id for graph in some], "graph": pd.Series(some, dtype=object)})
            model.encode(graphs[:1])  # loads the network
            rates[context, precision] = len(some) / cpu(lambda: model.doc_encoder()(frame))  # noqa: B023
            times = [cpu(lambda: model.query_encoder()(row)) for row in rows_of(queries)]  # noqa: B023
            print(
                f"{context}, {precision}: {rates[context, precision]:.1f} posts a CPU second; a query "
                f"{1000 * statistics.median(times):.0f} ms, {1000 * statistics.mean(times):.0f} ms in the mean",
                flush=True,
            )
    least = floor(graphs)
    print(f"floor, only the network: {least:.1f} posts a CPU second")
    ours, peer = rates["windows", "auto"], rates["passages", "float32"]
    print(f"windows, auto: {ours / peer:.1f} times the peer in float32, {least / ours:.2f} times the floor's time")


def cpu(work: Callable[[], Any]) -> float:
    """Measure the CPU time of a call, in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def rows_of(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Return each row as a frame."""
    return [frame.iloc[[i]] for i in range(len(frame))]


def floor(graphs: Sequence[MathAMRGraph]) -> float:
    """Measure how many posts a CPU second the bare network reads: all pieces end to end, 32 full windows at once."""
    network = TextEncoder().tokens
    texts = [text for graph in graphs for text in segments_of(graph).texts]
    pieces = [piece for found in network.pieces(texts) for piece in found.ids]
    windows = [pieces[i : i + network.room] for i in range(0, len(pieces), network.room)]
    network.states(windows[:1])
    blocks = [windows[i : i + 32] for i in range(0, len(windows), 32)]
    return len(graphs) / cpu(lambda: [network.states(block) for block in blocks])


if __name__ == "__main__":
    main()

"""Measure the time of a text encoder for posts, in float32 and the fastest precision.

python benchmarks/text_encoding.py ../shared [--posts 300] [--model mathamr-plus-text-large] [--before CLONE]

Posts per second of CPU time of ``doc_encoder()`` from graphs, and the CPU time of a single query, median and mean over
the first 30 topics of 2020; no vector is kept between calls. The shares of matrix products, attention and other
steps are printed, and how many posts a CPU second the products alone allow. ``--before CLONE`` compares the encoding of
posts with another commit, in turns, and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch.profiler import ProfilerActivity, profile

from pyterrier_mathamr import GraphBuilder, MathAMR, TextEncoder
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.model import DEFAULT_MODEL

OPERATORS = {
    "products": ("addmm", "::mm", "_int_mm", "qlinear", "mkldnn_linear"),
    "attention": ("scaled_dot_product",),
    "GELU": ("gelu",),
}
"""Parts of the names of torch's operators, by what they compute; the remaining ones are called others."""
_TURNS = 3


def main() -> None:
    """Print a line for each way, the shares of its steps, and the bound; or a comparison of two commits."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    options.add_argument("--posts", type=int, default=300)
    options.add_argument("--model", default=DEFAULT_MODEL)
    options.add_argument("--before", metavar="CLONE", help="compare with another commit")
    options.add_argument("--rate", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # threads that wait for each other would count as CPU time
    if given.before:
        compare(given.shared, given.posts, given.before)
        return
    collection = ARQMathCollection(given.shared / "arqmath-mini")
    answers = list(collection.answers())
    step = max(1, len(answers) // given.posts)
    chosen = [{"docno": post.id, "html": post.body} for post in answers[::step]][: given.posts]
    graphs = [row["graph"] for row in GraphBuilder()(chosen)]
    if given.rate:
        print(json.dumps(Way(given.model, "auto", graphs).rate()))
        return
    asked = [{"qid": topic.id, "title": topic.title, "body": topic.body} for topic in collection.topics(2020)]
    queries = rows_of(GraphBuilder()(pd.DataFrame(asked[:30])))
    for precision in ("float32", "auto"):
        way = Way(given.model, precision, graphs)
        rate, shares, encode = way.rate(), way.shares(), way.model.query_encoder()
        times = [cpu(lambda: encode(row)) for row in queries]  # noqa: B023
        print(
            f"{precision} ({way.precision}): {rate:.1f} posts a CPU second; a query "
            f"{1000 * statistics.median(times):.0f} ms, {1000 * statistics.mean(times):.0f} ms in the mean\n  "
            + ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
            + f"\n  products alone: {rate / shares['products']:.1f} posts a CPU second",
            flush=True,
        )


class Way:
    """A way to encode some posts."""

    def __init__(self, model: str, precision: Any, graphs: list[MathAMRGraph]) -> None:
        text = TextEncoder(MathAMR.from_pretrained(model).config.text.text_model, precision=precision)
        self.precision = text.chosen_precision
        self.model = MathAMR.from_pretrained(model, text=text)
        self.model.encode(graphs[:1])  # loads the network
        self._frame = pd.DataFrame({"docno": [graph.id for graph in graphs], "graph": pd.Series(graphs, dtype=object)})

    def encode(self) -> None:
        self.model.doc_encoder()(self._frame)

    def rate(self) -> float:
        """Measure the posts a CPU second."""
        return len(self._frame) / cpu(self.encode)

    def shares(self) -> dict[str, float]:
        """Measure how the time is divided among steps, the largest share first."""
        seconds = Counter[str]()
        with profile(activities=[ProfilerActivity.CPU]) as found:
            start = time.perf_counter()
            self.encode()
            seconds["others"] = time.perf_counter() - start
        for event in found.key_averages():
            names = [name for name, parts in OPERATORS.items() if any(part in event.key for part in parts)]
            for name in names[:1]:
                seconds[name] += event.self_cpu_time_total / 1e6
                seconds["others"] -= event.self_cpu_time_total / 1e6
        return {name: of / seconds.total() for name, of in seconds.most_common()}


def compare(shared: Path, posts: int, before: str) -> None:
    """Print the posts a CPU second of two commits, one thread each, and the ratio of their medians."""
    rates: dict[str, list[float]] = {before: [], str(Path(__file__).parents[1]): []}
    command = [sys.executable, __file__, str(shared), "--posts", str(posts), "--rate"]
    for _ in range(_TURNS):
        for clone, found in rates.items():
            environment = {**os.environ, "PYTHONPATH": clone, "OMP_NUM_THREADS": "1"}
            made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
            found.append(json.loads(made.splitlines()[-1]))
    for name, found in zip(("before", "now"), rates.values(), strict=True):
        print(f"{name}: {', '.join(f'{rate:.1f}' for rate in found)} posts a CPU second")
    medians = [statistics.median(found) for found in rates.values()]
    print(f"now {medians[1] / medians[0]:.2f} times as many")


def cpu(work: Callable[[], Any]) -> float:
    """Measure the CPU time of a call, in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def rows_of(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Return each row as a frame."""
    return [frame.iloc[[i]] for i in range(len(frame))]


if __name__ == "__main__":
    main()

"""Measure the embedded AMR parser: Smatch on hand-made graphs, posts per second and core, and invariants of every post.

    OMP_NUM_THREADS=1 python benchmarks/parsing.py ../shared            # all
    OMP_NUM_THREADS=1 python benchmarks/parsing.py ../shared --smatch   # only Smatch
    OMP_NUM_THREADS=1 python benchmarks/parsing.py ../shared --workers  # from HTML to the store, over processes

Smatch (Cai and Knight, 2013) is the F1 of the triples that two graphs share under the best mapping of their variables,
by hill climbing; counts are summed over the sentences. It needs its authors' program: ``pip install smatch``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from itertools import islice, pairwise
from pathlib import Path

from pyterrier_mathamr.amr import AmrGraph, DependencyAmrParser, decode_penman, encode_penman
from pyterrier_mathamr.amr.dependency.parser import part_of_sentence
from pyterrier_mathamr.amr.dependency.syntax import bundled_net, tokenize
from pyterrier_mathamr.arqmath import read_documents
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.graph.store import record_of_row
from pyterrier_mathamr.posts import MathPost, post_from_html


def smatch_scores(pairs: Iterable[tuple[str, str]]) -> tuple[float, float, float]:
    """Compute precision, recall and F1 of (found, gold) graphs in Penman notation."""
    import smatch  # only here, so that speed is measured without it

    shared = found = gold = 0
    for pair in pairs:
        counts = smatch.get_amr_match(*(" ".join(penman.split()) for penman in pair))
        smatch.match_triple_dict.clear()  # a cache of mappings that ignores which pair they belong to
        shared, found, gold = shared + counts[0], found + counts[1], gold + counts[2]
    scores: tuple[float, float, float] = smatch.compute_f(shared, found, gold)
    return scores


def report_smatch(shared: Path) -> None:
    """Print Smatch on the two sets of hand-made graphs."""
    parser = DependencyAmrParser()
    for name in ("qald9_train", "massive_nc_train"):
        rows = [json.loads(line) for line in (shared / "amr-free" / f"{name}.jsonl").read_text().splitlines()]
        answers = parser.parse_sentences([row["sentence"] for row in rows])
        random.seed(0)  # for Smatch's random restarts
        scores = smatch_scores((answer, row["amr"]) for answer, row in zip(answers, rows, strict=True))
        print(f"{name}: {len(rows)} sentences, Smatch P {scores[0]:.3f} R {scores[1]:.3f} F1 {scores[2]:.3f}")


def report_speed(shared: Path) -> None:
    """Print CPU time, and invariants of every post of the collection."""
    rows = ET.parse(shared / "arqmath-mini" / "Posts.V1.3.xml").getroot()
    posts = [post_from_html(row.get("Body"), row.get("Title") or "") for row in rows]
    parser = DependencyAmrParser()
    parser.parse_post(posts[0])
    start = time.process_time()
    graphs = parser.parse_posts(posts)
    whole = time.process_time() - start
    start = time.process_time()
    sentences = [tokenize(sentence) for post in posts for sentence in post.sentences]
    cut = time.process_time()
    analyses = bundled_net().analyze([sentence[:160] for sentence in sentences])
    analyzed = time.process_time()
    for analysis in analyses:
        part_of_sentence(analysis, bundled_net().lemmas)
    converted = time.process_time()
    texts = [encode_penman(graph) for graph in graphs]
    written = time.process_time()
    tokens = sum(map(len, sentences))
    print(
        f"{len(posts)} posts, {len(sentences)} sentences, {tokens} tokens: {len(posts) / whole:.0f} posts/s of CPU time"
    )
    print(f"cutting {cut - start:.1f} s, syntax {analyzed - cut:.1f} s, conversion {converted - analyzed:.1f} s, "
          f"writing {written - converted:.1f} s, all of parse_posts {whole:.1f} s")  # fmt: skip
    kept = sum(
        sorted(label for label in graph.labels if label.startswith("FORMULA_"))
        == sorted(f"FORMULA_{i}" for i in range(len(post.formulas)))
        for post, graph in zip(posts, graphs, strict=True)
    )
    lost = sum(role == ":math" for graph in graphs for _, role, _ in graph.edges)
    equal = sum(decode_penman(text) == graph for text, graph in zip(texts, graphs, strict=True))
    print(f"all placeholders once: {kept} posts; attached by :math: {lost}; decoded to the same graph: {equal}")


STORED = 3000  # posts of the reports on storing


class ReadyParser:
    """Returns graphs that were parsed before, so that only the later steps are measured."""

    name = "ready"

    def __init__(self, graphs: list[AmrGraph]) -> None:
        self.graphs = graphs

    def parse_sentences(self, sentences: list[str]) -> list[str]:
        """Raise an error: only posts are parsed."""
        raise NotImplementedError

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Return the next graph."""
        return self.graphs.pop(0)

    def parse_posts(self, posts: list[MathPost]) -> list[AmrGraph]:
        """Return the next graphs."""
        return [self.parse_post(post) for post in posts]


def report_split(documents: list[dict[str, str]], folder: Path) -> None:
    """Print the cost of each step from HTML to the store."""
    times = [time.process_time()]
    posts = {row["docno"]: post_from_html(row["html"], row["title"]) for row in documents}
    times.append(time.process_time())
    amrs = DependencyAmrParser().parse_posts(list(posts.values()))
    times.append(time.process_time())
    graphs = GraphBuilder(ReadyParser(amrs)).build(posts)
    times.append(time.process_time())
    records = [record_of_row({"docno": graph.id, "graph": graph}) for graph in graphs]
    times.append(time.process_time())
    GraphStore(folder / "split.mathamr").indexer().index_records(records, {})
    times.append(time.process_time())
    names = ("reading HTML", "parsing", "formula trees and attaching them", "packing", "writing shards")
    spent = [after - before for before, after in pairwise(times)]
    print(f"{len(posts)} posts, ms of CPU time per post: " + ", ".join(
        f"{name} {1000 * seconds / len(posts):.2f}" for name, seconds in zip(names, spent, strict=True)
    ) + f"; all {1000 * sum(spent) / len(posts):.2f}")  # fmt: skip


def cpu_seconds() -> tuple[float, float]:
    """Return the CPU time of this process, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return used[0].ru_utime + used[0].ru_stime, used[1].ru_utime + used[1].ru_stime


def report_workers(shared: Path) -> None:
    """Print how the work is distributed over processes, in CPU time, as other programs may use the cores, too."""
    documents = list(islice(read_documents(shared / "arqmath-mini"), STORED))
    with tempfile.TemporaryDirectory() as name:
        report_split(documents, Path(name))
        stores = set()
        for workers in (1, 2):
            store = GraphStore(Path(name) / f"{workers}.mathamr")
            before, start = cpu_seconds(), time.perf_counter()
            build_store(documents, GraphBuilder(), store, workers=workers)
            wall = time.perf_counter() - start
            here, there = (late - early for early, late in zip(before, cpu_seconds(), strict=True))
            print(f"{workers} processes: CPU time of this one {here:.1f} s, of its workers together {there:.1f} s "
                  f"(about 2 s to start each); {wall:.1f} s of wall time, load {os.getloadavg()[0]:.1f}")  # fmt: skip
            stores.add(b"".join(file.read_bytes() for file in sorted(store.path.rglob("*")) if file.is_file()))
        print(f"the same bytes: {len(stores) == 1}")


def main() -> None:
    """Read the command line and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--smatch", action="store_true")
    parser.add_argument("--workers", action="store_true")
    options = parser.parse_args()
    if not options.workers:
        report_smatch(options.shared)
    if not options.smatch and not options.workers:
        report_speed(options.shared)
    if not options.smatch:
        report_workers(options.shared)


if __name__ == "__main__":
    main()

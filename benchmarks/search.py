"""How fast the index is built and searched, compared with FAISS, Qdrant, fast-plaid and the floor.

    python benchmarks/search.py --documents 3395 100000
    python benchmarks/search.py --documents 100000 --vectors own          # of the bundled model, repeated with noise
    python benchmarks/search.py --documents 1370000 --folder /a/disk      # full scale: 10 GB of disk, 12 GB of memory
    python benchmarks/search.py --documents 1370000 --folder /a/disk --only doc_vn "single_vector(exact=False)"

``colbert()`` is measured by each scan that this machine has, named in the row: *compiled* with the extra of that
name, and *default* without it, by integer products of torch or in float32, whichever is faster here.

Synthetic unit vectors have the paper's shape: 16 virtual nodes of 32 dimensions, queries of 13. All systems answer the
same queries in one run. Times are of the search only, since the vectors of the queries are given; with ``--vectors
own`` the time of encoding a query, from its text to its vectors, is printed above the table. Columns of the table,
which is Markdown and kept in ``docs/archive/searching.md``::

    ms/q, q/s     wall-clock time
    cpu-ms/q      CPU time of all cores: the figure to compare while other programs run
    x floor       CPU time over the least that one core needs for the same exact answer: to read all rows once (for all
                  queries of a batch) and to multiply them, as fast as this machine does each, in float32 or over codes
                  of one byte, whichever is faster; for document vectors and candidates in float32
    recall@1000   against brute force in float32 over eight queries, by MaxSim, or by the document vectors for systems
                  that only have these
    B/doc         memory of each document
    build cpu-s   CPU seconds to build graphs, lists or an engine's copy
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from searching import brute, corpus, floor, measure, ours, peers_faiss, peers_plaid, peers_qdrant, resident

from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.parts import DTYPES


def build(of: corpus.Corpus, folder: Path, dtype: str) -> MathAMRIndex:
    """Build the index of a corpus and print the time."""
    index = MathAMRIndex(folder / f"{len(of)}.mathamr")
    start, cpu = time.perf_counter(), time.process_time()
    index.indexer(dtype=dtype).index(of.documents())
    passed, used = time.perf_counter() - start, time.process_time() - cpu
    size = sum(file.stat().st_size for file in index.path.rglob("*") if file.is_file())
    print(
        f"* Built ({dtype}) in {passed:.1f} s ({used:.1f} s of CPU): {len(of) / used:,.0f} documents a CPU "
        f"second; {size / len(of):,.0f} bytes a document on disk.",
        flush=True,
    )
    return index


def run(of: corpus.Corpus, options: argparse.Namespace, folder: Path) -> None:
    """Build an index of a corpus and search it with every system."""
    rows, lengths = len(of.rows) / len(of), [len(query) for query in of.queries]
    print(f"\n## {len(of):,} documents, {of.name}\n")
    print(f"* {rows:.1f} rows of {of.dimensions} dimensions a document; {len(of.queries)} queries of", end=" ")
    print(f"{np.mean(lengths):.1f} rows, {measure.K:,} documents for each.")
    if of.encoding_ms:
        print(f"* Encoding a query needs {of.encoding_ms:.1f} ms, not included in the times below.")
    index = build(of, folder, options.dtype)
    here = floor.machine(of.dimensions)
    print(here.describe(len(of.rows), of.dimensions, of.queries), end="\n\n")
    few = of.queries[: measure.FEW]
    true = {"maxsim": brute.maxsim(of, few), "document": brute.by_document(of, few)}
    peers: list[Iterator[measure.System]] = []
    if options.peers:
        peers += [brute.systems(of), peers_faiss.systems(of, options.most_hnsw_rows)]
        peers += [peers_qdrant.systems(of, folder, options.most_hnsw_rows, options.most_local)]
        peers += [peers_plaid.systems(of, folder)]
    print(measure.header())
    for system in chain(ours.systems(index, of.queries, options.device), *peers):
        if not options.only or any(part in system.name for part in options.only):
            print(measure.measure(system, of.queries, true, len(of), here), flush=True)
    if not options.only:
        more = ours.more_for_all(index, few, options.device)
        print(f"\n* `colbert()`, one by one: {measure.K:,} documents cost {more:.1f} CPU ms more than ten.", flush=True)
    resident.print_resident(index.path, few[0], folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\nPeak memory of this process, with all peers: {peak:.1f} GB.", flush=True)


def main() -> None:
    """Read the options and measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[3395, 100_000], help="how many documents")
    parser.add_argument("--queries", type=int, default=78, help="how many queries at once")
    parser.add_argument("--vectors", choices=("synthetic", "own"), default="synthetic", help="the corpus")
    parser.add_argument("--model", default="mathamr-plus-mini", help="the model of --vectors own: a name or a folder")
    parser.add_argument("--ragged", action="store_true", help="1 to 31 synthetic rows a document instead of 16")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="how the index stores rows")
    parser.add_argument("--device", help="where the index is scanned: cuda; default the CPU")
    parser.add_argument("--only", nargs="+", metavar="PART", help="only systems with one of these in their name")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="only the index of this package")
    parser.add_argument("--most-hnsw-rows", type=int, default=400_000, help="above this, no HNSW over all rows")
    parser.add_argument("--most-local", type=int, default=20_000, help="above this, no local mode of Qdrant")
    parser.add_argument("--folder", type=Path, help="where to write the corpora and indexes; by default TMPDIR")
    options = parser.parse_args()
    own = corpus.sample(options.model) if options.vectors == "own" else None
    for m in options.documents:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            if own:
                made = corpus.grown(m, options.queries, folder, *own)
            else:
                made = corpus.synthetic(m, options.queries, folder, ragged=options.ragged)
            run(made, options, folder)


if __name__ == "__main__":
    main()

"""How fast the index is built and searched, beside brute force, FAISS and Qdrant, and how far that is from the floor.

    python benchmarks/search.py --documents 3395 100000
    python benchmarks/search.py --documents 100000 --vectors own          # of the bundled model, repeated with noise
    python benchmarks/search.py --documents 1370000 --folder /a/disk      # full scale: 10 GB of disk, 12 GB of memory

Synthetic unit vectors of the paper's shape: 16 virtual nodes of 32 dimensions, queries of 13. All systems answer the
same queries in one run; recall@1000 is against brute force in float32, over eight queries (by MaxSim, or by the
document vectors for systems that only have these). Beside the time that passed stands that of all processors, which
says more where other programs run. B/doc is what a system keeps in memory for each document.
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
from searching import brute, corpus, floor, measure, ours, peers_faiss, peers_qdrant

from pyterrier_mathamr.index import MathAMRIndex


def build(of: corpus.Corpus, folder: Path) -> MathAMRIndex:
    """Build the index of a corpus and say how fast."""
    index = MathAMRIndex(folder / f"{len(of)}.mathamr")
    start, cpu = time.perf_counter(), time.process_time()
    index.index(of.documents())
    passed, used = time.perf_counter() - start, time.process_time() - cpu
    size = sum(file.stat().st_size for file in index.path.rglob("*") if file.is_file())
    print(
        f"  built in {passed:.1f} s ({used:.1f} s of processor): {len(of) / passed:,.0f} documents/s; "
        f"{size / len(of):.0f} bytes a document on disk"
    )
    return index


def run(of: corpus.Corpus, options: argparse.Namespace, folder: Path) -> None:
    """Build an index of a corpus and search it with every system."""
    rows = len(of.rows) / len(of)
    lengths = np.mean([len(query) for query in of.queries])
    print(f"{of.name}: {len(of):,} documents of {rows:.1f} rows, {len(of.queries)} queries of {lengths:.1f} rows")
    index = build(of, folder)
    few = of.queries[: measure.FEW]
    true = {"maxsim": brute.maxsim(of, few), "document": brute.by_document(of, few)}
    peers: list[Iterator[measure.System]] = []
    if options.peers:
        peers += [brute.systems(of), peers_faiss.systems(of, options.most_hnsw_rows)]
        peers += [peers_qdrant.systems(of, folder, options.most_hnsw_rows, options.most_local)]
    print(measure.HEADER)
    for system in chain(ours.systems(index, options.device), *peers):
        print(*measure.measure(system, of.queries, true, len(of)), sep="\n", flush=True)
    reranking, _ = ours.scorer(index, of.queries)
    print(*measure.measure(reranking, of.queries, true, len(of)), sep="\n")
    floor.floor(len(of.rows), corpus.DIMENSIONS, lengths)
    floor.print_resident(index.path, few[0], folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  peak memory of this process, with all peers: {peak:.1f} GB", flush=True)


def main() -> None:
    """Read the options and measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[3395, 100_000], help="how many documents")
    parser.add_argument("--queries", type=int, default=78, help="how many queries at once")
    parser.add_argument("--vectors", choices=("synthetic", "own"), default="synthetic", help="what is searched")
    parser.add_argument("--ragged", action="store_true", help="1 to 31 synthetic rows a document instead of 16")
    parser.add_argument("--device", help="where ours scans: cuda, or the processor")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="ours alone")
    parser.add_argument("--most-hnsw-rows", type=int, default=400_000, help="above this, no HNSW over all rows")
    parser.add_argument("--most-local", type=int, default=20_000, help="above this, no local mode of Qdrant")
    parser.add_argument("--folder", type=Path, help="where to write what is needed for the run; by default TMPDIR")
    options = parser.parse_args()
    own = corpus.sample() if options.vectors == "own" else None
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

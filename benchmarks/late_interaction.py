"""The index of this package and fast-plaid over one multi-vector model: build, append, query, recall, disk.

    python benchmarks/late_interaction.py ARQMATH_FOLDER MODEL --folder VECTORS      # encodes once, then reads VECTORS
    python benchmarks/late_interaction.py ARQMATH_FOLDER MODEL --folder VECTORS --dtype float16

MODEL is a ``MultiVectorEncoder`` of sentence-transformers, or a language model, which then gets a random projection to
128 dimensions. fast-plaid is measured where it can be imported: each of its releases is built for one release
of torch, so it needs an environment of its own. Times are CPU seconds of all threads. Queries are searched one by one.
The limit is the time of one core to read, from memory, what a scan of all rows reads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pandas as pd
from searching import brute
from searching.corpus import Corpus
from searching.floor import machine
from searching.measure import recall

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.posts import plain_text, post_from_html

K = 100
YEARS = 2020, 2022
PRIME = ir_measures.nDCG(judged_only=True) @ 1000


class Texts(NamedTuple):
    """A collection: answers, and the titles of the questions of Task 1 that have relevant answers here."""

    docnos: list[str]
    documents: list[str]
    qids: list[str]
    queries: list[str]
    qrels: pd.DataFrame


def read(folder: str) -> Texts:
    """Read answers, topics and judgments."""
    collection = ARQMathCollection(folder)
    answers = [(post.id, plain_text(post_from_html(post.body))) for post in collection.answers()]
    rows = [(q.query_id, q.doc_id, q.relevance) for year in YEARS for q in collection.qrels(year)]
    qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
    judged = set(qrels.query_id[qrels.relevance >= 2])
    topics = [topic for year in YEARS for topic in collection.topics(year) if topic.id in judged]
    texts = [plain_text(post_from_html("", topic.title)) for topic in topics]  # such models are made for short queries
    return Texts(*map(list, zip(*answers, strict=True)), [topic.id for topic in topics], texts, qrels)


def encoded(texts: Texts, model: str, folder: Path) -> Corpus:
    """Encode all texts, or read the vectors of an earlier call."""
    rows, rest = folder / "rows.npy", folder / "rest.npz"
    if not rest.exists():
        import torch
        from sentence_transformers import MultiVectorEncoder

        torch.manual_seed(0)  # draws the projection of a model without one
        encoder, start = MultiVectorEncoder(model), time.process_time()
        given: dict[str, Any] = {"convert_to_numpy": True, "normalize_embeddings": True}
        queries = encoder.encode_query(texts.queries, **given)
        documents = encoder.encode_document(texts.documents, show_progress_bar=True, **given)
        print(f"encoded in {time.process_time() - start:.0f} CPU s")
        np.save(rows, np.concatenate(documents).astype(np.float32))
        lengths = np.cumsum([0, *map(len, documents)])
        asked = {f"query-{i:04}": query.astype(np.float32) for i, query in enumerate(queries)}
        np.savez(rest, offsets=lengths, **asked)
    with np.load(rest) as file:
        asked = [file[name] for name in sorted(file.files) if name != "offsets"]
        return Corpus(model, np.load(rows, mmap_mode="r"), file["offsets"], asked)


class System(NamedTuple):
    """An index: ``add`` adds documents by number, ``search`` returns the best ones for a query.

    ``scanned`` is the number of bytes of each row that every search reads; 0 where a search reads only some rows.
    """

    name: str
    path: Path
    add: Callable[[range], None]
    search: Callable[[np.ndarray], np.ndarray]
    scanned: float = 0


def ours(of: Corpus, folder: Path, dtype: str) -> Iterator[System]:
    """The index of this package."""
    index = MathAMRIndex(folder / "ours.mathamr")

    def add(numbers: range) -> None:
        rows = ({"docno": str(i), "doc_embs": document(of, i)} for i in numbers)
        index.indexer(mode="append" if index.built() else "create", dtype=dtype).index(rows)

    def search(query: np.ndarray) -> np.ndarray:
        found = index.colbert(num_results=K)(pd.DataFrame({"qid": ["q"]}).assign(query_embs=[query]))
        return found["docno"].to_numpy(dtype=np.int64)

    bits, scale = {"int8": (8, 4), "int4": (4, 4)}.get(dtype, (8, 0))  # of floats, codes of eight bits are scanned
    yield System(f"`MathAMRIndex`, {dtype}", index.path, add, search, of.dimensions * bits / 8 + scale)


def plaid(of: Corpus, folder: Path) -> Iterator[System]:
    """Yield fast-plaid with its default of 8 inverted lists for each row of a query, and with 64."""
    try:
        import torch
        from fast_plaid.search import FastPlaid
    except ImportError:
        return
    index = FastPlaid(str(folder / "plaid"), device="cpu")
    built: list[range] = []

    def add(numbers: range) -> None:
        if numbers not in built:
            rows = [torch.from_numpy(document(of, i)) for i in numbers]
            (index.update if built else index.create)(documents_embeddings=rows)
            built.append(numbers)

    def searcher(probes: int) -> Callable[[np.ndarray], np.ndarray]:
        def search(query: np.ndarray) -> np.ndarray:
            asked = torch.from_numpy(query)[None]
            (found,) = index.search(asked, top_k=K, n_ivf_probe=probes, show_progress=False)
            return np.array([number for number, _ in found], dtype=np.int64)

        return search

    for probes in (8, 64):
        yield System(f"fast-plaid, {probes} probes", folder / "plaid", add, searcher(probes))


def document(of: Corpus, i: int) -> np.ndarray:
    """Return the rows of one document."""
    return np.array(of.rows[of.offsets[i] : of.offsets[i + 1]])


def measured(system: System, of: Corpus, texts: Texts, true: list[np.ndarray], reading: float) -> str:
    """Build an index of nine tenths, add the rest, search, and return a row of the table."""
    first = 9 * len(of) // 10
    build, append = (cpu(lambda part=part: system.add(part)) for part in (range(first), range(first, len(of))))
    size = sum(file.stat().st_size for file in system.path.rglob("*") if file.is_file())
    system.search(of.queries[0])
    found: list[np.ndarray] = []
    passed = cpu(lambda: found.extend(map(system.search, of.queries))) / len(of.queries)
    cells = [
        *(f"{seconds:.1f}" if seconds > 0.05 else "" for seconds in (build, append)),
        f"{passed * 1000:.0f}",
        f"{1000 * system.scanned * of.offsets[-1] / reading:.1f}" if system.scanned else "",
        *(f"{recall([of_query[:k] for of_query in found], [best[:k] for best in true]):.4f}" for k in (10, K)),
    ]
    cells += [f"{quality(found, texts):.3f}", f"{size / len(of):,.0f}"]
    return f"| {system.name} | {' | '.join(cells)} |"


def cpu(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def quality(found: list[np.ndarray], texts: Texts) -> float:
    """Return nDCG' of some rankings."""
    rows = [
        (qid, texts.docnos[number], -float(rank))
        for qid, numbers in zip(texts.qids, found, strict=True)
        for rank, number in enumerate(numbers)
    ]
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    wanted = texts.qrels[texts.qrels.query_id.isin(texts.qids)]
    return float(ir_measures.calc_aggregate([PRIME], wanted, run)[PRIME])


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arqmath", help="a folder of the ARQMath release, or of a part of it")
    parser.add_argument("model", help="a multi-vector model: a name or a folder")
    parser.add_argument("--folder", type=Path, required=True, help="where vectors are kept")
    parser.add_argument("--documents", type=int, help="take the first documents only")
    parser.add_argument("--dtype", nargs="+", default=["int8"], help="how our index stores rows")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    texts = read(options.arqmath)
    of = encoded(texts, options.model, options.folder)
    if options.documents:
        of = replace(of, offsets=of.offsets[: options.documents + 1])
    true = [brute.maxsim(of, [query])[0][:K] for query in of.queries]
    print(f"{len(of):,} documents of {of.offsets[-1] / len(of):.0f} rows, {of.dimensions} dimensions;", end=" ")
    print(f"{len(of.queries)} queries of {np.mean([len(query) for query in of.queries]):.0f} rows")
    reading, size = machine(of.dimensions).reading, 4 * of.dimensions * of.offsets[-1]
    print(f"One core reads {reading / 1e9:.1f} GB/s.")
    print("| | build, CPU s | append a tenth, CPU s | query, CPU ms | limit, ms |", end=" ")
    print(f"recall@10 | recall@{K} | nDCG' | bytes a document |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    print(f"| brute force | | | | {1000 * size / reading:.1f} | 1 | 1 |", end=" ")
    print(f"{quality(true, texts):.3f} | {size / len(of):,.0f} |")
    for dtype in options.dtype:
        with tempfile.TemporaryDirectory() as place:
            for system in ours(of, Path(place), dtype):
                print(measured(system, of, texts, true, reading), flush=True)
    with tempfile.TemporaryDirectory() as place:
        for system in plaid(of, Path(place)):
            print(measured(system, of, texts, true, reading), flush=True)


if __name__ == "__main__":
    main()

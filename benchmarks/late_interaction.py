"""Indexes for late interaction over one multi-vector model: build, append, delete, query, exactness, disk, memory.

    python benchmarks/late_interaction.py ARQMATH_FOLDER MODEL --folder VECTORS      # encodes once, then reads VECTORS
    python benchmarks/late_interaction.py ARQMATH_FOLDER MODEL --folder VECTORS --dtype int8 int4

MODEL is a ``MultiVectorEncoder`` of sentence-transformers, or a language model, which then gets a random projection to
128 dimensions. Peers are measured where they can be imported, best in an environment of their own: fast-plaid (each of
its releases is built for one release of torch), TACHIOM, and PyLate, whose index is fast-plaid.

Each step runs in a new process. Times are CPU seconds of all its threads, without imports; queries are searched one by
one. Memory is how much the process of the queries grows from opening the index to the last answer, with the pages of
memory-mapped files that it reads. The limit is the time that one core needs to read, from memory, what a scan of all
rows reads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

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
Search = Callable[[np.ndarray], Sequence[int]]


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


@dataclass(frozen=True, kw_only=True)
class Encoded(Corpus):
    """Vectors with the id of the token of each row, by which TACHIOM makes its clusters."""

    tokens: np.ndarray

    def document(self, i: int) -> np.ndarray:
        """Return the rows of one document."""
        return np.array(self.rows[self.offsets[i] : self.offsets[i + 1]])


def encode(texts: Texts, model: str, folder: Path) -> None:
    """Encode all texts and keep their vectors."""
    import torch
    from sentence_transformers import MultiVectorEncoder

    torch.manual_seed(0)  # draws the projection of a model without one
    encoder, start = MultiVectorEncoder(model), time.process_time()
    asked = encoder.encode_query(texts.queries, convert_to_numpy=True, normalize_embeddings=True)
    rows, tokens = [], []
    for features in encoder.encode_document(texts.documents, output_value=None, show_progress_bar=True):
        kept = features["attention_mask"].bool()
        rows.append(torch.nn.functional.normalize(features["token_embeddings"][kept].float(), dim=-1).numpy())
        tokens.append(features["input_ids"][kept].numpy().astype(np.uint32))
    print(f"encoded in {time.process_time() - start:.0f} CPU s")
    np.save(folder / "rows.npy", np.concatenate(rows).astype(np.float32))
    queries = {f"query-{i:04}": query.astype(np.float32) for i, query in enumerate(asked)}
    lengths = np.cumsum([0, *map(len, rows)])
    np.savez(folder / "rest.npz", offsets=lengths, tokens=np.concatenate(tokens), **queries)


def encoded(folder: Path, documents: int | None) -> Encoded:
    """Read the vectors of an earlier call, of the first documents or of all."""
    with np.load(folder / "rest.npz") as file:
        queries = [file[name] for name in sorted(file.files) if name.startswith("query-")]
        offsets, tokens = file["offsets"], file["tokens"]
    corpus = Encoded(str(folder), np.load(folder / "rows.npy", mmap_mode="r"), offsets, queries, tokens=tokens)
    return replace(corpus, offsets=offsets[: documents + 1]) if documents else corpus


class Index:
    """An index in a folder. Each method runs in a new process; one that is not implemented is a dash in the table."""

    name: str
    scanned = 0.0
    """The bytes of each row that every search reads; 0 where a search reads only some rows."""
    efforts: Mapping[str, Mapping[str, int]] = {"": {}}
    """Options of a search; the table has a row for each."""
    library = ""
    """The module without which there is no such index."""

    def add(self, corpus: Encoded, numbers: range, folder: Path) -> None:
        """Make the index of some documents, or append them."""
        raise NotImplementedError

    def delete(self, numbers: range, folder: Path) -> None:
        """Delete some documents."""
        raise NotImplementedError

    def search(self, folder: Path, **effort: int) -> Search:
        """Open the index, and return what finds the best documents of one query."""
        raise NotImplementedError


class Ours(Index):
    """The index of this package."""

    def __init__(self, dtype: str, dimensions: int) -> None:
        self.name, self.dtype = f"`MathAMRIndex`, `dtype={dtype!r}`", dtype
        bits, scale = {"int8": (8, 4), "int4": (4, 4)}.get(dtype, (8, 0))  # of floats, codes of eight bits are scanned
        self.scanned = dimensions * bits / 8 + scale

    def add(self, corpus: Encoded, numbers: range, folder: Path) -> None:
        index = MathAMRIndex(folder / "ours.mathamr")
        rows = ({"docno": str(i), "doc_embs": corpus.document(i)} for i in numbers)
        index.indexer(mode="append" if index.built() else "create", dtype=self.dtype).index(rows)

    def delete(self, numbers: range, folder: Path) -> None:
        MathAMRIndex(folder / "ours.mathamr").delete(map(str, numbers))

    def search(self, folder: Path, **effort: int) -> Search:
        retriever = MathAMRIndex(folder / "ours.mathamr").colbert(num_results=K)

        def best(query: np.ndarray) -> Sequence[int]:
            hits = retriever(pd.DataFrame({"qid": ["q"]}).assign(query_embs=[query]))
            return [int(docno) for docno in hits["docno"]]

        return best


class FastPlaid(Index):
    """fast-plaid with its default of 8 inverted lists for each row of a query, and with 64."""

    name, library = "fast-plaid", "fast_plaid"
    efforts: ClassVar = {f", {probes} probes": {"n_ivf_probe": probes} for probes in (8, 64)}

    @staticmethod
    def _opened(folder: Path) -> Any:
        from fast_plaid.search import FastPlaid as Opened

        return Opened(str(folder / "plaid"), device="cpu")

    def add(self, corpus: Encoded, numbers: range, folder: Path) -> None:
        import torch

        rows = [torch.from_numpy(corpus.document(i)) for i in numbers]
        index = self._opened(folder)
        (index.update if (folder / "plaid" / "metadata.json").exists() else index.create)(documents_embeddings=rows)

    def delete(self, numbers: range, folder: Path) -> None:
        self._opened(folder).delete(subset=list(numbers))

    def search(self, folder: Path, **effort: int) -> Search:
        import torch

        index = self._opened(folder)

        def best(query: np.ndarray) -> Sequence[int]:
            (hits,) = index.search(torch.from_numpy(query)[None], top_k=K, show_progress=False, **effort)
            return [number for number, _ in hits]

        return best


class PyLate(Index):
    """PyLate's index, which is fast-plaid and a table of names."""

    name, library = "PyLate, its PLAID", "pylate"

    @staticmethod
    def _opened(folder: Path) -> Any:
        from pylate import indexes

        return indexes.PLAID(str(folder), "pylate", use_fast=True, device="cpu", show_progress=False)

    def add(self, corpus: Encoded, numbers: range, folder: Path) -> None:
        documents = [corpus.document(i) for i in numbers]
        self._opened(folder).add_documents(list(map(str, numbers)), documents)

    def delete(self, numbers: range, folder: Path) -> None:
        self._opened(folder).remove_documents(list(map(str, numbers)))

    def search(self, folder: Path, **effort: int) -> Search:
        from pylate import retrieve

        retriever = retrieve.ColBERT(self._opened(folder))
        return lambda query: [int(hit["id"]) for hit in retriever.retrieve([query], k=K)[0]]


class Tachiom(Index):
    """TACHIOM, clusters of tokens, with its default effort and with more. It neither appends nor deletes."""

    name, library = "TACHIOM", "tachiom"
    efforts: ClassVar = {
        ", 500 scored": {},
        ", 3,000 scored": {"k_docs_to_score": 3000, "k_centroids": 100, "ef_search": 150},
    }

    def add(self, corpus: Encoded, numbers: range, folder: Path) -> None:
        from tachiom import Tachiom as Made

        if numbers.start:
            raise NotImplementedError
        bounds = corpus.offsets[[0, len(corpus)]]
        rows = np.ascontiguousarray(corpus.rows[slice(*bounds)].astype(np.float16)).view(np.uint16)
        lengths = np.diff(corpus.offsets).astype(np.int32)
        made = Made.build_from_arrays(rows, np.ascontiguousarray(corpus.tokens[slice(*bounds)]), lengths)
        folder.joinpath("tachiom").mkdir()
        made.save(str(folder / "tachiom" / "index"))

    def search(self, folder: Path, **effort: int) -> Search:
        from tachiom import Tachiom as Made

        index = Made.load(str(folder / "tachiom" / "index"))
        return lambda query: index.search(np.ascontiguousarray(query), K, **effort)[1].tolist()


class Answers(NamedTuple):
    """What the process of the queries saw."""

    best: list[np.ndarray]
    seconds: float
    memory: int


def answers(index: Index, corpus: Encoded, folder: Path, effort: Mapping[str, int]) -> Answers:
    """Open an index in a new process and search all queries."""
    for library in {"torch", index.library} - {""}:  # not part of the index's memory
        import_module(library)
    before = resident()
    search = index.search(folder, **effort)
    search(corpus.queries[0])
    best: list[Any] = []
    seconds = cpu(lambda: best.extend(map(search, corpus.queries)))
    return Answers([np.asarray(numbers, np.int64) for numbers in best], seconds, resident() - before)


def resident() -> int:
    """Return how many bytes of this process are in memory, with the pages of files that it has mapped."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) * 1024


def cpu(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def rows(
    index: Index, corpus: Encoded, texts: Texts, true: list[np.ndarray], reading: float, folder: Path
) -> Iterator[str]:
    """Make an index of nine tenths, add the rest, search, delete a hundredth; yield a row for each effort."""

    def alone(step: Callable[..., Any], *given: Any) -> Any:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            return process.submit(step, *given).result()

    def seconds(step: Callable[..., Any], *given: Any) -> str:
        try:
            return f"{alone(cpu, partial(step, *given)):.1f}"
        except NotImplementedError:
            return "–"

    first = 9 * len(corpus) // 10
    build = seconds(index.add, corpus, range(first), folder)
    append = seconds(index.add, corpus, range(first, len(corpus)), folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    tried: list[Answers] = [alone(answers, index, corpus, folder, effort) for effort in index.efforts.values()]
    once = [build, append, seconds(index.delete, range(len(corpus) // 100), folder)]
    for label, found in zip(index.efforts, tried, strict=True):
        cells = [
            *once,
            f"{1000 * found.seconds / len(corpus.queries):.0f}",
            f"{1000 * index.scanned * corpus.offsets[-1] / reading:.1f}" if index.scanned else "",
            *(f"{recall([of[:k] for of in found.best], [of[:k] for of in true]):.4f}" for k in (10, K)),
            *(f"{quality(found.best, texts):.3f}", f"{size / len(corpus):,.0f}", f"{found.memory / len(corpus):,.0f}"),
        ]
        yield f"| {index.name}{label} | {' | '.join(cells)} |"
        once = [""] * 3


def quality(best: list[np.ndarray], texts: Texts) -> float:
    """Return nDCG' of some rankings."""
    rows = [
        (qid, texts.docnos[number], -float(rank))
        for qid, numbers in zip(texts.qids, best, strict=True)
        for rank, number in enumerate(numbers)
    ]
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    wanted = texts.qrels[texts.qrels.query_id.isin(texts.qids)]
    return float(ir_measures.calc_aggregate([PRIME], wanted, run)[PRIME])


def indexes(dtypes: Sequence[str], dimensions: int) -> Iterator[Index]:
    """Yield ours, and the peers that are installed."""
    yield from (Ours(dtype, dimensions) for dtype in dtypes)
    yield from (peer for peer in (FastPlaid(), PyLate(), Tachiom()) if find_spec(peer.library))


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arqmath", help="a folder of the ARQMath release, or of a part of it")
    parser.add_argument("model", help="a multi-vector model: a name or a folder")
    parser.add_argument("--folder", type=Path, required=True, help="where vectors are kept")
    parser.add_argument("--documents", type=int, help="take the first documents only")
    parser.add_argument("--dtype", nargs="*", default=["int8"], help="how our index stores rows")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    texts = read(options.arqmath)
    if not (options.folder / "rest.npz").exists():
        encode(texts, options.model, options.folder)
    corpus = encoded(options.folder, options.documents)
    true = [brute.maxsim(corpus, [query])[0][:K] for query in corpus.queries]
    print(f"{len(corpus):,} documents of {corpus.offsets[-1] / len(corpus):.0f} rows, {corpus.dimensions} dimensions;")
    print(f"{len(true)} queries of {np.mean([len(query) for query in corpus.queries]):.0f} rows.")
    reading, size = machine(corpus.dimensions).reading, 4 * corpus.dimensions * corpus.offsets[-1]
    print(f"One core reads {reading / 1e9:.1f} GB/s.\n")
    print("| | build, CPU s | append a tenth, CPU s | delete a hundredth, CPU s | query, CPU ms | limit, ms |", end=" ")
    print(f"recall@10 | recall@{K} | nDCG' | bytes a document | memory, bytes a document |")
    print(f"|---|{'---:|' * 10}")
    print(f"| brute force | | | | | {1000 * size / reading:.1f} | 1 | 1 |", end=" ")
    print(f"{quality(true, texts):.3f} | {size / len(corpus):,.0f} | |", flush=True)
    for index in indexes(options.dtype, corpus.dimensions):
        with tempfile.TemporaryDirectory() as folder:
            print(*rows(index, corpus, texts, true, reading, Path(folder)), sep="\n", flush=True)


if __name__ == "__main__":
    main()

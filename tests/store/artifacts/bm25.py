"""BM25: every document has a distinct word, one of three common ones, and a formula."""

from pathlib import Path

import pandas as pd

from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.sparse import index as sparse

open = BM25Index
PART = 2
WORDS = ("series", "matrix", "boundary")


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    sparse.PART_BYTES, sparse.BATCH = 1, PART
    documents = ({"docno": f"d{i}", "text": f"own{i} {WORDS[(i + seed) % 3]} $x^{seed}$"} for i in rows)
    BM25Index(path).indexer(mode, resume=True).index(documents)  # type: ignore[arg-type]


def read(path: Path) -> object:
    """All docnos in order, all term counts, and a ranking."""
    index = BM25Index(path)
    postings = index.snapshot().postings
    found = index.retriever()(pd.DataFrame({"qid": ["1"], "query": ["series matrix $x^0$ own3"]}))
    return [
        index.snapshot().tokens.to_dict(),
        [row["docno"] for row in index.get_corpus_iter()],
        [list(postings.names), *(getattr(postings, name).tolist() for name in ("offsets", "documents", "counts"))],
        found[["docno", "score", "rank"]].round(5).to_numpy().tolist(),
    ]

"""The folder of an index in parts: three parts of neighbours, searched by the process that reads them."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import torch  # noqa: F401 - once, not in each fork of the battery

from pyterrier_mathamr import Processes
from pyterrier_mathamr.index import ShardedIndex
from pyterrier_mathamr.index.sharded.folder import filling

NAME = "sharded-index"
MODES = ("create", "overwrite")  # documents are added to a part and removed from it, which test_sharded_folder tries
_PARTS, _D = 3, 4


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Fill the parts that a run that died has not finished; an index that exists is replaced."""
    docnos = [f"d{i}" for i in rows]
    with filling(path, _PARTS, {"seed": seed, "documents": docnos}) as parts:
        for number, part in enumerate(parts):
            if not part.built():
                part.indexer(model="a model", resume=True).index(_documents(docnos[number::_PARTS], seed))


def _documents(docnos: Iterable[str], seed: int) -> list[dict[str, object]]:
    return [{"docno": docno, "doc_embs": _rows(docno, seed), "formula_ids": [f"{docno}-f"]} for docno in docnos]


def _rows(docno: str, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, *docno.encode()]).standard_normal((3, _D)).astype(np.float32)


def open(path: Path) -> ShardedIndex:
    """The index."""
    return ShardedIndex(path)


def read(path: Path) -> object:
    """All documents, and what every search finds."""
    index = ShardedIndex(path, Processes(1))
    documents = [(doc["docno"], doc["doc_embs"].round(5).tolist()) for doc in index.get_corpus_iter()]
    queries = pd.DataFrame({"qid": ["1", "2"]}).assign(query_embs=[_rows("q1", 7), _rows("q2", 7)[:1]])
    ranking = index.colbert()(queries)
    found = [ranking, index.single_vector()(queries), index.doc_vn()(queries), index.scorer()(ranking)]
    return documents, [of[["qid", "docno", "rank"]].assign(score=of["score"].round(5)).values.tolist() for of in found]

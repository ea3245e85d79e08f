"""The index of documents."""

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch  # noqa: F401 - once, not in each fork of the battery

from pyterrier_mathamr.index import MathAMRIndex, indexing

NAME = "vector-index"
PART = 2
_ROWS, _D = 3, 4


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write documents of three rows in parts of two documents; a run that died is gone on with."""
    corpus = ({"docno": f"d{i}", "seed": seed} for i in rows)
    indexer = MathAMRIndex(path).indexer(mode, model="a model", resume=True)
    documents = (
        {"docno": doc["docno"], "doc_embs": _rows(doc["docno"], seed), "formula_ids": _ids(doc["docno"])}
        for doc in indexer.pending(corpus, PART)
    )
    with mock.patch.object(indexing, "PART_BYTES", PART * _ROWS * _D * 4):
        indexer.index(documents)


def _rows(docno: str, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, *docno.encode()]).standard_normal((_ROWS, _D)).astype(np.float32)


def open(path: Path) -> MathAMRIndex:
    """The index."""
    return MathAMRIndex(path)


def _ids(docno: str) -> list[str]:
    return [f"{docno}-f"]


def read(path: Path) -> object:
    """All documents, and what every search finds."""
    index = MathAMRIndex(path)
    documents = [
        (doc["docno"], doc["doc_embs"].round(5).tolist(), doc.get("formula_ids"), doc.get("doc_model"))
        for doc in index.get_corpus_iter()
    ]
    queries = pd.DataFrame({"qid": ["1", "2"]}).assign(query_embs=[_rows("q1", 7), _rows("q2", 7)[:1]])
    ranking = index.colbert()(queries)
    found = [ranking, index.single_vector()(queries), index.doc_vn()(queries), index.scorer()(ranking)]
    return documents, [of[["qid", "docno", "rank"]].assign(score=of["score"].round(5)).values.tolist() for of in found]

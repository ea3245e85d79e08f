"""An index of MaRF: documents of one to three views."""

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch  # noqa: F401 - once, not in each fork of the battery

from pyterrier_mathamr.index import indexing
from pyterrier_mathamr.systems import MaRFIndex

NAME = "marf"
PART = 2
_ROWS, _D = 3, 4


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write documents in parts of two; a run that died is gone on with."""
    corpus = ({"docno": f"d{i}", "seed": seed} for i in rows)
    indexer = MaRFIndex(path).indexer(mode, model="a model", resume=True)
    documents = ({"docno": doc["docno"], **_views(doc["docno"], seed)} for doc in indexer.pending(corpus, PART))
    with mock.patch.object(indexing, "PART_BYTES", 1):
        indexer.index(documents)


def open(path: Path) -> MaRFIndex:
    """The index."""
    return MaRFIndex(path)


def read(path: Path) -> object:
    """All documents, and what searches find."""
    index = MaRFIndex(path)
    documents = [
        (doc["docno"], [view.round(3).tolist() for view in doc["doc_views"]], doc["doc_formulas"], doc.get("doc_model"))
        for doc in index.get_corpus_iter()
    ]
    queries = pd.DataFrame({"qid": ["1", "2"]}).assign(query_embs=[_rows("q1", 7), _rows("q2", 7)[:1]])
    ranking = index.retriever()(queries)
    found = [ranking, index.scorer()(ranking)]
    return documents, [of[["qid", "docno", "rank"]].assign(score=of["score"].round(5)).values.tolist() for of in found]


def _views(docno: str, seed: int) -> dict[str, object]:
    number = 1 + int(docno[1:]) % 3
    return {
        "doc_views": [_rows(f"{docno} {k}", seed) for k in range(number)],
        "doc_formulas": [f"$x{k}$" for k in range(number)],
    }


def _rows(name: str, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, *name.encode()]).standard_normal((_ROWS, _D)).astype(np.float32)

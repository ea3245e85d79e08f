"""The index of formulas."""

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch  # noqa: F401 - once, not in each fork of the battery

from pyterrier_mathamr.index import MathAMRFormulaIndex, indexing

NAME = "formula-index"
PART = 2
_ROWS, _D = 3, 4


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write documents of three rows in parts of two documents; a run that died is gone on with."""
    corpus = ({"docno": f"d{i}", "seed": seed} for i in rows)
    indexer = MathAMRFormulaIndex(path).indexer(mode, model="a model", resume=True)
    documents = (
        {"docno": doc["docno"], "doc_embs": _rows(doc["docno"], seed), "formula_ids": _ids(doc["docno"])}
        for doc in indexer.pending(corpus, PART)
    )
    with mock.patch.object(indexing, "PART_BYTES", PART * 1 * _D * 4):
        indexer.index(documents)


def _rows(docno: str, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, *docno.encode()]).standard_normal((_ROWS, _D)).astype(np.float32)


def open(path: Path) -> MathAMRFormulaIndex:
    """The index."""
    return MathAMRFormulaIndex(path)


def _ids(docno: str) -> list[str]:
    return [docno]  # of the formula, which is what this index knows documents by


def read(path: Path) -> object:
    """All formulas, and what the search finds."""
    index = MathAMRFormulaIndex(path)
    formulas = [
        (row["docno"], row["post_id"], row["visual_id"], row["formula_vec"].round(5).tolist())
        for row in index.get_corpus_iter()
    ]
    queries = pd.DataFrame({"qid": ["1"], "query_formula_id": ["a"]})
    found = index.retriever()(queries.assign(query_embs=[_rows("q1", 7)], query_formula_ids=[["a"]]))
    return formulas, found[["docno", "post_id", "rank"]].assign(score=found["score"].round(5)).values.tolist()

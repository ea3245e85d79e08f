"""The index of formulas, which knows documents by the ids of their formulas."""

from pathlib import Path
from unittest import mock

import pandas as pd
from _vectors import WIDTH, rows

from pyterrier_mathamr.index import MathAMRFormulaIndex, indexing

open = MathAMRFormulaIndex


def build(path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
    """Write documents of three rows in parts of two documents; a run that died is continued."""
    corpus = ({"docno": f"d{i}", "seed": seed} for i in numbers)
    indexer = MathAMRFormulaIndex(path).indexer(mode, model="a model", resume=True)
    names = (doc["docno"] for doc in indexer.pending(corpus, 2))
    with mock.patch.object(indexing, "PART_BYTES", 2 * WIDTH * 4):
        indexer.index({"docno": name, "doc_embs": rows(name, seed), "formula_ids": [name]} for name in names)


def read(path: Path) -> object:
    """All formulas, and what the search finds."""
    index = MathAMRFormulaIndex(path)
    formulas = [
        (row["docno"], row["post_id"], row["visual_id"], row["formula_vec"].round(5).tolist())
        for row in index.get_corpus_iter()
    ]
    queries = pd.DataFrame({"qid": ["1"], "query_formula_id": ["a"]})
    found = index.retriever()(queries.assign(query_embs=[rows("q1", 7)], query_formula_ids=[["a"]]))
    return formulas, found[["docno", "post_id", "rank"]].assign(score=found["score"].round(5)).values.tolist()

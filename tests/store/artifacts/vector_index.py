"""The index of documents."""

from pathlib import Path
from unittest import mock

from _vectors import WIDTH, queries, rows, shown

from pyterrier_mathamr.index import MathAMRIndex, indexing

open = MathAMRIndex


def build(path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
    """Write documents of three rows in parts of two documents; a run that died is continued."""
    corpus = ({"docno": f"d{i}", "seed": seed} for i in numbers)
    indexer = MathAMRIndex(path).indexer(mode, model="a model", resume=True)
    names = (doc["docno"] for doc in indexer.pending(corpus, 2))
    with mock.patch.object(indexing, "PART_BYTES", 2 * 3 * WIDTH * 4):
        indexer.index({"docno": name, "doc_embs": rows(name, seed), "formula_ids": [f"{name}-f"]} for name in names)


def read(path: Path) -> object:
    """All documents, and what every search finds."""
    index = MathAMRIndex(path)
    documents = [
        (doc["docno"], doc["doc_embs"].round(5).tolist(), doc.get("formula_ids"), doc.get("doc_model"))
        for doc in index.get_corpus_iter()
    ]
    ranking = index.colbert()(queries())
    found = [ranking, index.single_vector()(queries()), index.doc_vn()(queries()), index.scorer()(ranking)]
    return documents, [shown(of) for of in found]
